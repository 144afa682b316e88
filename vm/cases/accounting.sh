# Time adds up, nothing runs while nothing is to be done, a removed group's counters are kept.
. /case/lib.sh
seconds=$(full_or 20 1)
T=/sys/kernel/tracing

# How often hardware queues were run by work items, and the timer expired, since watch_runs.
watch_runs() {
	echo >$T/trace
	echo 1 >$T/events/workqueue/workqueue_execute_start/enable
	echo 1 >$T/events/timer/hrtimer_expire_entry/enable
	echo 1 >$T/tracing_on
}
runs() {
	echo 0 >$T/tracing_on
	cat $T/trace >/tmp/trace
	RUNS=$(grep -c 'blk_mq_run_work_fn\|blk_mq_requeue_work' /tmp/trace)
	TIMERS=$(grep -c 'function=disktime_timer' /tmp/trace)
}
echo 16384 >$T/buffer_size_kb

# field DISK GROUP NAME: of io.disktime.stat.
field() {
	sed -n "s|^$(cat "/sys/block/$1/dev") .*\\b$3=\\([0-9]*\\).*|\\1|p" "$CGROUPS/$2/io.disktime.stat"
}

disk nb0 size=64 memory_backed=0 hw_queue_depth=8 submit_queues=1 irqmode=2 completion_nsec=1000000
echo 1 >/sys/block/nb0/queue/rotational
use nb0 disktime
group a 300
group b 100

for kind in "psync 1" "libaio 8" "io_uring 32"; do
	engine=${kind% *}
	depth=${kind#* }
	before=$(counter nb0 dispatched)
	watch_runs
	for g in a b; do
		spawn $g inside $g fio --name=$g --filename=/dev/nb0 --direct=1 --rw=read --bs=4k \
			--ioengine="$engine" --iodepth="$depth" --time_based --runtime="$seconds"
	done
	reap_all
	runs
	dispatched=$(($(counter nb0 dispatched) - before))
	say "$kind: $dispatched dispatched, $RUNS runs of hardware queues, $TIMERS timers"
	test "$dispatched" -gt 100 || fail "no load"
	# One when a request comes, one when a timer expires or room was made for another.
	test "$RUNS" -le $((3 * dispatched + 50)) || fail "hardware queues are polled"
	test "$TIMERS" -le $((2 * dispatched + 50)) || fail "the timer runs wild"
	balanced nb0
	watch_runs
	sleep 1
	runs
	test "$TIMERS" = 0 || fail "the timer expired $TIMERS times on an idle disk"
	test "$RUNS" -le 2 || fail "hardware queues were run $RUNS times on an idle disk"
done

say "time adds up"
busy=$(($(counter nb0 busy_nsec) / 1000))
charged=$(($(counter nb0 charged_nsec) / 1000))
sum=0
for g in . a b; do
	sum=$((sum + $(field nb0 $g time_usec)))
done
ios=$(($(field nb0 . ios) + $(field nb0 a ios) + $(field nb0 b ios)))
say "busy $busy us, charged $charged us, sum of groups $sum us, $ios I/Os"
test $((busy - sum)) -le $((busy / 100)) && test $((sum - busy)) -le 10 || fail "time is lost or invented"
test $((charged - sum)) -le 10 || fail "groups do not add up to what was charged"
test "$ios" = "$(counter nb0 completed)" || fail "I/Os do not add up"

say "a removed group's counters go to its parent"
inside b dd if=/dev/nb0 of=/dev/null bs=64k count=64 iflag=direct 2>/dev/null
before=$(($(field nb0 . time_usec) + $(field nb0 b time_usec)))
rmdir $CGROUPS/b
for _ in $(seq 120); do
	after=$(field nb0 . time_usec)
	test $((after - before)) -ge -2 && break
	sleep 0.1
done
test $((after - before)) -ge -2 && test $((after - before)) -le 2 ||
	fail "the root has $after us, expected $before"
balanced nb0

say "a disk that is full or has nothing to do is not polled"
before=$(counter nb0 dispatched)
watch_runs
dtcase hammer /dev/nb0 threads=48 seconds="$seconds" gap_ms=5000 seed="$SEED" || fail "hammer"
runs
dispatched=$(($(counter nb0 dispatched) - before))
say "$dispatched dispatched, $RUNS runs of hardware queues"
test "$RUNS" -le $((3 * dispatched + 50)) || fail "hardware queues are polled"
balanced nb0
use nb0 none
say "ok"
