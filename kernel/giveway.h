// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Common part of the Giveway disciplines in the kernel: packets, lists, counters, the journal.
//
// Principles
// - A discipline makes decisions about numbers. An arriving packet is stored in a slot (`slots`), and the
//   number of this slot identifies it, as a place in a slab does in the Rust disciplines. Only port.h
//   accesses a socket buffer.
// - Number 0 stands for no packet. So memory of zeros is a valid state: no backlog, all slots free, all lists
//   empty.
// - Arrays have ROOM elements, a power of two, and are indexed with `& MASK`: this proves every access to the
//   verifier without a branch for impossible cases.
// - All state is in global variables that are not static, because the compiler splits static ones into parts
//   that BTF does not describe. The kernel calls a root qdisc under its lock, so there are no locks here. It
//   shares globals among all qdiscs of one kind, so port.h refuses a second one. To use two, load the program
//   twice, under two names.
// - Integers only. Times are nanoseconds of CLOCK_MONOTONIC, the clock of the watchdog.
//
// The licence that is declared to the kernel is "Dual MIT/GPL". The kernel provides the functions that a
// qdisc needs only to programs with a licence that is compatible with the GPL, and this is the string for a
// program under MIT (and Apache-2.0, as all of Giveway). No line of the kernel is in this file.
#pragma once

// The functions of the kernel are declared below, so that the version of bpftool does not matter.
#define BPF_NO_KFUNC_PROTOTYPES
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

// Size of the arrays of packets, flows and reservations: one more than their largest number.
#ifdef GIVEWAY_ROOM
#define ROOM GIVEWAY_ROOM
#else
#define ROOM 16384
#endif
#define MASK (ROOM - 1)
_Static_assert((ROOM & MASK) == 0, "ROOM is a power of two");

#define INLINE static __always_inline __attribute__((unused))

// Functions of the kernel for a qdisc.
extern u32 bpf_skb_get_hash(struct sk_buff *skb) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

// A loop over 0 to n - 1, through a pointer to the number. The number is unknown to the verifier, so it
// checks one iteration instead of all.
#define EACH(at, n)                                                                                         \
	for (struct bpf_iter_num at##_turn __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),      \
	     *at##_unused __attribute__((unused)) = (bpf_iter_num_new(&at##_turn, 0, (n)), (void *)0);      \
	     ({ at = bpf_iter_num_next(&at##_turn); });)

// A loop that its body leaves with `break`. The bound proves to the verifier that it ends.
#define AT_MOST(n)                                                                                          \
	for (struct bpf_iter_num turn __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),           \
	     *unused __attribute__((unused)) = (bpf_iter_num_new(&turn, 0, (n)), (void *)0);                \
	     bpf_iter_num_next(&turn);)

// ----------------------------------------------------------------------------------------------------
// parameters

// Written once, before the qdisc is attached. A limit is in packets or in bytes; the other one is 0.
struct params {
	u64 rate;            // of the link, bit/s; 0: no shaping
	u64 limit_packets;
	u64 limit_bytes;
	u64 threshold_packets; // efd: high-priority part of a flow; see `threshold_in_bytes`
	u64 threshold_bytes;
	u64 threshold_in_bytes;
	u64 quantum;         // drr, trr: bytes per round
	u64 drop_head;       // fifo, bsq: a full buffer drops the oldest packet
	u64 flows;           // trr: largest number of reservations
	u64 slots;           // trr: number of slots of the calendar
	u64 width_ps;        // trr: width of a slot, picoseconds
	u64 level;           // bsq: number of next hops after the neighbour with sub-queues
	u64 measure_packets; // bsq: the largest sub-queue is that with the most packets, not bytes
};

SEC(".data.params") struct params params = {};

// ----------------------------------------------------------------------------------------------------
// counters

// Reason of a drop, with the numbers and names of all of Giveway.
enum reason { OVERLIMIT, PUSHOUT, EARLY, CONGESTED, FLOW_LIMIT, TOO_LARGE, NO_CLASS, POLICY, RESET };

struct counters {
	u64 arrived_packets, arrived_bytes;
	u64 sent_packets, sent_bytes;
	u64 dropped_packets, dropped_bytes;
	u64 held_packets, held_bytes;
	u64 flow_table, flow_table_most;
	// Dropped packets by reason, in the order of `enum reason`.
	u64 overlimit, pushout, early, congested, flow_limit, too_large, no_class, policy, reset;
	// Of EFD.
	u64 high_packets, low_packets;
	// Of TRR.
	u64 reserved_bit, refused_packets, beyond_window;
};

SEC(".data.counters") struct counters counters = {};

// True if the backlog is within the limit. The backlog includes the arriving packet, and not doomed ones.
INLINE bool fits_in(void)
{
	if (params.limit_bytes)
		return counters.held_bytes <= params.limit_bytes;
	return counters.held_packets <= params.limit_packets;
}

// True if a packet alone exceeds the limit.
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

// ----------------------------------------------------------------------------------------------------
// lists

struct list {
	u32 head, tail, len;
};

// Lists through an array whose elements have `next` and `prev`, and the free elements of the array. The
// element that was freed last is used first, before new ones, as in the Rust slab: TRR resolves ties between
// equally long queues by these numbers.
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
	u32 bytes;     // as the kernel counts them, with the header of the link
	u32 flow;      // number of its flow in the discipline
	u64 key;       // hash of the flow by the kernel; unknown while the packet stands alone
	u64 reserved;  // value of its mark: the reserved rate in bit/s, or the route
	u32 number;    // in the order of arrival
	u32 reason;    // of its drop
};

struct packet packets[ROOM];
LISTS(packets)

// Packets that this call drops, in the order of the drops. The port returns them to the kernel after the call
// of the discipline.
struct list doomed;

INLINE void doom(u32 at, u32 reason)
{
	packets[at & MASK].reason = reason;
	counters.held_packets--;
	counters.held_bytes -= packets[at & MASK].bytes;
	packets_push_back(&doomed, at);
}

// ----------------------------------------------------------------------------------------------------
// journal

// With -DGIVEWAY_JOURNAL=ENTRIES every call of the discipline is recorded with its result, so that the same
// calls can be made of the Rust discipline. The journal stops when it is full. `now` of entry 0 is the number
// of entries that follow.
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

// The functions of a discipline. `accept` enqueues the packet, or dooms it or others. `next` removes the
// packet that leaves from all lists and returns it, or 0. `clear` returns to the initial state.
// `stands_alone` is called for a packet that arrives without a backlog. It returns true if the packet may be
// queued without a call of `accept`: its flow does not matter then, and if it leaves before the next arrival,
// it has no effect on the state. On a link that is not full most packets are such, and the hash of the flow
// costs more than all decisions. `accept_first` accepts the packet later, when another one arrives. It is
// within the limit.
//
// Before a discipline includes this file, it defines ASKS_FLOW if it reads the keys of packets, and ASKS_MARK
// if it reads `reserved`.
static bool stands_alone(u32 at);
static void accept_first(u32 at);
static void accept(u32 at, u64 now);
static u32 next(u64 now);
static void clear(void);
