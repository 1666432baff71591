// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Items in the order of the slots of time in which they are due, then in the order of insertion:
// crates/qdisc/src/blocks/calendar.rs. An array of slots is a window that moves with time. A set of bits, in
// two levels of 64, has the slots that are not empty. An item after the end of the window is kept in a heap
// until the window reaches it. Items are numbers from 1 to ROOM - 1.
//
// A single item is in neither, because a link usually has at most one packet. The window moves only when
// necessary: the caller passes the slot before which no further item will be due, and no item is inserted
// before that slot or before the first item.
#pragma once

#include "heap.h"

// Largest number of slots of a window: two levels of 64.
#define SLOTS 4096
#define SLOT_MASK (SLOTS - 1)
#define NO_SLOT (~0U)

struct filed {
	u32 next, prev;
	u32 slot; // slot plus one; 0 if the item is not in the window
};

struct ends {
	u32 head, tail;
};

// Result of `_first`.
struct due {
	u64 slot;
	u32 item; // 0 if there is no item
};

#define CALENDAR(name)                                                                                      \
	HEAP(name##_beyond)                                                                                 \
	struct filed name##_filed[ROOM];                                                                    \
	struct ends name##_ends[SLOTS];                                                                     \
	u64 name##_bits[64], name##_words;                                                                  \
	/* Number of items; of those in the window. */                                                      \
	u32 name##_len, name##_inside;                                                                      \
	/* The single item. A last remaining item stays in the window or heap. */                           \
	struct due name##_only;                                                                             \
	/* First slot of the window; number of items so far that were in the heap. */                       \
	u64 name##_floor, name##_overflowed;                                                                \
	INLINE u32 name##_index(u64 slot)                                                                   \
	{                                                                                                   \
		return params.slots ? slot % params.slots : 0;                                              \
	}                                                                                                   \
	INLINE void name##_push(u32 slot, u32 item)                                                         \
	{                                                                                                   \
		struct ends *ends = &name##_ends[slot & SLOT_MASK];                                         \
		struct filed *filed = &name##_filed[item & MASK];                                           \
		filed->prev = ends->tail;                                                                   \
		filed->next = 0;                                                                            \
		filed->slot = slot + 1;                                                                     \
		if (ends->tail) {                                                                           \
			name##_filed[ends->tail & MASK].next = item;                                        \
		} else {                                                                                    \
			ends->head = item;                                                                  \
			name##_bits[slot / 64 & 63] |= 1ULL << (slot & 63);                                 \
			name##_words |= 1ULL << (slot / 64 & 63);                                           \
		}                                                                                           \
		ends->tail = item;                                                                          \
		name##_inside++;                                                                            \
	}                                                                                                   \
	/* The first slot with items from `from` to the end of the array, or NO_SLOT. */                    \
	INLINE u32 name##_busy(u32 from)                                                                    \
	{                                                                                                   \
		u32 word = from / 64 & 63;                                                                  \
		u64 bits = name##_bits[word] & ~0ULL << (from & 63);                                        \
		if (!bits) {                                                                                \
			u64 words = word == 63 ? 0 : name##_words & ~0ULL << (word + 1);                    \
			if (!words)                                                                         \
				return NO_SLOT;                                                             \
			word = __builtin_ctzll(words) & 63;                                                 \
			bits = name##_bits[word];                                                           \
		}                                                                                           \
		return 64 * word + __builtin_ctzll(bits);                                                   \
	}                                                                                                   \
	/* The first slot with an item, and its first item. */                                              \
	INLINE struct due name##_first(void)                                                                \
	{                                                                                                   \
		u32 from, slot, item;                                                                       \
		if (name##_only.item)                                                                       \
			return name##_only;                                                                 \
		if (!name##_inside) {                                                                       \
			item = name##_beyond_first();                                                       \
			return (struct due){ name##_beyond_keys[item & MASK].first, item };                 \
		}                                                                                           \
		from = name##_index(name##_floor);                                                          \
		slot = name##_busy(from);                                                                   \
		if (slot == NO_SLOT)                                                                        \
			slot = name##_busy(0);                                                              \
		item = name##_ends[slot & SLOT_MASK].head;                                                  \
		return (struct due){ name##_floor + (slot >= from ? slot - from : slot + params.slots - from), item }; \
	}                                                                                                   \
	/* Moves the window to `slot`, or as far as the items allow: no further item is due before `slot`. */   \
	INLINE void name##_advance(u64 slot)                                                                \
	{                                                                                                   \
		struct due first = name##_first();                                                          \
		if (first.item && first.slot < slot)                                                        \
			slot = first.slot;                                                                  \
		if (slot <= name##_floor)                                                                   \
			return;                                                                             \
		name##_floor = slot;                                                                        \
		AT_MOST(ROOM) {                                                                             \
			u32 item = name##_beyond_first();                                                   \
			u64 due = name##_beyond_keys[item & MASK].first;                                    \
			if (!item || due - slot >= params.slots)                                            \
				break;                                                                      \
			name##_beyond_remove(item);                                                         \
			name##_push(name##_index(due), item);                                               \
		}                                                                                           \
	}                                                                                                   \
	INLINE void name##_put(u32 item, u64 slot)                                                          \
	{                                                                                                   \
		/* An overdue item goes to the first slot of the window. */                                 \
		if (slot < name##_floor)                                                                    \
			slot = name##_floor;                                                                \
		if (slot - name##_floor < params.slots)                                                     \
			name##_push(name##_index(slot), item);                                              \
		else                                                                                        \
			name##_beyond_set(item, (struct order){ slot, ++name##_overflowed });               \
	}                                                                                                   \
	__noinline int name##_file_beside(u32 item, u64 slot, u64 from)                                     \
	{                                                                                                   \
		struct due only = name##_only;                                                              \
		if (slot < from)                                                                            \
			from = slot;                                                                        \
		if (only.item) {                                                                            \
			name##_only.item = 0;                                                               \
			name##_floor = only.slot < from ? only.slot : from;                                 \
			name##_put(only.item, only.slot);                                                   \
		} else if (slot - name##_floor >= params.slots) {                                           \
			name##_advance(from);                                                               \
		}                                                                                           \
		name##_put(item, slot);                                                                     \
		return 0;                                                                                   \
	}                                                                                                   \
	/* Inserts an item. No further item will be due before `from`. */                                   \
	INLINE void name##_file(u32 item, u64 slot, u64 from)                                               \
	{                                                                                                   \
		if (name##_len++)                                                                           \
			name##_file_beside(item, slot, from);                                               \
		else                                                                                        \
			name##_only = (struct due){ slot, item };                                           \
	}                                                                                                   \
	__noinline int name##_remove_filed(u32 item)                                                        \
	{                                                                                                   \
		struct filed filed = name##_filed[item & MASK];                                             \
		u32 slot = filed.slot - 1;                                                                  \
		struct ends *ends = &name##_ends[slot & SLOT_MASK];                                         \
		if (!filed.slot)                                                                            \
			return name##_beyond_remove(item);                                                  \
		if (filed.prev)                                                                             \
			name##_filed[filed.prev & MASK].next = filed.next;                                  \
		else                                                                                        \
			ends->head = filed.next;                                                            \
		if (filed.next)                                                                             \
			name##_filed[filed.next & MASK].prev = filed.prev;                                  \
		else                                                                                        \
			ends->tail = filed.prev;                                                            \
		if (!ends->head) {                                                                          \
			u64 bits = name##_bits[slot / 64 & 63] & ~(1ULL << (slot & 63));                    \
			name##_bits[slot / 64 & 63] = bits;                                                 \
			if (!bits)                                                                          \
				name##_words &= ~(1ULL << (slot / 64 & 63));                                \
		}                                                                                           \
		name##_filed[item & MASK].slot = 0;                                                         \
		name##_inside--;                                                                            \
		return 1;                                                                                   \
	}                                                                                                   \
	/* Takes an item out, where it is filed. */                                                         \
	INLINE void name##_remove(u32 item)                                                                 \
	{                                                                                                   \
		if (name##_only.item == item) {                                                             \
			name##_only.item = 0;                                                               \
			name##_len--;                                                                       \
		} else if (name##_len && name##_remove_filed(item)) {                                       \
			name##_len--;                                                                       \
		}                                                                                           \
	}                                                                                                   \
	INLINE void name##_clear(void)                                                                      \
	{                                                                                                   \
		int *at;                                                                                    \
		EACH(at, ROOM)                                                                              \
			name##_filed[*at & MASK].slot = 0;                                                  \
		EACH(at, SLOTS)                                                                             \
			name##_ends[*at & SLOT_MASK] = (struct ends){};                                     \
		EACH(at, 64)                                                                                \
			name##_bits[*at & 63] = 0;                                                          \
		name##_words = name##_len = name##_inside = 0;                                              \
		name##_only = (struct due){};                                                               \
		name##_floor = 0;                                                                           \
		name##_beyond_clear();                                                                      \
	}
