// SPDX-License-Identifier: MIT OR Apache-2.0
//
// First in, first out: crates/disciplines/src/shape/fifo.rs for the kernel.
//
// Departure order is acceptance order. A full queue refuses the arriving packet, or with `drop head` drops
// the oldest packets.
#include "giveway.h"

struct list queue;

INLINE u32 oldest(void)
{
	u32 at = queue.head;
	if (!at)
		return 0;
	packets_pop_front(&queue);
	return at;
}

static bool stands_alone(u32 at)
{
	return false;
}

static void accept_first(u32 at) {}

static void accept(u32 at, u64 now)
{
	if (!fits_in()) {
		if (!params.drop_head || too_large(packets[at & MASK].bytes))
			return doom(at, OVERLIMIT);
		AT_MOST(ROOM) {
			u32 gone;
			if (fits_in())
				break;
			gone = oldest();
			if (!gone)
				break;
			doom(gone, PUSHOUT);
		}
	}
	packets_push_back(&queue, at);
}

static u32 next(u64 now)
{
	return oldest();
}

static void clear(void)
{
	queue = (struct list){};
}

#include "port.h"
