// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The callbacks of the kernel for all disciplines, in the order of a packet's life. Included last.
//
// - The flow of a packet is the kernel's hash of it (`bpf_skb_get_hash`), which handles tunnels, VLANs and
//   IPv6, and is that of the socket for a local connection. It has 32 bits, and a random key since the
//   machine started. It is computed only if necessary, not for a packet that stands alone (`stands_alone`).
// - With a rate the port emulates the link: it releases a packet only when the previous one would have been
//   sent, and schedules the watchdog for that time. The watchdog is always late, so the schedule continues
//   from the time at which the link became free, not from that of the call, up to CATCH_UP back. Without a
//   rate the time is not read.
// - Reservations are identified by the mark of a packet (`SO_MARK`, or `meta mark set` of nft): a map has the
//   rate of a flow with this mark, or the route of its packets.
#pragma once

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define EBUSY 16

// Largest delay of the watchdog that a shaped link makes up for, in nanoseconds.
#define CATCH_UP 10000000ULL

struct held_packet {
	struct sk_buff __kptr *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROOM);
	__type(key, u32);
	__type(value, struct held_packet);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64);
} reservations SEC(".maps");

// Reservations of low marks, the usual ones: an array costs a tenth of a hash.
#define LOW_MARKS 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOW_MARKS);
	__type(key, u32);
	__type(value, u64);
} low_marks SEC(".maps");

// Address of the qdisc that owns this state, for comparison only.
u64 owner;
// Time at which the qdisc was attached. All times here are relative to it, as in a backend of the Rust
// disciplines.
u64 epoch;
// End of the transmission of the current packet.
u64 free_at;
// The packet that the discipline has not accepted yet; 0 if there is none.
u32 lone;

INLINE struct sk_buff *take_out(u32 at)
{
	struct held_packet *slot = bpf_map_lookup_elem(&slots, &at);
	return slot ? bpf_kptr_xchg(&slot->skb, NULL) : NULL;
}

INLINE void count_out(struct Qdisc *sch, u32 bytes)
{
	sch->q.qlen--;
	sch->qstats.backlog -= bytes;
}

INLINE void count_drop(u32 bytes, u32 reason)
{
	counters.dropped_packets++;
	counters.dropped_bytes += bytes;
	switch (reason) {
	case OVERLIMIT: counters.overlimit++; break;
	case PUSHOUT: counters.pushout++; break;
	case TOO_LARGE: counters.too_large++; break;
	case RESET: counters.reset++; break;
	}
}

#ifdef ASKS_FLOW
#define FLOWS 1
#else
#define FLOWS 0
#endif
#ifdef ASKS_MARK
#define MARKS 1
#else
#define MARKS 0
#endif

// Fills in the metadata that are available without the hash of the flow.
INLINE void describe(u32 at, u32 bytes, u32 mark)
{
	struct packet *packet = &packets[at & MASK];
	u64 *reserved;
	packet->bytes = bytes;
	packet->reserved = 0;
	packet->number = counters.arrived_packets - 1;
	if (!MARKS || !mark)
		return;
	if (mark < LOW_MARKS) {
		reserved = bpf_map_lookup_elem(&low_marks, &mark);
		// Without this barrier the compiler merges both calls, and the array look-up is no longer inlined.
		asm volatile("" : "+r"(reserved));
	} else {
		reserved = bpf_map_lookup_elem(&reservations, &mark);
	}
	if (reserved)
		packet->reserved = *reserved;
}

INLINE u64 clock(void)
{
	return params.rate || JOURNALS ? bpf_ktime_get_ns() - epoch : 0;
}

// Accepts the packet that stood alone, because another one arrives.
__noinline int join(void)
{
	u32 at = lone;
	struct held_packet *slot = bpf_map_lookup_elem(&slots, &at);
	struct sk_buff *skb = slot ? bpf_kptr_xchg(&slot->skb, NULL) : NULL;
	lone = 0;
	if (!skb)
		return 0;
	packets[at & MASK].key = bpf_skb_get_hash(skb);
	skb = bpf_kptr_xchg(&slot->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	accept_first(at);
	return 0;
}

SEC("struct_ops")
int BPF_PROG(giveway_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	// The kernel computes this from the length of the buffer (qdisc_pkt_len_init), so a false length in a
	// header has no effect.
	u32 bytes = ((struct qdisc_skb_cb *)skb->cb)->pkt_len, mark = skb->mark;
	u64 now = clock();
	struct sk_buff *before;
	struct held_packet *slot;
	int answer = NET_XMIT_SUCCESS;
	u32 at = packets_take();
	bool alone;

	counters.arrived_packets++;
	counters.arrived_bytes += bytes;
	slot = at ? bpf_map_lookup_elem(&slots, &at) : NULL;
	if (!slot) {
		// The loader makes the arrays large enough for the limit, so this is not expected.
		count_drop(bytes, OVERLIMIT);
		sch->qstats.drops++;
		bpf_qdisc_skb_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	describe(at, bytes, mark);
	alone = !counters.held_packets && stands_alone(at);
	if (FLOWS && (!alone || JOURNALS))
		packets[at & MASK].key = bpf_skb_get_hash(skb);
	before = bpf_kptr_xchg(&slot->skb, skb);
	if (before)
		bpf_kfree_skb(before);
	note(now, ENQUEUED, at);

	// An idle link starts now.
	if (!counters.held_packets && free_at < now)
		free_at = now;
	if (lone)
		join();
	counters.held_packets++;
	counters.held_bytes += bytes;
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	if (alone) {
		lone = at;
		return answer;
	}
	accept(at, now);

	if (!doomed.head)
		return answer;
	AT_MOST(ROOM) {
		u32 victim = doomed.head;
		if (!victim)
			break;
		packets_remove(&doomed, victim);
		note(now, DROPPED, victim);
		count_drop(packets[victim & MASK].bytes, packets[victim & MASK].reason);
		count_out(sch, packets[victim & MASK].bytes);
		sch->qstats.drops++;
		if (victim == at)
			answer = NET_XMIT_DROP;
		struct sk_buff *gone = take_out(victim);
		if (gone)
			bpf_qdisc_skb_drop(gone, to_free);
		packets_give(victim);
	}
	return answer;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(giveway_dequeue, struct Qdisc *sch)
{
	u32 at, bytes;
	u64 now;

	if (!counters.held_packets) {
		if (JOURNALS)
			note(clock(), NOTHING_HELD, 0);
		return NULL;
	}
	now = clock();
	if (params.rate) {
		if (now < free_at) {
			bpf_qdisc_watchdog_schedule(sch, epoch + free_at, 0);
			return NULL;
		}
		if (free_at + CATCH_UP < now)
			free_at = now - CATCH_UP;
	}
	at = lone;
	if (at)
		lone = 0;
	else
		at = next(now);
	if (!at) {
		// A search that found no packet, with a quantum far below the packets, continues at the next call.
		bpf_qdisc_watchdog_schedule(sch, bpf_ktime_get_ns() + 1, 0);
		return NULL;
	}
	note(now, SENT, at);
	bytes = packets[at & MASK].bytes;
	if (params.rate)
		free_at += bytes * 8000000000ULL / params.rate;
	count_out(sch, bytes);
	counters.held_packets--;
	counters.held_bytes -= bytes;
	counters.sent_packets++;
	counters.sent_bytes += bytes;
	struct sk_buff *skb = take_out(at);
	packets_give(at);
	if (skb)
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
	counters = (struct counters){};
	begin_journal();
	sch->limit = params.limit_packets;
	return 0;
}

// Drops the backlog. The kernel resets its own counters of the backlog.
SEC("struct_ops")
void BPF_PROG(giveway_reset, struct Qdisc *sch)
{
	if (owner != (u64)sch)
		return;
	AT_MOST(ROOM) {
		u32 at = packets_used;
		if (!at)
			break;
		packets_used = at - 1;
		struct sk_buff *skb = take_out(at);
		if (skb) {
			count_drop(packets[at & MASK].bytes, RESET);
			bpf_kfree_skb(skb);
		}
	}
	packets_free = lone = 0;
	doomed = (struct list){};
	counters.held_packets = 0;
	counters.held_bytes = 0;
	counters.flow_table = 0;
	free_at = 0;
	clear();
}

SEC("struct_ops")
void BPF_PROG(giveway_destroy, struct Qdisc *sch)
{
	// Also called for a qdisc that was refused.
	if (owner == (u64)sch)
		owner = 0;
}

#ifndef GIVEWAY_NAME
#error "build with -DGIVEWAY_NAME: its name in tc, at most 15 letters"
#endif

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
