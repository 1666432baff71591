# Who uses disciplines in the kernel: a test bed, a bridge and a router of giveway, and what is left of them, also after
# a kill.
for module in veth ifb sch_htb sch_tbf sch_drr cls_flow sch_ingress cls_matchall act_mirred; do
	insmod "/lib/modules/$module.ko" || echo "FAILED: module $module"
done
objects=/objects/named
# The shell of busybox takes its own ip for the one that is meant.
ln -sf dash /bin/sh

# check WHAT COMMAND...: it must succeed.
check() {
	what=$1
	shift
	if "$@" >/run/said 2>&1; then echo "CHECKED $what"; else sed "s/^/FAILED: $what: /" /run/said; echo "FAILED: $what"; fi
}

# Nothing of ours is in the kernel, and nothing is remembered. The waits of this file are long, because the
# machine is emulated, and other work runs beside it.
nothing_left() {
	for turn in $(seq 60); do
		bpftool struct_ops list | grep -q . || break
		sleep 0.5
	done
	bpftool struct_ops list | grep . && return 1
	ls /run/giveway/kernel 2>/dev/null | grep . && return 1
	ls /run/netns 2>/dev/null | grep '^gw[0-9]' && return 1
	ls /sys/fs/bpf/giveway 2>/dev/null | grep . && return 1
	return 0
}

cd /
bed="giveway testbed scenarios/testbed/quickstart.toml --attempts 1 --objects $objects"
check "a test bed with EFD in the kernel" sh -c "$bed --short --json --set 'disciplines=[\"bpf:efd limit 40p\"]' >/run/bed.json"
sed 's/"kernel\./\n"kernel./g' /run/bed.json | sed -n 's/^"kernel\.\([a-z_]*\)":{[^}]*"mean":\([0-9.]*\).*/COUNTED \1 \2/p'
check "what it counted is in the result" grep -q '"kernel.sent_packets":{[^}]*"mean":[1-9]' /run/bed.json
check "nothing is left of a test bed" nothing_left

sh -c "exec $bed --quiet --set 'disciplines=[\"bpf:efd\"]' --set duration=60s" >/run/killed 2>&1 &
killed=$!
for turn in $(seq 600); do
	grep -q '"device": "right"' /run/giveway/kernel/*.json 2>/dev/null && break
	sleep 0.1
done
bpftool struct_ops list | grep -q Qdisc_ops || echo "FAILED: the test bed that is to be killed has no discipline: $(cat /run/killed)"
kill -9 $killed
wait $killed 2>/dev/null
check "nothing is left of a test bed that was killed" nothing_left

# What somebody had at an interface is there again afterwards, as tc shows it.
ip link add put type dummy && ip link set put up
put_back() {
	tc qdisc add dev put root $1 && tc qdisc show dev put root >/run/before &&
		giveway kernel load fifo --dev put --replace --object $objects/giveway_fifo.o && giveway kernel unload --dev put &&
		tc qdisc show dev put root >/run/after && diff /run/before /run/after && tc qdisc del dev put root
}
for kind in "pfifo limit 100" "bfifo limit 100kb" pfifo_fast "sfq perturb 10" "fq limit 500" "fq_codel ecn limit 500" "cake bandwidth 20mbit nat" \
	"tbf rate 1mbit burst 5kb latency 50ms"; do
	check "$kind is put back" put_back "$kind"
done
ip link del put

# What a packet is charged does not depend on the length that its IP header says.
ip link add liars type dummy && ip link set liars up
# liars DISCIPLINE BYTES LENGTH FLAGS...
liars() {
	kind=$1 bytes=$2 length=$3
	shift 3
	giveway kernel load "$kind" --dev liars --object $objects/giveway_$kind.o "$@" && drive liars liars 40 "$bytes" "$length" &&
		giveway kernel show --dev liars --json >/run/liars.json && giveway kernel unload --dev liars &&
		cat /run/liars.json && grep -qE "\"arrived_bytes\": $((40 * bytes)),?\$" /run/liars.json
}
for kind in fifo efd drr bsq trr; do
	flags="--rate 100mbit"
	[ $kind = bsq ] && flags="--hops 1=4"
	check "$kind charges frames of 1514 bytes that say 20" liars $kind 1514 20 $flags
	check "$kind charges frames of 60 bytes that say 65535" liars $kind 60 65535 $flags
done
ip link del liars

# Two hosts, and a bridge between them.
ip netns add here && ip netns add there
ip link add here0 type veth peer name gw0
ip link add there0 type veth peer name gw1
ip link set here0 netns here && ip link set there0 netns there
ip -n here addr add 10.99.0.1/24 dev here0 && ip -n here link set here0 up
ip -n there addr add 10.99.0.2/24 dev there0 && ip -n there link set there0 up
ip link set gw0 up && ip link set gw1 up
reached() { ip netns exec here ping -c 3 -W 5 10.99.0.2; }
start() {
	rm -f /run/ready
	giveway live --in gw0 --out gw1 --rate 5mbit --rate-reverse 20mbit --qdisc "bpf:efd limit 300p" --objects $objects --fix-offloads \
		--control /run/gw.sock --metrics 127.0.0.1:9100 --ready /run/ready --json >/run/live.json 2>/run/live.said &
	live=$!
	for turn in $(seq 600); do
		[ -e /run/ready ] && return
		sleep 0.1
	done
	sed 's/^/FAILED: live: /' /run/live.said
}
start
check "frames pass through the kernel" reached
check "its counters are shown" sh -c "giveway control /run/gw.sock show | grep -q '\"arrived\":{\"packets\":[1-9]'"
check "its rate is set" giveway control /run/gw.sock set rate 8mbit
check "the kernel has the new rate" sh -c "bpftool -j map dump pinned /sys/fs/bpf/giveway/gw1/params | grep -q '\"rate\":8000000'"
check "its metrics are served" sh -c "wget -q -O - http://127.0.0.1:9100/metrics | grep -q '^giveway_arrived_packets_total{.*} [1-9]'"
kill -9 $live
wait $live 2>/dev/null
check "frames pass when it was killed" reached
start
check "another one takes over" reached
kill -TERM $live
wait $live || echo "FAILED: live ended with an error: $(cat /run/live.said)"
check "it gave an account" grep -q '"scheduling":"in the kernel, as giveway_efd' /run/live.json
check "nothing is left of a bridge" nothing_left
check "its filters are gone" sh -c "! tc qdisc show | grep -q clsact"
reached >/dev/null 2>&1 && echo "FAILED: frames pass a bridge that is gone"

# It is there as long as nobody takes it away.
start
tc qdisc del dev gw1 root
wait $live && echo "FAILED: live did not notice that its discipline was taken away"
check "it says what happened" grep -q "another program removed giveway_efd" /run/live.said
check "nothing is left of what somebody took away" nothing_left
check "an interface that is no more" sh -c "
	ip link add gone type dummy && ip link set gone up && giveway kernel load efd --dev gone --object $objects/giveway_efd.o &&
	ip link del gone && giveway kernel unload --gone | grep -q 'gone: giveway_efd.*removed'"
check "nothing is left of it" nothing_left

# The one interface of a router, gw1: what it sends has a queue at its root, and what it receives another.
ip -n here addr add 10.97.0.2/24 dev here0 && ip addr add 10.97.0.1/24 dev gw0 && ip -n here route add default via 10.97.0.1
ip -n there addr add 10.98.0.2/24 dev there0 && ip addr add 10.98.0.1/24 dev gw1 && ip -n there route add default via 10.98.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
across() { ip netns exec here ping -c 3 -W 5 10.98.0.2; }
check "the router forwards" across
router() {
	rm -f /run/ready
	giveway live --wan gw1 --rate 5mbit --rate-reverse 20mbit --fix-offloads --control /run/gw.sock --ready /run/ready --json "$@" \
		>/run/live.json 2>/run/live.said &
	live=$!
	for turn in $(seq 600); do
		[ -e /run/ready ] && return
		sleep 0.1
	done
	sed 's/^/FAILED: live: /' /run/live.said
}
both_counted() { [ "$(giveway control /run/gw.sock show | grep -o '"arrived":{"packets":[1-9]' | wc -l)" -ge 2 ]; }
# virtual_left: interfaces that live has created for the router.
virtual_left() { ip link show | grep -E ' gw[0-9]+(-ifb|-stack)?[@:]' | grep -vE ' gw[01][@:]'; }
for kind in "bpf:efd limit 300p" "efd limit 300p"; do
	flags="--objects $objects"
	[ "${kind#bpf:}" = "$kind" ] && flags=
	router --qdisc "$kind" $flags
	check "$kind: the router forwards" across
	check "$kind: packets of both directions are counted" both_counted
	kill -9 $live
	wait $live 2>/dev/null
	check "$kind: the router forwards when live was killed" across
	router --qdisc "$kind" $flags
	check "$kind: it forwards again" across
	kill -TERM $live
	wait $live || echo "FAILED: $kind: live ended with an error: $(cat /run/live.said)"
	check "$kind: nothing is left" nothing_left
	check "$kind: its filters are gone" sh -c "! tc qdisc show | grep -q clsact"
	virtual_left && echo "FAILED: $kind: an interface is left"
	check "$kind: the router forwards without it" across
done
