# The gate before the scheduler's tags: nobody starves, nobody is stuck there, nothing leaks.
. /case/lib.sh
# Longer than the gap that is allowed, or none would show.
seconds=$(full_or 10 3)
brief=$(full_or 10 1)

say "64 threads, one hardware queue, 16 tags"
disk nb0 size=64 memory_backed=0 hw_queue_depth=8 submit_queues=1 irqmode=2 completion_nsec=1000000
use nb0 disktime
test "$(cat /sys/block/nb0/queue/nr_requests)" = 16 || fail "not 16 tags"
dtcase hammer /dev/nb0 threads=64 seconds="$seconds" gap_ms=2000 writes=50 seed="$SEED" ||
	fail "starvation"
balanced nb0

say "three groups with 64 threads each, weights 1, 100 and 10000"
group light 1
group middle 100
group heavy 10000
# The lightest has less than one request a second by its weight; that it has any is what counts.
long=$(full_or 20 4)
spawn light inside light dtcase hammer /dev/nb0 threads=2 seconds="$long" gap_ms=20000 least=1 seed="$SEED"
spawn middle inside middle dtcase hammer /dev/nb0 threads=16 seconds="$long" gap_ms=8000 seed="$SEED"
spawn heavy inside heavy dtcase hammer /dev/nb0 threads=64 seconds="$long" gap_ms=2000 seed="$SEED"
reap_all
cat /tmp/light.log /tmp/middle.log /tmp/heavy.log
balanced nb0

say "processes killed while they wait for a request"
dtcase reap /dev/nb0 procs=48 kills="$(full_or 500 30)" seed="$SEED" || fail "killed processes"
balanced nb0

say "requests that may not sleep"
# Slower than a busy host's emulated processors: only a full disk tells anybody EAGAIN.
disk nb3 size=64 memory_backed=0 hw_queue_depth=8 submit_queues=1 irqmode=2 completion_nsec=5000000
use nb3 disktime
dtcase nowait /dev/nb3 threads=8 waiting=32 seconds="$seconds" seed="$SEED" || fail "nowait"
balanced nb3
use nb3 none
undisk nb3
inside light fio --name=uring --filename=/dev/nb0 --direct=1 --rw=randrw --bs=4k --ioengine=io_uring \
	--iodepth=64 --numjobs=2 --time_based --runtime="$brief" --output=/tmp/uring.txt ||
	fail "io_uring"
balanced nb0

say "nr_requests changed while processes wait at the gate"
spawn load dtcase hammer /dev/nb0 threads=64 seconds="$(full_or 30 5)" gap_ms=3000 seed="$SEED"
sleep 0.3
worst=0
for n in $(seq "$(full_or 100 20)"); do
	one_of 4 5 8 16 31 64 128 256 2048
	begin=$(cut -d. -f1 /proc/uptime)
	timeout 20 sh -c "echo $R >/sys/block/nb0/queue/nr_requests" || fail "nr_requests $R"
	took=$(($(cut -d. -f1 /proc/uptime) - begin))
	test $took -le $worst || worst=$took
	test "$(counter nb0 tags)" = "$R" || fail "$R requests, but the gate counts $(counter nb0 tags)"
done
say "$n changes, the longest took $worst s"
test "$worst" -le 3 || fail "a change took $worst s"
reap_all
cat /tmp/load.log
balanced nb0
use nb0 none
undisk nb0

say "two hardware queues of 8 tags each"
disk nb1 size=64 memory_backed=0 hw_queue_depth=8 submit_queues=2 irqmode=2 completion_nsec=5000000
use nb1 disktime
dtcase hammer /dev/nb1 threads=64 seconds="$seconds" gap_ms=2000 seed="$SEED" || fail "starvation"
dtcase nowait /dev/nb1 threads=8 waiting=48 seconds="$brief" seed="$SEED" || fail "nowait"
dtcase reap /dev/nb1 procs=48 kills="$(full_or 200 15)" seed="$SEED" || fail "killed processes"
echo 4 >/sys/block/nb1/queue/nr_requests
dtcase hammer /dev/nb1 threads=64 seconds="$brief" gap_ms=2000 seed="$SEED" || fail "starvation"
balanced nb1
use nb1 none
undisk nb1

say "a disk that takes one request at a time"
disk nb2 size=64 memory_backed=0 hw_queue_depth=1 submit_queues=1 irqmode=2 completion_nsec=1000000
use nb2 disktime
test "$(cat /sys/block/nb2/queue/nr_requests)" = 2 || fail "not 2 tags"
dtcase hammer /dev/nb2 threads=32 seconds="$seconds" gap_ms=2000 seed="$SEED" || fail "starvation"
dtcase nowait /dev/nb2 threads=4 waiting=16 seconds="$brief" seed="$SEED" || fail "nowait"
balanced nb2

say "anticipation ends: a reader that stops does not keep the disk"
for rotational in $(full_or "1 0" 1); do
	echo $rotational >/sys/block/nb2/queue/rotational
	use nb2 none
	use nb2 disktime
	tune nb2 idle_usec 1000000
	tune nb2 slice_usec 100000
	tune nb2 strict 1
	group stops 10000
	spawn stops inside stops fio --name=stops --filename=/dev/nb2 --direct=1 --rw=read --bs=4k \
		--ioengine=psync --time_based --runtime=1 --thinktime=200ms --thinktime_blocks=100
	spawn other inside light dtcase hammer /dev/nb2 threads=2 seconds=3 gap_ms=2500 seed="$SEED"
	reap_all
	cat /tmp/other.log
	balanced nb2
done
tune nb2 idle_usec 20000
spawn stops inside stops fio --name=stops --filename=/dev/nb2 --direct=1 --rw=read --bs=4k \
	--ioengine=psync --time_based --runtime=1 --thinktime=200ms --thinktime_blocks=100
spawn other inside light dtcase hammer /dev/nb2 threads=2 seconds=2 gap_ms=1500 seed="$SEED"
reap_all
cat /tmp/other.log
balanced nb2
use nb2 none
say "ok"
