#!/usr/bin/env python3
"""A second Vegas, written from the paper alone, and traces for which it and Giveway's must agree.

It works in segments and seconds with plain floats, as the paper does, and knows nothing of Giveway. Giveway's
test replays the events of the file that this program writes and compares the window, the threshold and
BaseRTT after each.

    python3 validation/vegas/oracle.py            writes crates/sim/tests/data/vegas_trace.csv
    python3 validation/vegas/oracle.py --check    fails if that file is not what would be written
    python3 validation/vegas/oracle.py --readings says how many rows depend on each choice of reading

Where the paper can be read in more than one way, the choice is a field of `Readings` with its reason. The new
retransmission rules of section 3.1 are left out, since loss recovery is not the controller's.

References: Brakmo, O'Malley and Peterson, TCP Vegas: New Techniques for Congestion Detection and Avoidance,
SIGCOMM 1994, sections 3.2 and 3.3; Brakmo and Peterson, TCP Vegas: End to End Congestion Avoidance on a Global
Internet, IEEE JSAC 13(8), 1995; RFC 5681 section 3.1; RFC 3465 section 2.
"""

import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path as File

sys.path.insert(0, str(File(__file__).resolve().parents[1]))
from command import compare_readings, run  # noqa: E402
from path import Path  # noqa: E402

# Segments in the queue: section 3.2 of the paper of 1994, and section 3.3.
ALPHA = 2
BETA = 4
GAMMA = 1

OUTPUT = File(__file__).resolve().parents[2] / "crates/sim/tests/data/vegas_trace.csv"


@dataclass(frozen=True)
class Readings:
    """Readings of passages that the paper leaves open. The traces were made with the defaults."""

    # Section 3.2: Actual is the number of bytes transmitted between the sending of a distinguished segment
    # and its acknowledgement, divided by that segment's round trip. Later descriptions divide the window
    # instead. They differ where the sender did not use its window, or where the window is not whole segments.
    actual_from_window: bool = False
    # The distinguished segment is the first one sent after the previous comparison, so a round trip ends at
    # the first acknowledgement beyond the next byte at that time. It may end at that byte instead.
    round_ends_at_equality: bool = False
    # The round trip of the distinguished segment is the sample of the acknowledgement that covers it. Later
    # descriptions take the least of the samples of the round trip, to exclude delayed acknowledgements.
    least_sample: bool = False
    # A connection begins with the round trip of its initial window. No acknowledgement comes within it that
    # could grow the window, so it is a fixed one, and the window grows in the second.
    begins_with_growth: bool = False
    # Section 3.3 has slow start end when Actual falls below Expected by gamma, and does not name the window
    # with which the other mode begins. It is kept. The alternative takes an eighth away.
    kept_at_end_of_slow_start: float = 1.0
    # Outside of slow start the threshold follows a window that falls below it. Otherwise cwnd < ssthresh
    # would mean slow start again.
    threshold_follows: bool = True
    # A round trip in which the window grew in slow start, or data were lost, is not compared: section 3.3
    # wants a fixed window for a valid comparison.
    compare_after_growth: bool = False
    # After a timeout the retransmitted data give no samples, so slow start grows until new data are
    # acknowledged. The alternative is a fixed window at first, which sends one segment a round trip until
    # then.
    grows_after_timeout: bool = True
    # A round trip whose last acknowledgement has no sample ends without a comparison. It may last on until
    # the next sample.
    waits_for_sample: bool = False
    # RFC 5681 section 3.2 step 2 leaves out limited transmit, that is the data beyond the window.
    flight_beyond_window: bool = False
    # RFC 3465 section 2.3: in the slow start after a timeout one segment an acknowledgement, not two.
    limit_after_timeout: int = 1


class Vegas:
    """The paper's quantities by their names; windows in segments, times in seconds."""

    def __init__(self, mss, initial_window, una, readings=Readings()):
        self.mss = mss
        self.readings = readings
        self.cwnd = initial_window / mss
        self.ssthresh = math.inf
        self.base_rtt = math.inf
        self.least_rtt = math.inf  # of this round trip
        self.distinguished = una  # first byte of the distinguished segment
        self.lossy = False  # this round trip had a loss or a timeout
        self.growing = readings.begins_with_growth  # slow start grows in this round trip
        self.after_timeout = False
        self.nearest = math.inf  # least distance of Diff from a threshold, to keep clear of rounding

    def in_slow_start(self):
        return self.cwnd < self.ssthresh

    def ack(self, byte_count, una, next_, rtt):
        """A new acknowledgement outside of recovery. `rtt` is None if it has no sample."""
        if rtt is not None:
            self.base_rtt = min(self.base_rtt, rtt)
            self.least_rtt = min(self.least_rtt, rtt)
        past = una - self.distinguished
        ended = past > 0 or (past == 0 and self.readings.round_ends_at_equality)
        if ended and not (rtt is None and self.readings.waits_for_sample):
            self.end_round(next_, rtt)
        if self.in_slow_start() and self.growing:
            limit = self.readings.limit_after_timeout if self.after_timeout else 2
            self.cwnd += min(byte_count / self.mss, limit)

    def end_round(self, next_, rtt):
        transmitted = (next_ - self.distinguished) / self.mss
        valid = rtt is not None and not self.lossy and (not self.growing or self.readings.compare_after_growth)
        if valid:
            rtt = self.least_rtt if self.readings.least_sample else rtt
            self.compare(transmitted, rtt)
        self.growing = self.in_slow_start() and not self.growing
        self.after_timeout &= self.in_slow_start()
        self.distinguished = next_
        self.least_rtt = math.inf
        self.lossy = False

    def compare(self, transmitted, rtt):
        """Section 3.2. Diff is in segments: the difference of the rates, times BaseRTT."""
        if self.readings.actual_from_window:
            transmitted = self.cwnd
        expected = self.cwnd / self.base_rtt
        actual = transmitted / rtt
        diff = (expected - actual) * self.base_rtt
        if self.in_slow_start():
            self.keep_clear(diff, GAMMA)
            if diff > GAMMA:
                self.cwnd *= self.readings.kept_at_end_of_slow_start
                self.ssthresh = max(self.cwnd, 2)
                self.cwnd = self.ssthresh
            return
        # The paper changes the window linearly during the next round trip. Here it changes at once. Diff is
        # at most the window, so a window of beta segments does not fall further.
        self.keep_clear(diff, ALPHA)
        self.keep_clear(diff, BETA)
        if diff < ALPHA:
            self.cwnd += 1
        elif diff > BETA:
            self.cwnd -= 1
            if self.readings.threshold_follows:
                self.ssthresh = min(self.ssthresh, max(self.cwnd, 2))

    def keep_clear(self, diff, threshold):
        self.nearest = min(self.nearest, abs(diff - threshold))

    def loss(self, flight, next_):
        """A loss found by acknowledgements: RFC 5681 equation 4."""
        self.ssthresh = self.half(flight)
        self.cwnd = self.ssthresh
        self.after_timeout = False
        self.growing = False
        self.distinguished = next_
        self.lossy = True

    def timeout(self, flight, next_, first):
        """RFC 5681 section 3.1: one segment, and the threshold stays when the same data time out again."""
        if first:
            self.ssthresh = self.half(flight)
        self.cwnd = 1.0
        self.after_timeout = True
        self.growing = self.readings.grows_after_timeout
        self.distinguished = next_
        self.lossy = True

    def half(self, flight):
        flight = flight / self.mss
        if not self.readings.flight_beyond_window:
            flight = min(flight, self.cwnd)
        return max(flight / 2, 2)


class Trace:
    """Events for one connection with the state after each."""

    attempt = 0  # part of the seed

    def __init__(self, name, mss=1460, initial_segments=4):
        self.name = name
        self.mss = mss
        self.random = random.Random(f"giveway vegas {name} {Trace.attempt}")
        self.una = self.next = 1 + self.random.randrange(1000)
        self.now_us = 1_000_000 + self.random.randrange(1000)
        self.initial = (mss, initial_segments * mss, self.una)
        self.vegas = Vegas(*self.initial)
        self.events = []
        self.rows = []
        self.row("start", self.initial[1], "", "")

    def row(self, event, byte_count, flight, rtt_us):
        of = self.vegas
        ssthresh = "" if of.ssthresh == math.inf else math.floor(of.ssthresh * self.mss + 1e-6)
        base_rtt_us = "" if of.base_rtt == math.inf else round(of.base_rtt * 1e6)
        mss = self.mss if event == "start" else ""
        self.rows.append(
            f"{self.name},{event},{self.now_us},{mss},{byte_count},{self.una},{self.next},{flight},{rtt_us},"
            f"{math.floor(of.cwnd * self.mss + 1e-6)},{ssthresh},{base_rtt_us}"
        )

    def happen(self, method, *arguments):
        self.events.append((method, arguments))
        getattr(self.vegas, method)(*arguments)

    def acknowledged(self, byte_count, rtt_us):
        """`una` and `next` already tell of the acknowledgement."""
        self.happen("ack", byte_count, self.una, self.next, None if rtt_us is None else rtt_us / 1e6)
        self.row("ack", byte_count, self.next - self.una, "" if rtt_us is None else rtt_us)

    def fill(self, most=math.inf):
        """The sender uses its window, or `most` segments of it."""
        window = min(self.vegas.cwnd, most) * self.mss
        while self.next - self.una + self.mss <= window + 1e-6 or self.next == self.una:
            self.next += self.mss

    def window(self, rtt_us, stretch=2, most=math.inf):
        """Acknowledgements of one window of data, with samples of about `rtt_us`."""
        self.fill(most)
        end = self.next
        while self.una < end:
            segments = min(self.random.randint(1, stretch), (end - self.una) // self.mss)
            self.now_us += max(1, int(rtt_us * segments / self.vegas.cwnd))
            self.una += segments * self.mss
            self.acknowledged(segments * self.mss, rtt_us + self.random.randrange(rtt_us // 16))
            self.fill(most)

    def loss(self, rtt_us, flight=None):
        self.fill()
        flight = self.next - self.una if flight is None else flight
        self.happen("loss", flight, self.next)
        self.row("loss", "", flight, "")
        self.now_us += rtt_us
        self.una = self.next

    def timeout(self, wait_us, first=True):
        self.now_us += wait_us
        flight = self.next - self.una
        self.happen("timeout", flight, self.next, first)
        self.row("timeout" if first else "timeout_again", "", flight, "")


def queue(trace, base_us, capacity, rounds, stretch=2):
    """Windows over a queue: beyond `capacity` segments the round trip grows by `base_us / capacity` each."""
    for _ in range(rounds):
        waiting = max(trace.vegas.cwnd - capacity, 0)
        trace.window(int(base_us * (1 + waiting / capacity)), stretch)


def slow_start():
    """The window doubles every other round trip until a segment waits."""
    trace = Trace("slow_start", initial_segments=2)
    queue(trace, 100_000, 12, 12)
    return trace


def thresholds():
    """Round trips that put Diff below alpha, between alpha and beta, and above beta."""
    trace = Trace("thresholds")
    for _ in range(4):
        trace.window(50_000)
    for factor in [1.3, 1.01, 1.01, 1.02, 1.3, 1.22, 1.2, 1.25, 2, 2, 1.8, 1.5, 1.01, 1.01, 3, 3, 3, 1.2]:
        trace.window(int(50_000 * factor))
    return trace


def shorter_path():
    """BaseRTT falls, and each time the window with it, for less is needed to fill the path."""
    trace = Trace("shorter_path", initial_segments=10)
    for base_us in [80_000, 60_000, 20_000]:
        trace.window(base_us, stretch=4, most=5)
        queue(trace, base_us, 9, 9, stretch=4)
    return trace


def longer_path():
    """BaseRTT stays: the longer path looks like a queue, and the window falls to two segments."""
    trace = Trace("longer_path", initial_segments=10)
    queue(trace, 40_000, 8, 7)
    for _ in range(26):
        trace.window(400_000, stretch=4)
    return trace


def losses():
    """Losses in slow start and outside, with flights below and beyond the window."""
    trace = Trace("losses")
    for rounds, flight in [(5, None), (6, None), (5, 5 * 1460), (4, 60 * 1460), (3, 1460)]:
        queue(trace, 30_000, 20, rounds)
        trace.loss(30_000, flight)
    queue(trace, 30_000, 20, 3)
    return trace


def timeouts():
    """Timeouts, some repeated. Slow start then begins with the acknowledgements of retransmitted data."""
    trace = Trace("timeouts", initial_segments=10)
    for again in [0, 2]:
        queue(trace, 60_000, 12, 7, stretch=3)
        trace.timeout(300_000)
        for number in range(again):
            trace.timeout(600_000 << number, first=False)
        while trace.una < trace.next:
            trace.now_us += 20_000
            byte_count = min(trace.next - trace.una, trace.random.randint(1, 3) * trace.mss)
            trace.una += byte_count
            trace.acknowledged(byte_count, None)
        queue(trace, 60_000, 12, 5)
    return trace


def no_samples():
    """Acknowledgements without a sample, in slow start and outside."""
    trace = Trace("no_samples")
    while len(trace.rows) < 120:
        trace.fill()
        trace.now_us += 2000
        trace.una += trace.mss
        trace.acknowledged(trace.mss, trace.random.choice([None, 25_000, 60_000]))
    return trace


def application_limited():
    """The sender uses a part of its window: little transmitted looks like a queue."""
    trace = Trace("application_limited", initial_segments=10)
    queue(trace, 20_000, 8, 6)
    for most in [8, 5, 30, 3]:
        for _ in range(4):
            trace.window(20_000, most=most)
    return trace


def parts_of_segments():
    """Acknowledgements of any number of bytes, and windows that are not whole segments."""
    trace = Trace("parts_of_segments", mss=8960, initial_segments=5)
    for number in range(120):
        trace.fill()
        byte_count = min(trace.random.randrange(1, 2 * trace.mss), trace.next - trace.una)
        trace.una += byte_count
        trace.now_us += trace.random.randrange(1, 3000)
        trace.acknowledged(byte_count, trace.random.randrange(10_000, 12_000))
        if number % 50 == 35:
            trace.loss(10_000, trace.random.randrange(3 * trace.mss, 9 * trace.mss))
    return trace


def over_path(name, rate, delay_us, limit, rows, stretch=2, timeout_every=math.inf, **how):
    """A connection over a queue. No row has an acknowledgement within a recovery."""
    trace = Trace(name, **how)
    path = Path(rate, delay_us, limit, trace.random, trace.mss, None, stretch, trace.una, trace.now_us)
    timeout_at = timeout_every
    while len(trace.rows) < rows:
        path.send(trace.vegas.cwnd * trace.mss)
        trace.next = path.next
        if len(trace.rows) >= timeout_at:
            timeout_at = len(trace.rows) + timeout_every
            flight = path.give_up(200_000)
            trace.now_us = path.now_us
            trace.happen("timeout", flight, path.next, True)
            trace.row("timeout", "", flight, "")
            trace.una = path.una
            continue
        arrival = path.arrival()
        if arrival is None:
            timeout_at = 0
            continue
        trace.now_us, trace.una = arrival.now_us, arrival.una
        if arrival.byte_count and not arrival.recovering:
            trace.acknowledged(arrival.byte_count, arrival.rtt_us)
        if arrival.loss:
            trace.happen("loss", arrival.flight, arrival.next)
            trace.row("loss", "", arrival.flight, "")
    return trace


def clear_of_rounding(make):
    """A trace in which no Diff is near a threshold, so that a window in whole bytes decides alike."""
    for Trace.attempt in range(100):
        trace = make()
        if trace.vegas.nearest * trace.mss > 4:
            return trace
    sys.exit(f"{trace.name}: Diff is {trace.vegas.nearest} segments from a threshold")


def traces():
    makers = [
        slow_start,
        thresholds,
        shorter_path,
        longer_path,
        losses,
        timeouts,
        no_samples,
        application_limited,
        parts_of_segments,
        lambda: over_path("path_10mbit", 1.25e6, 40_000, limit=50, rows=240, initial_segments=10),
        lambda: over_path("path_losses", 0.5e6, 60_000, limit=2.5, rows=150, stretch=3),
        lambda: over_path("path_timeouts", 4e6, 15_000, limit=100, rows=150, timeout_every=60),
    ]
    return [clear_of_rounding(make) for make in makers]


def table():
    lines = ["trace,event,time_us,mss,bytes,una,next,flight,rtt_us,cwnd,ssthresh,base_rtt_us"]
    for trace in traces():
        lines += trace.rows
    return "\n".join(lines) + "\n"


def replay(trace, readings):
    """The state that a reading gives after each event."""
    vegas = Vegas(*trace.initial, readings)
    states = []
    for method, arguments in trace.events:
        getattr(vegas, method)(*arguments)
        states.append((vegas.cwnd, vegas.ssthresh, vegas.base_rtt))
    return states


def compare():
    others = {
        "actual_from_window": True,
        "round_ends_at_equality": True,
        "least_sample": True,
        "begins_with_growth": True,
        "kept_at_end_of_slow_start": 7 / 8,
        "threshold_follows": False,
        "compare_after_growth": True,
        "grows_after_timeout": False,
        "waits_for_sample": True,
        "flight_beyond_window": True,
        "limit_after_timeout": 2,
    }
    compare_readings(Readings(), others, traces(), replay)


if __name__ == "__main__":
    run(__doc__, OUTPUT, table, compare)
