#!/usr/bin/env python3
"""A second DCTCP, written from RFC 8257 alone, and traces for which it and Giveway's must agree.

It works in bytes with plain floats and knows nothing of Giveway. Giveway's test replays the events of the file
that this program writes and compares the window, the threshold and alpha after each.

    python3 validation/dctcp/oracle.py            writes crates/sim/tests/data/dctcp_trace.csv
    python3 validation/dctcp/oracle.py --check    fails if that file is not what would be written
    python3 validation/dctcp/oracle.py --readings says how many rows depend on each choice of reading

Where the RFC can be read in more than one way, the choice is a field of `Readings` with its reason.

References: RFC 8257 sections 3.3 to 3.5 and 4; RFC 3168 section 6.1.2; RFC 5681 section 3.1; RFC 3465.
"""

import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path as File

sys.path.insert(0, str(File(__file__).resolve().parents[1]))
from command import compare_readings, run  # noqa: E402
from path import Path  # noqa: E402

G = 1 / 16  # RFC 8257 section 4

OUTPUT = File(__file__).resolve().parents[2] / "crates/sim/tests/data/dctcp_trace.csv"


@dataclass(frozen=True)
class Readings:
    """Readings of passages that the RFC leaves open. The traces were made with the defaults."""

    # Section 3.3 lists the reduction as the last step, and the steps stop unless the observation window ends.
    # It also has DCTCP react once per window of data as RFC 3168, whose sender reacts at the echo itself. An
    # echo that waits for the end of the observation window waits up to a round trip, so the reduction is at
    # the echo.
    reduce_at_window_end: bool = False
    # Section 3.3 initializes WindowEnd to SND.UNA. The first acknowledgement is already greater, so the first
    # observation window is one acknowledgement. The alternative is the first window of data.
    first_window_is_data: bool = False
    # An acknowledgement that ends the observation window and carries a mark reduces by the new alpha: the
    # reduction is step 9, the update is step 6.
    reduce_by_old_alpha: bool = False
    # Section 3.3 names only cwnd. RFC 3168 section 6.1.2 reduces ssthresh as well. Without it, slow start
    # would go on through the reduction.
    threshold_follows: bool = True
    # RFC 3168 section 6.1.2 wants one reduction for the drops and marks of one window of data. RFC 8257
    # section 3.5 has a loss treated as by a conventional sender, so a loss halves although a mark reduced
    # shortly before. A mark that is echoed after a loss, for data sent before it, does nothing.
    loss_after_mark_spares: bool = False
    # The acknowledgement that reduces does not also grow the window. The marked acknowledgements that follow
    # in the same window of data do: section 3.4 lets the window grow as that of a conventional sender.
    marked_ack_grows: bool = True
    # RFC 3168 section 6.1.2 has one segment as the least window after a mark, RFC 5681 section 3.1 has two
    # segments as the least threshold.
    least_segments_after_mark: int = 1
    # RFC 5681 section 3.2 step 2 leaves out limited transmit, that is the data beyond the window.
    flight_beyond_window: bool = False
    # RFC 3465 section 2.3: in the slow start after a timeout one segment an acknowledgement, not two.
    limit_after_timeout: int = 1
    # RFC 3465 section 2.1 counts bytes until they are a window. It does not say whether a reduction clears
    # the count. The bytes were acknowledged for the old window, so they are forgotten.
    count_survives_reduction: bool = False


class Dctcp:
    """RFC 8257's variables by their names; sizes in bytes."""

    def __init__(self, mss, initial_window, una, readings=Readings()):
        self.mss = mss
        self.readings = readings
        self.cwnd = float(initial_window)
        self.ssthresh = math.inf
        self.counted = 0  # RFC 3465's bytes_acked
        self.alpha = 1.0  # section 4: the careful start
        self.window_end = una + initial_window if readings.first_window_is_data else una
        self.bytes_acked = 0
        self.bytes_marked = 0
        self.reduced_at = None  # SND.NXT of the last reduction
        self.window_marked = False
        self.after_timeout = False
        self.nearest = math.inf  # least distance of the count from the window, to keep clear of rounding

    def ack(self, acked, marked, una, next_, unlimited=False):
        """A new acknowledgement. `unlimited`: the sender does not use its window, or it recovers."""
        old_alpha = self.alpha
        ended = self.observe(acked, marked, una, next_)
        if self.readings.reduce_at_window_end:
            self.window_marked |= marked > 0
            congested = ended and self.window_marked
            self.window_marked &= not ended
        else:
            congested = marked > 0 and (self.reduced_at is None or una > self.reduced_at)
        if congested:
            self.reduce(old_alpha if self.readings.reduce_by_old_alpha else self.alpha, next_)
        elif not unlimited and (marked == 0 or self.readings.marked_ack_grows):
            self.grow(acked)

    def observe(self, acked, marked, una, next_):
        """Section 3.3, steps 1 to 8; the receiver tells the marked bytes themselves."""
        self.bytes_acked += acked
        self.bytes_marked += marked
        if una <= self.window_end:
            return False
        self.alpha = self.alpha * (1 - G) + G * (self.bytes_marked / self.bytes_acked)
        self.window_end = next_
        self.bytes_acked = self.bytes_marked = 0
        return True

    def reduce(self, alpha, next_):
        """Section 3.3, step 9."""
        least = self.readings.least_segments_after_mark * self.mss
        self.cwnd = max(self.cwnd * (1 - alpha / 2), least)
        if self.readings.threshold_follows:
            self.ssthresh = max(self.cwnd, 2 * self.mss)
        self.reduced(next_)

    def reduced(self, next_):
        self.reduced_at = next_
        if not self.readings.count_survives_reduction:
            self.counted = 0

    def grow(self, acked):
        """RFC 5681 section 3.1 with RFC 3465."""
        if self.cwnd < self.ssthresh:
            limit = self.readings.limit_after_timeout if self.after_timeout else 2
            self.cwnd += min(acked, limit * self.mss)
            return
        self.after_timeout = False
        self.counted += acked
        if self.counted != self.cwnd:
            self.nearest = min(self.nearest, abs(self.counted - self.cwnd))
        if self.counted >= self.cwnd:
            self.counted -= self.cwnd
            self.cwnd += self.mss

    def loss(self, flight, next_, una):
        """A loss found by acknowledgements: section 3.5, so RFC 5681 equation 4."""
        if self.readings.loss_after_mark_spares and self.reduced_at is not None and una <= self.reduced_at:
            return
        self.ssthresh = self.half(flight)
        self.cwnd = self.ssthresh
        self.after_timeout = False
        self.reduced(next_)

    def timeout(self, flight, next_, first):
        """RFC 5681 section 3.1: one segment, and the threshold stays when the same data time out again."""
        if first:
            self.ssthresh = self.half(flight)
        self.cwnd = float(self.mss)
        self.after_timeout = True
        self.reduced(next_)

    def half(self, flight):
        if not self.readings.flight_beyond_window:
            flight = min(flight, self.cwnd)
        return max(flight / 2, 2 * self.mss)


class Trace:
    """Events for one connection with the state after each."""

    def __init__(self, name, mss=1460, initial_segments=10):
        self.name = name
        self.mss = mss
        self.random = random.Random(f"giveway dctcp {name}")
        self.una = self.next = 1 + self.random.randrange(1000)
        self.now_us = 1_000_000 + self.random.randrange(1000)
        self.initial = (mss, initial_segments * mss, self.una)
        self.dctcp = Dctcp(*self.initial)
        self.events = []
        self.rows = []
        self.row("start", self.initial[1], "", "", "")

    def row(self, event, acked, marked, flight, rtt_us):
        of = self.dctcp
        ssthresh = "" if of.ssthresh == math.inf else math.floor(of.ssthresh)
        mss = self.mss if event == "start" else ""
        self.rows.append(
            f"{self.name},{event},{self.now_us},{mss},{acked},{marked},{self.una},{self.next},{flight},{rtt_us},"
            f"{math.floor(of.cwnd)},{ssthresh},{of.alpha:.12f}"
        )

    def happen(self, method, *arguments):
        self.events.append((method, arguments))
        getattr(self.dctcp, method)(*arguments)

    def ack(self, acked, marked, rtt_us, unlimited=False):
        """Made by hand: the sender fills its window, and `acked` bytes of it are acknowledged."""
        self.fill()
        acked = min(acked, self.next - self.una)
        self.una += acked
        self.happen("ack", acked, min(marked, acked), self.una, self.next, unlimited)
        self.row("ack_unlimited" if unlimited else "ack", acked, min(marked, acked), self.next - self.una, rtt_us)

    def fill(self):
        while self.next - self.una + self.mss <= self.dctcp.cwnd or self.next == self.una:
            self.next += self.mss

    def window(self, share, rtt_us, stretch=2, unlimited=False):
        """Acknowledgements of one window of data. `share` of the segments are marked, spread evenly."""
        self.fill()
        end, credit = self.next, 0.0
        while self.una < end:
            segments = min(self.random.randint(1, stretch), (end - self.una) // self.mss)
            marked = 0
            for _ in range(segments):
                credit += share
                if credit >= 1:
                    credit -= 1
                    marked += self.mss
            self.now_us += max(1, rtt_us * segments * self.mss // int(self.dctcp.cwnd))
            self.ack(segments * self.mss, marked, rtt_us, unlimited)

    def loss(self, rtt_us, flight=None):
        self.fill()
        self.happen("loss", self.next - self.una if flight is None else flight, self.next, self.una)
        self.row("loss", "", "", self.next - self.una if flight is None else flight, "")
        self.now_us += rtt_us

    def timeout(self, wait_us, first=True):
        self.now_us += wait_us
        self.happen("timeout", self.next - self.una, self.next, first)
        self.row("timeout" if first else "timeout_again", "", "", self.next - self.una, "")


def alpha_alone():
    """No growth: alpha falls from 1, rises to 1, and settles at a quarter. The window follows the marks."""
    trace = Trace("alpha_alone")
    for share, windows in [(0, 9), (1, 6), (0.25, 16)]:
        for _ in range(windows):
            trace.window(share, 200, stretch=3, unlimited=True)
    return trace


def shares():
    """Windows of which nothing, some and everything is marked; slow start ends at the first mark."""
    trace = Trace("shares")
    for share in [0, 0, 0.1, 0, 0, 0.5, 0, 0, 1, 1, 0, 0.05, 0, 0.3, 0.3, 0]:
        trace.window(share, 250)
    return trace


def one_mark_a_window():
    trace = Trace("one_mark_a_window", initial_segments=4)
    for number in range(30):
        trace.now_us += 300
        trace.ack(trace.mss, trace.mss if number % 3 == 0 else 0, 300)
        trace.window(0, 300, stretch=3)
        if len(trace.rows) > 170:
            break
    return trace


def least_window():
    """Everything is marked: the window falls to one segment, the threshold to two. Then it grows again."""
    trace = Trace("least_window", initial_segments=6)
    for share in [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0.2, 0, 0]:
        trace.window(share, 100)
    return trace


def losses():
    """Losses without marks, and flights below and beyond the window."""
    trace = Trace("losses")
    for flight in [None, 8 * 1460, 90 * 1460, 3 * 1460]:
        for _ in range(3):
            trace.window(0, 400)
        trace.loss(400, flight)
        trace.una = trace.next
    trace.window(0, 400)
    return trace


def timeouts():
    trace = Trace("timeouts")
    for _ in range(3):
        for share in [0, 0.2, 0, 0]:
            trace.window(share, 300)
        trace.timeout(200_000)
        if len(trace.rows) > 60:
            trace.timeout(400_000, first=False)
            trace.timeout(800_000, first=False)
        trace.una = trace.next
        for _ in range(5):
            trace.window(0, 300, stretch=4)
    return trace


def loss_and_mark():
    """A mark shortly after a loss does nothing. A loss shortly after a mark halves."""
    trace = Trace("loss_and_mark")
    for _ in range(2):
        for _ in range(3):
            trace.window(0, 300)
        trace.loss(300)
        end = trace.next
        while trace.una < end:
            trace.now_us += 30
            trace.ack(trace.mss, trace.mss, 300, unlimited=True)
        trace.window(0.2, 300)
        trace.now_us += 30
        trace.ack(trace.mss, trace.mss, 300)
        trace.loss(300)
        trace.una = trace.next
        trace.window(0, 300)
    return trace


def parts_of_segments():
    trace = Trace("parts_of_segments", mss=8960, initial_segments=4)
    for _ in range(130):
        trace.now_us += trace.random.randrange(1, 90)
        acked = trace.random.randrange(1, 3 * trace.mss)
        marked = trace.random.randrange(acked + 1) if trace.random.random() < 0.08 else 0
        trace.ack(acked, marked, trace.random.randrange(80, 400), unlimited=trace.random.random() < 0.1)
    return trace


def over_path(name, rate, delay_us, limit, mark_above, rows, stretch=2, timeout_every=math.inf, **how):
    """A connection over a queue that marks."""
    trace = Trace(name, **how)
    path = Path(rate, delay_us, limit, trace.random, trace.mss, mark_above, stretch, trace.una, trace.now_us)
    timeout_at = timeout_every
    while len(trace.rows) < rows:
        path.send(trace.dctcp.cwnd)
        trace.next = path.next
        if len(trace.rows) >= timeout_at:
            timeout_at = len(trace.rows) + timeout_every
            flight = path.give_up(200_000)
            trace.now_us = path.now_us
            trace.happen("timeout", flight, path.next, True)
            trace.row("timeout", "", "", flight, "")
            trace.una = path.una
            continue
        arrival = path.arrival()
        if arrival is None:
            timeout_at = 0
            continue
        trace.now_us = arrival.now_us
        trace.una = arrival.una
        if arrival.byte_count:
            unlimited = arrival.recovering
            trace.happen("ack", arrival.byte_count, arrival.marked, arrival.una, arrival.next, unlimited)
            rtt_us = "" if arrival.rtt_us is None else arrival.rtt_us
            event = "ack_unlimited" if unlimited else "ack"
            trace.row(event, arrival.byte_count, arrival.marked, arrival.flight, rtt_us)
        if arrival.loss:
            trace.happen("loss", arrival.flight, arrival.next, arrival.una)
            trace.row("loss", "", "", arrival.flight, "")
    return trace


def traces():
    return [
        alpha_alone(),
        shares(),
        one_mark_a_window(),
        least_window(),
        losses(),
        timeouts(),
        loss_and_mark(),
        parts_of_segments(),
        over_path("path_1gbit", 125e6, 100, limit=60, mark_above=8, rows=200),
        over_path("path_losses", 12.5e6, 400, limit=13, mark_above=12.5, rows=260, stretch=3),
        over_path("path_timeouts", 50e6, 250, limit=200, mark_above=5, rows=200, timeout_every=60),
    ]


def table():
    lines = ["trace,event,time_us,mss,bytes,marked,una,next,flight,rtt_us,cwnd,ssthresh,alpha"]
    for trace in traces():
        # A sender with a window in whole bytes must count to the same acknowledgement.
        assert trace.dctcp.nearest > 4, f"{trace.name}: the count is {trace.dctcp.nearest} bytes from the window"
        lines += trace.rows
    return "\n".join(lines) + "\n"


def replay(trace, readings):
    """The state that a reading gives after each event."""
    dctcp = Dctcp(*trace.initial, readings)
    states = []
    for method, arguments in trace.events:
        getattr(dctcp, method)(*arguments)
        states.append((dctcp.cwnd, dctcp.ssthresh, dctcp.alpha))
    return states


def compare():
    others = {
        "reduce_at_window_end": True,
        "first_window_is_data": True,
        "reduce_by_old_alpha": True,
        "threshold_follows": False,
        "loss_after_mark_spares": True,
        "marked_ack_grows": False,
        "least_segments_after_mark": 2,
        "flight_beyond_window": True,
        "limit_after_timeout": 2,
        "count_survives_reduction": True,
    }
    compare_readings(Readings(), others, traces(), replay)


if __name__ == "__main__":
    run(__doc__, OUTPUT, table, compare)
