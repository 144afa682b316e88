# Writes that must fail and change nothing; writes that must work and read back.
. /case/lib.sh

disk nb0 size=64 memory_backed=0 hw_queue_depth=8
disk nb1 size=64 memory_backed=0 hw_queue_depth=8
A=$(cat /sys/block/nb0/dev)
B=$(cat /sys/block/nb1/dev)
dd if=/dev/zero of=/tmp/mbr bs=512 count=1 2>/dev/null
# A partition of type 83, from sector 2048, 4096 sectors.
printf '\0\0\0\0\203\0\0\0\0\10\0\0\0\20\0\0' |
	dd of=/tmp/mbr bs=1 seek=446 conv=notrunc 2>/dev/null
printf '\125\252' | dd of=/tmp/mbr bs=1 seek=510 conv=notrunc 2>/dev/null
disk nbp size=64 memory_backed=1
dd if=/tmp/mbr of=/dev/nbp 2>/dev/null
blockdev --rereadpt /dev/nbp
P=$(cat /sys/block/nbp/nbp1/dev) || fail "no partition"

use nb0 disktime
group g
echo +io >$CGROUPS/g/cgroup.subtree_control
group g/h
WEIGHTS="$CGROUPS/io.disktime.weight $CGROUPS/g/io.disktime.weight $CGROUPS/g/h/io.disktime.weight"
CLASSES="$CGROUPS/io.disktime.class $CGROUPS/g/io.disktime.class $CGROUPS/g/h/io.disktime.class"
I=/sys/block/nb0/queue/iosched
ATTRS="$I/slice_usec $I/idle_usec $I/depth $I/order $I/strict $I/health"

# Values that no default has, so that a change shows.
echo 321 >$CGROUPS/g/io.disktime.weight
echo "$A 77" >$CGROUPS/g/io.disktime.weight
echo "$B 78" >$CGROUPS/g/io.disktime.weight
echo idle >$CGROUPS/g/io.disktime.class
echo "$A rt" >$CGROUPS/g/io.disktime.class
echo 4321 >$I/slice_usec
echo 1234 >$I/idle_usec
echo 5 >$I/depth
echo deadline >$I/order
echo 1 >$I/strict

# What any of the two cgroup files must refuse.
common='
\n	EINVAL
 	EINVAL
\t\n	EINVAL
\0	EINVAL
garbage	EINVAL
default garbage	EINVAL
default default default	EINVAL
defaultx	EINVAL
default\tx	EINVAL
:	EINVAL
::	EINVAL
:0 100	EINVAL
@MAJ:	EINVAL
@A	EINVAL
@A 	EINVAL
@A\n	EINVAL
@A garbage	EINVAL
@A default x	EINVAL
@A defaul	EINVAL
@A:1 default	EINVAL
@MAJ.0 default	EINVAL
 :@A default	EINVAL
-@A default	EINVAL
+@A default	EINVAL
0x@A default	EINVAL
0:0 default	ENODEV
4095:1048575 default	ENODEV
4096:0 default	ENODEV
0:1048576 default	ENODEV
99999999:0 default	ENODEV
4294967296:0 default	EINVAL
99999999999999999999:0 default	EINVAL
@P default	ENODEV
@A@A default	EINVAL
default 100 @A 100	EINVAL
@A default\0	EINVAL
@A default\0x	EINVAL
\*4000*1	@LONG
\*4096*x	EINVAL
\*4097*x	E2BIG
\*20000*1	E2BIG
'
weights='
0	ERANGE
00	ERANGE
10001	ERANGE
65536	ERANGE
65636	ERANGE
4294967295	ERANGE
4294967296	ERANGE
4294967396	ERANGE
18446744073709551616	ERANGE
18446744073709551716	ERANGE
-1	ERANGE
-100	ERANGE
-	EINVAL
+5	EINVAL
0x10	EINVAL
1e3	EINVAL
1.5	EINVAL
5,	EINVAL
5 5	EINVAL
5\n6	EINVAL
5\n\n6\n	EINVAL
5\0	EINVAL
5\06	EINVAL
5%	EINVAL
100abc	EINVAL
abc100	EINVAL
rt	EINVAL
default 0	ERANGE
default 10001	ERANGE
default -1	ERANGE
default +5	EINVAL
default 5 5	EINVAL
@A 0	ERANGE
@A 10001	ERANGE
@A -1	ERANGE
@A +1	EINVAL
@A 0x10	EINVAL
@A 5 5	EINVAL
@A 5\n@B 6	EINVAL
@A 5\n6	EINVAL
@A 5\0	EINVAL
@A 18446744073709551716	ERANGE
@P 5	ENODEV
0:0 5	ENODEV
4095:7 5	ENODEV
@A5	EINVAL
'
classes='
RT	EINVAL
Rt	EINVAL
r	EINVAL
rtx	EINVAL
rt rt	EINVAL
rt be	EINVAL
rt\nbe	EINVAL
rt\0	EINVAL
rt\0be	EINVAL
best-effort	EINVAL
none	EINVAL
writeback	EINVAL
100	EINVAL
0	EINVAL
1	EINVAL
-1	EINVAL
default 1	EINVAL
default RT	EINVAL
default rt be	EINVAL
@A 1	EINVAL
@A RT	EINVAL
@A rt be	EINVAL
@A rt\n@B be	EINVAL
@A rtx	EINVAL
@A rt\0	EINVAL
@P rt	ENODEV
0:0 rt	ENODEV
4095:7 rt	ENODEV
@Art	EINVAL
'
numbers='
\n	EINVAL
 	EINVAL
\0	EINVAL
 5	EINVAL
5 	EINVAL
5 5	EINVAL
5\n5	EINVAL
5\n\n	EINVAL
5\0	EINVAL
5\05	EINVAL
+5	EINVAL
-	EINVAL
-1	ERANGE
-99999999999	ERANGE
0x5	EINVAL
5us	EINVAL
1.5	EINVAL
1e3	EINVAL
default	EINVAL
auto	EINVAL
garbage	EINVAL
4294967295	ERANGE
4294967296	ERANGE
4294967301	ERANGE
18446744073709551616	ERANGE
18446744073709551621	ERANGE
99999999999999999999999999	ERANGE
\*4000*9	ERANGE
'
words='
\n	EINVAL
 	EINVAL
\0	EINVAL
0	EINVAL
1	EINVAL
-1	EINVAL
garbage	EINVAL
CFQ	EINVAL
cfq fifo	EINVAL
cfq\nfifo	EINVAL
 cfq	EINVAL
cfq 	EINVAL
cf	EINVAL
cfqx	EINVAL
[cfq]	EINVAL
cfq\0x	EINVAL
noop	EINVAL
default	EINVAL
\*4000*c	EINVAL
'
health='
\n	EINVAL
 	EINVAL
\0	EINVAL
ok	EINVAL
0	EINVAL
1	EINVAL
REARM	EINVAL
rearm now	EINVAL
rearm\nfifo	EINVAL
 rearm	EINVAL
rear	EINVAL
rearmx	EINVAL
rearm\0x	EINVAL
fifo: asked for	EINVAL
\*4000*r	EINVAL
'

# entries TEXT FILE...: a table, the marks filled in.
entries() {
	entries_text=$1
	shift
	for entries_file in "$@"; do
		echo "$entries_text" | sed -e '/^$/d' -e "s/@MAJ/${A%%:*}/g" -e "s/@A/$A/g" \
			-e "s/@B/$B/g" -e "s/@P/$P/g" -e "s|^|$entries_file	|"
	done
}

{
	for file in $WEIGHTS; do
		entries "$common" "$file" | sed 's/@LONG/ERANGE/'
		entries "$weights" "$file"
	done
	for file in $CLASSES; do
		entries "$common" "$file" | sed 's/@LONG/EINVAL/'
		entries "$classes" "$file"
	done
	entries "$numbers" $I/slice_usec $I/idle_usec $I/depth $I/strict
	printf '%s\t%s\tERANGE\n' $I/slice_usec 10000001 $I/slice_usec 4000000000 \
		$I/idle_usec 1000001 $I/idle_usec 10000001 $I/depth 65537 $I/strict 2 $I/strict 10
	entries "$words" $I/order
	entries "$health" $I/health
	for file in $CGROUPS/g/io.disktime.stat $CGROUPS/io.disktime.stat; do
		entries '
0	EINVAL
\n	EINVAL
garbage	EINVAL
' "$file"
	done
} >/tmp/bad
for file in $WEIGHTS $CLASSES $ATTRS; do
	n=$(grep -c "^$file	" /tmp/bad)
	case $file in
	*iosched*) test "$n" -ge 15 || fail "only $n bad writes to $file" ;;
	*) test "$n" -ge 40 || fail "only $n bad writes to $file" ;;
	esac
done
# A file that is for reading only: even root has no write method there.
for mode in $CGROUPS/g/io.disktime.stat; do
	case $(stat -c %a $mode) in
	444) ;;
	*) fail "$mode may be written" ;;
	esac
done
# shellcheck disable=SC2086
dtcase bad /tmp/bad $WEIGHTS $CLASSES $ATTRS || fail "bad input"

say "good input"
W=$CGROUPS/g/io.disktime.weight
K=$CGROUPS/g/io.disktime.class
kept="$A 77\\n$B 78\\n"
{
	printf '%s\t%s\t%s\n' \
		$W 1 "default 1\\n$kept" \
		$W 10000 "default 10000\\n$kept" \
		$W '200\n' "default 200\\n$kept" \
		$W ' 201 \n' "default 201\\n$kept" \
		$W 'default 202' "default 202\\n$kept" \
		$W 'default  203\n' "default 203\\n$kept" \
		$W 007 "default 7\\n$kept" \
		$W default "default 100\\n$kept" \
		$W 'default default' "default 100\\n$kept" \
		$W "$A 1" "default 100\\n$A 1\\n$B 78\\n" \
		$W "$A  10000 \\n" "default 100\\n$A 10000\\n$B 78\\n" \
		$W " $B\\t44\\n" "default 100\\n$A 10000\\n$B 44\\n" \
		$W "$A default" "default 100\\n$B 44\\n" \
		$W "$A default" "default 100\\n$B 44\\n" \
		$W "$B default\\n" 'default 100\n' \
		$W "$A 55" "default 100\\n$A 55\\n" \
		$K rt "default rt\\n$A rt\\n" \
		$K 'be\n' "default be\\n$A rt\\n" \
		$K idle "default idle\\n$A rt\\n" \
		$K 'default rt' "default rt\\n$A rt\\n" \
		$K default "default be\\n$A rt\\n" \
		$K "$A idle" "default be\\n$A idle\\n" \
		$K "$B rt\\n" "default be\\n$A idle\\n$B rt\\n" \
		$K "$A default" "default be\\n$B rt\\n" \
		$K "$B default" 'default be\n' \
		$CGROUPS/io.disktime.weight 500 'default 500\n' \
		$CGROUPS/io.disktime.weight "$A 600" "default 500\\n$A 600\\n" \
		$CGROUPS/io.disktime.weight "$A default" 'default 500\n' \
		$CGROUPS/io.disktime.weight default 'default 100\n' \
		$CGROUPS/io.disktime.class idle 'default idle\n' \
		$CGROUPS/io.disktime.class default 'default be\n' \
		$I/slice_usec 0 '0\n' \
		$I/slice_usec '10000000\n' '10000000\n' \
		$I/idle_usec 0 '0\n' \
		$I/idle_usec 1000000 '1000000\n' \
		$I/depth 0 '0\n' \
		$I/depth 65536 '65536\n' \
		$I/strict 0 '0\n' \
		$I/strict '1\n' '1\n' \
		$I/order cfq '[cfq] deadline fifo\n' \
		$I/order 'deadline\n' 'cfq [deadline] fifo\n' \
		$I/order fifo 'cfq deadline [fifo]\n' \
		$I/health rearm 'ok\n' \
		$I/health fifo 'fifo: asked for\n' \
		$I/health fifo 'fifo: asked for\n' \
		$I/health 'rearm\n' 'ok\n'
} >/tmp/good
dtcase good /tmp/good || fail "good input"

# effective FILE-PART: what a disk's table of groups says of /g.
effective() {
	sed -n "s|^/g .*\\b\\($2=[^ ]*\\) .*|\\1|p" "/sys/kernel/debug/block/$1/sched/groups"
}
expect() {
	test "$(effective "$1" "${2%%=*}")" = "$2" || {
		cat "/sys/kernel/debug/block/$1/sched/groups"
		fail "$1 has $(effective "$1" "${2%%=*}") for /g, expected $2: $3"
	}
}
touch_disk() {
	inside g dd "if=/dev/$1" of=/tmp/block bs=4k count=1 iflag=direct 2>/dev/null ||
		fail "no I/O in /g"
}
# Processes may stand only where no controller is handed on.
rmdir $CGROUPS/g/h
echo -io >$CGROUPS/g/cgroup.subtree_control

say "settings reach the disk, and outlive its scheduler"
echo default >$W
touch_disk nb0
expect nb0 weight=55 "override of a disk in use"
echo "$A 66" >$W
expect nb0 weight=66 "changed"
echo 300 >$W
expect nb0 weight=66 "a default does not hide an override"
echo "$A default" >$W
expect nb0 weight=300 "override cleared"
echo "$A 67" >$W
echo "$A rt" >$K
use nb0 mq-deadline
use nb0 none
use nb0 disktime
touch_disk nb0
expect nb0 weight=67 "after a switch"
expect nb0 class=rt "after a switch"
echo "$A 68" >$W
use nb0 none
echo "$A 69" >$W
use nb0 disktime
touch_disk nb0
expect nb0 weight=69 "set while another scheduler was in use"

say "set before disktime is used on a disk"
grep -qF '[disktime]' /sys/block/nb1/queue/scheduler && fail "nb1 uses it already"
echo "$B 88" >$W || fail "override before"
echo "$B idle" >$K || fail "override before"
grep -q "^$B 88\$" $W || fail "not shown"
use nb1 disktime
touch_disk nb1
expect nb1 weight=88 "set before"
expect nb1 class=idle "set before"
expect nb0 weight=69 "of the other disk"

say "the parts are gone with their cgroup"
use nb0 none
use nb1 none
rmdir $CGROUPS/g
group g
echo +io >$CGROUPS/g/cgroup.subtree_control
test "$(cat $W)" = "default 100" || fail "a new cgroup has old settings"
use nb0 disktime
balanced nb0
say "ok"
