# `disktime bench run --on host`: on a disk that is there, and on none that holds something or is in
# use.
. /case/lib.sh

run() {
	disktime bench run /case/tree.toml --on host --controller disktime --duration-scale 0.3 "$@"
}

# refused WHY HINT ARGUMENT...
refused() {
	why=$1 hint=$2
	shift 2
	run "$@" >/tmp/out 2>/tmp/err && fail "not refused: $*"
	grep -q "^error: .*$why" /tmp/err && grep -q "^hint: .*$hint" /tmp/err || {
		cat /tmp/err
		fail "$*: not for this reason: $why"
	}
}

disk small memory_backed=0 size=1024
disk held memory_backed=1 size=64
disk nb0 memory_backed=0 size=4096 irqmode=2 queue_mode=2 completion_nsec=4000000 submit_queues=1 \
	hw_queue_depth=8
echo mq-deadline >/sys/block/nb0/queue/scheduler
echo 77 >/sys/block/nb0/queue/nr_requests
mkdir /sys/fs/cgroup/mine

refused "is no block device" "whole disk" --device /dev/null
run --device /dev/nosuch 2>/tmp/err && fail "a disk that there is not was used"
grep -q "^error: cannot find /dev/nosuch" /tmp/err || fail "no such disk: $(cat /tmp/err)"
run --device /dev/small >/tmp/out 2>/tmp/err && fail "a small disk was used"
grep -q "tree.* left out: the disk has 1024 MiB, the jobs need 3072" /tmp/err || {
	cat /tmp/err
	fail "a small disk is refused for another reason"
}

mkfs.ext4 -q -F -L precious /dev/held || fail mkfs
sum=$(md5sum </dev/held)
refused "holds a file system or the like (ext4)" "destroy" --device /dev/held
refused "holds a file system or the like (ext4)" "destroy" --device /dev/held --destroy other
mount -t ext4 /dev/held /mnt || fail mount
refused "is in use" "unmount" --device /dev/held --destroy precious
umount /mnt
test "$sum" = "$(md5sum </dev/held)" || say "mounting wrote to it"
# Named, it is used, or would be if it were large enough.
run --device /dev/held --destroy precious >/tmp/out 2>/tmp/err
grep -q "the disk has 64 MiB" /tmp/err || {
	cat /tmp/err
	fail "what was named is refused"
}

run --device /dev/nb0 --json /tmp/results >/tmp/out 2>/tmp/err
status=$?
test $status = 0 || {
	cat /tmp/out /tmp/err
	fail "it ended with $status"
}
test "$(grep -c '"on":"host"' /tmp/results)" = 2 || fail "not two results"
for share in "A1:0.1[67]" "A2:0.[45]" "B:0.3[234]"; do
	grep '"phase":"all".*"controller":"disktime"' /tmp/results |
		grep -q "\"name\":\"${share%%:*}\",[^}]*\"got\":${share#*:}" || {
		cat /tmp/out
		fail "the share of ${share%%:*} is not ${share#*:}"
	}
done
grep -q '"path":"disktime-bench/A/A1"' /tmp/results || fail "groups are not below disktime-bench"
test -d /sys/fs/cgroup/disktime-bench && fail "a group stays behind"
test -d /sys/fs/cgroup/mine || fail "a group of the machine's is gone"
grep -q '\[mq-deadline\]' /sys/block/nb0/queue/scheduler || fail "the scheduler is not as it was"
test "$(cat /sys/block/nb0/queue/nr_requests)" = 77 || fail "nr_requests is not as it was"
say "ok"
