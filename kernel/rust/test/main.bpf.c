// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The program of the test: builds a discipline, or makes a batch of operations. NAME is the discipline.
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define ENTRY(what) JOIN(gw_, NAME, what)

// An arena of 256 MB, mapped at this address in the test. Older headers have no names for
// the type and the flag.
struct {
	__uint(type, 33);
	__uint(map_flags, 1 << 10);
	__uint(max_entries, 65536);
	enum { AT = 1ull << 44 } map_extra;
} arena SEC(".maps");

struct args {
	__u64 what, a, b, c;
};

extern char __attribute__((address_space(1))) gw_call;
extern __u64 gw_pointers(void);
extern __u64 ENTRY(_build)(__u64 variant, __u64 rate, __u64 seed);
extern __u64 ENTRY(_test)(__u64 ops);

__u64 result;

SEC("syscall") int gw_main(struct args *args)
{
	// The kernel finds the arena of a program by an instruction that names it.
	void *use = &arena;
	asm volatile("" ::"r"(use));
	switch (args->what) {
	case 0:
		gw_pointers();
		result = ENTRY(_build)(args->a, args->b, args->c);
		break;
	case 1:
		result = ENTRY(_test)(args->a);
		break;
	default:
		// libbpf puts the variables at the start of the arena or at its end.
		result = (__u64)&gw_call;
	}
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
