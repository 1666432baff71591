// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A table of flows by key: an array of buckets with chains through the flows. Each flow has its own entry. A
// key is a keyed hash, so its low bits are the bucket.
#pragma once

// First fields of an entry.
#define FLOW_HEAD                                                                                           \
	u32 next, prev; /* in its list, or among the free entries         */                             \
	u64 key;                                                                                            \
	u32 chain_next, chain_prev

// Declares the table of the flows in `array`, for which LISTS is declared, too.
#define TABLE(array)                                                                                        \
	u32 array##_buckets[ROOM];                                                                   \
	/* The entry with this key, or 0. */                                                                \
	INLINE u32 array##_find(u64 key)                                                                    \
	{                                                                                                   \
		u32 at = array##_buckets[key & MASK];                                                       \
		if (!at || array[at & MASK].key == key)                                                     \
			return at;                                                                          \
		AT_MOST(ROOM) {                                                                             \
			at = array[at & MASK].chain_next;                                                   \
			if (!at || array[at & MASK].key == key)                                             \
				break;                                                                      \
		}                                                                                           \
		return at;                                                                                  \
	}                                                                                                   \
	/* A new entry with a new key; 0 if the table is full. */                                           \
	INLINE u32 array##_add(u64 key)                                                                     \
	{                                                                                                   \
		u32 at = array##_take(), first = array##_buckets[key & MASK];                               \
		if (!at)                                                                                    \
			return 0;                                                                           \
		array[at & MASK].key = key;                                                                 \
		array[at & MASK].chain_next = first;                                                        \
		array[at & MASK].chain_prev = 0;                                                            \
		if (first)                                                                                  \
			array[first & MASK].chain_prev = at;                                                \
		array##_buckets[key & MASK] = at;                                                           \
		flow_is_new();                                                                              \
		return at;                                                                                  \
	}                                                                                                   \
	INLINE void array##_forget(u32 at)                                                                  \
	{                                                                                                   \
		u32 after = array[at & MASK].chain_next, before = array[at & MASK].chain_prev;              \
		if (before)                                                                                 \
			array[before & MASK].chain_next = after;                                            \
		else                                                                                        \
			array##_buckets[array[at & MASK].key & MASK] = after;                               \
		if (after)                                                                                  \
			array[after & MASK].chain_prev = before;                                            \
		flow_is_gone();                                                                             \
		array##_give(at);                                                                           \
	}                                                                                                   \
	INLINE void array##_clear(void)                                                                     \
	{                                                                                                   \
		int *bucket;                                                                                \
		EACH(bucket, ROOM)                                                                          \
			array##_buckets[*bucket & MASK] = 0;                                                \
		array##_free = array##_used = 0;                                                            \
	}
