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

# longest_gap: ms between two requests that the disk was given.
longest_gap() {
	awk '/disktime_pick:/ {
		for (i = 1; i < NF; i++)
			if ($(i + 1) == "disktime_pick:") now = $i * 1000
		if (last && now - last > most) most = now - last
		last = now
	}
	END { printf "%d\n", most }' $T/trace
}

# commits: until there is a file.
commits() {
	while ! test -e /tmp/enough; do
		dd if=/dev/zero of=/dev/nb0 bs=4k count=1 oflag=direct conv=fsync 2>/dev/null || return
	done
}

stuck=0
for round in $(seq "$rounds"); do
	before=$(counter nb0 completed)
	rm -f /tmp/enough
	spawn commits inside a commits
	# Open until all is written, as the last to close would write all itself.
	exec 9<>/dev/nb0
	inside b dd if=/dev/zero of=/dev/nb0 bs=1M count=48 seek=1 conv=notrunc 2>/dev/null || fail "a write"
	echo >$T/trace
	touch /tmp/enough
	reap_all
	for _ in $(seq 600); do
		test "$(unwritten)" = 0 && break
		sleep 0.05
	done
	exec 9<&-
	test "$(unwritten)" = 0 || fail "$(unwritten) KB are never written"
	writes=$(($(counter nb0 completed) - before))
	gap=$(longest_gap)
	say "round $round: $writes writes, $gap ms between two at most"
	test "$writes" -ge 36 || fail "the flusher has not written it"
	test "$gap" -lt 250 || stuck=$((stuck + 1))
done
# Whoever is stuck is found by a timer, much later. The machine may pause as long, but hardly twice.
test "$stuck" -le 1 || fail "the flusher was stuck in $stuck rounds"
balanced nb0
use nb0 none
undisk nb0
say "ok"
