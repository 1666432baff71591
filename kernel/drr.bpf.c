// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Deficit round robin: see drr.h.
#include "giveway.h"
#include "drr.h"

static void accept(u32 at, u64 now)
{
	if (!allows(1, packets[at & MASK].bytes))
		return doom(at, TOO_LARGE);
	round_append(at);
	if (allows(round_held.packets, round_held.bytes))
		return;
	AT_MOST(ROOM) {
		u32 victim;
		if (allows(round_held.packets, round_held.bytes))
			break;
		victim = round_give_up();
		if (!victim)
			break;
		// The arrival is the newest of its flow, and without it everything fits.
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
