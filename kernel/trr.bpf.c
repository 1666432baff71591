// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Timestamp round robin, corrected: crates/disciplines/src/reserved/trr_sound.rs for the kernel, with
// common/guaranteed.rs around it.
//
// - Only the oldest packet of a flow has a stamp: S = T of the packet before it, or max(V, T) if the flow had
//   no packet queued; T = S + L/rate. The flow with the lowest slot of T is next.
// - Virtual time V follows real time, and is shifted forward to the slot of the earliest S when all queued
//   flows start later.
// - A reservation is admitted while the sum of rates fits the link. Silent flows keep their reservation until
//   other flows need the room. A packet without a reservation is best effort, and so are the packets after
//   it; packets that its flow queued before leave first.
// - Packets without a reservation share the rest of the link by bytes (drr.h). When the buffer is full, the
//   longest of their queues loses a packet; without such packets the longest reserved queue does.
#define ASKS_FLOW
#define ASKS_MARK
#include "giveway.h"
#include "calendar.h"
#include "drr.h"
#include "stamp.h"

struct flow {
	FLOW_HEAD; // `next` and `prev` are in the list of silent flows
	struct list queue;
	u64 rate;
	u64 bytes; // backlog
	// The last length and its cost, since lengths repeat and divisions are slow.
	u64 priced;
	struct stamp cost;
	struct stamp stamp; // T of its oldest packet, or of its last departed packet if none is queued
	bool lapsed; // true if its last packet had no reservation
};

struct flow flows[ROOM];
LISTS(flows)
TABLE(flows)

// Flows without queued packets, the longest silent first.
struct list silent;
u32 known;

struct stamp virtual_time;
u64 as_of;

// Backlogged flows, by the slot of T.
CALENDAR(due)
// Backlogged flows that start in a later slot than that of virtual time, by the slot of S.
CALENDAR(later)

INLINE u64 flow_bytes(u32 at)
{
	return flows[at & MASK].bytes;
}

INLINE u64 flow_number(u32 at)
{
	return at;
}

LONGEST(longest_flow, flow_bytes, flow_number)

// ----------------------------------------------------------------------------------------------------
// schedule

INLINE struct stamp cost_of(u32 place, u32 at)
{
	struct flow *flow = &flows[place & MASK];
	u32 bytes = packets[at & MASK].bytes;
	if (flow->priced != bytes) {
		flow->priced = bytes;
		flow->cost = to_send(bytes, flow->rate);
	}
	return flow->cost;
}

INLINE struct stamp virtual_at(u64 now)
{
	return plus(virtual_time, span((now - as_of) * 1000));
}

// Advances virtual time by the real time that has passed.
INLINE void pass(u64 now)
{
	virtual_time = virtual_at(now);
	as_of = now;
}

__noinline int shift_to_starts(void)
{
	AT_MOST(ROOM) {
		struct due first = later_first();
		if (!first.item)
			break;
		if (first.slot > virtual_time.slot) {
			if (later_len < due_len)
				break;
			virtual_time = (struct stamp){ first.slot, 0 };
		}
		later_remove(first.item);
	}
	return 0;
}

// Shifts virtual time to the first start if all queued flows start in later slots.
INLINE void shift(void)
{
	if (later_len)
		shift_to_starts();
}

// Sets the stamp of a packet that becomes the oldest of its flow and starts at `start`.
INLINE void head(u32 place, struct stamp cost, struct stamp start)
{
	struct stamp stamp = plus(start, cost);
	flows[place & MASK].stamp = stamp;
	due_file(place, stamp.slot, virtual_time.slot);
	if (start.slot > virtual_time.slot)
		later_file(place, start.slot, virtual_time.slot);
	counters.beyond_window = due_overflowed;
}

INLINE void leave(u32 place)
{
	due_remove(place);
	if (later_len)
		later_remove(place);
}

// ----------------------------------------------------------------------------------------------------
// reservations

INLINE void fall_silent(u32 place)
{
	flows_push_back(&silent, place);
}

// Puts a packet at the end of its flow's queue.
INLINE void append(u32 place, u32 at, u64 now)
{
	struct flow *flow = &flows[place & MASK];
	bool first = !flow->queue.len;
	struct stamp cost;
	if (first)
		flows_remove(&silent, place);
	packets[at & MASK].flow = place;
	packets_push_back(&flow->queue, at);
	flow->bytes += packets[at & MASK].bytes;
	longest_flow_grew(place);
	cost = cost_of(place, at);
	pass(now);
	if (first)
		head(place, cost, before(virtual_time, flow->stamp) ? flow->stamp : virtual_time);
	shift();
}

// Takes a packet out of its flow's queue.
INLINE void take(u32 place, u32 at)
{
	struct flow *flow = &flows[place & MASK];
	packets_remove(&flow->queue, at);
	flow->bytes -= packets[at & MASK].bytes;
	if (!flow->queue.len)
		fall_silent(place);
}

INLINE bool fits(u64 old, u64 new)
{
	u64 sum = counters.reserved_bit - old + new;
	return sum >= new && sum <= params.rate;
}

// True if the history of this flow, which has no packet queued, has no effect any more.
INLINE bool passed(u32 place, u64 now)
{
	return !before(virtual_at(now), flows[place & MASK].stamp);
}

// Removes a flow without queued packets.
INLINE void forget(u32 place)
{
	flows_remove(&silent, place);
	counters.reserved_bit -= flows[place & MASK].rate;
	flows_forget(place);
	known--;
}

// Ends the reservation of the flow that has been silent longest. Returns true if there was one. If the first
// has a debt, it moves to the end, and the next one is examined.
INLINE bool release_silent(u64 now)
{
	for (int turn = 0; turn < 2; turn++) {
		u32 place = silent.head;
		if (!place)
			return false;
		if (passed(place, now)) {
			forget(place);
			return true;
		}
		flows_remove(&silent, place);
		flows_push_back(&silent, place);
	}
	return false;
}

// Moves the flow's queued best-effort packets to its reservation, since they arrived before the current
// packet.
INLINE void change_over(u32 place, u64 key, u64 now)
{
	AT_MOST(ROOM) {
		u32 turn_of = turns_find(key), oldest;
		if (!turn_of)
			break;
		oldest = turns[turn_of & MASK].queue.head;
		round_take(oldest);
		append(place, oldest, now);
	}
}

// Admits a flow without a reservation, if its rate fits. Returns the flow, or 0.
INLINE u32 admit(u64 key, u64 rate, u64 now)
{
	bool refused = false;
	struct flow *flow;
	u32 place;
	AT_MOST(ROOM) {
		if (fits(0, rate) && known < params.flows)
			break;
		refused = rate > params.rate || !release_silent(now);
		if (refused)
			break;
	}
	place = refused ? 0 : flows_add(key);
	if (!place) {
		counters.refused_packets++;
		return 0;
	}
	known++;
	flow = &flows[place & MASK];
	flow->queue = (struct list){};
	flow->rate = rate;
	flow->bytes = flow->priced = 0;
	flow->stamp = (struct stamp){};
	flow->lapsed = false;
	fall_silent(place);
	counters.reserved_bit += rate;
	change_over(place, key, now);
	return place;
}

// Returns the flow whose reservation serves a packet; 0 for best effort.
INLINE u32 reservation(u64 key, u64 rate, u64 now)
{
	u32 place = flows_find(key);
	struct flow *flow = &flows[place & MASK];
	if (!place)
		return rate ? admit(key, rate, now) : 0;
	if (flow->rate == rate && !flow->lapsed)
		return place;
	if (!rate) {
		if (flow->queue.len || !passed(place, now))
			flow->lapsed = true;
		else
			forget(place);
		return 0;
	}
	if (flow->lapsed) {
		flow->lapsed = false;
		change_over(place, key, now);
	}
	if (fits(flow->rate, rate)) {
		counters.reserved_bit += rate - flow->rate;
		flow->rate = rate;
		flow->priced = 0;
	} else {
		counters.refused_packets++;
	}
	return place;
}

// Removes the newest packet of the reserved flow with the most queued bytes.
INLINE u32 revoke(void)
{
	u32 place = longest_flow_queue(), at;
	struct stamp cost;
	if (!place)
		return 0;
	at = flows[place & MASK].queue.tail;
	cost = cost_of(place, at);
	take(place, at);
	if (!flows[place & MASK].queue.len) {
		leave(place);
		flows[place & MASK].stamp = minus(flows[place & MASK].stamp, cost);
		shift();
	}
	return at;
}

// ----------------------------------------------------------------------------------------------------
// callbacks

// Only while no flow has a reservation. A packet with a reservation needs a stamp, and one without may end
// the reservation of its flow.
static bool stands_alone(u32 at)
{
	return !known && !packets[at & MASK].reserved && !too_large(packets[at & MASK].bytes);
}

static void accept_first(u32 at)
{
	round_append(at);
}

static void accept(u32 at, u64 now)
{
	struct packet *packet = &packets[at & MASK];
	u32 place;
	if (too_large(packet->bytes))
		return doom(at, TOO_LARGE);
	place = reservation(packet->key, packet->reserved, now);
	if (place)
		append(place, at, now);
	else
		round_append(at);
	if (fits_in())
		return;
	AT_MOST(ROOM) {
		u32 victim;
		if (fits_in())
			break;
		victim = round_give_up();
		if (!victim)
			victim = revoke();
		if (!victim)
			break;
		// The newest packet of its flow is the arriving one.
		doom(victim, victim == at ? OVERLIMIT : PUSHOUT);
	}
}

static u32 next(u64 now)
{
	struct due first;
	struct stamp start;
	u32 at, following;
	// While no reserved flow is backlogged, virtual time can advance later, since the sum is exact.
	if (!due_len)
		return round_next();
	pass(now);
	shift();
	first = due_first();
	at = flows[first.item & MASK].queue.head;
	take(first.item, at);
	start = flows[first.item & MASK].stamp;
	following = flows[first.item & MASK].queue.head;
	leave(first.item);
	// The next packet is not due before the one that just left, so the window need not move.
	if (following)
		head(first.item, cost_of(first.item, following), start);
	shift();
	return at;
}

static void clear(void)
{
	round_clear();
	flows_clear();
	longest_flow_clear();
	due_clear();
	later_clear();
	silent = (struct list){};
	known = 0;
	counters.reserved_bit = 0;
	virtual_time = (struct stamp){};
	as_of = 0;
	due_overflowed = later_overflowed = 0;
}

#include "port.h"
