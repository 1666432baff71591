// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Burst shaping queueing: crates/disciplines/src/shape/bsq.rs for the kernel. V. Darlagiannis, M. Karsten, R.
// Steinmetz, 2003.
//
// - Sub-queues form a tree: the root is the neighbour, and a branch is a next hop after its parent. A packet
//   is queued at the node where its route ends, at most `level` hops down. Each node serves its own queue and
//   its branches in turn, one packet at a time; an empty one has no turn. So packets that separate at the
//   next router leave in turn, and packets with the same route keep their order.
// - The kernel knows the next hop of a packet, but not those after it. They are configured: a mark stands for
//   a route of at most four hops. nft can set the mark by the address, so its rules are the extended routing
//   table of the paper. A packet without a route belongs to the neighbour itself.
// - The rates of the downstream links are not configured: all branches have the same weight.
// - When the buffer is full, the oldest packet of the largest sub-queue is dropped, by bytes or packets; of
//   equally large ones, that of the node that was created first. With `drop tail` it is the arriving packet.
// - The places of a node with packets are a set of bits in one word: a router has up to 63 downstream links,
//   and the next place is found in one step per hop. The configured routes bound the number of nodes, so
//   nodes are never removed.
#define ASKS_MARK
#include "giveway.h"
#include "flows.h"
#include "heap.h"

// Largest number of hops of a route: 16 bits each, the first hop in the lowest bits.
#define HOPS 4
// Number of places of a node: its own queue, and its branches.
#define PLACES 64
// After the last place.
#define OVER PLACES

struct tree_node {
	FLOW_HEAD; // the key is the route to the node
	struct list queue;
	u64 bytes; // of its own queue
	// Places with packets. A node without branches has neither turns nor places.
	u64 busy;
	u32 turn;   // first place without a turn in this round
	u32 parent; // 0 for the root
	u32 place;  // at the parent
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

// Nodes are numbered in the order of their creation.
INLINE u64 node_number(u32 at)
{
	return at;
}

LONGEST(largest, node_size, node_number)

// ----------------------------------------------------------------------------------------------------
// tree

// Key of a route in the table. Different routes have different keys, and a difference in any bit changes the
// low bits, which select the bucket.
INLINE u64 key_of(u64 way)
{
	u64 mixed = way * 0x9e3779b97f4a7c15ULL;
	return mixed >> 32 | mixed << 32;
}

// The first hops of a route.
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
	// The loader checks this limit.
	if (above->branches < PLACES - 1)
		above->branches++;
	node->place = above->branches;
	above->children[node->place & (PLACES - 1)] = place;
	// With the first branch, the own queue begins to take turns.
	if (first && above->queue.len)
		above->busy |= 1;
	return place;
}

// The node of a route without a node yet. Creates the missing nodes.
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

// The node in whose queue a packet is stored.
INLINE u32 find(u32 at)
{
	u64 way = part(packets[at & MASK].reserved, params.level);
	u32 place = nodes_find(key_of(way));
	return place ? place : explore(way);
}

// The node at which a queue takes turns, and its place there: the node itself if it has branches, otherwise
// the parent.
INLINE u32 waits_at(u32 at, u32 *place)
{
	struct tree_node *node = &nodes[at & MASK];
	*place = node->branches ? 0 : node->place;
	return node->branches ? at : node->parent;
}

// A queue becomes backlogged: it joins the turns, and so does each node above that was empty.
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

// A queue becomes empty: it leaves the turns, and so does each node above that is now empty.
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

// The node whose queue is served next. Each node on the path gives a turn.
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
		// A round ends after the last place, even if a branch is created then.
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

// ----------------------------------------------------------------------------------------------------
// callbacks

// The positions of the turns are state, so a packet never stands alone.
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
