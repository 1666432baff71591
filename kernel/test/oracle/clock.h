// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The times that a qdisc reads from the clock in its two functions, exactly.
//
// Calls of `ktime_get` and of the random numbers belong to the qdisc if the processor is inside one of its
// functions and not in an interrupt handler.
extern const int __preempt_count __ksym;

// Bits of the counter that are set in handlers of hardware interrupts and NMIs.
#define IN_INTERRUPT 0x00ff0000
#define NOWHERE ((u32)-1)

u32 inside = NOWHERE;
// First time that the current call has read; 0 before.
u64 read_at;

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
