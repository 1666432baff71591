# The page "in the kernel" of the book, followed by a user who has a compiler and may say sudo.
export PATH=/usr/sbin:/usr/bin:/bin
for module in veth sch_htb sch_tbf sch_ingress cls_matchall act_mirred cls_flower act_skbedit; do
	insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done
# The shell of busybox takes its own ip for the one that is meant.
ln -sf dash /bin/sh
mkdir -p /etc /home/user /var/run
echo "root:x:0:0:root:/root:/bin/sh
user:x:1000:1000:user:/home/user:/bin/sh" >/etc/passwd
echo "root:x:0:
user:x:1000:" >/etc/group
cp -r /scenarios /home/user
chown -R user:user /home/user
chmod 1777 /tmp

# Two interfaces with somebody behind each.
for end in 0 1; do
	ip netns add host$end
	ip link add eth$end type veth peer name far netns host$end
	ip link set eth$end up
	ip -n host$end addr add 10.99.0.$end/24 dev far
	ip -n host$end link set far up
done

# step REFUSED: a command on the standard input, which must succeed, or be refused with these words. Commands
# that begin with sudo are root's, the others of somebody who may do nothing.
number=0
step() {
	number=$((number + 1))
	cat >/run/step
	chmod 644 /run/step
	begun=$(cut -d. -f1 /proc/uptime)
	cd /home/user
	if grep -q '^sudo ' /run/step; then
		{
			echo 'sudo() { "$@"; }'
			cat /run/step
		} >/run/as-root
		sh /run/as-root >/run/said 2>&1
	else
		su user -c "PATH=$PATH sh /run/step" >/run/said 2>&1
	fi
	status=$?
	if [ -n "$1" ] && [ $status != 0 ] && tr '\n' ' ' </run/said | sed 's/  */ /g' | grep -qF "$1"; then answer=refused
	elif [ -z "$1" ] && [ $status = 0 ]; then answer=done
	else
		echo "FAILED: step $number, exit code $status: $(cat /run/step)"
		answer=wrong
	fi
	echo "STEP $number, $(($(cut -d. -f1 /proc/uptime) - begun)) s: $(cat /run/step)"
	sed 's/^/     | /' /run/said
	[ $answer = wrong ] || echo "FOLLOWED $number, $answer: $(cat /run/step)"
}

# THE COMMANDS
# The rules of the page mark what they say, before the discipline sees it.
ip addr add 10.99.0.2/24 dev eth0
ip neigh add 10.99.0.5 lladdr 02:00:00:00:00:05 dev eth0
tc qdisc add dev eth0 clsact
tc filter add dev eth0 egress protocol ip flower ip_proto udp dst_port 5060 action skbedit mark 1
giveway kernel load trr --dev eth0 --rate 20mbit --reserve 1=2mbit --object /objects/named/giveway_trr.o
send() { timeout 1 tftp -g -r voice -l /tmp/voice 10.99.0.5 $1 2>/dev/null; }
send 5061
giveway kernel show --dev eth0 | grep -q 'reserved_bit  *0$' || echo "FAILED: a packet without a mark has a reservation"
send 5060
giveway kernel show --dev eth0 | grep -q 'reserved_bit  *2000000$' || echo "FAILED: the rule marks nothing"
giveway kernel unload --dev eth0
tc qdisc del dev eth0 clsact
cd /
giveway kernel list | grep loaded && echo "FAILED: something is still loaded"
bpftool struct_ops list | grep . && echo "FAILED: something is still in the kernel"
tc qdisc show | grep giveway && echo "FAILED: a qdisc is still there"
ls /run/giveway/kernel | grep . && echo "FAILED: files are left"
