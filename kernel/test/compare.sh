# What a packet costs with each discipline, in the same machine one after the other, in rounds: packets and processor seconds of the
# sender, who does all the work of the qdisc.
ip link add cost type dummy
ip link set cost up
for round in 1 2 3; do
	for kind in noqueue pfifo fq_codel sfq fq cake fifo efd drr trr; do
		case $kind in
		noqueue) ;;
		fifo | efd | drr) giveway kernel load $kind --dev cost --object /objects/plain/$kind.o >/dev/null ;;
		trr) giveway kernel load trr --dev cost --rate 100gbit --object /objects/plain/trr.o >/dev/null ;;
		*) tc qdisc add dev cost root $kind ;;
		esac
		echo "COST $kind $(drive flood cost 1 100 64)"
		case $kind in
		noqueue) ;;
		fifo | efd | drr | trr) giveway kernel unload --dev cost >/dev/null ;;
		*) tc qdisc del dev cost root ;;
		esac
	done
done
