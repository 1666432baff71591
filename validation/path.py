"""A sender over one queue, crude but enough to give the second implementations plausible events.

Segments cross a queue with a rate, and their acknowledgements return after a fixed delay. The queue drops
what exceeds its limit and marks what exceeds its threshold. A lost segment is retransmitted when its loss is
noticed. The realism does not matter, the variety does. Sizes in bytes, times in whole microseconds.
"""

import heapq
from dataclasses import dataclass


@dataclass
class Segment:
    seq: int
    length: int
    sent_us: int
    marked: bool = False
    retransmitted: bool = False


@dataclass
class Arrival:
    """What one acknowledgement tells the sender."""

    now_us: int
    byte_count: int  # newly covered by the cumulative acknowledgement
    marked: int  # of them, how many arrived with a mark
    una: int
    next: int  # before the sender reacts
    rtt_us: int | None  # of the newest segment that arrived, None if that was sent twice
    recovering: bool  # the acknowledgement belongs to a recovery
    loss: bool  # it is the third that tells of the same hole

    @property
    def flight(self):
        return self.next - self.una


class Path:
    """One connection over one queue."""

    def __init__(self, rate, delay_us, limit, random, mss, mark_above, stretch, una, now_us):
        self.rate = rate  # bytes a second
        self.delay_us = delay_us  # there and back
        self.limit = limit  # segments in the queue
        self.mark_above = mark_above
        self.stretch = stretch  # most segments that one acknowledgement covers
        self.random = random
        self.mss = mss
        self.una = self.next = una
        self.now_us = now_us
        self.busy_until_us = now_us
        self.arrivals = []  # (time, seq, Segment)
        self.arrived = {}  # beyond a hole, by seq
        self.lost = []
        self.beyond_hole = 0
        self.recovery_point = None

    def send(self, window):
        """Sends what the window allows."""
        while self.next - self.una + self.mss <= window:
            self.transmit(Segment(self.next, self.mss, self.now_us))
            self.next += self.mss

    def transmit(self, segment):
        tx_us = segment.length / self.rate * 1e6
        start_us = max(self.now_us, self.busy_until_us)
        queued = (start_us - self.now_us) / tx_us
        if queued > self.limit and not segment.retransmitted:
            self.lost.append(segment)
            return
        segment.marked = self.mark_above is not None and queued > self.mark_above
        self.busy_until_us = start_us + tx_us
        heapq.heappush(self.arrivals, (int(self.busy_until_us) + self.delay_us, segment.seq, segment))

    def arrival(self):
        """The next acknowledgement, or None if nothing is on its way."""
        if not self.arrivals:
            return None
        count = self.random.randint(1, self.stretch)
        taken = [heapq.heappop(self.arrivals)]
        while len(taken) < count and self.arrivals and self.arrivals[0][0] < taken[0][0] + 5000:
            taken.append(heapq.heappop(self.arrivals))
        self.now_us = max(self.now_us + 1, taken[-1][0])
        for _, seq, segment in taken:
            self.arrived[seq] = segment
        old_una, marked = self.una, 0
        while self.una in self.arrived:
            segment = self.arrived.pop(self.una)
            marked += segment.length if segment.marked else 0
            self.una += segment.length
        newest = taken[-1][2]
        rtt_us = None if newest.retransmitted else self.now_us - newest.sent_us
        recovering = self.recovery_point is not None
        if recovering and self.una >= self.recovery_point:
            self.recovery_point = None
        loss = False
        if self.arrived:
            self.beyond_hole += len(taken)
            loss = self.recovery_point is None and self.beyond_hole >= 3
        else:
            self.beyond_hole = 0
        if loss:
            self.recovery_point = self.next
        if self.recovery_point is not None:
            self.retransmit_lost()
        return Arrival(self.now_us, self.una - old_una, marked, self.una, self.next, rtt_us, recovering, loss)

    def retransmit_lost(self):
        for segment in self.lost:
            self.transmit(Segment(segment.seq, segment.length, self.now_us, retransmitted=True))
        self.lost.clear()

    def give_up(self, wait_us):
        """A timeout: what was on its way and what was lost arrives all the same, but nobody hears of it."""
        self.now_us = max([self.now_us] + [time_us for time_us, _, _ in self.arrivals]) + wait_us
        self.busy_until_us = self.now_us
        flight = self.next - self.una
        self.una = self.next
        self.arrivals.clear()
        self.arrived.clear()
        self.lost.clear()
        self.beyond_hole = 0
        self.recovery_point = None
        return flight
