// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the journal of `fq` has in addition to the times that it reads (clock.h):
//
// - After an arrival an entry with three facts: the departure time and the rate that the sender gave the
//   packet, 0 without one, and its priority.
// - At an arrival the hash of its headers, and at a dequeue 1 if the packet was marked (CE). The upper half
//   is the kernel's clock of ticks.

// The facts of a packet that arrives. A sender without a rate has the largest number.
INLINE void note_facts(u64 now, struct sk_buff *skb)
{
	struct sock *sender = BPF_CORE_READ(skb, sk);
	u64 rate = sender ? BPF_CORE_READ(sender, sk_pacing_rate) : 0;
	note(now, NOTED, 0, arrival, BPF_CORE_READ(skb, priority), BPF_CORE_READ(skb, tstamp), ~rate ? rate : 0);
}

// A number of 32 bits below the clock of ticks.
INLINE u64 with_ticks(u32 number)
{
	return bpf_jiffies64() << 32 | number;
}
