# The model disk: what the kernel sees of it, that it keeps data, that it takes as long as its model
# says, and what it tells of true time. $1: serves, or absent (a kernel without ublk).
. /case/lib.sh
TALLY=/tmp/tally.json

# serve ARGUMENT...: starts it; sets SERVER to its process and DISK to the name of its device.
serve() {
	: >/tmp/path
	disktime-modeldisk "$@" >/tmp/path 2>/tmp/served &
	SERVER=$!
	for _ in $(seq 200); do
		test -s /tmp/path && break
		test -d /proc/$SERVER || break
		sleep 0.02
	done
	DISK=$(cat /tmp/path)
	test -b "$DISK" || {
		cat /tmp/served
		fail "no disk of $*"
	}
	DISK=${DISK#/dev/}
}

# unserve: SIGTERM; it ends well, soon, and leaves nothing behind.
unserve() {
	begin=$(cut -d. -f1 /proc/uptime)
	kill -TERM $SERVER
	wait $SERVER
	status=$?
	took=$(($(cut -d. -f1 /proc/uptime) - begin))
	test $status = 0 || fail "it ended with $status: $(cat /tmp/served)"
	test $took -le 10 || fail "it took $took s to end"
	ls /dev/ublkb* 2>/dev/null && fail "a device stays behind"
	test -e "/sys/block/$DISK" && fail "/sys/block/$DISK stays behind"
	return 0
}

# has FILE VALUE: a file below /sys/block/DISK
has() {
	found=$(cat "/sys/block/$DISK/$1")
	test "$found" = "$2" || fail "$1 is $found, not $2"
}

# load ARGUMENT...: fio; its report is in /tmp/fio.json.
load() {
	fio --name=load --filename="/dev/$DISK" --direct=1 --bs=4k --randseed="$SEED" \
		--output-format=json --output=/tmp/fio.json "$@" || {
		cat /tmp/fio.json
		fail "fio $*"
	}
}

# report KEY...: the number that these keys lead to, to three digits behind the point.
report() {
	awk -v path="$*" '
		BEGIN { n = split(path, key, " "); i = 1 }
		index($0, "\"" key[i] "\" :") && i++ == n {
			sub(/.* : /, "")
			printf "%.3f\n", $0
			exit
		}' /tmp/fio.json
}

# account N KEY: of region N from 1 on; other comes last.
account() {
	grep -o "\"$2\":[0-9]*" $TALLY | sed -n "${1}s/.*://p"
}

total() {
	grep -o "\"$1\":[0-9]*" $TALLY | awk -F: '{ sum += $2 } END { printf "%.0f\n", sum }'
}

# between LOW VALUE HIGH WHAT
between() {
	say "$4: $2 ($1 to $3)"
	awk "BEGIN { exit !($1 <= $2 && $2 <= $3) }" || fail "$4: $2 is not within $1 to $3"
}

same() {
	test "$1" = "$2" || fail "$3: $1, not $2"
}

# The kernel's own count of the disk is the tally's. To it an fsync is also a write, of nothing.
agree() {
	sleep 0.3
	same "$(total reads)" "$(disk_stat "$DISK" 1)" "reads in the tally"
	same "$(total read_sectors)" "$(disk_stat "$DISK" 3)" "sectors read in the tally"
	same $(($(total writes) + $(disk_stat "$DISK" 16))) "$(disk_stat "$DISK" 5)" \
		"writes in the tally, and flushes"
	same "$(total write_sectors)" "$(disk_stat "$DISK" 7)" "sectors written in the tally"
}

refused() {
	want=$1
	words=$2
	shift 2
	disktime-modeldisk "$@" >/tmp/out 2>/tmp/error
	same $? "$want" "exit status of $*"
	test -s /tmp/out && fail "an error on standard output"
	grep -q "$words" /tmp/error && grep -q '^hint: ' /tmp/error || {
		cat /tmp/error
		fail "$* is refused with other words"
	}
}

case $1 in
absent)
	refused 4 "^error: kernel $(uname -r) has no ublk" hdd
	say "ok"
	exit
	;;
esac

say "what cannot be served is refused"
test -e /dev/ublk-control && fail "ublk is loaded already"
refused 4 "^hint: modprobe ublk_drv" hdd
modprobe ublk_drv || fail "no ublk_drv"
refused 2 "no write cache" nvme --cache 8
refused 1 "^error: cannot write /nowhere/tally" hdd --tally /nowhere/tally
test "$(echo /dev/ublkb*)" = "/dev/ublkb*" || fail "a disk was made all the same"

say "a rotating disk"
# Region 1 is what begins at each 32 KiB of the 16 MiB behind the first GiB.
serve hdd --size 250G --slower 3 --tally $TALLY --region 2097152:8:64:512
has size 524288000
has queue/rotational 1
has queue/logical_block_size 512
has queue/physical_block_size 4096
has queue/max_hw_sectors_kb 1024
has queue/write_cache "write through"
has queue/discard_max_bytes 0
use "$DISK" none
has queue/nr_requests 31

# 8.5 ms to seek, half a turn of 8.33 ms and 0.3 ms of overhead, three times. A busy host may add to
# it, but not each time.
for _ in 1 2 3; do
	before=$(total true_ns)
	count=$(total reads)
	load --rw=randread --ioengine=psync --time_based --runtime=4
	one=$(report read iops)
	sleep 0.3
	awk "BEGIN { exit !($one > 22.5) }" && break
done
between 21.9 "$one" 29.6 "random reads a second, one at a time"
mean=$((($(total true_ns) - before) / ($(total reads) - count) / 1000))
between 36000 $mean 42000 "their true time, microseconds"
agree
load --rw=randread --ioengine=libaio --iodepth=31 --time_based --runtime=4
many=$(report read iops)
between "1.7 * $one" "$many" "3 * $one" "31 at a time"
agree

say "true time by region"
same "$(account 1 reads)" 0 "reads of the region before"
load --rw=read --bs=32k --ioengine=psync --offset=1g --size=16m
agree
same "$(account 1 reads)" 512 "reads of the region"
same "$(account 1 read_sectors)" 32768 "its sectors"
say "$(report read iops) a second"
# A third of 78 MB/s, and less if the reader is too slow to stay behind the head.
between 600 $(($(account 1 true_ns) / 1000000)) 6000 "its true time, milliseconds"
load --rw=read --bs=32k --ioengine=psync --offset=$(((1 << 30) + 4096)) --size=1m
agree
same "$(account 1 reads)" 512 "reads of the region after reads beside it"
cat $TALLY
late=$(grep -o '"p99":[0-9]*' $TALLY | cut -d: -f2)
between 1 "$late" 1000000000 "ninety-nine in a hundred are late by at most, ns"

say "SIGTERM under load"
fio --name=killed --filename="/dev/$DISK" --direct=1 --rw=randread --bs=4k --ioengine=libaio \
	--iodepth=31 --time_based --runtime=30 >/tmp/killed.txt 2>&1 &
killed=$!
sleep 0.7
unserve
# To fio it is an end of file, behind which it goes on.
kill $killed
wait $killed

say "data, on a fast disk"
serve nvme --size 4G --tally $TALLY
has queue/rotational 0
use "$DISK" none
write="--rw=randwrite --ioengine=libaio --iodepth=16 --bsrange=512-1m --blockalign=512 --size=24m
	--verify=crc32c --verify_fatal=1 --verify_dump=0 --verify_interval=512 --serialize_overlap=1"
# shellcheck disable=SC2086
load $write --do_verify=0 --fdatasync=8
agree
# Two schedulers read it back: the data are the disk's.
for scheduler in disktime none; do
	use "$DISK" $scheduler
	# shellcheck disable=SC2086
	load $write --verify_only
done
agree
use "$DISK" disktime
load --rw=randrw --ioengine=io_uring --iodepth=32 --numjobs=2 --bsrange=4k-128k --offset=64m \
	--size=8m --offset_increment=8m --verify=crc32c --verify_fatal=1 --verify_dump=0 --fsync=16
use "$DISK" none
dd if=/dev/urandom of=/tmp/noise bs=1M count=2 2>/dev/null
dd if=/tmp/noise of="/dev/$DISK" bs=1M seek=100 oflag=direct 2>/dev/null || fail "no write"
load --rw=trim --bs=1m --ioengine=psync --offset=101m --size=1m
dd if="/dev/$DISK" of=/tmp/back bs=1M skip=100 count=2 iflag=direct 2>/dev/null
dd if=/dev/zero of=/tmp/noise bs=1M seek=1 count=1 2>/dev/null
cmp /tmp/noise /tmp/back || fail "what was discarded is not zero, or more than that is"
agree
unserve

say "a write cache"
serve st3250620as --size 250G --cache 64 --tally $TALLY --region 0:409600
has queue/write_cache "write back"
has queue/fua 1
use "$DISK" none
# Fewer than the cache holds, a flush, and one more: fio does not end with a flush. Microseconds.
load --rw=randwrite --ioengine=psync --io_size=164k --fsync=40
between 0 "$(report write clat_ns mean) / 1000" 8000 "a cached write"
between 50000 "$(report sync lat_ns mean) / 1000" 2000000 "the flush after forty"
load --rw=randwrite --ioengine=psync --io_size=120k --sync=dsync
between 9000 "$(report write clat_ns mean) / 1000" 60000 "a write with fua, and the flush that the kernel adds"
# The head writes what is cached when the host is quiet, and that is the region's all the same.
load --rw=randwrite --ioengine=psync --size=200m --io_size=80k
sleep 1
agree
same "$(account 1 writes)" 20 "writes of the region"
between 40 $(($(account 1 true_ns) / 1000000)) 400 "their true time, milliseconds"
load --rw=randwrite --ioengine=libaio --iodepth=8 --bsrange=512-32k --blockalign=512 --size=1m \
	--verify=crc32c --verify_fatal=1 --verify_dump=0 --verify_interval=512 --serialize_overlap=1 \
	--fsync=32
agree
unserve
say "ok"
