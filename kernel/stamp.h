// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Virtual time without 128-bit numbers: crates/qdisc/src/blocks/ticks.rs, in slots.
//
// The Rust discipline counts in ticks of 2^-20 ps, in 128 bits, and divides by the width of a slot to find
// the slot. A BPF program has no 128-bit numbers. But a width is a whole number of picoseconds, so a time is
// stored as the result of the division: the slot, and the ticks since its beginning. Sums carry at the width.
// Rounding is the same as in Rust, and the only division is for the time of a packet with a new length.
#pragma once

#define TICKS_PER_PS (1ULL << 20)
#define PS_PER_BYTE_AT_1_BIT 8000000000000ULL

struct stamp {
	u64 slot;
	u64 ticks; // below the width
};

INLINE u64 width_ticks(void)
{
	return params.width_ps * TICKS_PER_PS;
}

INLINE struct stamp plus(struct stamp time, struct stamp span)
{
	struct stamp sum = { time.slot + span.slot, time.ticks + span.ticks };
	if (sum.ticks >= width_ticks()) {
		sum.ticks -= width_ticks();
		sum.slot++;
	}
	return sum;
}

INLINE bool before(struct stamp one, struct stamp other)
{
	return one.slot < other.slot || (one.slot == other.slot && one.ticks < other.ticks);
}

// The difference, or zero.
INLINE struct stamp minus(struct stamp time, struct stamp span)
{
	if (before(time, span))
		return (struct stamp){};
	if (time.ticks < span.ticks)
		return (struct stamp){ time.slot - span.slot - 1, time.ticks + width_ticks() - span.ticks };
	return (struct stamp){ time.slot - span.slot, time.ticks - span.ticks };
}

// A time span from picoseconds.
INLINE struct stamp span(u64 ps)
{
	u64 width = params.width_ps, slots = 0;
	if (ps >= width && width) {
		slots = ps / width;
		ps -= slots * width;
	}
	return (struct stamp){ slots, ps * TICKS_PER_PS };
}

// Transmission time of `bytes` at `rate`, rounded up to a tick. For up to 2 MB, and below 2^44 bit/s.
INLINE struct stamp to_send(u32 bytes, u64 rate)
{
	u64 most = bytes * PS_PER_BYTE_AT_1_BIT, ps, rest;
	if (!rate)
		return (struct stamp){};
	ps = most / rate;
	rest = most % rate * TICKS_PER_PS;
	// The remainder is at most a picosecond.
	return plus(span(ps), (struct stamp){ 0, rest / rate + (rest % rate != 0) });
}
