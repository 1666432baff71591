// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the journal of CAKE has in addition to other qdiscs:
//
// - The times that CAKE reads from the clock in its two functions, exactly.
// - Each random number that it draws in them, as an entry of its own before the result of the call.
// - At an arrival the memory of the packet's buffer, which CAKE counts for its limit, and in the upper half
//   the place of its queue in its tin.
// - At a departure 1 if the packet was marked (CE).
//
// Calls of `ktime_get` and `get_random_u16` belong to CAKE if the processor is inside a function of CAKE and
// not in an interrupt handler.
extern const int __preempt_count __ksym;

// Bits of the counter that are set in handlers of hardware interrupts and NMIs.
#define IN_INTERRUPT 0x00ff0000
#define NOWHERE ((u32)-1)

u32 inside = NOWHERE;
// First time that the current call has read; 0 before.
u64 read_at;
// Place of the arriving packet, and the memory of its buffer.
u64 place;
u32 buffer;

INLINE bool belongs(void)
{
	const int *count = bpf_this_cpu_ptr(&__preempt_count);
	return inside == bpf_get_smp_processor_id() && !(*count & IN_INTERRUPT);
}

INLINE void enter(void)
{
	inside = bpf_get_smp_processor_id();
	read_at = 0;
}

// Ends a call, and returns the time that it read, or the other time if it read none.
INLINE u64 leave(u64 otherwise)
{
	inside = NOWHERE;
	return read_at ?: otherwise;
}

SEC("fexit/ktime_get")
int BPF_PROG(read_clock, u64 time)
{
	if (belongs() && !read_at)
		read_at = time;
	return 0;
}

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

// True if the ECN field of an IPv4 packet is CE.
INLINE bool is_marked(struct sk_buff *skb)
{
	u8 service = 0;
	void *ip = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	bpf_probe_read_kernel(&service, sizeof service, ip + 1);
	return (service & 3) == 3;
}
