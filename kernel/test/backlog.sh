# What a packet costs when others wait: bursts to an interface whose other end takes nothing before the burst
# is over, and then all of it. Instructions of the sender, of the program that takes them, and of what the
# kernel does in between; the receiver is the same for all.
for module in veth sch_drr cls_flow; do
	[ -d /sys/module/$module ] || insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done
ip link add wait0 numtxqueues 1 numrxqueues 1 type veth peer name wait1 numtxqueues 1 numrxqueues 1
ip link set wait0 up && ip link set wait1 up
# With these the receiver has a ring, which stops the sender's queue while it is full, and a thread that
# empties it.
ethtool -K wait0 tso off
ethtool -K wait1 gro on
echo 1 >/sys/class/net/wait1/threaded || echo "FAILED: no receiver of its own"
for other in /proc/[0-9]*; do
	case $(cat "$other/comm" 2>/dev/null) in napi/wait1*) taker=${other#/proc/} ;; ksoftirqd/0) late=${other#/proc/} ;; esac
done
[ -n "$taker" ] || echo "FAILED: the receiver has no thread"
waits() {
	echo "WAIT $1 $(drive bursts wait0 40 100 64 ${2:-0} 1256 $taker $late) $(tc -s qdisc show dev wait0 root | sed -n 's/.*dropped \([0-9]*\),.*/\1/p' | head -1)"
}
set_drr() {
	tc qdisc add dev $1 root handle 1: drr
	for class in $(seq 64); do
		printf 'class add dev %s parent 1: classid 1:%x drr quantum 1514\nqdisc add dev %s parent 1:%x pfifo limit 2000\n' $1 $class $1 $class
	done | tc -batch -
	tc filter add dev $1 parent 1: protocol ip pref 1 handle 1 flow hash keys proto-src divisor 64 baseclass 1:1
}
# That others wait is seen by what a queue for fewer drops.
tc qdisc add dev wait0 root pfifo limit 500
waits=$(waits pfifo)
echo "SAID of 41 bursts of 1256 packets a queue for 500 drops: $waits"
[ "${waits##* }" -ge 20000 ] || echo "FAILED: nobody waits: $waits"
tc qdisc del dev wait0 root
# What waits for a burst is no queue that stands: CAKE would drop some.
for kind in "pfifo limit 2000" fq_codel "sfq limit 2000" fq "cake rtt 10s" drr; do
	if [ "$kind" = drr ]; then set_drr wait0; else tc qdisc add dev wait0 root $kind; fi
	waits ${kind%% *}
	tc qdisc del dev wait0 root
done
for kind in fifo efd drr bsq trr; do
	flags=
	[ $kind = bsq ] && flags="--hops 1=4"
	[ $kind = trr ] && flags="--rate 100gbit --reserve 1=1gbit"
	giveway kernel load $kind --limit 2000p --dev wait0 $flags --object /objects/plain/$kind.o >/dev/null || echo "FAILED: load $kind"
	waits giveway_$kind
	[ $kind = trr ] && waits giveway_trr,reserved 1
	[ $kind = bsq ] && waits giveway_bsq,way 1
	giveway kernel unload --dev wait0 >/dev/null
done
