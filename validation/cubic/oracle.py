#!/usr/bin/env python3
"""A second CUBIC, written from RFC 9438 alone, and traces for which it and Giveway's CUBIC must have the same windows.

It works in segments and seconds with plain floats, as the RFC does, and knows nothing of Giveway. Giveway's test
`crates/sim/tests/cubic.rs` replays the events of the file that this program writes and compares the window after each.

    python3 validation/cubic/oracle.py            writes crates/sim/tests/data/cubic_trace.csv
    python3 validation/cubic/oracle.py --check    fails if that file is not what would be written
    python3 validation/cubic/oracle.py --readings says how many windows depend on each choice of reading

Where the RFC can be read in more than one way, the choice is a field of `Readings` with its reason.

References: RFC 9438 sections 4.1 to 4.10; RFC 5681 section 3.1; RFC 3465 section 2.3.
"""

import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from command import compare_readings, run  # noqa: E402

C = 0.4  # section 5.1, segments per second cubed
BETA = 0.7  # section 4.6
ALPHA = 3 * (1 - BETA) / (1 + BETA)  # section 4.3

OUTPUT = Path(__file__).resolve().parents[2] / "crates/sim/tests/data/cubic_trace.csv"


@dataclass(frozen=True)
class Readings:
    """Readings of passages that the RFC leaves open. The traces were made with the defaults."""

    # Section 4.10 has slow start at `cwnd <= ssthresh`. Section 4.6 leaves cwnd equal to ssthresh, and
    # sections 3.1 and 4.2 let congestion avoidance follow; RFC 5681 section 3.1 allows either at equality.
    slow_start_at_equality: bool = False
    # Section 4.3 sets cwnd to W_est where W_cubic(t) < W_est, although cwnd can be the larger of the two, for
    # it follows W_cubic(t + RTT). Section 4.2 wants a rate of increase that never falls, so no
    # acknowledgement shrinks.
    reno_may_shrink: bool = False
    # Section 4.2: with W_max below the window at the start of the epoch (fast convergence at two segments),
    # figure 2 is the root of a negative number. Its real root would start a flow that keeps losing on the
    # steep part of the curve. K is a period, so it is zero, and the stage begins on its plateau as in section
    # 4.8.
    negative_k: bool = False
    # Section 4.8 says nothing about W_max between a timeout and the next congestion avoidance. It matters
    # only when a loss comes first. With the plateau gone, that loss is like the first of a connection.
    timeout_keeps_w_max: bool = False
    # Section 4.6 takes what was on its way. RFC 5681 section 3.2 step 2 wants segments of limited transmit
    # left out, which are those beyond the window.
    flight_beyond_window: bool = False
    # RFC 3465 section 2.3: at most two segments for an acknowledgement in slow start, but one in the slow
    # start that follows a timeout, where one acknowledgement often covers what had arrived long before.
    limit_after_timeout: int = 1
    # Sections 4.4 and 4.5 add (target - cwnd) / cwnd for each acknowledgement, however many segments it
    # covers, so that a receiver which delays acknowledgements halves the pace. Where bytes are counted
    # (section 4.3 has figure 4 adjusted so), each segment adds that much instead, and never past the target.
    bytes_scale_the_curve: bool = True


class Cubic:
    """RFC 9438's variables by their names (section 4.1.2); windows in segments, times in seconds."""

    def __init__(self, mss, initial_window, counting, readings=Readings()):
        self.mss = mss
        self.counting = counting  # "bytes" (RFC 3465) or "acks" (RFC 5681)
        self.readings = readings
        self.cwnd = initial_window / mss
        self.ssthresh = math.inf
        self.cwnd_prior = 0.0
        self.w_max = 0.0
        self.w_est = 0.0
        self.k = 0.0
        self.t_us = None  # time spent in this stage of congestion avoidance; None before its first acknowledgement
        self.last_ack_us = 0
        self.after_timeout = False  # since the timeout, no congestion avoidance yet

    def ack(self, now_us, acked_bytes, rtt_us):
        """A new acknowledgement outside of recovery, for a sender that is limited by its window."""
        since_last_us = now_us - self.last_ack_us
        self.last_ack_us = now_us
        segments = acked_bytes / self.mss
        if self.in_slow_start():
            limit = 2
            if self.counting == "acks":
                limit = 1
            elif self.after_timeout:
                limit = self.readings.limit_after_timeout
            self.cwnd += min(segments, limit)
            return
        if self.t_us is None:
            self.start_stage()
        else:
            self.t_us += since_last_us
        alpha = 1.0 if self.w_est >= self.cwnd_prior else ALPHA
        self.w_est += alpha * segments / self.cwnd  # figure 4
        t = self.t_us / 1e6
        if self.w_cubic(t) < self.w_est:  # section 4.3
            if self.w_est > self.cwnd or self.readings.reno_may_shrink:
                self.cwnd = self.w_est
            return
        target = min(max(self.w_cubic(t + rtt_us / 1e6), self.cwnd), 1.5 * self.cwnd)  # section 4.2
        share = 1 / self.cwnd  # sections 4.4 and 4.5
        if self.counting == "bytes" and self.readings.bytes_scale_the_curve:
            share = min(segments / self.cwnd, 1)
        self.cwnd += (target - self.cwnd) * share

    def ack_of_idler(self, now_us):
        """The application limits the sender: the window does not grow, and the time of the curve stops (4.2 and 5.8)."""
        self.last_ack_us = now_us

    def loss(self, flight_bytes):
        """A loss found by acknowledgements: sections 4.6 and 4.7."""
        self.congestion(flight_bytes, least=2)

    def mark(self, flight_bytes):
        """An ECN-Echo: as a loss, but down to one segment."""
        self.congestion(flight_bytes, least=1)

    def timeout(self, flight_bytes, first):
        """Section 4.8; RFC 5681 section 3.1: the threshold does not change when the same data time out again."""
        if first:
            self.remember_saturation()
            self.cwnd_prior = self.cwnd
            self.ssthresh = max(self.reduced(flight_bytes), 2)
        if not self.readings.timeout_keeps_w_max:
            self.w_max = 0.0
        self.cwnd = 1.0
        self.t_us = None
        self.after_timeout = True

    def in_slow_start(self):
        if self.cwnd == self.ssthresh:
            return self.readings.slow_start_at_equality
        return self.cwnd < self.ssthresh

    def start_stage(self):
        """Congestion avoidance begins (sections 4.2, 4.3, 4.8)."""
        self.t_us = 0
        if self.after_timeout:
            self.after_timeout = False
            self.k = 0.0
            self.w_max = self.cwnd
        else:
            self.k = real_cube_root((self.w_max - self.cwnd) / C)  # figure 2
            if self.k < 0 and not self.readings.negative_k:
                self.k = 0.0
                self.w_max = self.cwnd
        self.w_est = self.cwnd

    def w_cubic(self, t):
        return C * (t - self.k) ** 3 + self.w_max  # figure 1

    def congestion(self, flight_bytes, least):
        self.remember_saturation()
        self.cwnd_prior = self.cwnd
        ssthresh = self.reduced(flight_bytes)
        self.cwnd = max(ssthresh, least)
        self.ssthresh = max(ssthresh, 2)
        self.t_us = None
        self.after_timeout = False

    def reduced(self, flight_bytes):
        """Figure 5's new threshold, before its lower bound."""
        flight = flight_bytes / self.mss
        return BETA * (flight if self.readings.flight_beyond_window else min(flight, self.cwnd))

    def remember_saturation(self):
        """Section 4.7, with fast convergence."""
        self.w_max = self.cwnd * (1 + BETA) / 2 if self.cwnd < self.w_max else self.cwnd


def real_cube_root(x):
    return math.copysign(abs(x) ** (1 / 3), x)


class Trace:
    """Events for one connection, made by a crude path: acknowledgements come spread over the round trip, and what
    exceeds the path's capacity is lost. The realism does not matter, the variety does."""

    def __init__(self, name, mss=1460, initial_segments=10, stretch=2, counting="bytes"):
        self.name = name
        self.mss = mss
        self.stretch = stretch
        self.random = random.Random(f"giveway cubic {name}")
        self.now_us = 1_000_000 + self.random.randrange(1000)
        self.rows = []
        self.events = []
        self.initial_window = initial_segments * mss
        self.counting = counting
        self.cubic = Cubic(mss, self.initial_window, counting)
        self.record(f"start_{counting}", mss, "")

    def ack(self, rtt_us, byte_count=None):
        """The next acknowledgement: of one to `stretch` segments, now and then with a part of one."""
        if byte_count is None:
            byte_count = self.random.randint(1, self.stretch) * self.mss
            if self.random.random() < 0.05:
                byte_count -= self.random.randrange(self.mss)
        share = byte_count / (self.cubic.cwnd * self.mss)
        self.now_us += max(1, int(rtt_us * min(share, 1)))
        self.cubic.ack(self.now_us, byte_count, rtt_us)
        self.record("ack", byte_count, rtt_us)

    def idle_acks(self, count, gap_us, rtt_us):
        """Acknowledgements of an application that sends now and then."""
        for _ in range(count):
            self.now_us += gap_us
            self.cubic.ack_of_idler(self.now_us)
            self.record("ack_unlimited", self.mss, rtt_us)

    def flight(self, low=1.0, high=1.0):
        return int(self.cubic.cwnd * self.mss * self.random.uniform(low, high))

    def loss(self, flight, recovery_us):
        self.cubic.loss(flight)
        self.record("loss", flight, "")
        self.now_us += recovery_us

    def mark(self, flight, recovery_us):
        self.cubic.mark(flight)
        self.record("mark", flight, "")
        self.now_us += recovery_us

    def timeout(self, flight, first, wait_us):
        self.now_us += wait_us
        self.cubic.timeout(flight, first)
        self.record("timeout" if first else "timeout_again", flight, "")

    def record(self, event, byte_count, rtt_us):
        ssthresh = "" if self.cubic.ssthresh == math.inf else math.floor(self.cubic.ssthresh * self.mss)
        cwnd = math.floor(self.cubic.cwnd * self.mss)
        self.events.append((event, self.now_us, byte_count, rtt_us))
        self.rows.append(f"{self.name},{event},{self.now_us},{byte_count},{rtt_us},{cwnd},{ssthresh}")

    def fill(self, capacity, rtt_us, rows):
        """Acknowledgements until the window exceeds `capacity` segments; false if `rows` ran out first."""
        while self.cubic.cwnd <= capacity:
            if len(self.rows) >= rows:
                return False
            self.ack(rtt_us)
        return True


def periodic(name, rtt_ms, capacity, rows, **how):
    """One loss each time the window exceeds the path."""
    trace = Trace(name, **how)
    while trace.fill(capacity, rtt_ms * 1000, rows):
        trace.loss(trace.flight(0.95, 1.0), rtt_ms * 1000)
    return trace


def varying_rtt():
    trace = Trace("varying_rtt", stretch=4, counting="acks")
    rtt_us = 100_000
    while len(trace.rows) < 450:
        rtt_us = min(max(int(rtt_us * trace.random.uniform(0.9, 1.11)), 30_000), 300_000)
        trace.ack(rtt_us)
        if trace.cubic.cwnd > 22:
            trace.loss(trace.flight(0.9, 1.0), rtt_us)
    return trace


def timeouts():
    """A timeout each second time, and each third of those repeats."""
    trace = Trace("timeouts", stretch=3)
    event = 0
    while trace.fill(trace.random.randint(8, 18), 60_000, 500):
        event += 1
        if event % 2:
            trace.timeout(trace.flight(0.6, 1.0), True, 300_000)
            if event % 3 == 0:
                trace.timeout(trace.mss, False, 600_000)
                trace.timeout(trace.mss, False, 1_200_000)
        else:
            trace.loss(trace.flight(0.9, 1.0), 60_000)
    return trace


def loss_after_timeout():
    """A loss while slow start is on its way back from a timeout, before congestion avoidance."""
    trace = Trace("loss_after_timeout", stretch=6)
    for at_timeout, at_loss in [(50, 30), (34, 6), (18, 9)]:
        trace.fill(at_timeout, 300_000, 10_000)
        trace.timeout(trace.flight(), True, 900_000)
        trace.fill(at_loss, 300_000, 10_000)
        trace.loss(trace.flight(), 300_000)
    trace.fill(14, 300_000, 10_000)
    return trace


def fast_convergence():
    """The path shrinks, and grows again."""
    trace = Trace("fast_convergence", stretch=6)
    for capacity in [48, 38, 30, 20, 14, 22, 32, 28]:
        trace.fill(capacity, 100_000, 10_000)
        trace.loss(trace.flight(), 100_000)
    return trace


def small_windows():
    """A few segments: the Reno region rules, and two segments are the least."""
    trace = Trace("small_windows", initial_segments=2, stretch=1)
    while trace.fill(trace.random.uniform(2.2, 7), 10_000, 350):
        trace.loss(trace.flight(0.3, 1.2), 10_000)
    return trace


def small_windows_long_rtt():
    """A few segments, a long round trip and losses close together: fast convergence puts W_max below the window."""
    trace = Trace("small_windows_long_rtt", initial_segments=3, stretch=2, counting="acks")
    while trace.fill(trace.random.uniform(2.2, 5), 600_000, 300):
        for _ in range(trace.random.randint(1, 3)):
            trace.loss(trace.flight(0.8, 1.3), 600_000)
    return trace


def rtt_jumps():
    """The round trip jumps between 20 ms and a second: the target leaps ahead of the Reno estimate and back."""
    trace = Trace("rtt_jumps", stretch=4, counting="acks")
    while trace.fill(40, trace.random.choice([20_000, 1_000_000]), 10_000) and len(trace.rows) < 450:
        trace.loss(trace.flight(), 50_000)
        for _ in range(trace.random.randint(10, 60)):
            trace.ack(20_000)
        for _ in range(trace.random.randint(1, 12)):
            trace.ack(1_000_000)
        for _ in range(trace.random.randint(10, 60)):
            trace.ack(20_000)
    return trace


def marks():
    """ECN: down to one segment, and losses between."""
    trace = Trace("marks", stretch=2)
    count = 0
    while trace.fill(trace.random.uniform(1.5, 12), 30_000, 400):
        count += 1
        for _ in range(count % 4):
            trace.mark(trace.flight(0.6, 1.0), 30_000)
        if count % 5 == 0:
            trace.loss(trace.flight(0.6, 1.0), 30_000)
    return trace


def rate_limited():
    """Little on its way at the loss: the window falls far below W_max, and the target is held to half as much again."""
    trace = Trace("rate_limited", stretch=4)
    for _ in range(3):
        trace.fill(60, 150_000, len(trace.rows) + 60)
        trace.loss(trace.flight(0.08, 0.2), 150_000)
        for _ in range(60):
            trace.ack(150_000)
        trace.timeout(trace.flight(0.5, 0.8), True, 500_000)
    return trace


def application_limited():
    """Pauses of the application in slow start, below the plateau and beyond it."""
    trace = Trace("application_limited", stretch=4)
    trace.idle_acks(5, 70_000, 100_000)
    trace.fill(30, 100_000, 10_000)
    trace.loss(trace.flight(), 100_000)
    for acks, gap_us in [(40, 90_000), (60, 700_000), (90, 150_000), (60, 2_000_000)]:
        for _ in range(acks):
            trace.ack(100_000)
        trace.idle_acks(8, gap_us, 100_000)
    for _ in range(40):
        trace.ack(100_000)
    return trace


def long_epoch():
    """More than twenty seconds without a loss, acknowledged in large pieces."""
    trace = Trace("long_epoch", initial_segments=30)
    trace.loss(trace.flight(), 200_000)
    start_us = trace.now_us
    while trace.now_us < start_us + 30_000_000:
        pieces = trace.random.uniform(2.5, 4.5)
        trace.ack(200_000, int(trace.cubic.cwnd * trace.mss / pieces))
    return trace


def traces():
    return [
        periodic("rtt_20ms", 20, capacity=16, rows=450, stretch=4),
        periodic("rtt_50ms", 50, capacity=36, rows=600, stretch=6),
        periodic("rtt_200ms", 200, capacity=24, rows=450, stretch=2, counting="acks"),
        periodic("jumbo", 80, capacity=14, rows=300, mss=8960, initial_segments=4, stretch=2),
        varying_rtt(),
        timeouts(),
        loss_after_timeout(),
        fast_convergence(),
        small_windows(),
        small_windows_long_rtt(),
        rtt_jumps(),
        marks(),
        rate_limited(),
        application_limited(),
        long_epoch(),
    ]


def table():
    lines = ["trace,event,time_us,bytes,rtt_us,cwnd,ssthresh"]
    for trace in traces():
        lines += trace.rows
    return "\n".join(lines) + "\n"


def replay(trace, readings):
    """The windows that another reading gives for the same events."""
    cubic = Cubic(trace.mss, trace.initial_window, trace.counting, readings)
    windows = []
    for event, now_us, byte_count, rtt_us in trace.events:
        match event:
            case "ack":
                cubic.ack(now_us, byte_count, rtt_us)
            case "ack_unlimited":
                cubic.ack_of_idler(now_us)
            case "loss":
                cubic.loss(byte_count)
            case "mark":
                cubic.mark(byte_count)
            case "timeout" | "timeout_again":
                cubic.timeout(byte_count, event == "timeout")
        windows.append(math.floor(cubic.cwnd * cubic.mss))
    return windows


def windows_that_differ(ours, theirs):
    differ = [abs(b - a) / a for a, b in zip(ours, theirs) if abs(a - b) > 1]
    return f"{len(differ)} of {len(ours)} windows, by up to {max(differ):.1%}" if differ else ""


def compare():
    others = {
        "slow_start_at_equality": True,
        "reno_may_shrink": True,
        "negative_k": True,
        "timeout_keeps_w_max": True,
        "flight_beyond_window": True,
        "limit_after_timeout": 2,
        "bytes_scale_the_curve": False,
    }
    compare_readings(Readings(), others, traces(), replay, windows_that_differ)


if __name__ == "__main__":
    run(__doc__, OUTPUT, table, compare)
