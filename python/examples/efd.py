"""Early Flow Discard in Python, step by step.

The page "A discipline in Python" of the book explains this program. `python efd.py` runs it.
"""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path

import giveway

SCENARIO = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"


# ANCHOR: small_first
class SmallFirst:
    def __init__(self):
        self.small, self.large = deque(), deque()

    def enqueue(self, packet, cx):
        if len(self.small) + len(self.large) == 300:
            return cx.drop(packet)
        (self.small if packet.bytes <= 300 else self.large).append(packet)

    def dequeue(self, cx):
        queue = self.small or self.large
        return queue.popleft() if queue else None
        # ANCHOR_END: small_first


# ANCHOR: rank
def new_flows_first(packet):
    return packet.offset
    # ANCHOR_END: rank


# ANCHOR: two_queues
class TwoQueues:
    """The first 20 packets of each flow go ahead of all others."""

    limit = 300
    threshold = 20

    def __init__(self):
        self.high, self.low = deque(), deque()
        self.offered = Counter()

    def queue_of(self, packet):
        self.offered[packet.flow] += 1
        return self.high if self.offered[packet.flow] <= self.threshold else self.low

    def enqueue(self, packet, cx):
        if len(self.high) + len(self.low) == self.limit:
            cx.drop(packet)
        else:
            self.queue_of(packet).append(packet)

    def dequeue(self, cx):
        queue = self.high or self.low
        return queue.popleft() if queue else None
        # ANCHOR_END: two_queues


# ANCHOR: push_out
class PushOut(TwoQueues):
    """A full queue drops the packet that would leave last."""

    def enqueue(self, packet, cx):
        self.queue_of(packet).append(packet)
        if len(self.high) + len(self.low) > self.limit:
            cx.drop((self.low or self.high).pop())
            # ANCHOR_END: push_out


# ANCHOR: efd
class Efd:
    """Early Flow Discard (Chen, Heusse and Urvoy-Keller, NETWORKING 2011)."""

    limit = 300
    threshold = 20

    def __init__(self):
        self.high, self.low = deque(), deque()
        # Flows that have a packet in the queue: how many packets each offered since it had none, and has
        # there now.
        self.offered, self.queued = Counter(), Counter()

    def enqueue(self, packet, cx):
        self.offered[packet.flow] += 1
        self.queued[packet.flow] += 1
        first = self.offered[packet.flow] <= self.threshold
        (self.high if first else self.low).append(packet)
        if len(self.high) + len(self.low) > self.limit:
            victim = (self.low or self.high).pop()
            self.forget(victim)
            cx.drop(victim, "overlimit" if victim is packet else "pushout")

    def dequeue(self, cx):
        queue = self.high or self.low
        if not queue:
            return None
        packet = queue.popleft()
        self.forget(packet)
        return packet

    def forget(self, packet):
        """A packet has left or was dropped. A flow without another one is forgotten."""
        self.queued[packet.flow] -= 1
        if self.queued[packet.flow] == 0:
            del self.queued[packet.flow], self.offered[packet.flow]

    def gauges(self):
        return {"high_packets": len(self.high), "low_packets": len(self.low)}
        # ANCHOR_END: efd


def main() -> None:
    """Compares the steps with the built-in discipline."""
    # ANCHOR: compare
    disciplines = [
        "fifo limit 300p",
        SmallFirst,
        giveway.rank(new_flows_first, limit="300p"),
        TwoQueues,
        PushOut,
        Efd,
        "efd",
    ]
    run = giveway.run(SCENARIO, disciplines, seeds=2)
    for name in run.disciplines:
        transfers, lost = run.estimate("fct_p95_s", name), run.estimate("voice_loss", name)
        print(f"{name:<16} 95 % of transfers take up to {transfers:.2f} s, {lost:5.2%} of the call is lost")
    # ANCHOR_END: compare
    print()

    # ANCHOR: equal
    mine = giveway.run(SCENARIO, [Efd], seeds=1)
    theirs = giveway.run(SCENARIO, ["efd"], seeds=1)
    for table in ("flows", "queue", "sojourn", "shares", "delays", "links"):
        rows = [{**row, "qdisc": "efd"} for row in mine.table(table).rows()]
        equal = rows == list(theirs.table(table).rows())
        print(f"{table:<8}{len(rows):>7} rows: {'equal' if equal else 'different'}")
    # ANCHOR_END: equal


if __name__ == "__main__":
    main()
