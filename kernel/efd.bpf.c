// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Early Flow Discard: crates/disciplines/src/size/efd.rs for the kernel. J. Chen, M. Heusse, G. Urvoy-Keller,
// NETWORKING 2011.
//
// - The first `threshold` of a flow goes to a high queue, the rest to a low one that is served when the high
//   one is empty.
// - A flow has an entry while one of its packets is queued, so the table is never larger than the buffer.
// - The two queues share one buffer. When it is full, the packet that would leave last is dropped: the newest
//   low packet, or the arriving one.
#define ASKS_FLOW
#include "giveway.h"
#include "flows.h"

struct flow {
	FLOW_HEAD;
	u32 offered; // amount since it became backlogged, in the threshold's unit, saturating
	u32 queued;  // number of its queued packets
};

struct flow flows[ROOM];
LISTS(flows)
TABLE(flows)

struct list high, low;

// Counts a packet for its flow. Returns true if the packet goes to the low queue.
INLINE bool count_in(u32 at)
{
	struct packet *packet = &packets[at & MASK];
	u64 most = params.threshold_in_bytes ? params.threshold_bytes : params.threshold_packets;
	u32 step = params.threshold_in_bytes ? packet->bytes : 1;
	u32 place = flows_find(packet->key);
	struct flow *flow;
	if (!place) {
		place = flows_add(packet->key);
		// A reset leaves the numbers of an earlier flow.
		flows[place & MASK].offered = flows[place & MASK].queued = 0;
	}
	flow = &flows[place & MASK];
	packet->flow = place;
	flow->offered = flow->offered + step < step ? ~0U : flow->offered + step;
	flow->queued++;
	return flow->offered > most;
}

INLINE void leave(struct list *list, u32 at)
{
	u32 place = packets[at & MASK].flow;
	packets_remove(list, at);
	if (!--flows[place & MASK].queued)
		flows_forget(place);
}

// Drops the packets that would leave last until the backlog is within the limit.
INLINE void push_out(u32 arrival)
{
	AT_MOST(ROOM) {
		u32 last;
		if (fits_in())
			break;
		if (low.len) {
			last = low.tail;
			leave(&low, last);
		} else {
			last = high.tail;
			leave(&high, last);
		}
		doom(last, last == arrival ? OVERLIMIT : PUSHOUT);
	}
}

// A flow without queued packets has no state, so a packet may stand alone.
static bool stands_alone(u32 at)
{
	return !too_large(packets[at & MASK].bytes);
}

static void accept_first(u32 at)
{
	packets_push_back(count_in(at) ? &low : &high, at);
}

static void accept(u32 at, u64 now)
{
	if (too_large(packets[at & MASK].bytes))
		return doom(at, TOO_LARGE);
	packets_push_back(count_in(at) ? &low : &high, at);
	if (!fits_in())
		push_out(at);
	counters.high_packets = high.len;
	counters.low_packets = low.len;
}

static u32 next(u64 now)
{
	u32 at = high.head;
	if (at) {
		leave(&high, at);
		counters.high_packets = high.len;
		return at;
	}
	at = low.head;
	if (at)
		leave(&low, at);
	counters.low_packets = low.len;
	return at;
}

static void clear(void)
{
	flows_clear();
	high = low = (struct list){};
	counters.high_packets = counters.low_packets = 0;
}

#include "port.h"
