// SPDX-License-Identifier: MIT OR Apache-2.0
//
// First in, first out: crates/disciplines/src/fifo.rs in the kernel.
//
// Departure order is acceptance order. When it is full the arriving packet is refused, or with `drop head` the oldest make room.
#include "giveway.h"

struct list queue;
struct backlog held;

INLINE void hold(u32 at)
{
	packets_push_back(&queue, at);
	held.packets++;
	held.bytes += packets[at & MASK].bytes;
}

INLINE u32 oldest(void)
{
	u32 at = queue.head;
	if (!at)
		return 0;
	packets_remove(&queue, at);
	held.packets--;
	held.bytes -= packets[at & MASK].bytes;
	return at;
}

static void accept(u32 at, u64 now)
{
	u32 bytes = packets[at & MASK].bytes;
	if (!admits(&held, bytes)) {
		if (!params.drop_head || !allows(1, bytes))
			return doom(at, OVERLIMIT);
		AT_MOST(ROOM) {
			u32 gone;
			if (admits(&held, bytes))
				break;
			gone = oldest();
			if (!gone)
				break;
			doom(gone, PUSHOUT);
		}
	}
	hold(at);
}

static u32 next(u64 now)
{
	return oldest();
}

static void clear(void)
{
	queue = (struct list){};
	held = (struct backlog){};
}

#include "port.h"
