// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the journal of CAKE has in addition to the times that it reads (clock.h):
//
// - Each random number that it draws in its two functions, as an entry of its own before the result of the
//   call.
// - At an arrival the memory of the packet's buffer, which CAKE counts for its limit, and in the upper half
//   the place of its queue in its tin.
// - At a departure 1 if the packet was marked (CE).

// Place of the arriving packet, and the memory of its buffer.
u64 place;
u32 buffer;

SEC("fexit/get_random_u16")
int BPF_PROG(drew, u16 value)
{
	if (belongs())
		note(read_at, DRAWN, 0, dequeues, 16, value, 0);
	return 0;
}

SEC("fexit/get_random_u32")
int BPF_PROG(drew_long, u32 value)
{
	if (belongs())
		note(read_at, DRAWN, 0, dequeues, 32, value, 0);
	return 0;
}

SEC("fexit/cake_hash")
int BPF_PROG(hashed, void *tin, struct sk_buff *skb, int mode, u16 flow, u16 host, u32 value)
{
	if (belongs())
		place = value;
	return 0;
}
