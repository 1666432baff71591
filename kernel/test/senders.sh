#!/usr/sbin/dash
# The first process of the virtual machine of `cargo xtask senders-linux`. Whatever goes wrong ends it without
# the end marker, or with a line FAILED.
export PATH=/usr/sbin:/bin
/bin/busybox --install -s /bin
# The shell of busybox takes its own ip for the one that is meant.
ln -sf /usr/sbin/dash /bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
while read -r module; do
	insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done </modules
# Announcements of IPv6 would be packets of a measurement.
for all in all default; do echo 1 >/proc/sys/net/ipv6/conf/$all/disable_ipv6; done
# A window of thousands of packets may arrive at once.
echo 10000 >/proc/sys/net/core/netdev_max_backlog
senders /measurements
# The second number of a line counts packets that were dropped because the backlog of the processor was full.
awk '$2 != "00000000" { print "FAILED: the backlog of the processor dropped packets" }' /proc/net/softnet_stat
dmesg | grep -E "BUG:|WARNING:|Oops|refcount|general protection" | grep -v "ACPI:" |
	sed 's/^/FAILED: the kernel says /'
echo "END OF THE KERNEL TEST"
poweroff -f
