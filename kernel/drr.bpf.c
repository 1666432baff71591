// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Deficit round robin, with the code of drr.h.
#define ASKS_FLOW
#include "giveway.h"
#include "drr.h"

// A flow that empties leaves the round without any state, so a packet may stand alone.
static bool stands_alone(u32 at)
{
	return !too_large(packets[at & MASK].bytes);
}

static void accept_first(u32 at)
{
	round_append(at);
}

static void accept(u32 at, u64 now)
{
	if (too_large(packets[at & MASK].bytes))
		return doom(at, TOO_LARGE);
	round_append(at);
	if (fits_in())
		return;
	AT_MOST(ROOM) {
		u32 victim;
		if (fits_in())
			break;
		victim = round_give_up();
		if (!victim)
			break;
		// The arriving packet is the newest of its flow, and without it the backlog is within the limit.
		doom(victim, victim == at ? OVERLIMIT : PUSHOUT);
	}
}

static u32 next(u64 now)
{
	return round_next();
}

static void clear(void)
{
	round_clear();
}

#include "port.h"
