// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A discipline of the kernel as a program of this machine, without a kernel: random calls on a virtual clock.
// The journal of the calls is compared with the Rust discipline, as that of the virtual machine is
// (xtask/src/kernel/native.rs).
//
// - This file includes the C file of the discipline, which is compiled with the stand-ins of this folder.
// - The kernel's part of the contract is checked at each call. A packet is sent or freed once, the journal
//   has the packet that really left, the counters agree, the link is never faster than its rate, and a queue
//   with packets always has a next call.
// - A run has several lives: a reset ends each of them, usually with a backlog, and sometimes the qdisc is
//   detached and attached again. The journal is that of the last life, so a reset must leave nothing behind.
//   A reset does not set the numbers of packets back, so they are written relative to the start of the life.
//
// The arguments are KEY=VALUE: the fields of `struct params`, and
//
//   mark.MARK=WORD   a mark with its rate or route; the others are numbered in this order, from 1
//   run.packets, run.flows, run.seed   number of arrivals of the last life, and of flows
//   run.mixed        1 for packets of different lengths
//   run.marks        flow f usually has mark number f % (run.marks + 1); number 0 stands for none
//   run.out, run.offset   file of the journal, and its place in the file
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include GIVEWAY_DISCIPLINE

#define LIVES 20
#define NEVER (~0ULL)

// ----------------------------------------------------------------------------------------------------
// the run

static u64 packets_to_send, flows_of_run, mixed, seed, usual_marks, offset;
static const char *out;
static struct {
	u32 mark;
	u64 word;
} marks[64];
static u32 marks_used;

// Number of the call, for messages.
static u64 calls;

static void fail(const char *what)
{
	fprintf(stderr, "%s, seed %llu, call %llu: %s\n", GIVEWAY_NAME, seed, calls, what);
	exit(1);
}

static void check(bool holds, const char *what)
{
	if (!holds)
		fail(what);
}

static u64 state;

// SplitMix64 (Steele, Lea, Flood 2014), so that a seed determines the run.
static u64 mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static u64 drawn(u64 below)
{
	return mix(state += 0x9e3779b97f4a7c15) % below;
}

// ----------------------------------------------------------------------------------------------------
// the kernel

static u64 now;
// Time of the next dequeue without an arrival: by the watchdog, or when the device has space.
static u64 next_call;

static struct Qdisc qdisc;
static struct sk_buff buffers[ROOM];
static u32 unused[ROOM], unused_len;
static bool in_reset;

static struct entry lines[GIVEWAY_JOURNAL];
static struct held_packet held[ROOM];
static u64 words[LOW_MARKS];

u64 bpf_ktime_get_ns(void)
{
	return now;
}

void *bpf_map_lookup_elem(const void *map, const u32 *key)
{
	if (map == &journal)
		return *key < sizeof *journal.max_entries ? &lines[*key] : NULL;
	if (map == &slots)
		return *key < sizeof *slots.max_entries ? &held[*key] : NULL;
	if (map == &low_marks)
		return *key < sizeof *low_marks.max_entries ? &words[*key] : NULL;
	check(map == &reservations, "a map that the driver does not have");
	for (u32 at = 0; at < marks_used; at++)
		if (marks[at].mark == *key && *key >= LOW_MARKS)
			return &marks[at].word;
	return NULL;
}

int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)
{
	// The kernel allows at most 2^23 turns.
	check(start <= end && end - start <= 1 << 23, "a loop that the kernel refuses");
	*it = (struct bpf_iter_num){ start - 1, end };
	return 0;
}

int *bpf_iter_num_next(struct bpf_iter_num *it)
{
	return ++it->value < it->end ? &it->value : NULL;
}

void bpf_iter_num_destroy(struct bpf_iter_num *it) {}

u32 bpf_skb_get_hash(struct sk_buff *skb)
{
	check(skb->held, "the hash of a packet that the qdisc does not have");
	return skb->hash;
}

static u32 bytes_of(const struct sk_buff *skb)
{
	return ((const struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

// The packet leaves the qdisc.
static void leaves(struct sk_buff *skb)
{
	check(skb->held, "a packet leaves a second time");
	skb->held = false;
	unused[unused_len++] = skb - buffers;
}

static void leaves_as(struct sk_buff *skb, u32 kind)
{
	struct entry *last = &lines[lines[0].now];
	leaves(skb);
	check(last->kind == kind && last->number == skb->number && last->bytes == bytes_of(skb),
	      "another packet leaves than the journal says");
}

void bpf_kfree_skb(struct sk_buff *skb)
{
	check(in_reset, "a slot was in use");
	leaves(skb);
}

void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free)
{
	leaves_as(skb, DROPPED);
}

void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns)
{
	check(expire > now, "the watchdog is set to a time that has passed");
	next_call = expire;
}

void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) {}

// ----------------------------------------------------------------------------------------------------
// calls of the qdisc

// The start of the busy period of the link, and the time for which it has sent since.
static u64 busy_since, busy_for;

static void called(void)
{
	calls++;
	check(counters.held_packets == qdisc.q.qlen && counters.held_bytes == qdisc.qstats.backlog &&
		      counters.held_packets == ROOM - unused_len,
	      "the backlogs differ");
	check(counters.arrived_packets == counters.sent_packets + counters.dropped_packets + counters.held_packets &&
		      counters.arrived_bytes == counters.sent_bytes + counters.dropped_bytes + counters.held_bytes,
	      "packets are missing");
}

static void enqueue(u32 bytes, u32 hash, u32 mark)
{
	struct sk_buff *skb;
	int answer;
	check(unused_len, "the qdisc keeps more packets than it has room for");
	skb = &buffers[unused[--unused_len]];
	*skb = (struct sk_buff){ .mark = mark, .hash = hash, .number = counters.arrived_packets, .held = true };
	((struct qdisc_skb_cb *)skb->cb)->pkt_len = bytes;
	if (!qdisc.q.qlen && busy_since + busy_for < now) {
		busy_since = now;
		busy_for = 0;
	}
	answer = giveway_enqueue(skb, &qdisc, NULL);
	check(answer == (skb->held ? NET_XMIT_SUCCESS : NET_XMIT_DROP), "a wrong answer to the sender");
	called();
}

// Returns true if a packet left.
static bool dequeue(void)
{
	static u32 searches;
	struct sk_buff *skb;
	next_call = NEVER;
	skb = giveway_dequeue(&qdisc);
	if (skb) {
		leaves_as(skb, SENT);
		check(busy_since + busy_for <= now, "the link is faster than its rate");
		busy_for += bytes_of(skb) * 8000000000ULL / params.rate;
	} else {
		check(!qdisc.q.qlen || next_call != NEVER, "a queue with packets has no next call");
	}
	// A search that continues at the next call is long already.
	searches = next_call == now + 1 ? searches + 1 : 0;
	check(searches < 100, "a search finds no packet");
	called();
	return skb;
}

// A second qdisc is refused, and does not disturb the first.
static void attach_another(void)
{
	struct Qdisc other = {};
	check(giveway_init(&other, NULL, NULL) == -EBUSY, "a second qdisc is not refused");
	giveway_reset(&other);
	giveway_destroy(&other);
	called();
}

static void attach(void)
{
	giveway_destroy(&qdisc);
	qdisc = (struct Qdisc){};
	check(!giveway_init(&qdisc, NULL, NULL), "the qdisc cannot be attached");
}

static void reset(void)
{
	in_reset = true;
	giveway_reset(&qdisc);
	in_reset = false;
	qdisc.q.qlen = qdisc.qstats.backlog = 0;
	next_call = NEVER;
	busy_for = 0;
	called();
	check(unused_len == ROOM, "a reset keeps packets");
	check(!counters.flow_table && !counters.high_packets && !counters.low_packets && !counters.reserved_bit,
	      "a reset keeps flows");
}

// ----------------------------------------------------------------------------------------------------
// traffic

// The usual time between two packets on the link, in nanoseconds.
#define USUAL 80000

// Delay of a dequeue: usually none, or that of a timer; sometimes more than the port makes up for.
static u64 delay(void)
{
	u64 kind = drawn(200);
	return kind < 120 ? 0 : kind < 199 ? drawn(5000) : drawn(2 * CATCH_UP);
}

// Dequeues until the device is full, which is seldom, or nothing is to be sent.
static void run(void)
{
	u64 most = drawn(8) ? NEVER : 1 + drawn(3);
	for (u64 sent = 0; sent < most; sent++)
		if (!dequeue())
			return;
	next_call = now + 1 + drawn(USUAL);
}

// The time until `end` passes.
static void pass_until(u64 end)
{
	while (next_call != NEVER) {
		u64 at = (next_call > now ? next_call : now) + delay();
		if (at > end)
			break;
		now = at;
		run();
	}
	now = end;
}

static u32 drawn_bytes(void)
{
	u64 kind = drawn(1000);
	if (!mixed)
		return 1000;
	// As large as the buffer, or a byte more or less.
	if (kind == 0 && params.limit_bytes)
		return params.limit_bytes - 1 + drawn(3);
	// Several segments at once.
	if (kind < 5)
		return 60 + drawn(65000);
	return drawn(3) ? 60 + drawn(1455) : 60;
}

static u32 drawn_mark(u64 flow)
{
	u64 place = usual_marks ? flow % (usual_marks + 1) : 0;
	// Sometimes a flow requests another rate, or none, or has a mark without a meaning.
	if (usual_marks && !drawn(50))
		place = drawn(marks_used + 1);
	if (!drawn(200))
		return drawn(2) ? LOW_MARKS - 1 : ~0U;
	return place ? marks[place - 1].mark : 0;
}

static void send_to(u64 flow)
{
	u32 hash = mix(flow + seed);
	// Every second flow is in one of few buckets, so that chains are long.
	if (flow % 2)
		hash &= ~(MASK & ~15);
	enqueue(drawn_bytes(), hash, drawn_mark(flow));
}

static void live(u64 arrivals)
{
	u64 gaps[] = { 1, 2000, USUAL, 2 * USUAL }, load = 1, pause = 0;
	while (arrivals) {
		u64 burst = 1 + drawn(drawn(4) ? 30 : 600), gap = gaps[drawn(4)];
		// One flow sends half of the packets, or all flows send the same number.
		u64 hot = drawn(flows_of_run), spread = drawn(2);
		// From an overload to a link on which packets are alone.
		if (!drawn(20))
			load = drawn(7);
		if (!load)
			burst = 1 + drawn(2);
		pass_until(now + pause);
		if (!drawn(40))
			pass_until(now + 20000000 + drawn(30000000));
		pause = drawn(1 + burst * USUAL * (load ? load : 12) / 3);
		for (; burst && arrivals; burst--, arrivals--) {
			u64 flow = !spread && drawn(2) ? hot : drawn(flows_of_run);
			pass_until(now + drawn(gap));
			// Sometimes a packet of a new flow.
			send_to(drawn(100) ? flow : flows_of_run + drawn(1ULL << 32));
			// The kernel dequeues after most arrivals.
			if (drawn(8))
				run();
			else if (next_call == NEVER)
				next_call = now + drawn(USUAL);
		}
		if (!drawn(100))
			attach_another();
	}
}

// ----------------------------------------------------------------------------------------------------
// the program

static void write_journal(u32 first)
{
	u64 entries = lines[0].now + 1;
	FILE *file = fopen(out, "r+b");
	for (u64 at = 1; at < entries; at++)
		lines[at].number -= first;
	if (!file || fseek(file, offset, SEEK_SET) || fwrite(lines, sizeof *lines, entries, file) != entries ||
	    fclose(file))
		fail(out);
}

static void set(char *word)
{
	struct {
		const char *name;
		u64 *to;
	} names[] = {
		{ "rate", &params.rate },
		{ "limit_packets", &params.limit_packets },
		{ "limit_bytes", &params.limit_bytes },
		{ "threshold_packets", &params.threshold_packets },
		{ "threshold_bytes", &params.threshold_bytes },
		{ "threshold_in_bytes", &params.threshold_in_bytes },
		{ "quantum", &params.quantum },
		{ "drop_head", &params.drop_head },
		{ "flows", &params.flows },
		{ "slots", &params.slots },
		{ "width_ps", &params.width_ps },
		{ "level", &params.level },
		{ "measure_packets", &params.measure_packets },
		{ "run.packets", &packets_to_send },
		{ "run.flows", &flows_of_run },
		{ "run.mixed", &mixed },
		{ "run.seed", &seed },
		{ "run.marks", &usual_marks },
		{ "run.offset", &offset },
	};
	char *value = strchr(word, '=');
	if (!value)
		fail(word);
	*value++ = 0;
	u64 number = strtoull(value, NULL, 10);
	for (u32 at = 0; at < sizeof names / sizeof *names; at++) {
		if (!strcmp(word, names[at].name)) {
			*names[at].to = number;
			return;
		}
	}
	if (!strcmp(word, "run.out")) {
		out = value;
	} else if (!strncmp(word, "mark.", 5) && marks_used < sizeof marks / sizeof *marks) {
		u32 mark = strtoul(word + 5, NULL, 10);
		marks[marks_used].mark = mark;
		marks[marks_used++].word = number;
		if (mark < LOW_MARKS)
			words[mark] = number;
	} else {
		fail(word);
	}
}

int main(int count, char **word)
{
	for (int at = 1; at < count; at++)
		set(word[at]);
	if (!params.rate || !flows_of_run || usual_marks > marks_used || !out)
		fail("arguments are missing: see the head of drive.c");
	for (u32 at = 0; at < ROOM; at++)
		unused[unused_len++] = at;
	state = mix(seed);
	now = 1 + drawn(1ULL << 50);
	for (u32 life = 0; life < LIVES; life++) {
		// In the last life, every second run begins with a new qdisc, the others with a reset one.
		if (!life || (life + seed) % 2)
			attach();
		begin_journal();
		next_call = NEVER;
		u32 first = counters.arrived_packets;
		live(life == LIVES - 1 ? packets_to_send : 1 + drawn(drawn(2) ? 8 : 1500));
		if (life == LIVES - 1)
			write_journal(first);
		reset();
	}
	return 0;
}
