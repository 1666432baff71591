"""Disciplines and sources in Python that tests send to other processes."""

from __future__ import annotations

import random
from collections import deque

import giveway


class HeadDrop:
    """A queue that drops at its head."""

    def __init__(self, limit=30):
        self.packets = deque()
        self.limit = limit

    def enqueue(self, packet, cx):
        self.packets.append(packet)
        if len(self.packets) > self.limit:
            cx.drop(self.packets.popleft())

    def dequeue(self, cx):
        return self.packets.popleft() if self.packets else None


class Faulty(HeadDrop):
    """Fails at a packet."""

    def enqueue(self, packet, cx):
        if packet.number == 50:
            raise ZeroDivisionError("the fiftieth")
        super().enqueue(packet, cx)


class Dies(HeadDrop):
    """Ends its process."""

    def enqueue(self, packet, cx):
        import os

        os._exit(3)


class Bursts:
    """Bursts of packets at random times."""

    def __init__(self, flow):
        self.random = random.Random(flow.seed)

    def wake(self, cx):
        for _ in range(self.random.randint(1, 8)):
            cx.send(1000)
        return cx.wait(self.random.expovariate(100))


def _shortest(packet):
    return packet.bytes


SHORTEST = giveway.rank(_shortest, limit=50)
