"""Traces for the second RACK-TLP made by a crude network."""

import heapq
import random

from events import Trace


class Network:
    """A sender with a fixed window and a receiver that acknowledges each segment, with losses between."""

    def __init__(self, name, window, delay_us, loss, late, late_us, bursts, rows, dsacks=True, ack_loss=0.0):
        self.random = random.Random(f"giveway rack {name}")
        self.trace = Trace(name, rto_us=max(8 * delay_us, 200_000))
        self.trace.on_loss = self.to_retransmit
        self.window = window
        self.delay_us = delay_us
        self.loss, self.late, self.late_us, self.ack_loss = loss, late, late_us, ack_loss
        self.dsacks = dsacks
        self.rows = rows
        self.bursts = bursts  # (pause in microseconds, segments)
        self.queue = []  # (time, rank, kind, payload)
        self.rank = 0
        self.lost = []
        self.received = set()
        self.expected = 0
        self.last_ack_us = 0
        self.left_to_send = 0

    def later(self, time_us, kind, payload):
        self.rank += 1
        heapq.heappush(self.queue, (time_us, self.rank, kind, payload))

    def to_retransmit(self, numbers):
        self.lost += numbers

    def in_flight(self):
        return sum(not s.sacked and not s.lost for s in self.trace.rack.segments.values())

    def send(self):
        trace = self.trace
        while self.in_flight() < self.window:
            self.lost = [n for n in self.lost if self.still_lost(n)]
            if self.lost:
                number = self.lost.pop(0)
                trace.retransmit(number)
            elif self.left_to_send:
                self.left_to_send -= 1
                number = trace.number(trace.rack.next)
                trace.send()
            else:
                break
            self.transmit(number)
        trace.unsent = self.left_to_send

    def still_lost(self, number):
        segment = self.trace.rack.segments.get(self.trace.byte(number))
        return segment is not None and segment.lost and not segment.sacked

    def transmit(self, number):
        if self.random.random() < self.loss:
            return
        delay_us = self.delay_us // 2 + self.random.randrange(self.delay_us // 20)
        if self.random.random() < self.late:
            delay_us += self.random.randrange(self.late_us)
        self.later(self.trace.now_us + delay_us, "data", number)

    def receive(self, time_us, number):
        known = number < self.expected or number in self.received
        self.received.add(number)
        while self.expected in self.received:
            self.received.remove(self.expected)
            self.expected += 1
        blocks = self.blocks(number)
        dsack = (number, number + 1) if known and self.dsacks else None
        if self.random.random() < self.ack_loss:
            return
        delay_us = self.delay_us // 2 + self.random.randrange(self.delay_us // 40)
        self.last_ack_us = max(self.last_ack_us, time_us + delay_us)
        self.later(self.last_ack_us, "ack", (self.expected, blocks, dsack))

    def blocks(self, number):
        """At most three, the newest first."""
        blocks = []
        for one in sorted(n for n in self.received if n > self.expected):
            if blocks and blocks[-1][1] == one:
                blocks[-1] = (blocks[-1][0], one + 1)
            else:
                blocks.append((one, one + 1))
        blocks.sort(key=lambda block: (not block[0] <= number < block[1], -block[0]))
        return blocks[:3]

    def run(self):
        trace = self.trace
        bursts = list(self.bursts)
        while len(trace.rows) < self.rows:
            if not trace.rack.segments and not self.left_to_send:
                pause_us, self.left_to_send = bursts.pop(0)
                bursts.append((pause_us, self.left_to_send))
                trace.now_us += pause_us
                self.send()
                continue
            timer, timer_us = trace.next_timer()
            if self.queue and self.queue[0][0] <= timer_us:
                time_us, _, kind, payload = heapq.heappop(self.queue)
                if kind == "data":
                    self.receive(time_us, payload)
                    continue
                trace.now_us = max(trace.now_us, time_us)
                trace.ack(payload[0], payload[1], payload[2])
            else:
                trace.fire()
                if trace.rack.probe == "new":
                    self.left_to_send -= 1
                    self.transmit(trace.number(trace.rack.next) - 1)
                elif trace.rack.probe not in ("", "none"):
                    self.transmit(trace.number(trace.rack.probe))
            self.send()
        return trace


def traces():
    return [
        Network("bulk_losses", 12, 40_000, 0.06, 0, 1, [(0, 400)], 220).run(),
        Network("bulk_overtaking", 12, 40_000, 0.01, 0.1, 30_000, [(0, 400)], 220).run(),
        Network("bursts", 10, 20_000, 0.12, 0.03, 5000, [(3000, 4), (0, 9)], 220, ack_loss=0.05).run(),
        Network("no_dsack", 8, 30_000, 0.08, 0.08, 25_000, [(5000, 14)], 200, False, 0.1).run(),
        Network("tails", 4, 30_000, 0.15, 0.02, 9000, [(50_000, 3), (1000, 1), (20_000, 5)], 150).run(),
    ]
