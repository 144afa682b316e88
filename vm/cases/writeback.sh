# Somebody commits, and stops. A flusher that writes meanwhile has no more than two megabytes in the device
# at a time; each time when those are written, and nobody else does anything, it has to go on.
. /case/lib.sh
rounds=$(full_or 40 6)

# Everything is written back at once, and by nobody but the flusher.
echo 1 >/proc/sys/vm/dirty_writeback_centisecs
echo 1 >/proc/sys/vm/dirty_expire_centisecs

unwritten() {
	awk '$1 == "Dirty:" || $1 == "Writeback:" { sum += $2 } END { print sum + 0 }' /proc/meminfo
}

disk nb0 size=128 memory_backed=1 cache_size=8 hw_queue_depth=64 submit_queues=1 irqmode=2 completion_nsec=10000000
echo 0 >/sys/block/nb0/queue/rotational
use nb0 disktime
# So that all of it waits here, and nobody for a request.
echo 512 >/sys/block/nb0/queue/nr_requests || fail "nr_requests"
group a 1000
group b 100

T=/sys/kernel/tracing
echo 1 >$T/events/disktime/disktime_pick/enable

# gaps: how many requests the disk was given, and ms between two of them at most.
gaps() {
	awk '/disktime_pick:/ {
		for (i = 1; i < NF; i++)
			if ($(i + 1) == "disktime_pick:") now = $i * 1000
		if (last && now - last > most) most = now - last
		last = now
		count++
	}
	END { printf "%d %d\n", count, most }' $T/trace
}

# commits: until there is a file.
commits() {
	while ! test -e /tmp/enough; do
		dd if=/dev/zero of=/dev/nb0 bs=4k count=1 oflag=direct conv=fsync 2>/dev/null || return
	done
}

stuck=0
told=0
for round in $(seq "$rounds"); do
	before=$(counter nb0 completed)
	rm -f /tmp/enough
	spawn commits inside a commits
	# Open until all is written, as the last to close would write all itself.
	exec 9<>/dev/nb0
	spawn writer inside b dd if=/dev/zero of=/dev/nb0 bs=1M count=48 seek=1 conv=notrunc
	# In another part of the writing each time.
	sleep "0.$((round % 3 * 7 + 10))"
	echo >$T/trace
	touch /tmp/enough
	reap_all
	for _ in $(seq 600); do
		left=$(unwritten)
		test "$left" = 0 && break
		sleep 0.05
	done
	exec 9<&-
	test "$left" = 0 || fail "$left KB are never written"
	writes=$(($(counter nb0 completed) - before))
	given=$(gaps)
	alone=${given% *}
	gap=${given#* }
	say "round $round: $writes writes, $alone when nobody commits any more, $gap ms between two at most"
	test "$writes" -ge 36 || fail "the flusher has not written it"
	test "$alone" -lt 40 || told=$((told + 1))
	test "$gap" -lt 250 || stuck=$((stuck + 1))
done
test "$told" -ge 2 || fail "the flusher was never left alone in the midst of it"
# Whoever is stuck is found by a timer, much later. The machine may pause as long, but hardly twice.
test "$stuck" -le 1 || fail "the flusher was stuck in $stuck rounds"
balanced nb0
use nb0 none
undisk nb0
say "ok"
