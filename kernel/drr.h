// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Deficit round robin: crates/disciplines/src/fair/drr.rs for the kernel, with a queue for each flow, and
// drops from the longest queue. M. Shreedhar, G. Varghese, 1996.
//
// - The flows with packets form a round. The first gets its quantum once per visit and sends while its
//   deficit covers its next packet; then it moves to the end and keeps the rest. A flow that empties leaves
//   the round and loses its deficit.
// - When the buffer is full, the newest packet of the longest queue, in bytes, is dropped; of equally long
//   queues it is that of the first in the round.
#pragma once

#include "flows.h"
#include "heap.h"

struct turn {
	FLOW_HEAD;
	struct list queue;
	u64 bytes;   // backlog
	u64 deficit; // bytes that it may send before its next quantum
	u64 ticket;  // position in the round; it is larger after each move to the end
};

struct turn turns[ROOM];
LISTS(turns)
TABLE(turns)

// Flows with packets; the first is being served.
struct list in_round;
// True if the first flow has got its quantum on this visit.
bool granted;
u64 tickets;

INLINE u64 turn_bytes(u32 at)
{
	// A removed flow has a backlog of 0.
	return turns[at & MASK].bytes;
}

INLINE u64 turn_ticket(u32 at)
{
	return turns[at & MASK].ticket;
}

LONGEST(longest_turn, turn_bytes, turn_ticket)

// Appends a packet to its flow's queue. A new flow joins the end of the round.
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

// Removes a packet from its flow's queue. A flow without packets leaves the round.
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

// Returns the next packet of the first flow, if its deficit covers it. Otherwise moves the flow to the end,
// and returns 0.
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

// Removes and returns the next packet; 0 if there is none. With a quantum smaller than a packet this takes
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

// Removes and returns the newest packet of the longest queue; 0 if there is none.
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
