# What flows get from each qdisc, on test beds of this machine: the kernel's own and ours in the kernel.
for module in veth sch_htb sch_tbf sch_drr cls_flow; do
	insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done
# The shell of busybox takes its own ip for the one that is meant.
ln -sf dash /bin/sh
cd /
for scenario in shares transfers; do
	giveway testbed scenarios/testbed/kernel-$scenario.toml --objects /objects/named --json >/run/$scenario.json 2>/run/said ||
		echo "FAILED: $scenario"
	sed "s/^/SAID $scenario /" /run/said
	echo "BED $scenario $(tr -d '\n' </run/$scenario.json)"
done
