// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Burst shaping queueing: crates/disciplines/src/shape/bsq.rs in the kernel. V. Darlagiannis, M. Karsten, R.
// Steinmetz, 2003.
//
// - Sub-queues stand in a tree: the root is the neighbour, a branch is a next hop beyond. A packet waits
//   where its way ends, or where `level` says that nobody looks further. Each node serves its own queue and
//   its branches in turn, a packet at a time; what is empty has no turn. So what parts at the next router
//   leaves in turn, and what goes the same way keeps its order.
// - The kernel knows the next hop of a packet and not those after it. They are configured: a mark stands for
//   a route, of at most four hops. With nft a mark can follow from the address, which makes of its rules the
//   extended routing table of the paper. What has no way is the neighbour's own.
// - The rates of the downstream links are not configured: all branches weigh the same.
// - When the buffer is full the oldest packet of the largest sub-queue goes, by bytes or packets, and of
//   equally large ones that of the node that was first there; with `drop tail`, the arrival.
// - Which places of a node hold packets is a set of bits in one word: a router has up to 63 links beyond it,
//   and who is next is found in one step per hop. The tree has as many nodes as routes were configured, so
//   none is forgotten.
#define ASKS_MARK
#include "giveway.h"
#include "flows.h"
#include "heap.h"

// Hops that a way has at most, 16 bits each, the first in the lowest.
#define HOPS 4
// Places of a node: its own queue, and its branches.
#define PLACES 64
// Beyond the last place.
#define OVER PLACES

struct tree_node {
	FLOW_HEAD; // its key is the way to it
	struct list queue;
	u64 bytes; // of its own queue
	// The places that hold packets. While it has no branches it has no turns, and no places.
	u64 busy;
	u32 turn;   // the first place that had no turn in this round
	u32 parent; // 0: it is the root
	u32 place;  // which it has there
	u32 branches;
	u32 children[PLACES]; // by place
};

struct tree_node nodes[ROOM];
LISTS(nodes)
TABLE(nodes)

#define ROOT 1

INLINE u64 node_size(u32 at)
{
	return params.measure_packets ? nodes[at & MASK].queue.len : nodes[at & MASK].bytes;
}

// Nodes are numbered as they are made.
INLINE u64 node_number(u32 at)
{
	return at;
}

LONGEST(largest, node_size, node_number)

// ---------------------------------------------------------------------------------------------------- the
// tree

// The way to a node as a key of the table, whose lowest bits differ where any do. Different ways have
// different keys.
INLINE u64 key_of(u64 way)
{
	u64 mixed = way * 0x9e3779b97f4a7c15ULL;
	return mixed >> 32 | mixed << 32;
}

// So many hops of a way.
INLINE u64 part(u64 way, u32 hops)
{
	return hops < HOPS ? way & ~(~0ULL << 16 * hops) : way;
}

INLINE u32 create(u64 way, u32 parent)
{
	u32 place = nodes_add(key_of(way)), first;
	struct tree_node *node = &nodes[place & MASK], *above = &nodes[parent & MASK];
	if (!place)
		return parent;
	node->queue = (struct list){};
	node->bytes = node->busy = 0;
	node->turn = node->branches = 0;
	node->parent = parent;
	if (!parent)
		return place;
	first = !above->branches;
	// The loader counts them.
	if (above->branches < PLACES - 1)
		above->branches++;
	node->place = above->branches;
	above->children[node->place & (PLACES - 1)] = place;
	// Until now there was nobody to take turns with.
	if (first && above->queue.len)
		above->busy |= 1;
	return place;
}

// The node of a way that nobody went yet.
__noinline int explore(u64 way)
{
	u32 at = ROOT;
	if (!nodes_used)
		create(0, 0);
	for (u32 hops = 1; hops <= HOPS; hops++) {
		u64 so_far = part(way, hops);
		u32 next;
		if (so_far == part(way, hops - 1))
			break;
		next = nodes_find(key_of(so_far));
		at = next ? next : create(so_far, at);
	}
	return at;
}

// The node where a packet waits.
INLINE u32 find(u32 at)
{
	u64 way = part(packets[at & MASK].reserved, params.level);
	u32 place = nodes_find(key_of(way));
	return place ? place : explore(way);
}

// The node at which a queue waits for its turn, and its place there. With branches it takes turns with them.
INLINE u32 waits_at(u32 at, u32 *place)
{
	struct tree_node *node = &nodes[at & MASK];
	*place = node->branches ? 0 : node->place;
	return node->branches ? at : node->parent;
}

// A queue holds packets now, and each node above it that had none waits for turns.
INLINE void wake(u32 at)
{
	u32 place;
	at = waits_at(at, &place);
	for (u32 hops = 0; at && hops <= HOPS; hops++) {
		struct tree_node *node = &nodes[at & MASK];
		bool waited = node->busy;
		node->busy |= 1ULL << (place & (PLACES - 1));
		if (waited)
			break;
		place = node->place;
		at = node->parent;
	}
}

// A queue holds none any more.
INLINE void sleep(u32 at)
{
	u32 place;
	at = waits_at(at, &place);
	for (u32 hops = 0; at && hops <= HOPS; hops++) {
		struct tree_node *node = &nodes[at & MASK];
		node->busy &= ~(1ULL << (place & (PLACES - 1)));
		if (node->busy)
			break;
		place = node->place;
		at = node->parent;
	}
}

// The node whose queue is served next. Every node on the way there gives a turn.
INLINE u32 give_turns(void)
{
	u32 at = ROOT;
	for (u32 hops = 0; hops <= HOPS; hops++) {
		struct tree_node *node = &nodes[at & MASK];
		u64 waiting;
		u32 place;
		if (!node->branches)
			break;
		waiting = node->turn < OVER ? node->busy & ~0ULL << (node->turn & (PLACES - 1)) : 0;
		if (!waiting)
			waiting = node->busy;
		if (!waiting)
			break;
		place = __builtin_ctzll(waiting) & (PLACES - 1);
		// A round is over after the last place, even for a branch that is new then.
		node->turn = place < node->branches ? place + 1 : OVER;
		if (!place)
			break;
		at = node->children[place];
	}
	return at;
}

// ----------------------------------------------------------------------------------------------------
// packets

INLINE void push(u32 at)
{
	u32 place = find(at);
	struct tree_node *node = &nodes[place & MASK];
	packets[at & MASK].flow = place;
	packets_push_back(&node->queue, at);
	node->bytes += packets[at & MASK].bytes;
	if (node->queue.len == 1)
		wake(place);
	if (params.drop_head)
		largest_grew(place);
}

INLINE u32 pop(u32 place)
{
	struct tree_node *node = &nodes[place & MASK];
	u32 at = node->queue.head;
	if (!at)
		return 0;
	packets_pop_front(&node->queue);
	node->bytes -= packets[at & MASK].bytes;
	if (!node->queue.len)
		sleep(place);
	return at;
}

// ---------------------------------------------------------------------------------------------------- the
// calls

// Turns that others had before are not forgotten.
static bool stands_alone(u32 at)
{
	return false;
}

static void accept_first(u32 at) {}

static void accept(u32 at, u64 now)
{
	if (too_large(packets[at & MASK].bytes))
		return doom(at, TOO_LARGE);
	if (!params.drop_head && !fits_in())
		return doom(at, OVERLIMIT);
	push(at);
	if (fits_in())
		return;
	AT_MOST(ROOM) {
		u32 victim;
		if (fits_in())
			break;
		victim = pop(largest_queue());
		if (!victim)
			break;
		doom(victim, victim == at ? OVERLIMIT : PUSHOUT);
	}
}

static u32 next(u64 now)
{
	return pop(give_turns());
}

static void clear(void)
{
	nodes_clear();
	largest_clear();
}

#include "port.h"
