/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Disciplines of Giveway. Made from crates/c/src by cbindgen: change it there. Times are in nanoseconds. */

#ifndef GIVEWAY_H
#define GIVEWAY_H

#include <stddef.h>
#include <stdint.h>

// A discipline with its packets.
typedef struct giveway_queue giveway_queue;

// The metadata of a packet. Fields that a program does not know are 0.
typedef struct {
  // The number by which the caller finds the packet. The queue does not read it.
  uint64_t id;
  // Key of the flow: a hash of the addresses and ports, with a secret key if strangers send packets.
  uint64_t flow;
  // Reserved rate of the flow, bit/s; 0 for best effort.
  uint64_t reserved;
  // Rate of the flow as an edge router measured it: 0 for none, 1 for a short flow, or the rate in bit/s
  // plus one.
  uint64_t label;
  // IP length in bytes, at least 1.
  uint32_t bytes;
  // Bytes that the flow sent before this packet.
  uint32_t offset;
  // Bytes that the flow has still to send, this packet included; 0 if unknown.
  uint32_t remaining;
  // Traffic class, for disciplines with classes; 0 is the most urgent.
  uint16_t traffic_class;
  // Number of the source host, or 16 bits of a hash of its address.
  uint16_t from;
  // Number of the destination host, or 16 bits of a hash of its address.
  uint16_t to;
  // Next hops after the link, nearest first: the number of a node plus one; 0 ends the list.
  uint16_t next_hops[6];
  // The ECN field of the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
  uint8_t ecn;
  // The DSCP, 0 to 63.
  uint8_t dscp;
  // 1 for UDP, or TCP without data, of at most 64 bytes; otherwise 0.
  uint8_t is_short;
  // 1 for a TCP acknowledgement whose only news is its number, as `giveway_qdisc::Header` defines it;
  // otherwise 0.
  uint8_t advances;
} giveway_packet;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a queue with a discipline, such as "fq_codel limit 1000p", for a link.
//
// `rate` is the rate of the link in bit/s, and `mtu` its largest IP length in bytes; 0 stands for 1,500.
// Random decisions follow from `seed`. If the text is wrong, the result is null, and `message` has a
// sentence of at most `size` bytes that says what to write instead; it may be null.
//
// All times of a queue are nanoseconds since it was made, on any clock that does not go back, of at most 213
// days.
//
// # Safety
// `discipline` is null or ends with a zero byte; `message` is null or has room for `size` bytes.
giveway_queue *giveway_make(const char *discipline,
                            uint64_t rate,
                            uint32_t mtu,
                            uint64_t seed,
                            char *message,
                            size_t size);

// A packet arrives at `now`. The queue keeps it, or drops it or others: ask `giveway_dropped` next.
//
// Returns 1, or 0 if a field of the packet is out of its range; then the packet is not in the queue.
//
// # Safety
// `queue` is null or a queue; `packet` is null or a packet.
int giveway_arrive(giveway_queue *queue,
                   uint64_t now,
                   const giveway_packet *packet);

// The packet that leaves at `now`.
//
// Returns 1, and writes the packet; its `ecn` is 3 if it was marked. Returns 0 if no packet is queued.
// Returns 2 if the discipline holds its packets back, and writes to `again` when to ask again; an arrival
// may change that time. Packets may be dropped meanwhile: ask `giveway_dropped` next.
//
// # Safety
// `queue` is null or a queue; `packet` and `again` are null or may be written.
int giveway_leave(giveway_queue *queue,
                  uint64_t now,
                  giveway_packet *packet,
                  uint64_t *again);

// The next packet that the discipline dropped, in order. Ask after each call, until it returns 0: a packet
// that is dropped is in the queue no longer.
//
// Returns 1, and writes the packet, and to `reason` the reason of the drop: 0 overlimit, 1 pushout, 2 early,
// 3 congested, 4 flow_limit, 5 too_large, 6 no_class, 7 policy, 8 reset.
//
// # Safety
// `queue` is null or a queue; `packet` and `reason` are null or may be written.
int giveway_dropped(giveway_queue *queue,
                    giveway_packet *packet,
                    int *reason);

// Replaces the discipline at `now`. Its packets stay, and leave before those that arrive from now on.
//
// Returns 1, or 0 with a message as `giveway_make` has it; then the queue is as before.
//
// # Safety
// `queue` is null or a queue; `discipline` is null or ends with a zero byte; `message` is null or has room
// for `size` bytes.
int giveway_change(giveway_queue *queue,
                   uint64_t now,
                   const char *discipline,
                   char *message,
                   size_t size);

// The link has this rate from `now` on, bit/s. A rate of 0 is ignored: a link that stands still keeps its
// rate.
//
// # Safety
// `queue` is null or a queue.
void giveway_rate(giveway_queue *queue,
                  uint64_t now,
                  uint64_t rate);

// The packets and their bytes in the queue.
//
// # Safety
// `queue` is null or a queue; `packets` and `bytes` are null or may be written.
void giveway_backlog(const giveway_queue *queue, uint64_t *packets, uint64_t *bytes);

// Calls `visit` with the name and the value of each internal quantity of the discipline, and with `context`.
//
// # Safety
// `queue` is null or a queue; `visit` may be called with `context`.
void giveway_gauges(const giveway_queue *queue,
                    void (*visit)(const char *name, double value, void *context),
                    void *context);

// Drops all packets, and returns to the initial state of the discipline. Ask `giveway_dropped` next.
//
// # Safety
// `queue` is null or a queue.
void giveway_reset(giveway_queue *queue,
                   uint64_t now);

// Frees a queue. Its packets are the caller's.
//
// # Safety
// `queue` is null or a queue, which is not used again.
void giveway_free(giveway_queue *queue);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GIVEWAY_H */
