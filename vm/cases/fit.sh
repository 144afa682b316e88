# A module whose declarations are not this kernel's is refused with a sentence; ours loads.
. /case/lib.sh

test -e /sys/module/disktime && fail "loaded already"
dmesg -c >/dev/null
insmod /case/planted.ko 2>/tmp/error && fail "a wrong declaration was let in"
cat /tmp/error
dmesg | tee /tmp/log
grep -q "disktime: .* differs between the running kernel $(uname -r) and the one this module was built for" /tmp/log ||
	fail "no sentence says why"
test -e /sys/module/disktime && fail "it stays"
test -e $CGROUPS/io.disktime.stat && fail "its files stay"
mkdir $CGROUPS/g
test -e $CGROUPS/g/io.disktime.weight && fail "its files stay"
insmod /case/disktime.ko || fail "ours is refused"
test -e $CGROUPS/g/io.disktime.weight || fail "no files"
say "the check took $(cat /sys/module/disktime/parameters/fit_usec) us"
rmmod disktime || fail "rmmod"
test -e $CGROUPS/g/io.disktime.weight && fail "files stay behind"
insmod /case/disktime.ko && insmod /case/disktime-iosched.ko || fail "ours is refused"
rmmod disktime && fail "the elevator's ground is taken away"
rmmod disktime_iosched && rmmod disktime || fail "rmmod"
say "ok"
