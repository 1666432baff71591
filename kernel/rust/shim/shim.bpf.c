// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The callbacks of the kernel for a discipline in Rust: it keeps the socket buffers, and the discipline
// decides about the numbers of their slots. NAME is the discipline, and GIVEWAY_NAME the name of the qdisc in
// tc. Nothing here depends on the discipline.
//
// If the discipline stops (`gw_broken`: a panic, or a loop without an end), the packets that it holds leave
// in the order of their slots, and new ones first in, first out.
//
// The licence that is declared to the kernel is "Dual MIT/GPL", since it provides the functions that a qdisc
// needs only to such programs. No line of the kernel is in this file.
#define BPF_NO_KFUNC_PROTOTYPES
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define ENTRY(what) JOIN(gw_, NAME, what)
#define ARENA __attribute__((address_space(1)))
#define INLINE static __always_inline

// True, unless the kernel ends the loop that asks.
#define can_loop                                                                                            \
	({                                                                                                  \
		__label__ stop, go;                                                                         \
		bool more = true;                                                                           \
		asm volatile goto("may_goto %l[stop]" ::::stop);                                            \
		goto go;                                                                                    \
	stop:                                                                                               \
		more = false;                                                                               \
	go:;                                                                                                \
		more;                                                                                       \
	})

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define EBUSY 16
#define ROOM 16384
#define MASK (ROOM - 1)
// Largest delay of the watchdog that a shaped link makes up for, in nanoseconds.
#define CATCH_UP 10000000ULL

extern u32 bpf_skb_get_hash(struct sk_buff *skb) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__ulong(map_extra, 1ull << 44);
} arena SEC(".maps");

struct held_packet {
	struct sk_buff __kptr *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROOM);
	__type(key, u32);
	__type(value, struct held_packet);
} slots SEC(".maps");

// As in entry/src/call.rs.
struct arrival {
	u64 flow, label, reserved;
	u32 bytes, slot, offset, remaining;
	u16 class, from, to, hops[6];
	u8 ecn, header;
};
struct call {
	struct arrival arrival;
	u64 at, label, header;
};
#define PACKET (1ull << 32)
#define MARKED (1ull << 33)
#define LATER (1ull << 34)
#define NO_PACKET (~0ull)

extern struct call ARENA gw_call;
extern u64 ARENA gw_broken;
extern u64 gw_pointers(void);
extern u64 ENTRY(_build)(u64 variant, u64 rate, u64 seed);
extern u64 ENTRY(_arrive)(u64 now);
extern u64 ENTRY(_leave)(u64 now);
extern u64 ENTRY(_doomed)(void);
extern u64 ENTRY(_reset)(u64 now);

struct counters {
	u64 arrived_packets, arrived_bytes;
	u64 sent_packets, sent_bytes;
	u64 dropped_packets, dropped_bytes;
	u64 marked_packets;
	u64 held_packets, held_bytes;
	// Dropped packets by reason, in the order of `DropReason`.
	u64 reasons[16];
};
SEC(".data.counters") struct counters counters = {};

// Rate of the link in bit/s; 0: no shaping. Written before the qdisc is attached.
SEC(".data.params") u64 rate = 0;

// Free slots, as a stack, and the lengths of the packets.
u32 spare[ROOM], spares, used;
u32 lengths[ROOM];
// Slots in the order of arrival, after the discipline has stopped.
u32 line[ROOM], first, last, swept;
u64 owner, epoch, free_at;
u64 result;

// The kernel finds the arena of a program by an instruction that names it.
#define USE_ARENA                                                                                           \
	do {                                                                                                \
		void *use = &arena;                                                                         \
		asm volatile("" ::"r"(use));                                                                \
	} while (0)

INLINE struct sk_buff *take_out(u32 at)
{
	struct held_packet *slot = bpf_map_lookup_elem(&slots, &at);
	return slot ? bpf_kptr_xchg(&slot->skb, NULL) : NULL;
}

// Number of a free slot; ROOM if there is none.
INLINE u32 take_slot(void)
{
	if (spares)
		return spare[--spares & MASK];
	return used < ROOM ? used++ : ROOM;
}

INLINE void give_slot(u32 at)
{
	spare[spares++ & MASK] = at;
}

INLINE void count_out(struct Qdisc *sch, u32 bytes)
{
	sch->q.qlen--;
	sch->qstats.backlog -= bytes;
	counters.held_packets--;
	counters.held_bytes -= bytes;
}

INLINE void count_drop(u32 bytes, u32 reason)
{
	counters.dropped_packets++;
	counters.dropped_bytes += bytes;
	counters.reasons[reason & 15]++;
}

// Time since the qdisc was attached, in picoseconds, as the disciplines count it. 64 bits last 213 days.
INLINE u64 picoseconds(u64 now)
{
	return (now - epoch) * 1000;
}

SEC("struct_ops")
int BPF_PROG(giveway_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	USE_ARENA;
	u32 bytes = ((struct qdisc_skb_cb *)skb->cb)->pkt_len, flow = bpf_skb_get_hash(skb);
	u64 now = bpf_ktime_get_ns();
	u32 at = take_slot();
	struct held_packet *slot = bpf_map_lookup_elem(&slots, &at);
	int answer = NET_XMIT_SUCCESS;

	counters.arrived_packets++;
	counters.arrived_bytes += bytes;
	if (!slot) {
		count_drop(bytes, 0);
		sch->qstats.drops++;
		bpf_qdisc_skb_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	lengths[at & MASK] = bytes;
	if (!counters.held_packets && epoch + free_at < now)
		free_at = now - epoch;
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	counters.held_packets++;
	counters.held_bytes += bytes;
	if (gw_broken) {
		line[last++ & MASK] = at;
		return answer;
	}
	gw_call.arrival.flow = flow;
	gw_call.arrival.from = flow;
	gw_call.arrival.to = flow >> 16;
	gw_call.arrival.bytes = bytes;
	gw_call.arrival.slot = at;
	gw_call.arrival.hops[0] = 0xffff;
	ENTRY(_arrive)(picoseconds(now));
	while (can_loop) {
		u64 doomed = ENTRY(_doomed)();
		u32 victim = doomed, gone;
		if (doomed == NO_PACKET || gw_broken)
			break;
		struct sk_buff *dropped = take_out(victim);
		if (!dropped)
			continue;
		gone = lengths[victim & MASK];
		count_drop(gone, doomed >> 32);
		count_out(sch, gone);
		sch->qstats.drops++;
		if (victim == at)
			answer = NET_XMIT_DROP;
		bpf_qdisc_skb_drop(dropped, to_free);
		give_slot(victim);
	}
	return answer;
}

// The slot of the packet that leaves when the discipline has stopped; ROOM if there is none.
INLINE u32 next_in_line(void)
{
	while (can_loop) {
		u32 at = swept;
		struct held_packet *slot;
		if (at >= used)
			break;
		swept++;
		slot = bpf_map_lookup_elem(&slots, &at);
		if (slot && slot->skb)
			return at;
	}
	return first == last ? ROOM : line[first++ & MASK];
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(giveway_dequeue, struct Qdisc *sch)
{
	USE_ARENA;
	u64 now = bpf_ktime_get_ns(), outcome;
	u32 at = ROOM, bytes;

	if (!counters.held_packets)
		return NULL;
	if (rate) {
		if (now < epoch + free_at) {
			bpf_qdisc_watchdog_schedule(sch, epoch + free_at, 0);
			return NULL;
		}
		if (epoch + free_at + CATCH_UP < now)
			free_at = now - epoch - CATCH_UP;
	}
	outcome = gw_broken ? 0 : ENTRY(_leave)(picoseconds(now));
	while (can_loop) {
		u64 doomed = gw_broken ? NO_PACKET : ENTRY(_doomed)();
		if (doomed == NO_PACKET)
			break;
		struct sk_buff *dropped = take_out(doomed);
		if (!dropped)
			continue;
		bytes = lengths[doomed & MASK];
		count_drop(bytes, doomed >> 32);
		count_out(sch, bytes);
		sch->qstats.drops++;
		bpf_kfree_skb(dropped);
		give_slot(doomed);
	}
	if (gw_broken) {
		at = next_in_line();
	} else if (outcome & PACKET) {
		at = outcome;
		counters.marked_packets += !!(outcome & MARKED);
	} else if (outcome & LATER) {
		bpf_qdisc_watchdog_schedule(sch, epoch + gw_call.at / 1000 + 1, 0);
		return NULL;
	}
	struct sk_buff *skb = take_out(at);
	if (!skb)
		return NULL;
	bytes = lengths[at & MASK];
	give_slot(at);
	count_out(sch, bytes);
	counters.sent_packets++;
	counters.sent_bytes += bytes;
	if (rate)
		free_at += bytes * 8000000000ULL / rate;
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops")
int BPF_PROG(giveway_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	// A second qdisc of this kind would share the state of the first.
	if (owner)
		return -EBUSY;
	owner = (u64)sch;
	epoch = bpf_ktime_get_ns();
	free_at = 0;
	return 0;
}

SEC("struct_ops")
void BPF_PROG(giveway_reset, struct Qdisc *sch)
{
	USE_ARENA;
	if (owner != (u64)sch)
		return;
	if (!gw_broken) {
		ENTRY(_reset)(picoseconds(bpf_ktime_get_ns()));
		while (can_loop)
			if (gw_broken || ENTRY(_doomed)() == NO_PACKET)
				break;
	}
	while (can_loop) {
		if (!used || used > ROOM)
			break;
		u32 at = --used;
		struct sk_buff *skb = take_out(at);
		if (skb) {
			count_drop(lengths[at & MASK], 8);
			bpf_kfree_skb(skb);
		}
	}
	spares = used = first = last = swept = 0;
	counters.held_packets = counters.held_bytes = free_at = 0;
}

SEC("struct_ops")
void BPF_PROG(giveway_destroy, struct Qdisc *sch)
{
	if (owner == (u64)sch)
		owner = 0;
}

// Builds the discipline, before the qdisc is attached. First it tells the loader where the variables are:
// libbpf puts them at the start of the arena or at its end.
enum what { BUILD, WHERE };
struct args {
	u64 what, variant, rate, seed;
};
SEC("syscall") int gw_main(struct args *args)
{
	USE_ARENA;
	if (args->what == WHERE) {
		result = (u64)&gw_call;
		return 0;
	}
	gw_pointers();
	result = ENTRY(_build)(args->variant, args->rate, args->seed);
	return 0;
}

SEC(".struct_ops")
struct Qdisc_ops ops = {
	.enqueue = (void *)giveway_enqueue,
	.dequeue = (void *)giveway_dequeue,
	.init = (void *)giveway_init,
	.reset = (void *)giveway_reset,
	.destroy = (void *)giveway_destroy,
	.id = GIVEWAY_NAME,
};

char licence[] SEC("license") = "Dual MIT/GPL";
