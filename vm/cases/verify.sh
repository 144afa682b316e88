# Data through disktime, settings changed meanwhile: nothing is lost or lands elsewhere.
# $1: fio (all kinds of writes, by fio --verify), model (our own record of what each sector holds,
# with discards), merge (neighbours that become one request).
. /case/lib.sh

# What is changed while the data go through, until /tmp/quiet exists.
retune() {
	dir=/sys/block/$1/queue
	while ! test -e /tmp/quiet; do
		one_of cfq deadline fifo
		echo "$R" >"$dir/iosched/order" || return
		one_of 0 1 2 5 128
		echo "$R" >"$dir/iosched/depth" || return
		one_of 0 500 5000 80000
		echo "$R" >"$dir/iosched/slice_usec" || return
		one_of 0 100 2000 8000
		echo "$R" >"$dir/iosched/idle_usec" || return
		one_of 0 1
		echo "$R" >"$dir/iosched/strict" || return
		one_of 0 0 0 1 2
		echo "$R" >"$dir/nomerges" || return
		one_of 4 8 16 32 64 256
		echo "$R" >"$dir/nr_requests" || return
		one_of 1 50 100 1000 10000
		echo "$R" >$CGROUPS/a/io.disktime.weight || return
		one_of rt be be idle
		echo "$R" >$CGROUPS/b/io.disktime.class || return
		one_of 0 0 0 0 0 1
		if test "$R" = 1; then
			echo fifo >"$dir/iosched/health" || return
			sleep 0.02
			echo rearm >"$dir/iosched/health" || return
		fi
		random 50
		sleep "0.0$((R + 10))"
	done
}

# fio's flags for one job: NAME OFFSET_MB ENGINE DEPTH MORE...
verify_job() {
	job=$1
	offset=$2
	engine=$3
	depth=$4
	shift 4
	fio --name="$job" --filename="/dev/$DISK" --offset="${offset}m" --size="${JOB_MB}m" \
		--ioengine="$engine" --iodepth="$depth" --bsrange=512-128k --blockalign=512 \
		--direct=1 --rw=randwrite --randseed=$((SEED * 100 + offset)) \
		--verify=crc32c --verify_fatal=1 --verify_interval=512 --serialize_overlap=1 \
		--verify_dump=0 --do_verify=1 --loops="$LOOPS" "$@"
}

# A disk with a write cache, served by disktime, and what is changed meanwhile.
cached_disk() {
	DISK=$1
	shift
	disk "$DISK" size=256 memory_backed=1 cache_size=8 hw_queue_depth=8 irqmode=2 \
		completion_nsec=100000 "$@"
	use "$DISK" disktime
	grep -q 'write back' "/sys/block/$DISK/queue/write_cache" || fail "no write cache"
	retune "$DISK" &
	RETUNER=$!
}

settle() {
	reap_all
	touch /tmp/quiet
	wait $RETUNER || fail "a setting was refused"
	rm /tmp/quiet
	say "$DISK: merges $(disk_stat "$DISK" 2) read $(disk_stat "$DISK" 6) write, flushes $(disk_stat "$DISK" 16)"
	balanced "$DISK"
}

fio_jobs() {
	spawn flushes inside a verify_job flushes 0 psync 1 --bsrange=512-8k --fsync=1 --size=4m
	spawn psync inside a verify_job psync 40 psync 1 --fsync=8
	spawn libaio inside b verify_job libaio 80 libaio 16 --fdatasync=4
	spawn uring inside c verify_job uring 120 io_uring 16 --fsync=16
	spawn dsync inside b verify_job dsync 160 psync 1 --sync=dsync --bsrange=512-16k --size=1m
	spawn buffered inside c verify_job buffered 200 psync 1 --direct=0 --fsync=32
}

group a
group b
group c
case $1 in
fio)
	JOB_MB=$(full_or 32 2)
	LOOPS=$(full_or 3 1)
	for fua in 1 0; do
		if has_setting fua; then
			cached_disk "f$fua" "fua=$fua"
		elif test $fua = 1; then
			cached_disk f1
		else
			say "this kernel's null_blk knows no fua=0"
			continue
		fi
		test "$(cat "/sys/block/$DISK/queue/fua")" = $fua || fail "fua"
		say "fua=$fua"
		fio_jobs
		settle
		test "$(disk_stat "$DISK" 16)" -gt 1000 || fail "too few flushes"
		use "$DISK" none
		undisk "$DISK"
	done
	;;
model)
	seconds=$(full_or 60 2)
	for more in "big=0 discards=0" "big=1 discards=1"; do
		cached_disk m0 discard=1
		say "$more"
		# shellcheck disable=SC2086
		spawn model inside a dtcase model /dev/m0 threads=16 mb=16 "seconds=$seconds" \
			"seed=$SEED" $more
		settle
		cat /tmp/model.log
		use m0 none
		undisk m0
	done
	;;
merge)
	seconds=$(full_or 30 2)
	cached_disk m1 hw_queue_depth=1 completion_nsec=500000
	# One bio after the other, so that they meet in the scheduler and not in a plug.
	stream="--ioengine=libaio --iodepth=32 --iodepth_batch=1 --direct=1 --bs=4k --size=$((seconds / 2))m
		--filename=/dev/m1 --verify=crc32c --verify_fatal=1 --verify_dump=0 --loops=2"
	# shellcheck disable=SC2086
	{
		spawn up inside a fio --name=up $stream --rw=write --offset=0
		spawn down inside b fio --name=down $stream --rw=write:-8k --offset=40m
		spawn other inside c fio --name=other $stream --rw=write --bs=512 --size=256k --offset=80m
	}
	spawn buffered inside c fio --name=buffered --filename=/dev/m1 --rw=write --bs=4k \
		--size=8m --offset=120m --verify=crc32c --verify_fatal=1 --end_fsync=1
	spawn model dtcase model /dev/m1 threads=32 mb=32 at_mb=160 "seconds=$seconds" "seed=$SEED"
	settle
	test "$(disk_stat m1 6)" -gt 100 || fail "too few merges"
	;;
esac
say "ok"
