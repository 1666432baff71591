// SPDX-License-Identifier: MIT OR Apache-2.0
//
// GRED: the average of the virtual queue to which a packet belongs.

struct gred_sched_data {
	struct red_vars vars;
} __attribute__((preserve_access_index));

struct gred_sched {
	struct gred_sched_data *tab[16];
	u32 def;
} __attribute__((preserve_access_index));

INLINE struct gred_sched_data *virtual_queue(struct gred_sched *q, u32 number)
{
	struct gred_sched_data *at = NULL;
	void *table = (void *)q + bpf_core_field_offset(struct gred_sched, tab);
	bpf_probe_read_kernel(&at, sizeof at, table + (number & 15) * sizeof at);
	return at;
}

INLINE u64 average_of(struct Qdisc *sch, struct sk_buff *skb)
{
	struct gred_sched *q = (void *)sch + bpf_core_field_offset(struct Qdisc, privdata);
	struct gred_sched_data *at = virtual_queue(q, BPF_CORE_READ(skb, tc_index));
	if (!at)
		at = virtual_queue(q, BPF_CORE_READ(q, def));
	return at ? BPF_CORE_READ(at, vars.qavg) : 0;
}
