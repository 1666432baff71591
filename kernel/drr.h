// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Deficit round robin: crates/disciplines/src/fair/drr.rs in the kernel, with a queue for each flow and the
// longest that pays. M. Shreedhar, G. Varghese, 1996.
//
// - The flows that have packets stand in a round. The first gets its quantum once per visit and sends while
//   its deficit covers its next packet; then it goes to the end, keeping the rest. A flow that empties
//   leaves, and its deficit with it.
// - When the buffer is full the newest packet of the longest queue goes, in bytes; of equally long ones the
//   first in the round pays.
#pragma once

#include "flows.h"
#include "heap.h"

struct turn {
	FLOW_HEAD;
	struct list queue;
	u64 bytes;   // what it holds
	u64 deficit; // what it may send before its next quantum
	u64 ticket;  // its place in the round: drawn whenever it goes to the end
};

struct turn turns[ROOM];
LISTS(turns)
TABLE(turns)

// The flows that have packets; the first is being served.
struct list in_round;
// Whether the first flow already got its quantum on this visit.
bool granted;
u64 tickets;

INLINE u64 turn_bytes(u32 at)
{
	// One that is gone holds nothing.
	return turns[at & MASK].bytes;
}

INLINE u64 turn_ticket(u32 at)
{
	return turns[at & MASK].ticket;
}

LONGEST(longest_turn, turn_bytes, turn_ticket)

// Puts a packet at the end of its flow's queue; a new flow goes to the end of the round.
INLINE void round_append(u32 at)
{
	struct packet *packet = &packets[at & MASK];
	u32 place = turns_find(packet->key);
	struct turn *turn;
	if (!place) {
		place = turns_add(packet->key);
		turn = &turns[place & MASK];
		turn->queue = (struct list){};
		turn->bytes = turn->deficit = 0;
		turn->ticket = ++tickets;
		turns_push_back(&in_round, place);
	}
	turn = &turns[place & MASK];
	packet->flow = place;
	packets_push_back(&turn->queue, at);
	turn->bytes += packet->bytes;
	longest_turn_grew(place);
}

// Takes a packet out of its flow's queue; a flow without packets leaves the round.
INLINE void round_take(u32 at)
{
	struct packet *packet = &packets[at & MASK];
	u32 place = packet->flow;
	struct turn *turn = &turns[place & MASK];
	packets_remove(&turn->queue, at);
	turn->bytes -= packet->bytes;
	if (!turn->queue.len) {
		if (in_round.head == place)
			granted = false;
		turns_remove(&in_round, place);
		turns_forget(place);
	}
}

// The next packet of the first flow, if its deficit covers it; otherwise the flow goes to the end, and the
// answer is 0.
INLINE u32 round_visit(void)
{
	u32 place = in_round.head, at;
	struct turn *turn = &turns[place & MASK];
	if (!granted) {
		granted = true;
		turn->deficit += params.quantum;
	}
	at = turn->queue.head;
	if (packets[at & MASK].bytes <= turn->deficit) {
		turn->deficit -= packets[at & MASK].bytes;
		return at;
	}
	granted = false;
	turn->ticket = ++tickets;
	turns_remove(&in_round, place);
	turns_push_back(&in_round, place);
	return 0;
}

// The packet whose turn it is, taken out; 0 when there is none. A quantum that is smaller than a packet takes
// several rounds.
INLINE u32 round_next(void)
{
	u32 found;
	if (!in_round.head)
		return 0;
	found = round_visit();
	if (!found) {
		AT_MOST(1 << 20) {
			found = round_visit();
			if (found)
				break;
		}
	}
	if (found)
		round_take(found);
	return found;
}

// Takes the newest packet of the longest queue; 0 when there is none.
INLINE u32 round_give_up(void)
{
	u32 place = longest_turn_queue(), at;
	if (!place)
		return 0;
	at = turns[place & MASK].queue.tail;
	round_take(at);
	return at;
}

INLINE void round_clear(void)
{
	turns_clear();
	longest_turn_clear();
	in_round = (struct list){};
	granted = false;
	tickets = 0;
}
