// SPDX-License-Identifier: MIT OR Apache-2.0
//
// FQ-PIE: PIE's state in the flow of a packet. FQ-PIE has no filters, so the flow is that of the packet's
// hash.

struct fq_pie_flow {
	struct pie_vars vars;
} __attribute__((preserve_access_index));

struct fq_pie_sched_data {
	struct fq_pie_flow *flows;
	u32 flows_cnt;
} __attribute__((preserve_access_index));

// Updates of flows with larger numbers are not in the journal.
#define FLOWS 64

u64 first_flow;

INLINE void note_flow(struct entry *entry, struct Qdisc *sch, struct sk_buff *skb)
{
	struct fq_pie_sched_data *q = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	u64 flow = (u64)BPF_CORE_READ(skb, hash) * BPF_CORE_READ(q, flows_cnt) >> 32;
	struct pie_vars *vars;

	first_flow = (u64)BPF_CORE_READ(q, flows);
	vars = (void *)first_flow + flow * bpf_core_type_size(struct fq_pie_flow) +
	       bpf_core_field_offset(struct fq_pie_flow, vars);
	entry->reserved = BPF_CORE_READ(vars, accu_prob);
	entry->key = BPF_CORE_READ(vars, burst_time) << 16 | flow;
}

// The number of the entry is that of the flow.
SEC("fexit/pie_calculate_probability")
int BPF_PROG(updated, void *params, struct pie_vars *vars, u32 backlog)
{
	u64 at = 0, flow;

	// As a number: the verifier refuses to subtract from a pointer.
	bpf_probe_read_kernel(&at, sizeof at, &ctx[1]);
	flow = (at - first_flow) / bpf_core_type_size(struct fq_pie_flow);
	if (first_flow && flow < FLOWS)
		note(clock(), UPDATED, 0, flow, backlog, BPF_CORE_READ(vars, qdelay), BPF_CORE_READ(vars, prob));
	return 0;
}
