#!/usr/sbin/dash
# The first process of the virtual machine of `cargo xtask testbed-linux`: runs scenarios on test beds. Whatever
# goes wrong ends it without the end marker, or with a line FAILED.
export PATH=/usr/sbin:/bin
/bin/busybox --install -s /bin
# The shell of busybox takes its own ip for the one that is meant.
ln -sf /usr/sbin/dash /bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs run /run
while read -r module; do
	insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done </modules
# Announcements of IPv6 would be packets of a measurement.
for all in all default; do echo 1 >/proc/sys/net/ipv6/conf/$all/disable_ipv6; done
ip link set lo up
# tcpdump looks up the user that it runs as.
mkdir -p /etc
echo "root:x:0:0:root:/root:/bin/sh" >/etc/passwd
echo "root:x:0:" >/etc/group
cd /

# bed NAME ARGUMENTS...: a test bed, and its results in a line.
bed() {
	name=$1
	shift
	giveway testbed "$@" --json >/run/results 2>/run/said || echo "FAILED: the test bed $name"
	sed "s/^/SAID $name /" /run/said
	echo "BED $name $(tr -d '\n' </run/results)"
}

# capture NAME SLOT ARGUMENTS...: the same, and its packets at a place of the disk.
capture() {
	name=$1 slot=$2
	shift 2
	bed "$name" "$@" --pcap /run/packets
	gzip -9 /run/packets
	dd if=/run/packets.gz of=/dev/vda bs=1M seek=$((slot << 4)) 2>/dev/null || echo "FAILED: the disk"
	echo "CAPTURE $name $(stat -c %s /run/packets.gz)"
	rm /run/packets.gz
}

# card ARGUMENTS...: the card of disciplines on test beds.
card() {
	giveway evaluate "$@" --testbed --objects /objects --out /run/card >/run/results 2>/run/said || echo "FAILED: the card"
	sed "s/^/SAID /" /run/said
	sed "s/^/CARD /" /run/results
}

# before DEVICE, try COMMAND, shows DEVICE WORDS..., restored DEVICE: commands that are pasted, and their effect.
before() {
	state=$(tc qdisc show dev "$1")
}
try() {
	sh -c "$1" >/run/tried 2>&1 || echo "FAILED: $1: $(cat /run/tried)"
	echo "TRIED $1"
}
shows() {
	device=$1 kind=$2 rate=$3
	tc qdisc show dev "$device" | grep "^qdisc $kind " | grep -q "$rate" || echo "FAILED: $device has no $kind $rate"
}
restored() {
	[ "$(tc qdisc show dev "$1")" = "$state" ] || echo "FAILED: $1 is not as before: $(tc qdisc show dev "$1")"
	[ ! -e /sys/class/net/ifb-giveway ] || echo "FAILED: ifb-giveway is left"
}

. /runs.sh

sync
dmesg | grep -E "BUG:|WARNING:|Oops|refcount|general protection" | grep -v "ACPI:" | sed 's/^/FAILED: the kernel says /'
echo "END OF THE KERNEL TEST"
poweroff -f
