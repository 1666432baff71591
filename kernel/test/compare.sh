# What a packet costs with each qdisc, in a machine whose clock counts instructions: packets and processor
# seconds of the sender, who does all the work of the qdisc. The last one has reserved flows.
ip link add cost type dummy
ip link set cost up
cost() {
	echo "COST $1 $(drive flood cost 0.1 100 64 ${2:-0})"
}
cost noqueue
insmod /lib/modules/sch_drr.ko && insmod /lib/modules/cls_flow.ko || echo "FAILED: modules of drr"
for kind in pfifo fq_codel sfq fq cake; do
	tc qdisc add dev cost root $kind
	cost $kind
	tc qdisc del dev cost root
done
# By itself it has no queue: a class with a pfifo for each flow, and a filter that hashes flows into them.
tc qdisc add dev cost root handle 1: drr
for class in $(seq 64); do
	printf 'class add dev cost parent 1: classid 1:%x drr quantum 1514\nqdisc add dev cost parent 1:%x pfifo\n' $class $class
done | tc -batch -
tc filter add dev cost parent 1: protocol ip pref 1 handle 1 flow hash keys proto-src divisor 64 baseclass 1:1
cost drr
tc qdisc del dev cost root
for kind in fifo efd drr bsq trr; do
	flags=
	[ $kind = bsq ] && flags="--hops 1=4"
	[ $kind = trr ] && flags="--rate 100gbit --reserve 1=1gbit"
	giveway kernel load $kind --dev cost $flags --object /objects/plain/$kind.o >/dev/null || echo "FAILED: load $kind"
	cost giveway_$kind
	[ $kind = trr ] && cost giveway_trr,reserved 1
	[ $kind = bsq ] && cost giveway_bsq,way 1
	giveway kernel unload --dev cost >/dev/null
done
