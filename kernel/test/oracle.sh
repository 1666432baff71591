# The kernel's own qdiscs, watched: each stands below an HTB class that is the link, which asks its child for
# a packet when there is room for one and never looks ahead. A flow is a mark; marks choose classes, queues
# and buckets, so that no hash has a say.
# CAKE reads the headers itself; the journal has the place that its hash selects.
for module in sch_htb sch_hfsc sch_drr sch_ets sch_codel sch_red sch_gred sch_pie sch_fq_pie sch_ingress cls_flow; do
	insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done

# gaps LANE RATE: as long as /run/LANE.gaps exists, the link stops again and again, for 0.3 to 2.5 s. Its class
# gets a tiny rate for a moment. HTB then sends one packet, and the next one when the tiny rate permits it, also
# if the class has its rate again by then: a second later, with 1,000 bytes at 8 kbit/s.
gaps() {
	while :; do
		for tiny in 12000 26000 7000 3200; do
			usleep 700000
			for rate in "${tiny}bit" "$2"; do
				tc class change dev "$1" parent 1: classid 1:1 htb rate "$rate" burst 15k cburst 15k quantum 1514 ||
					echo "FAILED: change the rate of $1"
				usleep 30000
			done
			[ -e "/run/$1.gaps" ] || return
			usleep "$((8000000000 / tiny))"
		done
	done
}

# oracle LANE NAME SLOT KIND RATE PACKETS FLOWS SIZES PARAMETERS [hosts|paced] [steady]: one qdisc, one mix of
# traffic, and its journal at a place of the disk. With steady traffic the link has gaps. A qdisc whose rate
# is root stands at the root, since it is a shaper itself. For drr the parameters are the quantum of the
# classes and the limit of their queues; for ets they are the limit of the queues and the words of tc. For htb
# and hfsc they are the words of the qdisc and, after a slash each, the number of the parent or 0, the number
# of a class, and its words; mark m belongs to the class m + 1. For gred they are the words of its set-up and,
# after a slash each, those of a virtual queue; the mark is the number of the queue, which a filter before the
# qdisc writes into the packet.
oracle() {
	lane=$1 name=$2 slot=$3 kind=$4 rate=$5 packets=$6 flows=$7 sizes=$8 parameters=$9
	shift 9
	# The programs come before the qdisc and leave after it: patching a function that the timer of a qdisc is in
	# has crashed the virtual machine.
	pins=/sys/fs/bpf/oracle-$kind
	mkdir "$pins" "$pins/links"
	bpftool prog loadall "/objects/oracle/$kind.o" "$pins/programs" pinmaps "$pins/maps" >"/run/$kind.log" 2>&1 &&
		drive attach "$pins/programs" "$pins/links" ||
		{ echo "FAILED: watch $name"; tail -5 "/run/$kind.log"; }
	{
		parent="parent 1:1"
		if [ "$rate" = root ]; then
			parent=root
		else
			echo "qdisc add dev $lane root handle 1: htb default 1"
			echo "class add dev $lane parent 1: classid 1:1 htb rate $rate burst 15k cburst 15k quantum 1514"
		fi
		if [ "$kind" = drr ]; then
			echo "qdisc add dev $lane $parent handle 2: drr"
			for flow in $(seq "$flows"); do
				class=$(printf %x "$flow")
				echo "class add dev $lane parent 2: classid 2:$class drr quantum ${parameters% *}"
				echo "qdisc add dev $lane parent 2:$class pfifo limit ${parameters#* }"
			done
		elif [ "$kind" = ets ]; then
			echo "qdisc add dev $lane $parent handle 2: ets ${parameters#* }"
			for band in $(seq "$flows"); do
				echo "qdisc add dev $lane parent 2:$(printf %x "$band") pfifo limit ${parameters%% *}"
			done
		elif [ "$kind" = htb ] || [ "$kind" = hfsc ]; then
			echo "qdisc add dev $lane $parent handle 2: $kind ${parameters%%/*}"
			echo "${parameters#*/}" | tr / '\n' | while read -r above class words; do
				echo "class add dev $lane parent 2:${above#0} classid 2:$class $kind $words"
			done
			for leaf in $(seq "$flows"); do
				echo "qdisc add dev $lane parent 2:$(printf %x "$leaf") pfifo limit 100000"
			done
		elif [ "$kind" = gred ]; then
			echo "qdisc add dev $lane $parent handle 2: gred ${parameters%%/*}"
			echo "${parameters#*/}" | tr / '\n' | while read -r words; do
				echo "qdisc change dev $lane $parent handle 2: gred $words"
			done
			# The low four bits count.
			echo "qdisc add dev $lane clsact"
			echo "filter add dev $lane egress protocol all prio 1 handle 1 flow map key mark baseclass 1:10"
		else
			echo "qdisc add dev $lane $parent handle 2: $kind $parameters"
		fi
		case $kind in
		drr | ets | sfq | fq_codel | htb | hfsc) echo "filter add dev $lane parent 2: protocol all prio 1 handle 1 flow map key mark baseclass 2:1" ;;
		esac
	} | tc -batch - || echo "FAILED: set up $name"
	case "$*" in *steady*)
		touch "/run/$lane.gaps"
		gaps "$lane" "$rate" &
		;;
	esac
	drive send "$lane" "$packets" "$flows" "$sizes" "$((flows - 1))" "$slot" "$@" || echo "FAILED: send $name"
	rm -f "/run/$lane.gaps"
	wait
	# All of it leaves.
	while tc -s qdisc show dev "$lane" root | grep -q 'backlog.* [1-9][0-9]*p '; do usleep 100000; done
	tc qdisc del dev "$lane" root || echo "FAILED: remove $name"
	[ "$kind" != gred ] || tc qdisc del dev "$lane" clsact || echo "FAILED: remove the filter of $name"
	rm -r "$pins/links"
	drive dump "$pins/maps/journal" /dev/vda "$((slot << 24))" || echo "FAILED: dump $name"
	rm -r "$pins"
	echo "JOURNAL $name"
}
