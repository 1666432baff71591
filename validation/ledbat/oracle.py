#!/usr/bin/env python3
"""A second LEDBAT++, written from memory of the draft and from summaries of it, and traces for which it and Giveway's must agree.

It works in segments and seconds with plain floats. Where the draft is open it has the readings of Giveway, each a
field, so it checks the program and not the reading. Giveway's test replays the events of the file that this program writes and compares the window and the threshold after
each.

    python3 validation/ledbat/oracle.py            writes crates/sim/tests/data/ledbat_trace.csv
    python3 validation/ledbat/oracle.py --check    fails if that file is not what would be written
    python3 validation/ledbat/oracle.py --readings says how many rows depend on each choice of reading

Where the draft can be read in more than one way, the choice is a field of `Readings` with its reason.

References: draft-irtf-iccrg-ledbat-plus-plus, sections 4.1 to 4.4; RFC 6817 sections 2.4.2 and 3.1; RFC 5681
section 3.1.
"""

import math
import random
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path as File

sys.path.insert(0, str(File(__file__).resolve().parents[1]))
from command import compare_readings, run  # noqa: E402
from path import Path  # noqa: E402

TARGET = 0.060  # queueing delay, seconds
CONSTANT = 1  # of the multiplicative decrease
LEAST = 2  # segments
BASE_HISTORY = 10  # minutes
CURRENT_FILTER = 4  # samples

OUTPUT = File(__file__).resolve().parents[2] / "crates/sim/tests/data/ledbat_trace.csv"


@dataclass(frozen=True)
class Readings:
    """Readings of passages that the draft leaves open. The traces were made with the defaults."""

    # Section 4.3 lets the window grow below the target and shrink above it. At the target it shrinks by
    # nothing.
    grows_at_target: bool = False
    # Section 4.4: two round trips are twice the round-trip time at their begin. They may be two windows
    # of data, each of which ends with the first acknowledgement beyond the next byte at its begin.
    waits_for_data: bool = False
    # Section 4.4: the first slowdown comes two round trips after the end of slow start, the next ones
    # after nine times the duration of the last.
    round_trips_before_first: float = 2
    wait: float = 9
    # The ramp of a slowdown ends at the threshold. Its last acknowledgement may exceed it.
    ends_at_threshold: bool = True
    # The exit from slow start at three quarters of the target is for the first slow start only.
    exits_every_slow_start: bool = False
    # The threshold follows a window that a delay above the target shrinks. Otherwise cwnd < ssthresh
    # would mean slow start again.
    threshold_follows: bool = True
    # RFC 6817: the delay is the least of the last samples.
    filter: int = CURRENT_FILTER
    # The minutes of the history of base delays are those of a clock. They may begin with the connection.
    minutes_of_connection: bool = False
    # The draft does not say when the next slowdown comes if a loss ends slow start or the ramp. Seconds.
    after_loss: float = 1
    # RFC 6817 halves the window after a loss, and RFC 5681 the flight.
    halves_flight: bool = False


class Ledbat:
    """The draft's quantities by their names; windows in segments, times in seconds."""

    def __init__(self, mss, initial_window, una, now, readings=Readings()):
        self.mss = mss
        self.readings = readings
        self.start = now
        self.cwnd = initial_window / mss
        self.ssthresh = math.inf
        self.samples = deque(maxlen=readings.filter)
        self.base = {}  # least of each minute
        self.plan = "first slow start"  # then "slowdown at", "frozen", "ramp"
        self.at = math.inf  # time of the next change of the plan
        self.rounds = None  # windows of data left until then
        self.round_end = una
        self.began = now
        self.nearest = math.inf  # least distance of a delay from a threshold, to keep clear of rounding

    def sample(self, rtt, now):
        self.rtt = rtt
        self.samples.append(rtt)
        minute = math.floor((now - self.start if self.readings.minutes_of_connection else now) / 60)
        self.base[minute] = min(rtt, self.base.get(minute, math.inf))
        self.base = {one: least for one, least in self.base.items() if one > minute - BASE_HISTORY}

    def base_delay(self):
        return min(self.base.values())

    def delay(self):
        return max(min(self.samples) - self.base_delay(), 0)

    def gain(self):
        return 1 / min(16, math.ceil(2 * TARGET / self.base_delay()))

    def ack(self, byte_count, una, next_, rtt, now):
        """A new acknowledgement outside of recovery. `rtt` is None if it has no sample."""
        if rtt is not None:
            self.sample(rtt, now)
        if self.plan == "slowdown at" and self.is_time(una, next_, now):
            self.slow_down(next_, now)
            return
        if self.plan == "frozen":
            if not self.is_time(una, next_, now):
                return
            self.plan = "ramp"
        if self.cwnd < self.ssthresh:
            self.slow_start(byte_count / self.mss, next_, now)
        else:
            self.avoid(byte_count / self.mss)

    def is_time(self, una, next_, now):
        if self.rounds is None:
            return now >= self.at - 1e-9  # times are whole microseconds
        if una > self.round_end:
            self.rounds -= 1
            self.round_end = next_
        return self.rounds <= 0

    def wait(self, plan, round_trips, next_, now):
        self.plan = plan
        self.at = now + round_trips * self.rtt
        self.rounds = round_trips if self.readings.waits_for_data else None
        self.round_end = next_

    def slow_start(self, acked, next_, now):
        """Section 4.1."""
        self.keep_clear(0.75 * TARGET)
        exits = self.ssthresh == math.inf or self.readings.exits_every_slow_start
        if exits and self.delay() > 0.75 * TARGET:
            self.ssthresh = self.cwnd
        else:
            self.cwnd += self.gain() * acked
        if self.cwnd >= self.ssthresh:
            if self.readings.ends_at_threshold:
                self.cwnd = self.ssthresh
            self.end_slow_start(next_, now)

    def end_slow_start(self, next_, now):
        if self.plan == "first slow start":
            self.wait("slowdown at", self.readings.round_trips_before_first, next_, now)
        elif self.plan == "ramp":
            self.plan = "slowdown at"
            self.at = now + self.readings.wait * (now - self.began)
            self.rounds = None

    def slow_down(self, next_, now):
        """Section 4.4."""
        self.began = now
        self.ssthresh = self.cwnd
        self.cwnd = LEAST
        self.wait("frozen", 2, next_, now)

    def avoid(self, acked):
        """Sections 4.2 and 4.3 have the change in a round trip, of which an acknowledgement makes its share."""
        self.keep_clear(TARGET)
        delay = self.delay()
        if delay < TARGET or (self.readings.grows_at_target and delay == TARGET):
            self.cwnd += self.gain() * acked / self.cwnd
            return
        change = max(self.gain() - CONSTANT * self.cwnd * (delay / TARGET - 1), -self.cwnd / 2)
        self.cwnd = max(self.cwnd + change * acked / self.cwnd, LEAST)
        if self.readings.threshold_follows:
            self.ssthresh = min(self.ssthresh, self.cwnd)

    def keep_clear(self, threshold):
        self.nearest = min(self.nearest, abs(self.delay() - threshold))

    def loss(self, flight, next_, now):
        """A loss found by acknowledgements: RFC 6817 section 2.4.2."""
        half = min(flight / self.mss, self.cwnd) / 2 if self.readings.halves_flight else self.cwnd / 2
        self.cwnd = max(half, LEAST)
        self.ssthresh = self.cwnd
        if self.plan in ("first slow start", "ramp"):
            self.plan = "slowdown at"
            self.at = now + self.readings.after_loss
            self.rounds = None

    def timeout(self, flight, next_, first, now):
        """RFC 6817 section 2.4.2 and RFC 5681 section 3.1. The plan stays."""
        if first:
            self.ssthresh = max(min(flight / self.mss, self.cwnd) / 2, LEAST)
        self.cwnd = 1.0


class Trace:
    """Events for one connection with the state after each."""

    attempt = 0  # part of the seed

    def __init__(self, name, mss=1460, initial_segments=LEAST, start_us=1_000_000):
        self.name = name
        self.mss = mss
        self.random = random.Random(f"giveway ledbat {name} {Trace.attempt}")
        self.una = self.next = 1 + self.random.randrange(1000)
        self.now_us = start_us + self.random.randrange(1000)
        self.initial = (mss, initial_segments * mss, self.una, self.now_us / 1e6)
        self.ledbat = Ledbat(*self.initial)
        self.events = []
        self.rows = []
        self.row("start", self.initial[1], "", "")

    def row(self, event, byte_count, flight, rtt_us):
        of = self.ledbat
        ssthresh = "" if of.ssthresh == math.inf else math.floor(of.ssthresh * self.mss + 1e-6)
        mss = self.mss if event == "start" else ""
        self.rows.append(
            f"{self.name},{event},{self.now_us},{mss},{byte_count},{self.una},{self.next},{flight},{rtt_us},"
            f"{math.floor(of.cwnd * self.mss + 1e-6)},{ssthresh}"
        )

    def happen(self, method, *arguments):
        self.events.append((method, arguments))
        getattr(self.ledbat, method)(*arguments)

    def acknowledged(self, byte_count, rtt_us):
        """`una` and `next` already tell of the acknowledgement."""
        rtt = None if rtt_us is None else rtt_us / 1e6
        self.happen("ack", byte_count, self.una, self.next, rtt, self.now_us / 1e6)
        self.row("ack", byte_count, self.next - self.una, "" if rtt_us is None else rtt_us)

    def fill(self):
        window = self.ledbat.cwnd * self.mss
        while self.next - self.una + self.mss <= window + 1e-6 or self.next == self.una:
            self.next += self.mss

    def window(self, rtt_us, stretch=2, sampled=1.0):
        """Acknowledgements of one window of data, with samples of about `rtt_us`."""
        self.fill()
        end = self.next
        while self.una < end:
            segments = min(self.random.randint(1, stretch), (end - self.una) // self.mss)
            self.now_us += max(1, int(rtt_us * segments / self.ledbat.cwnd))
            self.una += segments * self.mss
            sample = rtt_us + self.random.randrange(max(1, rtt_us // 64))
            is_sampled = len(self.rows) == 1 or self.random.random() < sampled
            self.acknowledged(segments * self.mss, sample if is_sampled else None)
            self.fill()

    def loss(self, rtt_us, flight=None):
        self.fill()
        flight = self.next - self.una if flight is None else flight
        self.happen("loss", flight, self.next, self.now_us / 1e6)
        self.row("loss", "", flight, "")
        self.now_us += rtt_us
        self.una = self.next

    def timeout(self, wait_us, first=True):
        self.now_us += wait_us
        flight = self.next - self.una
        self.happen("timeout", flight, self.next, first, self.now_us / 1e6)
        self.row("timeout" if first else "timeout_again", "", flight, "")


def queue(trace, base_us, capacity, rounds, stretch=2, sampled=1.0):
    """Windows over a queue: beyond `capacity` segments the round trip grows by `base_us / capacity` each."""
    for _ in range(rounds):
        waiting = max(trace.ledbat.cwnd - capacity, 0)
        trace.window(int(base_us * (1 + waiting / capacity)), stretch, sampled)


def slow_start():
    """Slow start until three quarters of the target, and the slowdown two round trips later."""
    trace = Trace("slow_start")
    queue(trace, 130_000, 12, 16)
    return trace


def gains():
    """Paths of which 120 ms is 1, 2, 5, 12 and more than 16 times as long."""
    traces = []
    for base_us in [150_000, 70_000, 25_000, 10_000, 3_000]:
        trace = Trace(f"gain_{base_us // 1000}_ms")
        queue(trace, base_us, 4, 24, stretch=1)
        traces.append(trace)
    return traces


def decreases():
    """Delays just above the target, far above it, and so far that the decrease is half a window."""
    trace = Trace("decreases")
    queue(trace, 100_000, 10, 24)
    for delay_us in [61_000, 65_000, 80_000, 30_000, 120_000, 300_000, 20_000, 900_000, 10_000]:
        for _ in range(3):
            trace.window(100_000 + delay_us)
    return trace


def slowdowns():
    """Three periodic slowdowns: the ramp ends at the threshold."""
    trace = Trace("slowdowns")
    queue(trace, 120_000, 8, 260, stretch=4)
    return trace


def longer_path():
    """The least of ten minutes is forgotten after them."""
    trace = Trace("longer_path", start_us=31_000_000)
    queue(trace, 60_000, 8, 20)
    for number in range(22):
        trace.now_us += 31_000_000
        queue(trace, 75_000 + number * 500, 8, 2)
    return trace


def losses():
    """Losses in slow start, in a slowdown and outside."""
    trace = Trace("losses")
    for rounds, flight in [(3, None), (5, None), (9, 5 * 1460), (6, 60 * 1460), (3, 1460), (12, None)]:
        queue(trace, 125_000, 9, rounds)
        trace.loss(125_000, flight)
    queue(trace, 125_000, 9, 12)
    return trace


def timeouts():
    """Timeouts, some repeated, and acknowledgements of retransmitted data, which have no samples."""
    trace = Trace("timeouts")
    for again in [0, 2]:
        queue(trace, 125_000, 9, 9, stretch=3)
        trace.timeout(300_000)
        for number in range(again):
            trace.timeout(600_000 << number, first=False)
        while trace.una < trace.next:
            trace.now_us += 20_000
            byte_count = min(trace.next - trace.una, trace.random.randint(1, 3) * trace.mss)
            trace.una += byte_count
            trace.acknowledged(byte_count, None)
        queue(trace, 125_000, 9, 9)
    return trace


def few_samples():
    """Half of the acknowledgements have no sample."""
    trace = Trace("few_samples")
    queue(trace, 90_000, 10, 40, sampled=0.5)
    return trace


def over_path(name, rate, delay_us, limit, rows, stretch=2, **how):
    """A connection over a queue. No row has an acknowledgement within a recovery."""
    trace = Trace(name, **how)
    path = Path(rate, delay_us, limit, trace.random, trace.mss, None, stretch, trace.una, trace.now_us)
    while len(trace.rows) < rows:
        path.send(trace.ledbat.cwnd * trace.mss)
        trace.next = path.next
        arrival = path.arrival()
        if arrival is None:
            flight = path.give_up(200_000)
            trace.now_us = path.now_us
            trace.happen("timeout", flight, path.next, True, trace.now_us / 1e6)
            trace.row("timeout", "", flight, "")
            trace.una = path.una
            continue
        trace.now_us, trace.una = arrival.now_us, arrival.una
        if arrival.byte_count and not arrival.recovering:
            trace.acknowledged(arrival.byte_count, arrival.rtt_us)
        if arrival.loss:
            trace.happen("loss", arrival.flight, arrival.next, trace.now_us / 1e6)
            trace.row("loss", "", arrival.flight, "")
    return trace


def traces():
    makers = [slow_start, decreases, slowdowns, longer_path, losses, timeouts, few_samples]
    paths = [
        over_path("path_10mbit", 1.25e6, 40_000, limit=200, rows=300),
        over_path("path_losses", 0.5e6, 60_000, limit=8, rows=200, stretch=3),
    ]
    found = [make() for make in makers] + gains() + paths
    for trace in found:
        # A delay within a nanosecond of a threshold could be decided otherwise by another rounding.
        assert trace.ledbat.nearest > 1e-9, trace.name
    return found


def table():
    lines = ["trace,event,time_us,mss,bytes,una,next,flight,rtt_us,cwnd,ssthresh"]
    for trace in traces():
        lines += trace.rows
    return "\n".join(lines) + "\n"


def replay(trace, readings):
    """The state that a reading gives after each event."""
    ledbat = Ledbat(*trace.initial, readings)
    states = []
    for method, arguments in trace.events:
        getattr(ledbat, method)(*arguments)
        states.append((ledbat.cwnd, ledbat.ssthresh))
    return states


def compare():
    others = {
        "grows_at_target": True,
        "waits_for_data": True,
        "round_trips_before_first": 1,
        "wait": 8,
        "ends_at_threshold": False,
        "exits_every_slow_start": True,
        "threshold_follows": False,
        "filter": 1,
        "minutes_of_connection": True,
        "after_loss": 2,
        "halves_flight": True,
    }
    compare_readings(Readings(), others, traces(), replay)


if __name__ == "__main__":
    run(__doc__, OUTPUT, table, compare)
