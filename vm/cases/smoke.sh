set -eu

disk=/sys/kernel/config/nullb/slow
mkdir $disk
for setting in size=256 memory_backed=0 irqmode=2 completion_nsec=1000000 \
	hw_queue_depth=8 queue_mode=2 power=1; do
	echo "${setting#*=}" >"$disk/${setting%%=*}"
done
for _ in $(seq 100); do
	test -b /dev/slow && break
	sleep 0.02
done

fio --name=smoke --filename=/dev/slow --rw=randread --bs=4k --direct=1 --ioengine=libaio \
	--iodepth=16 --time_based --runtime=1 --output-format=json >/out/fio.json
iops=$(sed -n 's/.*"iops" : \([0-9]*\).*/\1/p' /out/fio.json | head -n 1)
echo "4 KB random reads on eight servers of 1 ms: $iops a second"
# 8000 is what the servers can do. The lower bound shows that fio did work, the upper one that
# the disk kept its time.
test "$iops" -gt 800
test "$iops" -lt 8400
