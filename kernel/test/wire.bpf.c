// The wire of a packet trace of `cargo xtask senders-linux`: loses packets, or sends them to a class that
// delays them. A filter of `prio` in mode direct-action. LOST and LATE list segments of data by their number,
// counted from 0, with the number of their transmissions that are lost, or late.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

struct fate {
	__u32 segment, times;
};

static const struct fate lost[] = { LOST };
static const struct fate late[] = { LATE };

#define LONGEST 1024
#define SEGMENT 1448
#define DELAYED 0x10001

// Sequence number of the first byte of data, and the transmissions of each segment so far.
static __u32 first;
static __u32 sent[LONGEST];

static __always_inline int listed(const struct fate *fates, unsigned count, __u32 segment, __u32 times)
{
	for (unsigned i = 0; i < count; i++)
		if (fates[i].segment == segment && times <= fates[i].times)
			return 1;
	return 0;
}

SEC("tc")
int wire(struct __sk_buff *skb)
{
	// Ethernet, IPv4 without options, TCP.
	__u8 header[54];

	if (bpf_skb_load_bytes(skb, 0, header, sizeof header) || header[23] != 6)
		return TC_ACT_UNSPEC;
	__u32 seq = (__u32)header[38] << 24 | (__u32)header[39] << 16 | (__u32)header[40] << 8 | header[41];
	__u32 bytes = (header[16] << 8 | header[17]) - 20 - (header[46] >> 4) * 4;
	if (header[47] & 2)
		first = seq + 1;
	if (bytes == 0)
		return TC_ACT_UNSPEC;
	__u32 segment = (seq - first) / SEGMENT;
	if (segment >= LONGEST)
		return TC_ACT_UNSPEC;
	__u32 times = ++sent[segment];
	if (listed(lost, sizeof lost / sizeof *lost, segment, times))
		return TC_ACT_SHOT;
	if (!listed(late, sizeof late / sizeof *late, segment, times))
		return TC_ACT_UNSPEC;
	skb->tc_classid = DELAYED;
	return TC_ACT_OK;
}

char licence[] SEC("license") = "Dual MIT/GPL";
