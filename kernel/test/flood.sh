# A flood of new flows: each packet is of a flow that nobody saw before, and far more of them come than the
# link takes and than there is room for. What giveway shows meanwhile and afterwards is held against the
# limits, and memory against what it was before.
ip link add flood type dummy
ip link set flood up

# look: what giveway shows of the interface now, each number as a variable.
look() {
	giveway kernel show --dev flood --json >/run/flood.json || echo "FAILED: show $kind"
	eval "$(sed -n 's/.*"\([a-z_]*\)": \([0-9]*\),*$/\1=\2/p' /run/flood.json)"
}

# at_most WHAT NUMBER LIMIT
at_most() { [ "$2" -le "$3" ] || echo "FAILED: flood of $kind: $1 is $2, at most $3 it may be"; }
# is WHAT NUMBER NUMBER
is() { [ "$2" -eq "$3" ] || echo "FAILED: flood of $kind: $1 is $2, and should be $3"; }

kilobytes() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo; }

# flood DISCIPLINE PACKETS ENTRIES REST MARK FLAGS...: its limit in packets, how many entries its table may
# have, and how many when nothing is held; how many marks there are.
flood() {
	discipline=$1 limit=$2 entries=$3 rest=$4 mark=$5
	shift 5
	kind=${discipline%% *}
	giveway kernel load "$discipline limit ${limit}p" --dev flood --rate 5mbit --object "/objects/plain/$kind.o" "$@" >/dev/null ||
		{ echo "FAILED: load $discipline"; return; }
	slab=$(kilobytes Slab) looks=0
	drive strangers flood 60000 100 "$mark" &
	flood=$!
	while kill -0 $flood 2>/dev/null; do
		look
		looks=$((looks + 1))
		# A packet that is being decided about is held, and has a flow, until that is done.
		at_most "what is held" "$held_packets" $((limit + 1))
		at_most "the table" "$flow_table" $((entries + 1))
		at_most "the sum of reservations" "$reserved_bit" 5000000
		# A small packet and what the kernel knows of it are below 2 KB.
		at_most "what the kernel holds, in KB," $(($(kilobytes Slab) - slab)) $((2 * limit + 4096))
	done
	wait $flood || echo "FAILED: strangers of $kind"
	while look && [ "$held_packets" -gt 0 ] && [ $looks -lt 200 ]; do looks=$((looks + 1)); done
	is "what came" "$arrived_packets" 60000
	is "what is held in the end" "$held_packets" 0
	is "what left and was dropped" $((sent_packets + dropped_packets)) "$arrived_packets"
	is "the sum of all reasons" $((overlimit + pushout + too_large + reset)) "$dropped_packets"
	at_most "the table in the end" "$flow_table" "$rest"
	at_most "the largest table" "$flow_table_most" $((entries + 1))
	[ "$dropped_packets" -gt "$limit" ] || echo "FAILED: flood of $kind: it was none"
	echo "FLOOD $discipline limit ${limit}p: $arrived_packets came, $sent_packets left, $dropped_packets dropped" \
		"(overlimit $overlimit, pushout $pushout), at most $flow_table_most in the table, $refused_packets refused, $looks looks"
	# Once more, and taken away with a full queue.
	drive strangers flood $((2 * limit)) 100 "$mark"
	giveway kernel unload --dev flood >/dev/null || echo "FAILED: unload $discipline"
}

# Memory as it is when nothing is loaded, and nothing is kept that could be given up.
settle() {
	sleep 1
	echo 3 >/proc/sys/vm/drop_caches
	memory "$1"
	free=$(kilobytes MemFree)
}

all() {
	flood fifo "$1" 0 0 0
	flood efd "$1" "$1" 0 0
	flood drr "$1" "$1" 0 0
	flood "bsq level 4" "$1" 15 15 12 $routes
	flood trr "$1" "$1" 0 0
}

# The first time the kernel takes memory for itself, too.
all 8000
settle flood-before
before=$free
all 300
# Of every two flows one asks for a reservation: 12 of them fit the link, and the table has room for 100 of
# them or 10.
flood "trr flows 100" 1000 1100 100 1 --reserve 1=400kbit
flood "trr flows 10" 1000 1010 10 1 --reserve 1=400kbit
settle flood-after
at_most "memory that did not come back, in KB," $((before - free)) 4096
