#!/bin/dash
# The first process of the virtual machine of `cargo xtask test-kernel`: sets up what its scripts need, runs
# both lanes beside each other, and says so at the end. Whatever goes wrong ends it without the end marker, or
# with a line FAILED.
export PATH=/usr/sbin:/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount -t bpf bpf /sys/fs/bpf
for module in virtio_blk dummy sch_sfq sch_fq sch_cake; do
	insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done
# What the machine says to neighbours would be counted.
for all in all default; do echo 1 >/proc/sys/net/ipv6/conf/$all/disable_ipv6; done
ip link set lo up

# Twelve routes of one to four hops; some continue where others end.
routes=
for route in 1=4 2=5 3=6 4=4.7 5=4.8 6=5.7 7=5.7.9 8=5.7.9.3 9=5.7.9.2 10=6.1.2.3 11=10 12=4.7.7; do routes="$routes --hops $route"; done

# journal LANE NAME SLOT DISCIPLINE RATE PACKETS FLOWS SIZES MARKS: one discipline, one mix of traffic, and
# its journal at a place of the disk.
journal() {
	lane=$1 name=$2 slot=$3 discipline=$4 rate=$5 packets=$6 flows=$7 sizes=$8 marks=$9
	kind=${discipline%% *}
	[ "$kind" = trr ] && reserve="--reserve 1=400kbit --reserve 2=1600kbit --reserve 3=3600kbit --reserve 4=6400kbit"
	[ "$kind" = bsq ] && reserve=$routes
	giveway kernel load "$discipline" --dev "$lane" --rate "$rate" --object "/objects/$kind.o" ${reserve:-} >/dev/null ||
		{ echo "FAILED: load $name"; return; }
	unset reserve
	drive send "$lane" "$packets" "$flows" "$sizes" "$marks" "$slot" || echo "FAILED: send $name"
	giveway kernel show --dev "$lane" --json >"/run/$lane.json" || echo "FAILED: show $name"
	for number in arrived_packets sent_packets dropped_packets held_packets flow_table_most; do
		sed -n "s/.*\"$number\": \([0-9]*\).*/$number \1/p" "/run/$lane.json"
	done | tr '\n' ' ' | sed "s/^/SHOWN $name /; s/\$/\n/"
	drive dump "/sys/fs/bpf/giveway/$lane/journal" /dev/vda "$((slot << 24))" || echo "FAILED: dump $name"
	giveway kernel unload --dev "$lane" >/dev/null || echo "FAILED: unload $name"
	echo "JOURNAL $name"
}

# again KIND TIMES: loads and unloads a discipline while traffic goes through it; without giveway, whose look
# at the kernel takes longer.
again() {
	for turn in $(seq "$2"); do
		bpftool struct_ops register "/objects/plain/$1.o" >/dev/null 2>&1 || echo "FAILED: register $1, turn $turn"
		# As many packets as there is room for, at 20 Mbit/s where it needs a rate: 300 packets, a quantum, 100
		# flows, 64 slots of 1 ms; one hop beyond.
		bpftool map update name .data.params key 0 0 0 0 value hex $(words 20000000 300 0 20 0 0 1514 0 100 64 1000000000 1 0) ||
			echo "FAILED: set $1, turn $turn"
		tc qdisc add dev again root "giveway_$1" || echo "FAILED: attach $1, turn $turn"
		usleep 20000
		tc qdisc del dev again root || echo "FAILED: detach $1, turn $turn"
		bpftool struct_ops unregister name ops >/dev/null 2>&1 || echo "FAILED: unregister $1, turn $turn"
	done
	echo "AGAIN $1 $2"
}

# 64-bit numbers as bytes.
words() {
	for word in "$@"; do
		printf '%016x' "$word" | sed 's/\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)/\8 \7 \6 \5 \4 \3 \2 \1 /'
	done
}

memory() { sed -n 's/^\(Slab\|VmallocUsed\|Percpu\|MemFree\): *\([0-9]*\) kB/\1 \2/p' /proc/meminfo | tr '\n' ' ' | sed "s/^/MEMORY $1 /; s/\$/\n/"; }

. /plan.sh

sync
# A warning of the kernel is a failure.
dmesg | grep -E "BUG:|WARNING:|Oops|refcount|general protection|verification" | grep -v "ACPI:" | sed 's/^/FAILED: the kernel says /'
echo "END OF THE KERNEL TEST"
poweroff -f
