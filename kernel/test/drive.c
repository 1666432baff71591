// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Tool of the virtual machine of `cargo xtask test-kernel`: sends traffic, and writes the journal of a
// discipline to a file.
//
//   drive send DEV PACKETS FLOWS equal|mixed MARKS SEED [hosts|paced] [steady]
//       bursts and pauses; flow f usually has the mark f % (MARKS + 1). With `hosts` flows are of several
//       hosts, with several DSCPs and ECN fields, and the mark has all of them. With `paced` each flow also
//       has a socket of its own with a priority, and some have a rate, or a departure time for each packet.
//       With `steady` bursts are short: at most 2250, 1125 or 560 packets leave in a second, by turns
//   drive flood DEV SECONDS BYTES FLOWS MARK
//       sends as fast as possible; prints packets and processor seconds
//   drive bursts DEV BURSTS BYTES FLOWS MARK PACKETS PID PID
//       bursts, between which the two processes receive; prints packets and processor seconds of all three
//   drive liars DEV PACKETS BYTES LENGTH
//       packets with the false length LENGTH in the IP header
//   drive strangers DEV PACKETS BYTES MARKS
//       each packet of a new flow, with marks in turn
//   drive dump PINNED FILE OFFSET
//       writes the entries of a pinned journal to the file, from this byte on
//   drive attach PROGRAMS LINKS
//       attaches every program that is pinned in a folder, and pins the links
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t state;

// SplitMix64 (Steele, Lea, Flood 2014), so that a seed determines the traffic, except for its exact times.
static uint64_t drawn(uint64_t below)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % below;
}

static void pause_us(long us)
{
	struct timespec span = { us / 1000000, us % 1000000 * 1000 };
	nanosleep(&span, NULL);
}

static int open_socket(const char *dev)
{
	int most = 256 << 20;
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	to.sll_ifindex = if_nametoindex(dev);
	if (fd < 0 || !to.sll_ifindex || bind(fd, (struct sockaddr *)&to, sizeof to))
		fail(dev);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &most, sizeof most))
		fail("SO_SNDBUFFORCE");
	return fd;
}

// A UDP frame from 10.0.0.1 to 10.0.0.2 with `bytes` bytes, link header included. The flow is in the source
// port, and for large numbers in the source address, too.
static unsigned char frame[1514];

static void prepare(int bytes, int flow)
{
	int ip = bytes - 14, udp = ip - 20, port = 1024 + flow % 50000, from = flow / 50000;
	memset(frame, 0, 42);
	memcpy(frame, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0", 14);
	frame[14] = 0x45;
	frame[16] = ip >> 8, frame[17] = ip;
	frame[22] = 64, frame[23] = 17;
	memcpy(frame + 26, "\x0a\0\0\x01\x0a\0\0\x02", 8);
	frame[27] = from >> 8, frame[28] = from;
	frame[34] = port >> 8, frame[35] = port;
	frame[37] = 9;
	frame[38] = udp >> 8, frame[39] = udp;
}

// Hosts, DSCP and ECN field of a flow, which its mark repeats: 12 bits of the flow, 6 of the source, 6 of the
// destination, 6 of the DSCP, and 2 of the ECN field. Hosts have different numbers of flows.
static uint32_t prepare_host(int flow)
{
	static const unsigned char dscps[] = { 0, 0, 8, 46, 34, 0, 1, 10 }, ecns[] = { 0, 0, 2, 1 };
	unsigned source = flow * flow % 5, to = flow / 2 % 3, dscp = dscps[flow / 3 % 8], ecn = ecns[flow % 4];
	frame[15] = dscp << 2 | ecn;
	frame[28] = source;
	frame[32] = to;
	return (uint32_t)flow | source << 12 | to << 18 | dscp << 24 | ecn << 30;
}

// Appends a control message with a value of the socket's level.
static void attach_value(struct msghdr *message, int type, const void *value, size_t bytes)
{
	struct cmsghdr *head = (void *)((char *)message->msg_control + message->msg_controllen);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = type;
	head->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(head), value, bytes);
	message->msg_controllen += CMSG_SPACE(bytes);
}

// `departure` is on the monotonic clock, in nanoseconds; 0 for none.
static void send_at(int fd, int bytes, uint32_t mark, uint64_t departure)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof mark) + CMSG_SPACE(sizeof departure)] = { 0 };
	struct iovec data = { frame, bytes };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control };
	if (mark)
		attach_value(&message, SO_MARK, &mark, sizeof mark);
	if (departure)
		attach_value(&message, SCM_TXTIME, &departure, sizeof departure);
	// ENOBUFS means that the discipline refused the packet, which is expected.
	if (sendmsg(fd, &message, 0) < 0 && errno != ENOBUFS)
		fail("sendmsg");
}

static void send_marked(int fd, int bytes, uint32_t mark)
{
	send_at(fd, bytes, mark, 0);
}

// Kinds of paced flows.
enum { PLAIN, ALSO_PLAIN, RATE, DEPARTURE, KINDS };

// The socket of a paced flow. Rates are 0.4, 0.8, 1.6 and 3.2 Mbit/s.
static int open_paced(const char *dev, int flow)
{
	static const int priorities[] = { 0, 2, 6 };
	int fd = open_socket(dev), priority = priorities[flow / KINDS % 3], rate = 50000 << flow / KINDS % 4;
	struct sock_txtime clock = { .clockid = CLOCK_MONOTONIC };
	if (setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority) ||
	    (flow % KINDS == RATE && setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate)) ||
	    (flow % KINDS == DEPARTURE && setsockopt(fd, SOL_SOCKET, SO_TXTIME, &clock, sizeof clock)))
		fail("a paced socket");
	return fd;
}

// A departure time: usually up to 1 ms ago or up to 11 ms ahead, sometimes up to 100 ms.
static uint64_t drawn_departure(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	return drawn(40) ? ns - 1000000 + drawn(12000000) : ns + drawn(100000000);
}

static int send_traffic(char **word, int hosts, int paced, int steady)
{
	int fd = open_socket(word[0]);
	static int sockets[1024];
	long packets = atol(word[1]);
	int flows = atoi(word[2]), mixed = !strcmp(word[3], "mixed"), marks = atoi(word[4]);
	state = strtoull(word[5], NULL, 10);
	for (int flow = 0; paced && flow < flows; flow++)
		sockets[flow] = open_paced(word[0], flow);
	long longest = 0;
	while (packets > 0) {
		long burst = steady ? 1 + drawn(8) : 1 + drawn(drawn(4) ? 30 : 600);
		int hot = drawn(flows);
		for (; burst > 0 && packets > 0; burst--, packets--) {
			int flow = drawn(2) ? hot : (int)drawn(flows);
			int bytes = !mixed ? 1000 : drawn(3) ? 60 + drawn(1455) : 60;
			uint32_t mark = marks ? flow % (marks + 1) : 0;
			// Sometimes a flow requests another rate, or none.
			if (marks && !drawn(50))
				mark = drawn(marks + 1);
			prepare(bytes, flow);
			if (hosts || paced)
				mark = prepare_host(flow);
			if (paced)
				send_at(sockets[flow], bytes, mark, flow % KINDS == DEPARTURE ? drawn_departure() : 0);
			else
				send_marked(fd, bytes, mark);
		}
		if (steady) {
			// The rate stays for 50 bursts on average.
			if (!longest || !drawn(50))
				longest = 4000 << drawn(3);
			pause_us(drawn(longest));
			continue;
		}
		switch (drawn(40)) {
		case 0: pause_us(20000 + drawn(30000)); break; // The queue empties in this time.
		case 1 ... 15: pause_us(drawn(3000)); break;
		}
	}
	pause_us(200000);
	return 0;
}

static double seconds(struct timeval time)
{
	return time.tv_sec + time.tv_usec / 1e6;
}

static int flood(char **word)
{
	int fd = open_socket(word[0]), flows = atoi(word[3]), bytes = atoi(word[2]), mark = atoi(word[4]);
	struct timespec begun, now;
	struct rusage used;
	long sent = 0;
	// The mark is set on the socket, since a mark per packet would add to the measured cost.
	if (setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark))
		fail("SO_MARK");
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		for (int i = 0; i < 64; i++, sent++) {
			prepare(bytes, drawn(flows));
			send_marked(fd, bytes, 0);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begun.tv_sec + (now.tv_nsec - begun.tv_nsec) / 1e9 < atof(word[1]));
	getrusage(RUSAGE_SELF, &used);
	printf("%ld %.6f\n", sent, seconds(used.ru_utime) + seconds(used.ru_stime));
	return 0;
}

static int send_liars(char **word)
{
	int fd = open_socket(word[0]), packets = atoi(word[1]), bytes = atoi(word[2]), length = atoi(word[3]);
	for (int flow = 0; flow < packets; flow++) {
		prepare(bytes, flow);
		frame[16] = length >> 8, frame[17] = length;
		send_marked(fd, bytes, 0);
	}
	return 0;
}

static int send_strangers(char **word)
{
	int fd = open_socket(word[0]), packets = atoi(word[1]), bytes = atoi(word[2]), marks = atoi(word[3]);
	for (int flow = 0; flow < packets; flow++) {
		prepare(bytes, flow);
		send_marked(fd, bytes, flow % (marks + 1));
	}
	return 0;
}

// Processor time of a process, in nanoseconds.
static uint64_t had(const char *process)
{
	char path[64];
	unsigned long long ns = 0;
	snprintf(path, sizeof path, "/proc/%s/schedstat", process);
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%llu", &ns) != 1)
		fail(path);
	fclose(file);
	return ns;
}

static int send_bursts(char **word)
{
	int fd = open_socket(word[0]), bursts = atoi(word[1]), bytes = atoi(word[2]), flows = atoi(word[3]), mark = atoi(word[4]);
	int packets = atoi(word[5]);
	struct sched_param first = { .sched_priority = 10 };
	// Real-time priority, so that packets are received only after a burst.
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		fail("SCHED_FIFO");
	// The mark is set on the socket, since a mark per packet would add to the measured cost.
	if (setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark))
		fail("SO_MARK");
	uint64_t before = 0, after = 0;
	for (int burst = 0; burst <= bursts; burst++) {
		// The first burst warms up the caches.
		if (burst == 1)
			before = had("self") + had(word[6]) + had(word[7]);
		for (int i = 0; i < packets; i++) {
			prepare(bytes, drawn(flows));
			send_marked(fd, bytes, 0);
		}
		pause_us(50000);
	}
	after = had("self") + had(word[6]) + had(word[7]);
	printf("%ld %.9f\n", (long)bursts * packets, (after - before) / 1e9);
	return 0;
}

struct entry {
	uint64_t now, key, reserved;
	uint32_t number, bytes, kind, reason;
};

static int dump(char **word)
{
	union bpf_attr attr = { 0 };
	struct bpf_map_info info = { 0 };
	attr.pathname = (uint64_t)(uintptr_t)word[0];
	int fd = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof attr);
	if (fd < 0)
		fail(word[0]);
	memset(&attr, 0, sizeof attr);
	attr.info.bpf_fd = fd;
	attr.info.info = (uint64_t)(uintptr_t)&info;
	attr.info.info_len = sizeof info;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof attr) || info.value_size != sizeof(struct entry))
		fail("not a journal");
	struct entry *all = mmap(NULL, (size_t)info.max_entries * sizeof *all, PROT_READ, MAP_SHARED, fd, 0);
	if (all == MAP_FAILED)
		fail("mmap");
	FILE *out = fopen(word[1], "r+b");
	if (!out || fseeko(out, strtoll(word[2], NULL, 10), SEEK_SET))
		fail(word[1]);
	if (fwrite(all, sizeof *all, all->now + 1, out) != all->now + 1 || fclose(out))
		fail(word[1]);
	if (all->now + 1 == info.max_entries)
		fprintf(stderr, "the journal is full: it ends before the traffic did\n");
	return 0;
}

// The links are pinned, too. Removing them detaches the programs.
static int attach(char **word)
{
	DIR *folder = opendir(word[0]);
	struct dirent *entry;
	int programs = 0;
	if (!folder)
		fail(word[0]);
	while ((entry = readdir(folder))) {
		char from[512], to[512];
		union bpf_attr attr = { 0 };
		int program, link;
		if (entry->d_name[0] == '.')
			continue;
		snprintf(from, sizeof from, "%s/%s", word[0], entry->d_name);
		snprintf(to, sizeof to, "%s/%s", word[1], entry->d_name);
		attr.pathname = (uint64_t)(uintptr_t)from;
		program = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof attr);
		if (program < 0)
			fail(from);
		memset(&attr, 0, sizeof attr);
		attr.raw_tracepoint.prog_fd = program;
		link = syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof attr);
		if (link < 0)
			fail("a program cannot be attached");
		memset(&attr, 0, sizeof attr);
		attr.pathname = (uint64_t)(uintptr_t)to;
		attr.bpf_fd = link;
		if (syscall(SYS_bpf, BPF_OBJ_PIN, &attr, sizeof attr))
			fail(to);
		programs++;
	}
	closedir(folder);
	return !programs;
}

int main(int words, char **word)
{
	if (words >= 8 && !strcmp(word[1], "send")) {
		int hosts = 0, paced = 0, steady = 0;
		for (int at = 8; at < words; at++) {
			hosts |= !strcmp(word[at], "hosts");
			paced |= !strcmp(word[at], "paced") && atoi(word[4]) <= 1024;
			steady |= !strcmp(word[at], "steady");
		}
		if (hosts + paced + steady == words - 8)
			return send_traffic(word + 2, hosts, paced, steady);
	}
	if (words == 7 && !strcmp(word[1], "flood"))
		return flood(word + 2);
	if (words == 10 && !strcmp(word[1], "bursts"))
		return send_bursts(word + 2);
	if (words == 6 && !strcmp(word[1], "liars"))
		return send_liars(word + 2);
	if (words == 6 && !strcmp(word[1], "strangers"))
		return send_strangers(word + 2);
	if (words == 5 && !strcmp(word[1], "dump"))
		return dump(word + 2);
	if (words == 4 && !strcmp(word[1], "attach"))
		return attach(word + 2);
	fprintf(stderr, "see the head of drive.c\n");
	return 2;
}
