// SPDX-License-Identifier: MIT OR Apache-2.0
// Entry of tests.
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#define CAT_(a, b, c) a##b##c
#define CAT(a, b, c) CAT_(a, b, c)
#define GW(what) CAT(gw_, NAME, what)
struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__ulong(map_extra, 0x1ull << 44);
} arena SEC(".maps");
struct args { u64 what, a, b, c; };
extern u64 gw_pointers(void);
extern u64 GW(_build)(u64 variant, u64 rate, u64 seed);
extern u64 GW(_test)(u64 ops);
u64 result;
SEC("syscall") int gw_main(struct args *args)
{
	void *use = &arena;
	asm volatile("" :: "r"(use));
	switch (args->what) {
	case 0:
		gw_pointers();
		result = GW(_build)(args->a, args->b, args->c);
		break;
	case 1:
		result = GW(_test)(args->a);
		break;
	}
	return 0;
}
char _license[] SEC("license") = "Dual MIT/GPL";
