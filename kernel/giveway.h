// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What every Giveway discipline in the kernel is built on: packets, lists, counters, the journal.
//
// Principles
// - A discipline decides about numbers. A packet that came is put into a slot (`slots`), and from then on it
//   is the number of that slot, as in the Rust disciplines it is a place in a slab. Only port.h touches a
//   socket buffer.
// - Number 0 is nobody. So memory that is all zero is a state: nothing held, everything free, every list
//   empty.
// - Arrays have ROOM elements, a power of two, and are indexed with `& MASK`: for the verifier that is the
//   proof of every access, and no access needs a branch for what cannot happen.
// - All state is in global variables, none of them static: of those the compiler makes pieces that BTF does
//   not know. The kernel calls a root qdisc under its lock, so nothing here is locked; and it shares globals
//   between all qdiscs of one kind, so port.h refuses a second one. Who wants two loads this twice, under two
//   names.
// - Integers only. Times are nanoseconds of CLOCK_MONOTONIC, as the watchdog takes them.
//
// The licence that is declared to the kernel is "Dual MIT/GPL". It gives the functions that a qdisc needs
// only to programs that declare a licence that is compatible with the GPL; this is the string for one under
// MIT (and Apache-2.0, here as everywhere in Giveway) that says so. No line of the kernel is in here.
#pragma once

// The functions of the kernel are declared below, whatever the version of bpftool that wrote the types.
#define BPF_NO_KFUNC_PROTOTYPES
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

// Packets, flows and reservations that there is room for, plus one each.
#ifdef GIVEWAY_ROOM
#define ROOM GIVEWAY_ROOM
#else
#define ROOM 16384
#endif
#define MASK (ROOM - 1)
_Static_assert((ROOM & MASK) == 0, "ROOM is a power of two");

#define INLINE static __always_inline __attribute__((unused))

// What the kernel offers to a qdisc.
extern u32 bpf_skb_get_hash(struct sk_buff *skb) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

// A loop over 0 to n - 1, through a pointer to the number; the verifier takes the number for unknown, so that
// it looks at one turn and not at all of them.
#define EACH(at, n)                                                                                         \
	for (struct bpf_iter_num at##_turn __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),      \
	     *at##_unused __attribute__((unused)) = (bpf_iter_num_new(&at##_turn, 0, (n)), (void *)0);      \
	     ({ at = bpf_iter_num_next(&at##_turn); });)

// A loop that its body leaves by `break`; the bound is for the verifier, which wants to know that it ends.
#define AT_MOST(n)                                                                                          \
	for (struct bpf_iter_num turn __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),           \
	     *unused __attribute__((unused)) = (bpf_iter_num_new(&turn, 0, (n)), (void *)0);                \
	     bpf_iter_num_next(&turn);)

// ----------------------------------------------------------------------------------------------------
// parameters

// Written once, before the qdisc is attached. A limit is in packets or in bytes; the other one is 0.
struct params {
	u64 rate;            // of the link, bit/s; 0: it is not shaped here
	u64 limit_packets;
	u64 limit_bytes;
	u64 threshold_packets; // efd: what of a flow goes ahead; `threshold_unit` says which
	u64 threshold_bytes;
	u64 threshold_in_bytes;
	u64 quantum;         // drr, trr: bytes per round
	u64 drop_head;       // fifo, bsq: the oldest packet makes room
	u64 flows;           // trr: reservations at once
	u64 slots;           // trr: of the calendar
	u64 width_ps;        // trr: the time of one of them
	u64 level;           // bsq: hops beyond the neighbour that have sub-queues
	u64 measure_packets; // bsq: the largest sub-queue has the most packets, not bytes
};

SEC(".data.params") struct params params = {};

// ----------------------------------------------------------------------------------------------------
// counters

// Why a packet was dropped: the numbers and names that Giveway has everywhere.
enum reason { OVERLIMIT, PUSHOUT, EARLY, CONGESTED, FLOW_LIMIT, TOO_LARGE, NO_CLASS, POLICY, RESET };

struct counters {
	u64 arrived_packets, arrived_bytes;
	u64 sent_packets, sent_bytes;
	u64 dropped_packets, dropped_bytes;
	u64 held_packets, held_bytes;
	u64 flow_table, flow_table_most;
	// Dropped packets by reason, in its order.
	u64 overlimit, pushout, early, congested, flow_limit, too_large, no_class, policy, reset;
	// EFD's.
	u64 high_packets, low_packets;
	// TRR's.
	u64 reserved_bit, refused_packets, beyond_window;
};

SEC(".data.counters") struct counters counters = {};

// Whether what is held is no more than may be. The arrival is held, and what is doomed is not.
INLINE bool fits_in(void)
{
	if (params.limit_bytes)
		return counters.held_bytes <= params.limit_bytes;
	return counters.held_packets <= params.limit_packets;
}

// Whether a packet would not even fit alone.
INLINE bool too_large(u32 bytes)
{
	return params.limit_bytes && bytes > params.limit_bytes;
}

INLINE void flow_is_new(void)
{
	counters.flow_table++;
	if (counters.flow_table > counters.flow_table_most)
		counters.flow_table_most = counters.flow_table;
}

INLINE void flow_is_gone(void)
{
	counters.flow_table--;
}

// ---------------------------------------------------------------------------------------------------- lists

struct list {
	u32 head, tail, len;
};

// Lists through an array whose elements have `next` and `prev`, and who is free in it. A free number is used
// again before a new one, the last one first: the Rust slab does so, and a tie between equally long queues
// goes by numbers in TRR.
#define LISTS(array)                                                                                        \
	u32 array##_free, array##_used;                                                              \
	INLINE u32 array##_take(void)                                                                       \
	{                                                                                                   \
		u32 at = array##_free;                                                                      \
		if (at)                                                                                     \
			array##_free = array[at & MASK].next;                                               \
		else if (array##_used < MASK)                                                               \
			at = ++array##_used;                                                                \
		return at;                                                                                  \
	}                                                                                                   \
	INLINE void array##_give(u32 at)                                                                    \
	{                                                                                                   \
		array[at & MASK].next = array##_free;                                                       \
		array##_free = at;                                                                          \
	}                                                                                                   \
	INLINE void array##_push_back(struct list *list, u32 at)                                            \
	{                                                                                                   \
		u32 tail = list->tail;                                                                      \
		array[at & MASK].prev = tail;                                                               \
		array[at & MASK].next = 0;                                                                  \
		if (tail)                                                                                   \
			array[tail & MASK].next = at;                                                       \
		else                                                                                        \
			list->head = at;                                                                    \
		list->tail = at;                                                                            \
		list->len++;                                                                                \
	}                                                                                                   \
	INLINE void array##_pop_front(struct list *list)                                                    \
	{                                                                                                   \
		u32 next = array[list->head & MASK].next;                                                   \
		list->head = next;                                                                          \
		if (next)                                                                                   \
			array[next & MASK].prev = 0;                                                        \
		else                                                                                        \
			list->tail = 0;                                                                     \
		list->len--;                                                                                \
	}                                                                                                   \
	INLINE void array##_remove(struct list *list, u32 at)                                               \
	{                                                                                                   \
		u32 next = array[at & MASK].next, prev = array[at & MASK].prev;                             \
		if (prev)                                                                                   \
			array[prev & MASK].next = next;                                                     \
		else                                                                                        \
			list->head = next;                                                                  \
		if (next)                                                                                   \
			array[next & MASK].prev = prev;                                                     \
		else                                                                                        \
			list->tail = prev;                                                                  \
		list->len--;                                                                                \
	}

// ----------------------------------------------------------------------------------------------------
// packets

struct packet {
	u32 next, prev;
	u32 bytes;     // as the kernel counts them: with the header of the link
	u32 flow;      // the discipline's number for its flow
	u64 key;       // the flow, as the kernel hashes it; not known while it stands alone
	u64 reserved;  // what its mark says: the rate reserved for it in bit/s, or its way
	u32 number;    // in the order of arrival
	u32 reason;    // of its drop
};

struct packet packets[ROOM];
LISTS(packets)

// Packets that this call drops, in that order. The port gives them back to the kernel when the discipline has
// answered.
struct list doomed;

INLINE void doom(u32 at, u32 reason)
{
	packets[at & MASK].reason = reason;
	counters.held_packets--;
	counters.held_bytes -= packets[at & MASK].bytes;
	packets_push_back(&doomed, at);
}

// ---------------------------------------------------------------------------------------------------- the
// journal

// With -DGIVEWAY_JOURNAL=ENTRIES every call of the discipline is written down with what came of it, so that
// the Rust discipline can be called in the same way. It stops when it is full. Entry 0 says how many follow,
// in `now`.
enum entry_kind { ENQUEUED = 1, DROPPED, SENT, NOTHING_HELD };

struct entry {
	u64 now, key, reserved;
	u32 number, bytes;
	u32 kind, reason;
};

#ifdef GIVEWAY_JOURNAL
#define JOURNALS 1
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GIVEWAY_JOURNAL);
	__type(key, u32);
	__type(value, struct entry);
} journal SEC(".maps");

INLINE struct entry *line(u32 at)
{
	return bpf_map_lookup_elem(&journal, &at);
}

INLINE void note(u64 now, u32 kind, u32 at)
{
	struct packet *packet = &packets[at & MASK];
	struct entry *first = line(0), *entry;
	if (!first)
		return;
	entry = line(first->now + 1);
	if (!entry)
		return;
	first->now++;
	entry->now = now;
	entry->kind = kind;
	entry->key = packet->key;
	entry->reserved = packet->reserved;
	entry->number = packet->number;
	entry->bytes = packet->bytes;
	entry->reason = packet->reason;
}

INLINE void begin_journal(void)
{
	struct entry *first = line(0);
	if (first)
		first->now = 0;
}
#else
#define JOURNALS 0
INLINE void note(u64 now, u32 kind, u32 at) {}
INLINE void begin_journal(void) {}
#endif

// What a discipline is. `accept` keeps the packet or dooms it or others; `next` says who leaves, taken out of
// all lists, or 0; `clear` forgets everything. `stands_alone` says of a packet that comes when nothing is
// held whether it may wait without being accepted: whose it is does not matter then, and when it leaves
// before another one comes it is as if it had not been there. Most packets of a link that is not full are
// such, and to know whose a packet is costs more than all decisions about it. `accept_first` accepts it after
// all, when another one comes: it fits.
//
// Before it includes this, a discipline defines ASKS_FLOW if it reads the keys of packets, and ASKS_MARK if
// it reads `reserved`.
static bool stands_alone(u32 at);
static void accept_first(u32 at);
static void accept(u32 at, u64 now);
static u32 next(u64 now);
static void clear(void);
