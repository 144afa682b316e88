# Common to the cases: disks, load in cgroups, and what must hold when all is quiet.
#
# SCALE is short (for `make test`) or full; SEED decides all that is random, and is printed.

set -u
CGROUPS=/sys/fs/cgroup
SCALE=${SCALE:-short}
SEED=${SEED:-1}
STATE=$SEED
echo "seed $SEED, $SCALE, $(uname -r)"

say() {
	echo "[$(cut -d' ' -f1 /proc/uptime)] $*"
}

fail() {
	dmesg | tail -n 15
	grep -H . /sys/block/*/queue/scheduler
	say "FAIL: $*"
	exit 1
}

# full_or FULL SHORT: a number by SCALE.
full_or() {
	if test "$SCALE" = full; then echo "$1"; else echo "$2"; fi
}

# Whoever waits for direct I/O that never comes is no hung task to the kernel: look at the clock.
(
	sleep "$(full_or 850 240)"
	cat /sys/kernel/debug/block/*/sched/counters /sys/kernel/debug/block/*/sched/state
	ps -o pid,stat,args
	say "FAIL: not done in time"
	kill -KILL $$
) &

# random LIMIT: sets R to 0 .. LIMIT-1.
random() {
	STATE=$(((STATE * 1103515245 + 12345) & 0x7fffffff))
	R=$(((STATE >> 8) % $1))
}

# one_of WORD...: sets R to one of them.
one_of() {
	random $#
	shift "$R"
	R=$1
}

# disk NAME SETTING=VALUE...: a null_blk.
disk() {
	disk_dir=/sys/kernel/config/nullb/$1
	disk_name=$1
	shift
	mkdir "$disk_dir" || fail "no disk $disk_name"
	for setting in "$@" power=1; do
		echo "${setting#*=}" >"$disk_dir/${setting%%=*}" || fail "$disk_name: $setting"
	done
	for _ in $(seq 200); do
		test -b "/dev/$disk_name" && return
		sleep 0.02
	done
	fail "/dev/$disk_name does not appear"
}

has_setting() {
	grep -qw "$1" /sys/kernel/config/nullb/features
}

undisk() {
	echo 0 >"/sys/kernel/config/nullb/$1/power"
	rmdir "/sys/kernel/config/nullb/$1"
}

use() {
	echo "$2" >"/sys/block/$1/queue/scheduler" || fail "$1 does not take $2"
}

tune() {
	echo "$3" >"/sys/block/$1/queue/iosched/$2" || fail "$1 $2 does not take $3"
}

# group PATH [WEIGHT [CLASS]]
group() {
	mkdir -p "$CGROUPS/$1"
	test -z "${2:-}" || echo "$2" >"$CGROUPS/$1/io.disktime.weight" || fail "weight $2"
	test -z "${3:-}" || echo "$3" >"$CGROUPS/$1/io.disktime.class" || fail "class $3"
}

# inside PATH COMMAND...: runs it, a program or a function, in that cgroup.
inside() {
	inside_group=$1
	shift
	(
		echo 0 >"$CGROUPS/$inside_group/cgroup.procs" || exit 125
		"$@"
	)
}

counter() {
	awk -v name="$2" '$1 == name { print $2 }' "/sys/kernel/debug/block/$1/sched/counters"
}

# Field N of the disk's stat file: 2 and 6 are merges, 16 flushes.
disk_stat() {
	awk -v n="$2" '{ print $n }' "/sys/block/$1/stat"
}

# What must hold of a disk that nobody uses, and all its time. Prints the counters.
balanced() {
	for _ in $(seq 100); do
		test "$(counter "$1" tags_used)" = 0 && break
		sleep 0.05
	done
	awk -v disk="$1" '
		{ c[$1] = $2 }
		END {
			if (!("inserted" in c)) bad = "no counters"
			if (c["inserted"] != c["removed"] + c["dispatched"]) bad = bad " inserted"
			if (c["dispatched"] != c["completed"] + c["requeued"]) bad = bad " dispatched"
			n = split("queued inflight tags_used empty bypassed", zero)
			for (i = 1; i <= n; i++)
				if (c[zero[i]] != 0) bad = bad " " zero[i]
			# A host that is busy may be late once.
			if (c["unasked"] > 2) bad = bad " unasked"
			if (c["raced"] > 200 + c["dispatched"] / 4) bad = bad " raced"
			printf "%s: inserted %d removed %d dispatched %d completed %d requeued %d raced %d clamped %d queues %d groups %d\n",
				disk, c["inserted"], c["removed"], c["dispatched"], c["completed"],
				c["requeued"], c["raced"], c["clamped"], c["queues"], c["groups"]
			if (bad != "") print "does not balance:" bad
			exit bad != ""
		}' "/sys/kernel/debug/block/$1/sched/counters" || {
		cat "/sys/kernel/debug/block/$1/sched/counters" "/sys/kernel/debug/block/$1/sched/state"
		fail "$1 is not as it should be"
	}
	grep -q '^check 0:' "/sys/kernel/debug/block/$1/sched/state" || {
		cat "/sys/kernel/debug/block/$1/sched/state"
		fail "$1: an invariant does not hold"
	}
	test "$(cat "/sys/block/$1/queue/iosched/health")" = ok || fail "$1: health"
	# Only where a case has asked for it.
	dmesg | grep 'serving in order of arrival' | grep -v 'asked for' && fail "a fault"
	return 0
}

# spawn NAME COMMAND...: in the background; reap_all looks at how each ended.
SPAWNED=
spawn() {
	spawn_name=$1
	shift
	"$@" >"/tmp/$spawn_name.log" 2>&1 &
	SPAWNED="$SPAWNED $spawn_name:$!"
}

# reap_all: fails unless every spawned process has ended well.
reap_all() {
	for spawned in $SPAWNED; do
		wait "${spawned#*:}"
		spawn_status=$?
		if test $spawn_status != 0; then
			cp /tmp/*.log /tmp/*.fio /out 2>/dev/null
			head -n 12 "/tmp/${spawned%%:*}.log"
			grep -i err "/tmp/${spawned%%:*}.log"
			fail "${spawned%%:*} ended with $spawn_status"
		fi
	done
	SPAWNED=
}

# repeat COMMAND...: again and again until /tmp/stop exists; fails with it.
repeat() {
	while ! test -e /tmp/stop; do
		"$@" || return
	done
}

# stop_load: lets repeated commands end, and looks at how they did.
stop_load() {
	touch /tmp/stop
	reap_all
	rm /tmp/stop
}
