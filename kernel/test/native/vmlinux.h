// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Stand-in for the types of the kernel, for drive.c: only the fields that the disciplines use, and those that
// the driver needs.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef unsigned int u32;
typedef unsigned long long u64;

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2 };
enum { BPF_F_MMAPABLE = 1 << 10 };

struct sk_buff {
	_Alignas(u64) char cb[48];
	u32 mark;
	// Of the driver.
	u32 hash;
	u32 number; // in the order of arrival
	bool held;  // by the qdisc
};

// In `cb` of a packet.
struct qdisc_skb_cb {
	u32 pkt_len;
};

struct Qdisc {
	struct {
		u32 qlen;
	} q;
	struct {
		u32 backlog, drops;
	} qstats;
	u32 limit;
};

struct bpf_sk_buff_ptr;
struct nlattr;
struct netlink_ext_ack;

struct Qdisc_ops {
	void *enqueue, *dequeue, *init, *reset, *destroy;
	char id[16];
};

struct bpf_iter_num {
	int value, end;
};
