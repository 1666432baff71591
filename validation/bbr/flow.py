"""Traces for the second BBR made by a paced sender over one queue.

The delivery rate is sampled as in draft-cheng-iccrg-delivery-rate-estimation-00.
"""

import heapq
from dataclasses import dataclass

from bbr import Ack
from events import Trace

LATER = 3  # a segment is lost when one that was sent so many after it has arrived


@dataclass
class Sent:
    """A transmission, with what the sampler wants to know of its moment."""

    number: int  # of the transmission
    data: int  # which segment
    retransmitted: bool
    time_us: int
    delivered: int
    delivered_us: int
    first_sent_us: int
    app_limited: bool


class Flow:
    """The application has data in `busy` intervals of time, (from, to) in microseconds after the start."""

    def __init__(self, trace, rate, delay_us, limit, busy, stretch=2, drop=0.0, timeouts=()):
        self.trace = trace
        self.start_us = trace.now_us
        self.rate = rate  # bytes a second, or pairs (from microsecond, rate)
        self.delay_us = delay_us
        self.limit = limit  # segments in the queue
        self.busy = [(self.start_us + start, self.start_us + end) for start, end in busy]
        self.stretch = stretch
        self.drop = drop
        self.timeouts = [self.start_us + time for time in timeouts]
        self.now_us = self.start_us
        self.link_free_us = self.start_us
        self.next_send_us = self.start_us
        self.in_flight = {}  # by number of the transmission
        self.arrivals = []
        self.to_retransmit = []
        self.missing = set()  # data sent and not delivered
        self.next_number = self.next_data = 0
        self.recovery_point = None
        self.delivered = 0
        self.delivered_us = self.first_sent_us = self.start_us
        self.app_limited = 0
        self.least_rtt_us = None

    @property
    def pipe(self):
        return len(self.in_flight) * self.trace.mss

    def run(self, rows):
        trace = self.trace
        while len(trace.rows) < rows:
            if self.timeouts and self.timeouts[0] <= self.now_us:
                self.timeouts.pop(0)
                self.time_out()
            times = [self.arrivals[0][0]] if self.arrivals else []
            if self.pipe + trace.mss <= trace.bbr.cwnd:
                send_us = self.next_transmission()
                if send_us is None and not times:
                    break
                if send_us is not None and (not times or send_us <= times[0]):
                    self.now_us = max(self.now_us, send_us)
                    self.transmit()
                    continue
                if send_us is None or send_us > max(self.next_send_us, self.now_us):
                    self.app_limited = self.delivered + self.pipe or 1
            self.acknowledge()
        return trace

    def next_transmission(self):
        """Time of the next one, None if the application has finished."""
        ready_us = max(self.now_us, self.next_send_us)
        if self.to_retransmit:
            return ready_us
        for start_us, end_us in self.busy:
            if ready_us < end_us:
                return max(ready_us, start_us)
        return None

    def transmit(self):
        trace = self.trace
        retransmitted = bool(self.to_retransmit)
        if not self.in_flight:
            if self.app_limited:
                trace.now_us = self.now_us
                trace.transmit_from_idle()
            self.first_sent_us = self.delivered_us = self.now_us
        data = self.to_retransmit.pop(0) if retransmitted else self.next_data
        if not retransmitted:
            self.next_data += 1
            self.missing.add(data)
        times = (self.now_us, self.delivered, self.delivered_us, self.first_sent_us)
        sent = Sent(self.next_number, data, retransmitted, *times, self.app_limited != 0)
        self.next_number += 1
        self.in_flight[sent.number] = sent
        self.next_send_us = self.now_us + round(trace.mss / trace.bbr.pacing_rate * 1e6)
        tx_us = trace.mss / self.rate_now() * 1e6
        start_us = max(self.now_us, self.link_free_us)
        full = (start_us - self.now_us) / tx_us > self.limit
        if full or trace.random.random() < self.drop:
            return
        self.link_free_us = start_us + tx_us
        heapq.heappush(self.arrivals, (round(self.link_free_us) + self.delay_us, sent.number))

    def rate_now(self):
        if not isinstance(self.rate, list):
            return self.rate
        return [rate for from_us, rate in self.rate if self.start_us + from_us <= self.now_us][-1]

    def acknowledge(self):
        if not self.arrivals:
            self.time_out()
            return
        count = self.trace.random.randint(1, self.stretch)
        taken = []
        while self.arrivals and len(taken) < count:
            time_us, number = self.arrivals[0]
            if taken and time_us > self.now_us + self.delay_us // 4:
                break
            heapq.heappop(self.arrivals)
            self.now_us = max(self.now_us, time_us)
            if number in self.in_flight:
                taken.append(number)
        if taken:
            self.deliver(taken)

    def deliver(self, numbers):
        trace = self.trace
        prior_inflight = self.pipe
        newest = None
        for number in sorted(numbers):
            newest = self.in_flight.pop(number)
            self.missing.discard(newest.data)
            self.delivered += trace.mss
        self.delivered_us = self.now_us
        self.first_sent_us = newest.time_us
        if self.app_limited and self.delivered > self.app_limited:
            self.app_limited = 0
        rtt_us = None if newest.retransmitted else self.now_us - newest.time_us
        if rtt_us is not None:
            self.least_rtt_us = min(rtt_us, self.least_rtt_us or rtt_us)
        lost = self.find_losses(newest.number)
        recovery = self.recover(lost)
        ack = Ack(
            self.now_us,
            len(numbers) * trace.mss,
            self.delivered,
            newest.delivered,
            self.sample(newest),
            newest.app_limited,
            rtt_us,
            lost,
            self.pipe,
            prior_inflight,
            recovery,
        )
        trace.acknowledged(ack)
        if trace.bbr.state == "probe_rtt":
            self.app_limited = self.delivered + self.pipe or 1

    def sample(self, newest):
        interval_us = max(newest.time_us - newest.first_sent_us, self.now_us - newest.delivered_us)
        if interval_us < (self.least_rtt_us or 1):
            return None
        return self.delivered - newest.delivered, interval_us

    def find_losses(self, newest):
        lost = [sent for number, sent in self.in_flight.items() if number + LATER <= newest]
        for sent in lost:
            del self.in_flight[sent.number]
            self.to_retransmit.append(sent.data)
        return len(lost) * self.trace.mss

    def recover(self, lost):
        if self.recovery_point is None:
            if lost:
                self.recovery_point = self.next_data
                return "begin"
        elif lost:
            self.recovery_point = self.next_data
        elif not any(data < self.recovery_point for data in self.missing):
            self.recovery_point = None
            return "end"
        return ""

    def time_out(self):
        """All that is in flight counts as lost, and none of it arrives."""
        self.now_us += 300_000
        self.to_retransmit += [sent.data for sent in self.in_flight.values()]
        self.in_flight.clear()
        self.arrivals.clear()
        self.recovery_point = self.next_data
        self.trace.now_us = self.now_us
        self.trace.timeout()


def second(*numbers):
    return tuple(round(number * 1_000_000) for number in numbers)


def startup(attempt):
    """Startup, Drain and some cycles of ProbeBW."""
    trace = Trace("path_startup", srtt_us=30_000, attempt=attempt)
    return Flow(trace, 300e3, 30_000, 200, [second(0, 9)], stretch=4).run(120)


def no_first_rtt(attempt):
    """Without a round trip at the start, and a rate of the link at which the send quantum is large."""
    trace = Trace("path_no_first_rtt", mss=1460, attempt=attempt)
    return Flow(trace, 6e6, 12_000, 400, [second(0, 9)], stretch=6).run(90)


def probe_rtt(attempt):
    """Long enough for ProbeRTT, with a rate that falls and rises."""
    trace = Trace("path_probe_rtt", srtt_us=200_000, attempt=attempt)
    rates = [(0, 60e3), (6_000_000, 35e3), (14_000_000, 50e3)]
    return Flow(trace, rates, 190_000, 200, [second(0, 60)], stretch=12).run(150)


def losses(attempt):
    """A queue of a few segments and random losses."""
    trace = Trace("path_losses", mss=1460, srtt_us=30_000, attempt=attempt)
    return Flow(trace, 800e3, 30_000, 9, [second(0, 60)], stretch=4, drop=0.015).run(120)


def timeouts(attempt):
    trace = Trace("path_timeouts", srtt_us=50_000, attempt=attempt)
    return Flow(trace, 200e3, 50_000, 100, [second(0, 60)], timeouts=second(0.15, 1.6)).run(90)


def bursts(attempt):
    """The application sends for a while and pauses: samples that it limits, and restarts from idle."""
    trace = Trace("path_bursts", srtt_us=20_000, attempt=attempt)
    parts = [(0, 0.03), (0.1, 0.07), (0.4, 0.01), (0.5, 0.1)]
    busy = [second(start, start + length) for start, length in parts]
    busy += [second(11, 11.02), second(11.4, 12)]
    return Flow(trace, 300e3, 20_000, 60, busy).run(110)


def makers():
    return [startup, no_first_rtt, probe_rtt, losses, timeouts, bursts]
