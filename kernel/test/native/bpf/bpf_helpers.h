// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Stand-in for the header of libbpf, for drive.c: sections have no meaning, and maps are functions.
#pragma once

#define SEC(name)
#define __kptr
#define __ksym
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))

// Attributes of a map, in the types of pointers. `sizeof(*map.max_entries)` is the number of its entries.
#define __uint(name, number) char (*name)[number]
#define __type(name, of) __typeof__(of) *name

// drive.c has the memory of the maps and the clock.
void *bpf_map_lookup_elem(const void *map, const u32 *key);
u64 bpf_ktime_get_ns(void);

// Puts a pointer in the place of another one, which it returns.
#define bpf_kptr_xchg(place, new)                                                                           \
	({                                                                                                  \
		__typeof__(*(place)) old = *(place);                                                        \
		*(place) = (new);                                                                           \
		old;                                                                                        \
	})
