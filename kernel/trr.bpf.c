// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Timestamp round robin, corrected: crates/disciplines/src/reserved/trr_sound.rs in the kernel, with
// common/guaranteed.rs around it.
//
// - Only the oldest packet of a flow is stamped: S = T of the packet before it, or max(V, that) when the flow
//   had nothing queued; T = S + L/rate. The flow with the lowest slot of T is next.
// - Virtual time V goes with real time, and is shifted forward to the slot of the earliest S when all who
//   wait start later.
// - A reservation is admitted while the sum fits the link; silent flows keep theirs until others need the
//   room. A packet that comes without one is best effort, and so is what follows it; what its flow has queued
//   before leaves first.
// - Packets without a reservation share by bytes what the reserved flows leave (drr.h). When the buffer is
//   full the longest of their queues pays; when there is none, the longest of the reserved flows.
#define ASKS_FLOW
#define ASKS_MARK
#include "giveway.h"
#include "calendar.h"
#include "drr.h"
#include "stamp.h"

struct flow {
	FLOW_HEAD; // its list is that of the silent ones
	struct list queue;
	u64 rate;
	u64 bytes; // what it holds
	// The last length and what it costs: traffic repeats its lengths, and divisions are slow.
	u64 priced;
	struct stamp cost;
	struct stamp stamp; // T of its oldest packet; when it has none, of the last that left
	bool lapsed; // its last packet came without a reservation
};

struct flow flows[ROOM];
LISTS(flows)
TABLE(flows)

// Flows that have nothing queued, the longest silent first.
struct list silent;
u32 known;

struct stamp virtual_time;
u64 as_of;

// The flows that wait, by the slot of T.
CALENDAR(due)
// Those of them that start in a later slot than virtual time's, by the slot of S.
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

// ---------------------------------------------------------------------------------------------------- the
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

// Real time passes.
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

// When all who wait start in later slots, virtual time is shifted to the first of these.
INLINE void shift(void)
{
	if (later_len)
		shift_to_starts();
}

// A packet becomes the oldest of its flow; it starts at `start`.
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

// Whether nothing that this flow did, which has nothing queued, matters any more.
INLINE bool passed(u32 place, u64 now)
{
	return !before(virtual_at(now), flows[place & MASK].stamp);
}

// A flow that has nothing queued is no longer known.
INLINE void forget(u32 place)
{
	flows_remove(&silent, place);
	counters.reserved_bit -= flows[place & MASK].rate;
	flows_forget(place);
	known--;
}

// Ends the reservation of a flow that was silent for long. Whether there was one. The first may have a debt;
// then another is looked at, and it comes last.
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

// What waits of a flow as best effort came before what comes now.
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

// A flow that has no reservation gets one, if it fits; 0 otherwise.
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

// The flow with whose reservation a packet is served; 0 when it is best effort.
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

// Takes the newest packet of the reserved flow that holds the most bytes.
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

// ---------------------------------------------------------------------------------------------------- the
// calls

// Where nobody has a reservation. What comes with one, or after one, needs to be stamped or taken for lapsed.
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
		// The newest packet of its flow is the arrival.
		doom(victim, victim == at ? OVERLIMIT : PUSHOUT);
	}
}

static u32 next(u64 now)
{
	struct due first;
	struct stamp start;
	u32 at, following;
	// While nobody with a reservation waits, time can pass later: what passes is a sum without rounding.
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
	// Not due before what just left: the window needs nobody's leave.
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
	virtual_time = (struct stamp){};
	as_of = 0;
	due_overflowed = later_overflowed = 0;
}

#include "port.h"
