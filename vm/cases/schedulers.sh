set -eu

for name in bfq kyber mq-deadline none; do
	echo $name >/sys/block/nullb0/queue/scheduler
	grep -qF "[$name]" /sys/block/nullb0/queue/scheduler
	dd if=/dev/nullb0 of=/dev/null bs=4k count=64 iflag=direct 2>/dev/null
done
for name in io memory; do
	grep -qw $name /sys/fs/cgroup/cgroup.subtree_control
done
mkdir /sys/fs/cgroup/a
test -e /sys/fs/cgroup/a/io.stat
