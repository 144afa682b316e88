# What an administrator may do at any time, done all the time and under load. $1: switch (of
# schedulers), cgroups (made and removed), reload (of the modules), hotplug (of a CPU, of hardware
# queues, of the disk), scsi (errors, timeouts, requeues), fs (a file system on a loop device).
. /case/lib.sh

# What waits in the kernel after two minutes is lost; a load ends long before.
LOAD_SECONDS=$(full_or 3 1)

fio_load() {
	load=$1
	shift
	timeout -s KILL 60 fio --name="$load" --direct=1 --time_based --runtime=$LOAD_SECONDS \
		--randseed="$SEED" --bs=4k --output="/tmp/$load.fio" "$@" || {
		cat "/tmp/$load.fio"
		return 1
	}
}

# The loads of one disk: several engines, sizes and kinds, in the groups a, b, c and the root. What
# is written through the page cache has its own part: direct writes beside it make fsync fail.
start_load() {
	spawn "aio-$1" repeat inside a fio_load "aio-$1" "--filename=/dev/$1" --rw=randread \
		--ioengine=libaio --iodepth=32
	spawn "uring-$1" repeat inside b fio_load "uring-$1" "--filename=/dev/$1" --rw=randrw \
		--ioengine=io_uring --iodepth=32 --bsrange=4k-64k --size=32m
	spawn "sync-$1" repeat inside c fio_load "sync-$1" "--filename=/dev/$1" --rw=randwrite \
		--ioengine=psync --numjobs=4 --thread --fsync=16 --size=32m
	spawn "cached-$1" repeat fio_load "cached-$1" "--filename=/dev/$1" --rw=write --direct=0 \
		--ioengine=psync --fsync=64 --offset=32m --size=16m
}

weights() {
	while ! test -e /tmp/stop; do
		one_of a b c
		dir=$CGROUPS/$R
		one_of 1 10 100 1000 10000 default
		echo "$R" >"$dir/io.disktime.weight" 2>/dev/null
		one_of rt be idle default
		echo "$R" >"$dir/io.disktime.class" 2>/dev/null
		one_of $DEVS
		dev=$R
		one_of 1 77 10000 default
		echo "$dev $R" >"$dir/io.disktime.weight" 2>/dev/null
		sleep 0.02
		cat "$dir/io.disktime.stat" "$dir/io.stat" >/dev/null 2>&1
		cat /sys/kernel/debug/block/*/sched/groups /sys/kernel/debug/block/*/sched/state >/dev/null 2>&1
	done
	return 0
}

nap() {
	random "$1"
	sleep "0.$(printf %03d "$R")"
}

rename_files() {
	for i in $(seq 40); do
		mkdir -p "/mnt/d/$i" && echo "$i" >"/mnt/d/$i/f" && mv "/mnt/d/$i/f" "/mnt/d/f$i" || return
	done
	sync && rm -r /mnt/d
}

torture_disk() {
	name=$1
	shift
	disk "$name" size=64 memory_backed=1 cache_size=8 hw_queue_depth=8 irqmode=2 \
		completion_nsec=200000 "$@"
	use "$name" disktime
	DEVS="$DEVS $(cat "/sys/block/$name/dev")"
}

group a 300
group b 100
group c 10 idle
DEVS=
test -e /sys/module/disktime_iosched || modprobe disktime-iosched

case $1 in
switch)
	torture_disk nb0
	torture_disk nb1 submit_queues=2 shared_tags=1 blocking=1 irqmode=0 cache_size=0
	start_load nb0
	start_load nb1
	spawn weights weights
	for n in $(seq "$(full_or 200 15)"); do
		for dev in nb0 nb1; do
			one_of ${SCHEDULERS:-disktime disktime disktime none mq-deadline bfq}
			echo "$R" >/sys/block/$dev/queue/scheduler || fail "$dev does not take $R"
		done
		nap 150
	done
	use nb0 disktime
	use nb1 disktime
	say "$n switches of two disks"
	sleep 1
	stop_load
	balanced nb0
	balanced nb1
	;;
cgroups)
	torture_disk nb0
	torture_disk nb1 submit_queues=2
	spawn weights weights
	n=0
	rounds=0
	total=$(full_or 500 60)
	# Three loads go from cgroup to cgroup; each cgroup is removed when they have left it, with
	# their requests still in flight.
	for i in 1 2 3; do
		fio --thread --name=m$i --filename=/dev/nb$((i % 2)) --direct=1 --rw=randrw --ioengine=libaio --iodepth=32 \
			--time_based --runtime=300 --bs=4k --output=/tmp/m$i.fio &
		eval "PID$i=$!"
	done
	sleep 1
	while test $n -lt "$total"; do
		for i in 1 2 3; do
			new=$CGROUPS/t$i-$n
			mkdir "$new"
			if test $((n % 3)) = 0; then
				echo +io >"$new/cgroup.subtree_control"
				new=$new/sub
				mkdir "$new"
				n=$((n + 1))
			fi
			random 1000
			echo $((R + 1)) >"$new/io.disktime.weight" || fail "weight"
			eval "R=\$PID$i"
			echo "$R" >"$new/cgroup.procs" || fail "migration"
			eval "old=\${OLD$i:-}"
			if test -n "${old:=}"; then
				rmdir "$old" || fail "rmdir $old"
				case $old in */sub) rmdir "${old%/sub}" || fail "rmdir" ;; esac
			fi
			eval "OLD$i=\$new"
			n=$((n + 1))
		done
		rounds=$((rounds + 1))
		if test $((rounds % 10)) = 0; then
			use nb1 none
			nap 20
			use nb1 disktime
		fi
		nap 30
	done
	say "$n cgroups made and removed"
	kill -INT "$PID1" "$PID2" "$PID3"
	for i in 1 2 3; do
		eval "wait \$PID$i"
		grep -q 'IOPS=' /tmp/m$i.fio || fail "load $i did not end well"
	done
	grep -h 'err= *[1-9]' /tmp/m?.fio && fail "I/O errors"
	for i in 1 2 3; do eval "rmdir \$OLD$i"; done
	stop_load
	rmdir $CGROUPS/t*/ 2>/dev/null
	balanced nb0
	balanced nb1
	for dev in nb0 nb1; do
		# Queues are kept for some seconds, and groups with them.
		for _ in $(seq 120); do
			test "$(counter $dev groups)" -le 4 && break
			sleep 0.1
		done
		test "$(counter $dev groups)" -le 4 || fail "$dev still has $(counter $dev groups) groups"
	done
	;;
reload)
	torture_disk nb0
	start_load nb0
	spawn weights weights
	group quiet 7
	(
		n=0
		while ! test -e /tmp/stop; do
			n=$((n + 1))
			mkdir -p $CGROUPS/churn/$n
			echo $((n % 10000 + 1)) 2>/dev/null >$CGROUPS/churn/$n/io.disktime.weight
			inside churn/$n dd if=/dev/nb0 of=/dev/null bs=4k count=4 iflag=direct 2>/dev/null
			rmdir $CGROUPS/churn/$n
		done
		rmdir $CGROUPS/churn
	) &
	churn=$!
	for n in $(seq "$(full_or 20 3)"); do
		one_of none mq-deadline
		use nb0 "$R"
		# Where policy data hold the module (6.1), those of the last cgroups go soon.
		for _ in $(seq 100); do
			rmmod disktime_iosched 2>/dev/null || test ! -e /sys/module/disktime_iosched &&
				rmmod disktime 2>/dev/null && break
			sleep 0.1
		done
		test -e /sys/module/disktime && fail "the module stays"
		test -e $CGROUPS/a/io.disktime.weight && fail "the files stay"
		nap 200
		insmod /case/disktime.ko || fail "insmod"
		insmod /case/disktime-iosched.ko || fail "insmod"
		test "$(cat $CGROUPS/quiet/io.disktime.weight)" = "default 100" || fail "old settings"
		echo 7 >$CGROUPS/quiet/io.disktime.weight
		use nb0 disktime
		nap 500
	done
	say "$n reloads"
	touch /tmp/stop
	wait $churn
	stop_load
	balanced nb0
	use nb0 none
	rmmod disktime_iosched || fail "rmmod"
	;;
hotplug)
	torture_disk nb0 submit_queues=2
	torture_disk nb1 submit_queues=1
	start_load nb0
	spawn weights weights
	for n in $(seq "$(full_or 40 4)"); do
		set -- cpu disk queues both
		shift $((n % 4))
		say "$1"
		case $1 in
		cpu | both)
			echo 0 >/sys/devices/system/cpu/cpu1/online || fail "offline"
			test "$1" = cpu || echo 1 >/sys/kernel/config/nullb/nb0/submit_queues
			nap 300
			echo 1 >/sys/devices/system/cpu/cpu1/online || fail "online"
			;;
		queues)
			one_of 1 2
			echo "$R" >/sys/kernel/config/nullb/nb0/submit_queues || fail "submit_queues"
			;;
		disk)
			# These loads end with an error, and shall end.
			for kind in libaio io_uring psync; do
				fio --name=$kind --filename=/dev/nb1 --direct=1 --rw=randrw --bs=4k \
					--ioengine=$kind --iodepth=16 --time_based --runtime=30 \
					>/dev/null 2>&1 &
				eval "PID_$kind=$!"
			done
			sleep 1
			nap 300
			undisk nb1
			for kind in libaio io_uring psync; do
				eval "wait \$PID_$kind"
			done
			torture_disk nb1 submit_queues=1
			;;
		esac
		nap 300
	done
	stop_load
	for dev in nb0 nb1; do
		use $dev disktime
		balanced $dev
	done
	;;
scsi)
	# Host-wide tags, two hardware queues, and a device that says no in every way it knows.
	modprobe scsi_debug dev_size_mb=64 submit_queues=2 max_queue=16 host_max_queue=16 \
		ndelay=100000 lbpu=1 || fail "scsi_debug"
	for _ in $(seq 100); do
		DISK=$(ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block 2>/dev/null) && break
		sleep 0.1
	done
	test -b "/dev/$DISK" || fail "no disk"
	say "$DISK"
	use "$DISK" disktime
	knobs=/sys/bus/pseudo/drivers/scsi_debug
	DEVS=$(cat "/sys/block/$DISK/dev")
	spawn weights weights
	n=0
	# Host busy, transport error, recovered error, all of them. (Task set full, 0x800, fails
	# requests for good whatever schedules.)
	for opts in $(full_or "0x8000 0x10 0x8 0x8018" "0x10 0x8018"); do
		echo $opts >$knobs/opts
		echo 13 >$knobs/every_nth
		n=$((n + 1))
		dtcase model "/dev/$DISK" threads=16 big=$((n % 2)) discards=1 zero=1 mb=16 seconds="$(full_or 10 1)" \
			seed=$((SEED + n)) || fail "data, opts $opts"
		say "opts $opts, model"
		inside a fio --name=verify "--filename=/dev/$DISK" --direct=1 --rw=randrw --bs=4k \
			--ioengine=io_uring --iodepth=64 --size="$(full_or 32 2)m" --verify=crc32c \
			--verify_fatal=1 --output=/tmp/verify.txt || fail "verify, opts $opts"
		one_of 5 9 17 33
		echo "$R" >"/sys/block/$DISK/queue/nr_requests"
		for _ in $(seq 50); do
			test "$(counter "$DISK" tags)" = "$R" && break
			sleep 0.1
		done
		test "$(counter "$DISK" tags)" = "$R" ||
			fail "$R requests, but the gate counts $(counter "$DISK" tags)"
		echo 0 >$knobs/every_nth
		echo 0 >$knobs/opts
		balanced "$DISK"
		say "opts $opts, fio"
	done
	test "$(counter "$DISK" requeued)" -gt 0 || fail "nothing was requeued"
	say "commands that time out and are aborted"
	echo 1 >"/sys/block/$DISK/device/timeout"
	for opts in 0x4 0x10000; do
		echo $opts >$knobs/opts
		full_or 200 900 >$knobs/every_nth
		inside b dtcase model "/dev/$DISK" threads=16 big=0 zero=1 mb=16 seconds="$(full_or 20 2)" \
			seed="$SEED" || fail "data, opts $opts"
		echo 0 >$knobs/every_nth
		echo 0 >$knobs/opts
		balanced "$DISK"
	done
	say "the disk goes away under load"
	fio --name=gone "--filename=/dev/$DISK" --direct=1 --rw=randrw --bs=4k --ioengine=libaio \
		--iodepth=64 --time_based --runtime=30 >/dev/null 2>&1 &
	gone=$!
	sleep 1
	echo 1 >"/sys/block/$DISK/device/delete"
	wait $gone
	stop_load
	for _ in $(seq 50); do
		rmmod scsi_debug 2>/dev/null && break
		sleep 0.1
	done
	;;
fs)
	# A file system without a journal, as busybox makes it, and a loop device upon it. Both disks
	# are served by disktime: the one waits for the other.
	modprobe loop
	torture_disk nb0 size=256
	mke2fs -F /dev/nb0 >/dev/null || fail "mke2fs"
	mkdir -p /mnt
	mount -t ext4 /dev/nb0 /mnt || fail "mount"
	truncate -s 64M /mnt/image
	losetup /dev/loop0 /mnt/image || fail "losetup"
	use loop0 disktime
	DEVS="$DEVS $(cat /sys/block/loop0/dev)"
	weights &
	weigher=$!
	for round in $(seq "$(full_or 10 1)"); do
		for g in a b c; do
			spawn files-$g inside $g fio --name=files-$g --directory=/mnt --nrfiles=8 --size=4m \
				--rw=randwrite --bsrange=1k-16k --ioengine=psync --fsync=64 --verify=crc32c \
				--verify_fatal=1 --randseed=$round
		done
		spawn loop inside a dtcase model /dev/loop0 threads=8 mb=32 big=1 zero=1 \
			seconds="$(full_or 10 2)" seed="$SEED"
		spawn files rename_files
		for _ in 1 2 3 4; do
			sleep 0.5
			echo 3 >/proc/sys/vm/drop_caches
			one_of nb0 loop0
			dev=$R
			one_of bfq none mq-deadline
			use "$dev" "$R"
			use "$dev" disktime
		done
		reap_all
	done
	touch /tmp/stop
	wait $weigher
	balanced loop0
	losetup -d /dev/loop0
	umount /mnt || fail "umount"
	balanced nb0
	;;
esac
say "ok"
