// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The times that a qdisc reads from the clock in its two functions, exactly.
//
// Calls of `ktime_get` and of the random numbers belong to the qdisc if the processor is inside one of its
// functions and not in an interrupt handler. Two functions read the clock when an interrupt ends, after the
// counter has forgotten it: one programs the next timer, the other is for idle processors. Without the test
// of the caller, such a time took the place of the qdisc's own now and then, 5 to 70 us before or after it.
extern const int __preempt_count __ksym;
extern const void clockevents_program_event __ksym;
extern const void tick_nohz_irq_exit __ksym;

// Bits of the counter that are set in handlers of hardware interrupts and NMIs.
#define IN_INTERRUPT 0x00ff0000
#define NOWHERE ((u32)-1)
// Frames of the stack down to the caller of `ktime_get`, and the length of one of the two functions at most.
#define FRAMES 4
#define LENGTH 576

u32 inside = NOWHERE;
// First and last time that the current call has read; 0 before.
u64 read_at, read_last;

INLINE bool belongs(void)
{
	const int *count = bpf_this_cpu_ptr(&__preempt_count);
	return inside == bpf_get_smp_processor_id() && !(*count & IN_INTERRUPT);
}

INLINE void enter(void)
{
	inside = bpf_get_smp_processor_id();
	read_at = read_last = 0;
}

// Ends a call, and returns the time that it read, or the other time if it read none.
INLINE u64 leave(u64 otherwise)
{
	inside = NOWHERE;
	return read_at ?: otherwise;
}

// True if one of the two functions has read the clock.
INLINE bool ends_interrupt(void *ctx)
{
	u64 frames[FRAMES] = {};
	u64 timer = (u64)&clockevents_program_event, idle = (u64)&tick_nohz_irq_exit;
	if (bpf_get_stack(ctx, frames, sizeof frames, 0) < 0)
		return false;
	for (int at = 0; at < FRAMES; at++)
		if (frames[at] - timer < LENGTH || frames[at] - idle < LENGTH)
			return true;
	return false;
}

SEC("fexit/ktime_get")
int BPF_PROG(read_clock, u64 time)
{
	if (belongs() && !ends_interrupt(ctx)) {
		read_at = read_at ?: time;
		read_last = time;
	}
	return 0;
}
