// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Records each call of one of the kernel's own qdiscs, in the format of the journal of our disciplines
// (kernel/giveway.h).
//
//   clang -target bpf -DQDISC_ENQUEUE='"drr_enqueue"' -DQDISC_DEQUEUE='"drr_dequeue"' [-DWATCH_CODEL |
//   -DWATCH_FQ_CODEL | -DWATCH_RED | -DWATCH_GRED | -DWATCH_PIE | -DWATCH_FQ_PIE | -DWATCH_CAKE |
//   -DWATCH_HTB | -DWATCH_FQ | -DWATCH_CLOCK] ...
//
// - Programs run before and after the two functions of the qdisc, which the kernel calls under the lock of
//   the root. So there is one call at a time, and its data are in globals.
// - A packet gets its number at arrival. Packets that the enqueue call drops are in the list that it returns
//   to be freed; packets that the dequeue call drops are freed at once, which is a tracepoint.
// - The flow is the mark of the packet.
// - CoDel reads the clock itself, in steps of 1,024 ns. The value is recovered: CoDel writes the time of
//   arrival into the packet, and the sojourn time of the last packet into its state. The journal has these
//   times.
// - Further state for the comparison is in `reserved`.
//
// Names of the kernel's functions and fields are facts; no line of the kernel is in this file.
#define BPF_NO_KFUNC_PROTOTYPES
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define INLINE static __always_inline __attribute__((unused))

enum entry_kind { ENQUEUED = 1, DROPPED, SENT, NOTHING_HELD, UPDATED, DRAWN, NOTED };
// Dropped packet: the arriving one, another one at an arrival, one at a dequeue in a list, or alone.
enum reason { OVERLIMIT = 0, PUSHOUT = 1, LISTED = 2, CONGESTED = 3 };

struct entry {
	u64 now, key, reserved;
	u32 number, bytes;
	u32 kind, reason;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, JOURNAL);
	__type(key, u32);
	__type(value, struct entry);
} journal SEC(".maps");

// Numbers of the queued packets, by address.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u32);
} numbers SEC(".maps");

u32 arrivals;
// The current call.
u64 came_at, freed_before;
u32 arrival, enqueued_at;
bool dequeues;
u64 asked_at;

INLINE struct entry *line(u32 at)
{
	return bpf_map_lookup_elem(&journal, &at);
}

INLINE u32 note(u64 now, u32 kind, u32 reason, u32 number, u32 bytes, u64 key, u64 reserved)
{
	struct entry *count = line(0), *entry;
	u32 at;
	if (!count || count->now + 1 >= JOURNAL)
		return 0;
	at = __sync_fetch_and_add(&count->now, 1) + 1;
	entry = line(at);
	if (entry)
		*entry = (struct entry){ now, key, reserved, number, bytes, kind, reason };
	return at;
}

INLINE u32 length(struct sk_buff *skb)
{
	struct qdisc_skb_cb *cb = (void *)skb + bpf_core_field_offset(struct sk_buff, cb);
	return BPF_CORE_READ(cb, pkt_len);
}

// Removes a packet and returns its number.
INLINE bool forget(u64 skb, u32 *number)
{
	u32 *known = bpf_map_lookup_elem(&numbers, &skb);
	if (!known)
		return false;
	*number = *known;
	bpf_map_delete_elem(&numbers, &skb);
	return true;
}

// ----------------------------------------------------------------------------------------------------
// CoDel's clock

#if defined(WATCH_CODEL) || defined(WATCH_FQ_CODEL)
#define SHIFT 10
#else
#define SHIFT 0
#endif

// The time in the resolution of the qdisc, in nanoseconds.
INLINE u64 clock(void)
{
	return bpf_ktime_get_ns() >> SHIFT << SHIFT;
}

#if SHIFT

// The first word of CoDel's data in a packet: the time of arrival.
INLINE u32 arrived(struct sk_buff *skb)
{
	u32 time = 0;
	void *cb = (void *)skb + bpf_core_field_offset(struct sk_buff, cb);
	bpf_probe_read_kernel(&time, sizeof time, cb + bpf_core_field_offset(struct qdisc_skb_cb, data));
	return time;
}

// Latest time at which CoDel's clock was `time`, in nanoseconds.
INLINE u64 unwrapped(u32 time)
{
	u64 now = bpf_ktime_get_ns() >> SHIFT;
	return (now - (u32)((u32)now - time)) << SHIFT;
}
#endif

#ifdef WATCH_CODEL
struct codel_sched_data {
	struct codel_vars vars;
} __attribute__((preserve_access_index));

INLINE struct codel_vars *state_of(struct Qdisc *sch, struct sk_buff *skb)
{
	struct codel_sched_data *q = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	return (void *)q + bpf_core_field_offset(struct codel_sched_data, vars);
}
#endif

#ifdef WATCH_FQ_CODEL
INLINE struct codel_vars *state_of(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fq_codel_sched_data *q = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	struct fq_codel_flow *flows = BPF_CORE_READ(q, flows);
	return (void *)flows + (u64)skb->mark * bpf_core_type_size(struct fq_codel_flow) +
	       bpf_core_field_offset(struct fq_codel_flow, cvars);
}
#endif

// ----------------------------------------------------------------------------------------------------
// RED, GRED, PIE, FQ-PIE, CAKE and FQ

#if defined(WATCH_CAKE) || defined(WATCH_FQ) || defined(WATCH_CLOCK)
#define WATCH_READINGS
#include "oracle/clock.h"
#endif
#ifdef WATCH_CAKE
#include "oracle/cake.h"
#endif
#ifdef WATCH_FQ
#include "oracle/fq.h"
#endif

#if defined(WATCH_CAKE) || defined(WATCH_FQ)
// True if the ECN field of an IPv4 packet is CE.
INLINE bool is_marked(struct sk_buff *skb)
{
	u8 service = 0;
	void *ip = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	bpf_probe_read_kernel(&service, sizeof service, ip + 1);
	return (service & 3) == 3;
}
#endif

#ifdef WATCH_HTB
struct htb_sched {
	s64 now;
} __attribute__((preserve_access_index));
#endif

#if defined(WATCH_RED) || defined(WATCH_GRED)
struct red_vars {
	int qcount;
	u32 qR;
	unsigned long qavg;
} __attribute__((preserve_access_index));

struct red_sched_data {
	struct red_vars vars;
} __attribute__((preserve_access_index));
#endif
#ifdef WATCH_GRED
#include "oracle/gred.h"
#endif

#if defined(WATCH_PIE) || defined(WATCH_FQ_PIE)
struct pie_vars {
	u64 qdelay, qdelay_old, burst_time;
	u64 prob, accu_prob;
} __attribute__((preserve_access_index));
#endif
#ifdef WATCH_FQ_PIE
#include "oracle/fq_pie.h"
#endif

#ifdef WATCH_PIE
struct pie_sched_data {
	struct pie_vars vars;
} __attribute__((preserve_access_index));

SEC("fexit/pie_calculate_probability")
int BPF_PROG(updated, void *params, struct pie_vars *vars, u32 backlog)
{
	note(clock(), UPDATED, 0, 0, backlog, BPF_CORE_READ(vars, qdelay), BPF_CORE_READ(vars, prob));
	return 0;
}
#endif

// State after an arrival: RED's average; PIE's accumulated probability, and its burst allowance.
INLINE void note_state(struct entry *entry, struct Qdisc *sch, struct sk_buff *skb)
{
#if defined(WATCH_RED)
	struct red_sched_data *q = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	entry->reserved = BPF_CORE_READ(q, vars.qavg);
#elif defined(WATCH_PIE)
	struct pie_sched_data *q = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	entry->reserved = BPF_CORE_READ(q, vars.accu_prob);
	entry->key = BPF_CORE_READ(q, vars.burst_time);
#elif defined(WATCH_GRED)
	entry->reserved = average_of(sch, skb);
#elif defined(WATCH_FQ_PIE)
	note_flow(entry, sch, skb);
#endif
}

// ----------------------------------------------------------------------------------------------------
// calls

// True for the watched qdisc. The link above other qdiscs is an HTB, too, with another handle.
INLINE bool watched(struct Qdisc *sch)
{
	return BPF_CORE_READ(sch, handle) == 2 << 16;
}

SEC("fentry/" QDISC_ENQUEUE)
int BPF_PROG(comes, struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	u64 address = (u64)skb;
	if (!watched(sch))
		return 0;
	came_at = clock();
	freed_before = 0;
	bpf_probe_read_kernel(&freed_before, sizeof freed_before, to_free);
	arrival = arrivals++;
	bpf_map_update_elem(&numbers, &address, &arrival, BPF_ANY);
	enqueued_at = note(came_at, ENQUEUED, 0, arrival, length(skb), skb->mark, 0);
#ifdef WATCH_CAKE
	buffer = skb->truesize;
#endif
#ifdef WATCH_FQ
	note_facts(came_at, skb);
#endif
#ifdef WATCH_READINGS
	enter();
#endif
	return 0;
}

// Notes the dropped packets of a list up to `end`. The packet that was dropped last is the first of it.
INLINE void note_list(struct sk_buff *at, struct sk_buff *end, u64 now, u32 reason)
{
	u32 number;
	for (int turn = 0; turn < 256 && at && at != end; turn++) {
		if (forget((u64)at, &number))
			note(now, DROPPED, reason == PUSHOUT && number == arrival ? OVERLIMIT : reason, number, 0, 0, 0);
		at = BPF_CORE_READ(at, next);
	}
}

SEC("fexit/" QDISC_ENQUEUE)
int BPF_PROG(came, struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, int answer)
{
	struct entry *entry = line(enqueued_at);
	u64 at = 0;

	if (!watched(sch))
		return 0;
#ifdef WATCH_READINGS
	came_at = leave(came_at);
	if (entry && enqueued_at)
		entry->now = came_at;
#endif
#ifdef WATCH_CAKE
	if (entry && enqueued_at)
		entry->reserved = place << 32 | buffer;
#endif
#ifdef WATCH_FQ
	if (entry && enqueued_at)
		entry->reserved = with_ticks(BPF_CORE_READ(skb, hash));
#endif
#ifdef WATCH_CLOCK
	if (entry && enqueued_at)
		entry->reserved = read_last;
#endif
	if (entry && enqueued_at) {
#if SHIFT
		if (answer != 1)
			entry->now = unwrapped(arrived(skb));
#endif
		note_state(entry, sch, skb);
	}
	bpf_probe_read_kernel(&at, sizeof at, to_free);
	note_list((struct sk_buff *)at, (struct sk_buff *)freed_before, came_at, PUSHOUT);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(freed, struct sk_buff *skb)
{
	u32 number;
	if (forget((u64)skb, &number))
		note(clock(), DROPPED, dequeues ? CONGESTED : 8, number, 0, 0, 0);
	return 0;
}

SEC("fentry/" QDISC_DEQUEUE)
int BPF_PROG(asked, struct Qdisc *sch)
{
	if (!watched(sch))
		return 0;
	asked_at = clock();
	dequeues = true;
#ifdef WATCH_READINGS
	enter();
#endif
	return 0;
}

SEC("fexit/" QDISC_DEQUEUE)
int BPF_PROG(answered, struct Qdisc *sch, struct sk_buff *skb)
{
	u64 now = asked_at, state = 0;
	u32 number;

	if (!watched(sch))
		return 0;
	dequeues = false;
#ifdef WATCH_HTB
	struct htb_sched *htb = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	now = BPF_CORE_READ(htb, now);
#endif
#ifdef WATCH_READINGS
	now = leave(asked_at);
#endif
#ifdef WATCH_CAKE
	// At the root, dropped packets are freed later.
	note_list(BPF_CORE_READ(sch, to_free), NULL, now, LISTED);
#endif
#ifdef WATCH_FQ
	state = with_ticks(skb && is_marked(skb));
#endif
#ifdef WATCH_CLOCK
	state = read_last;
#endif
	if (!skb) {
		note(now, NOTHING_HELD, 0, 0, 0, 0, state);
		return 0;
	}
	if (!forget((u64)skb, &number))
		return 0;
#if SHIFT
	struct codel_vars *vars = state_of(sch, skb);
	now = unwrapped(arrived(skb) + BPF_CORE_READ(vars, ldelay));
	state = (u64)BPF_CORE_READ(vars, count) << 32 | BPF_CORE_READ(vars, drop_next);
#elif defined(WATCH_PIE)
	struct pie_sched_data *q = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	state = BPF_CORE_READ(q, vars.qdelay);
#elif defined(WATCH_CAKE)
	state = is_marked(skb);
#endif
	note(now, SENT, 0, number, length(skb), skb->mark, state);
	return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
