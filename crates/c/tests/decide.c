/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program that uses every function of giveway.h: `decide DISCIPLINE` prints the decisions about random
 * calls, which all.rs makes in Rust as well; `misuse` makes wrong calls. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "giveway.h"

static uint64_t state = 1;

static uint64_t below(uint64_t end)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % end;
}

static void print_drops(giveway_queue *queue)
{
	giveway_packet packet;
	int reason;
	while (giveway_dropped(queue, &packet, &reason))
		printf("drops %" PRIu64 " %d\n", packet.id, reason);
}

static void print_next(giveway_queue *queue, uint64_t now)
{
	giveway_packet packet;
	uint64_t again;
	int next = giveway_leave(queue, now, &packet, &again);
	print_drops(queue);
	if (next == 1)
		printf("sends %" PRIu64 "%s\n", packet.id, packet.ecn == 3 ? " marked" : "");
	else if (next == 2)
		printf("waits %" PRIu64 "\n", again);
	else
		printf("empty\n");
}

static void print_backlog(giveway_queue *queue)
{
	uint64_t packets, bytes;
	giveway_backlog(queue, &packets, &bytes);
	printf("holds %" PRIu64 " %" PRIu64 "\n", packets, bytes);
}

static int decide(const char *discipline)
{
	char message[200];
	giveway_queue *queue = giveway_make(discipline, 10000000, 0, 7, message, sizeof message);
	if (!queue) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	uint64_t now = 0;
	for (uint64_t id = 0; id < 4000; id++) {
		now += below(1500000);
		if (below(5) < 3) {
			giveway_packet packet = { .id = id };
			packet.flow = below(20);
			packet.bytes = 40 + (uint32_t)below(1461);
			packet.traffic_class = (uint16_t)below(3);
			packet.from = (uint16_t)below(4);
			packet.to = (uint16_t)(4 + below(4));
			packet.ecn = (uint8_t)below(3);
			packet.reserved = below(2) * 100000;
			packet.offset = (uint32_t)below(100000);
			packet.remaining = (uint32_t)below(100000);
			packet.dscp = (uint8_t)below(64);
			if (!giveway_arrive(queue, now, &packet))
				return 1;
			print_drops(queue);
		} else {
			print_next(queue, now);
		}
	}
	print_backlog(queue);
	giveway_free(queue);
	return 0;
}

static void print_gauge(const char *name, double value, void *context)
{
	if (!strcmp(name, "flow_table"))
		printf("%s%s %.0f\n", (const char *)context, name, value);
}

static void try_to_make(const char *discipline, uint64_t rate)
{
	char message[100] = "";
	giveway_queue *queue = giveway_make(discipline, rate, 1500, 1, message, sizeof message);
	printf("%s\n", queue ? "made" : message);
	giveway_free(queue);
}

static int misuse(void)
{
	try_to_make("fq_codle", 1000000);
	try_to_make("fifo limit 0p", 1000000);
	try_to_make("fifo", 0);
	try_to_make(NULL, 1000000);
	try_to_make("\xff", 1000000);
	printf("%s\n", giveway_make("nothing", 1, 0, 0, NULL, 0) ? "made" : "no message wanted");

	giveway_queue *queue = giveway_make("fifo limit 3p", 1000000, 1500, 1, NULL, 0);
	giveway_packet packet = { .id = 1, .flow = 5 };
	printf("without a length: %d\n", giveway_arrive(queue, 10, &packet));
	packet.bytes = 100;
	packet.ecn = 4;
	printf("ECN of 4: %d\n", giveway_arrive(queue, 10, &packet));
	packet.ecn = 0;
	for (; packet.id <= 4; packet.id++)
		giveway_arrive(queue, 10, &packet);
	print_drops(queue);
	print_backlog(queue);
	char message[100];
	printf("changed to nonsense: %d\n", giveway_change(queue, 20, "drr quantum 0b", message, sizeof message));
	printf("%s\n", message);
	printf("changed to drr: %d\n", giveway_change(queue, 20, "drr limit 2p", NULL, 0));
	packet.id = 5;
	giveway_arrive(queue, 5, &packet); /* the clock goes back */
	print_backlog(queue);
	giveway_gauges(queue, print_gauge, "gauge ");
	print_next(queue, 30);
	giveway_rate(queue, 30, 0);
	giveway_rate(queue, 30, 2000000);
	giveway_reset(queue, 40);
	print_drops(queue);
	print_next(queue, UINT64_MAX);
	giveway_free(queue);

	giveway_free(NULL);
	giveway_reset(NULL, 0);
	giveway_rate(NULL, 0, 1);
	giveway_gauges(NULL, print_gauge, NULL);
	giveway_backlog(NULL, NULL, NULL);
	printf("null: %d %d %d %d\n", giveway_arrive(NULL, 0, &packet), giveway_leave(NULL, 0, NULL, NULL),
	       giveway_dropped(NULL, NULL, NULL), giveway_change(NULL, 0, "fifo", NULL, 0));
	return 0;
}

int main(int count, char **words)
{
	if (count == 3 && !strcmp(words[1], "decide"))
		return decide(words[2]);
	return misuse();
}
