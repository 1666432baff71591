// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A binary heap of items, each with a key of two numbers. The item with the least key is known, and any key
// can be changed or removed in O(log n). Items are numbers from 1 to ROOM - 1.
#pragma once

struct order {
	u64 first, second;
};

INLINE bool less(struct order one, struct order other)
{
	return one.first < other.first || (one.first == other.first && one.second < other.second);
}

// More than the logarithm of ROOM.
#define DEPTH 32

#define HEAP(name)                                                                                          \
	/* Items, from index 1 on, and their number. */                                                     \
	u32 name##_items[ROOM], name##_len;                                                          \
	/* By item: its key, and its index in the heap; 0 if it is not in it. */                            \
	struct order name##_keys[ROOM];                                                                \
	u32 name##_spots[ROOM];                                                                      \
	INLINE struct order name##_key(u32 spot)                                                              \
	{                                                                                                   \
		return name##_keys[name##_items[spot & MASK] & MASK];                                       \
	}                                                                                                   \
	INLINE void name##_put(u32 spot, u32 item)                                                          \
	{                                                                                                   \
		name##_items[spot & MASK] = item;                                                           \
		name##_spots[item & MASK] = spot;                                                           \
	}                                                                                                   \
	/* Moves an item from its index to its position. */                                                 \
	__noinline int name##_settle(u32 item)                                                              \
	{                                                                                                   \
		struct order own = name##_keys[item & MASK];                                                  \
		u32 spot = name##_spots[item & MASK];                                                       \
		AT_MOST(DEPTH) {                                                                            \
			u32 up = spot / 2;                                                                  \
			if (!up || !less(own, name##_key(up)))                                              \
				break;                                                                      \
			name##_put(spot, name##_items[up & MASK]);                                          \
			spot = up;                                                                          \
		}                                                                                           \
		AT_MOST(DEPTH) {                                                                            \
			u32 down = 2 * spot;                                                                \
			if (down > name##_len)                                                              \
				break;                                                                      \
			if (down < name##_len && less(name##_key(down + 1), name##_key(down)))              \
				down++;                                                                     \
			if (!less(name##_key(down), own))                                                   \
				break;                                                                      \
			name##_put(spot, name##_items[down & MASK]);                                        \
			spot = down;                                                                        \
		}                                                                                           \
		name##_put(spot, item);                                                                     \
		return 0;                                                                                   \
	}                                                                                                   \
	/* Inserts an item, or changes its key. */                                                          \
	INLINE void name##_set(u32 item, struct order key)                                                    \
	{                                                                                                   \
		name##_keys[item & MASK] = key;                                                             \
		if (!name##_spots[item & MASK])                                                             \
			name##_put(++name##_len, item);                                                     \
		name##_settle(item);                                                                        \
	}                                                                                                   \
	INLINE bool name##_remove(u32 item)                                                                 \
	{                                                                                                   \
		u32 spot = name##_spots[item & MASK], last;                                                 \
		if (!spot)                                                                                  \
			return false;                                                                       \
		last = name##_items[name##_len & MASK];                                                     \
		name##_len--;                                                                               \
		name##_spots[item & MASK] = 0;                                                              \
		if (last != item) {                                                                         \
			name##_put(spot, last);                                                             \
			name##_settle(last);                                                                \
		}                                                                                           \
		return true;                                                                                \
	}                                                                                                   \
	/* The item with the least key, or 0. */                                                            \
	INLINE u32 name##_first(void)                                                                       \
	{                                                                                                   \
		return name##_len ? name##_items[1] : 0;                                                    \
	}                                                                                                   \
	INLINE void name##_clear(void)                                                                      \
	{                                                                                                   \
		int *item;                                                                                  \
		EACH(item, ROOM)                                                                            \
			name##_spots[*item & MASK] = 0;                                                     \
		name##_len = 0;                                                                             \
	}

// Finds the longest of many queues, without a call when a queue shrinks:
// crates/qdisc/src/blocks/longest_queue.rs. A key is an upper bound of the length, and is corrected when its
// queue is at the top of the heap. `truth(queue)` returns the length, 0 if the queue is gone, and
// `ticket(queue)` the order of equally long queues.
#define LONGEST(name, truth, ticket)                                                                        \
	HEAP(name)                                                                                          \
	INLINE void name##_grew(u32 queue)                                                                  \
	{                                                                                                   \
		struct order key = { ~truth(queue), ticket(queue) };                                          \
		if (!name##_spots[queue & MASK] || less(key, name##_keys[queue & MASK]))                    \
			name##_set(queue, key);                                                             \
	}                                                                                                   \
	__noinline u32 name##_queue(void)                                                                   \
	{                                                                                                   \
		AT_MOST(2 * ROOM) {                                                                         \
			u32 queue = name##_first();                                                         \
			struct order key, known = name##_keys[queue & MASK];                                  \
			if (!queue)                                                                         \
				return 0;                                                                   \
			key = (struct order){ ~truth(queue), ticket(queue) };                                 \
			if (key.first == ~0ULL) {                                                           \
				name##_remove(queue);                                                       \
				continue;                                                                   \
			}                                                                                   \
			if (key.first == known.first && key.second == known.second)                         \
				return queue;                                                               \
			name##_set(queue, key);                                                             \
		}                                                                                           \
		return 0;                                                                                   \
	}
