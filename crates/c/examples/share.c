/* SPDX-License-Identifier: MIT OR Apache-2.0 */
// ANCHOR: share
/* Two flows share a link of 10 Mbit/s: one with five packets in a burst, one with a single small packet. */
#include <stdint.h>
#include <stdio.h>

#include "giveway.h"

int main(int count, char **words)
{
	char message[200];
	const char *discipline = count > 1 ? words[1] : "fq_codel";
	giveway_queue *queue = giveway_make(discipline, 10000000, 1500, 1, message, sizeof message);
	if (!queue) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	uint64_t now = 0;
	for (uint64_t id = 1; id <= 6; id++) {
		giveway_packet packet = { .id = id, .flow = id == 4 ? 2 : 1, .bytes = id == 4 ? 100 : 1500 };
		giveway_arrive(queue, now, &packet);
	}
	giveway_packet packet;
	uint64_t again;
	int next;
	while ((next = giveway_leave(queue, now, &packet, &again)) != 0) {
		if (next == 2) {
			now = again;
			continue;
		}
		printf("%.2f ms: packet %d of flow %d\n", now / 1e6, (int)packet.id, (int)packet.flow);
		now += packet.bytes * 8 * 100; /* ns, at 10 Mbit/s */
	}
	giveway_free(queue);
	return 0;
}
// ANCHOR_END: share
