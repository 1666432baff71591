"""Traces for the second BBR made by hand, for each rule of the draft."""

from bbr import Ack
from events import Trace


class Hand:
    """Acknowledgements whose samples are chosen."""

    def __init__(self, name, attempt, **how):
        self.trace = Trace(name, attempt=attempt, **how)
        self.mss = self.trace.mss
        self.inflight = 10  # segments

    def ack(self, rate, rtt_us, newly=1, new_round=False, inflight=None, wait_us=None, **more):
        """`rate` in bytes a second or None; `newly`, `inflight` and `lost` in segments."""
        trace, mss = self.trace, self.mss
        inflight = self.inflight if inflight is None else inflight
        lost = more.get("lost", 0)
        now_us = trace.now_us + (rtt_us // 10 if wait_us is None else wait_us)
        trace.delivered += newly * mss
        round_ends_at = trace.bbr.next_round_delivered
        prior_delivered = round_ends_at if new_round else max(round_ends_at - mss, 0)
        sample = None if rate is None else (round(rate * rtt_us / 1e6), rtt_us)
        ack = Ack(
            now_us,
            newly * mss,
            trace.delivered,
            prior_delivered,
            sample,
            more.get("app_limited", False),
            rtt_us if more.get("has_rtt", True) else None,
            lost * mss,
            inflight * mss,
            (inflight + newly + lost) * mss,
            more.get("recovery", ""),
        )
        trace.acknowledged(ack)

    def round(self, rate, rtt_us, acks=3, **more):
        self.ack(rate, rtt_us, new_round=True, **more)
        for _ in range(acks - 1):
            self.ack(rate, rtt_us, **more)

    def fill_pipe(self, rate, rtt_us):
        """Startup until the pipe is full, and Drain until ProbeBW."""
        for share in [0.3, 0.6, 1, 1, 1, 1]:
            self.round(rate * share, rtt_us, acks=1, newly=2, inflight=60)
        self.ack(rate, rtt_us, inflight=2)


def full_pipe(attempt):
    """Growth above and below a quarter, and samples that the application limits."""
    hand = Hand("full_pipe", attempt, srtt_us=100_000, draws=[0])
    hand.inflight = 80
    for rate in [100e3, 130e3, 156e3, 156e3, 210e3, 211e3]:
        hand.round(rate, 100_000, acks=1)
    for _ in range(4):
        hand.round(150e3, 100_000, acks=2, app_limited=True)
    hand.round(212e3, 100_000, acks=2, app_limited=True)
    hand.round(200e3, 100_000, acks=2)
    hand.round(200e3, 100_000, acks=2)
    for inflight in [70, 50, 35, 28, 24, 20]:
        hand.ack(200e3, 100_000, inflight=inflight)
    return hand.trace


def gain_cycle(attempt):
    """Each phase: 5/4 lasts until the data in flight reach 5/4 or a loss, 3/4 until they fall to 1."""
    hand = Hand("gain_cycle", attempt, srtt_us=50_000, draws=[0])
    hand.fill_pipe(400e3, 50_000)
    for inflight in [20, 20, 21, 25, 28, 29, 33, 34]:
        hand.ack(400e3, 50_000, inflight=inflight, wait_us=16_000)
    for inflight in [30, 29, 20]:
        hand.ack(400e3, 50_000, inflight=inflight, wait_us=9000)
    for _ in range(6 * 4):
        hand.ack(400e3, 50_000, inflight=20, wait_us=17_000)
    hand.ack(400e3, 50_000, inflight=22, wait_us=40_000)
    hand.ack(400e3, 50_000, inflight=20, wait_us=20_000, lost=2, recovery="begin")
    hand.ack(400e3, 50_000, inflight=40, wait_us=20_000, recovery="end")
    hand.ack(400e3, 50_000, inflight=40, wait_us=20_000)
    hand.ack(400e3, 50_000, inflight=40, wait_us=20_000)
    return hand.trace


def phases(attempt):
    """Each draw: the phase with which ProbeBW begins. ProbeRTT lies between."""
    hand = Hand("phases", attempt, srtt_us=50_000, draws=range(7))
    hand.fill_pipe(400e3, 50_000)
    for _ in range(6):
        hand.ack(400e3, 60_000, wait_us=10_100_000)
        hand.ack(400e3, 60_000, inflight=4, app_limited=True)
        hand.ack(400e3, 60_000, inflight=3, new_round=True, app_limited=True)
        hand.ack(400e3, 60_000, inflight=3, wait_us=210_000, app_limited=True)
        hand.ack(400e3, 60_000)
    return hand.trace


def bandwidth_filter(attempt):
    """The highest sample leaves after ten rounds. Samples limited by the application enter if higher."""
    hand = Hand("bandwidth_filter", attempt, srtt_us=30_000, draws=[4])
    hand.fill_pipe(500e3, 30_000)
    for number in range(14):
        hand.round(450e3 - 5e3 * number, 30_000, acks=2)
    hand.round(300e3, 30_000, app_limited=True)
    hand.round(520e3, 30_000, app_limited=True)
    for _ in range(12):
        hand.round(310e3, 30_000, acks=1, app_limited=True)
    hand.round(None, 30_000)
    hand.round(310e3, 30_000)
    return hand.trace


def round_trip_filter(attempt):
    """RTprop falls at once, and rises after ten seconds without an equal or lower sample, with a ProbeRTT."""
    hand = Hand("round_trip_filter", attempt, srtt_us=80_000, draws=[2, 5])
    hand.fill_pipe(300e3, 80_000)
    for rtt_us in [90_000, 70_000, 75_000, 70_000, 71_000]:
        hand.round(300e3, rtt_us, acks=1)
    hand.ack(300e3, 90_000, wait_us=9_000_000)
    hand.ack(300e3, 70_000)
    hand.ack(300e3, 95_000, wait_us=10_000_000)
    hand.ack(300e3, 95_000, wait_us=1, has_rtt=False)
    hand.ack(300e3, 95_000, wait_us=1)
    # Too much in flight at first, then 200 ms and a round, of which the round is the longer.
    hand.ack(300e3, 85_000, inflight=6, app_limited=True)
    hand.ack(300e3, 85_000, inflight=4, app_limited=True)
    hand.ack(300e3, 86_000, inflight=4, wait_us=150_000, app_limited=True)
    hand.ack(300e3, 84_000, inflight=4, wait_us=60_000, app_limited=True)
    hand.ack(300e3, 86_000, inflight=3, app_limited=True, new_round=True)
    hand.ack(300e3, 86_000, inflight=5)
    return hand.trace


def probe_rtt_in_startup(attempt):
    """ProbeRTT before the pipe is full returns to Startup."""
    hand = Hand("probe_rtt_in_startup", attempt, srtt_us=60_000)
    for rate in [100e3, 150e3]:
        hand.round(rate, 60_000)
    hand.round(150e3, 70_000, acks=1, wait_us=10_000_000, app_limited=True)
    hand.ack(150e3, 70_000, inflight=4, app_limited=True)
    hand.ack(150e3, 70_000, inflight=4, wait_us=199_000, new_round=True, app_limited=True)
    hand.ack(150e3, 70_000, inflight=4, wait_us=1000, app_limited=True)
    hand.ack(150e3, 70_000, inflight=4, wait_us=1, app_limited=True)
    for rate in [250e3, 260e3, 260e3, 260e3]:
        hand.round(rate, 70_000, inflight=40)
    hand.ack(260e3, 70_000)
    return hand.trace


def idle(attempt):
    """Restarts from idle in Startup and in ProbeBW. One after ten seconds has no ProbeRTT."""
    hand = Hand("idle", attempt, srtt_us=40_000, draws=[0, 3])
    hand.round(100e3, 40_000)
    hand.ack(100e3, 40_000, inflight=0, app_limited=True)
    hand.trace.now_us += 300_000
    hand.trace.transmit_from_idle()
    hand.round(180e3, 40_000, app_limited=True)
    hand.fill_pipe(400e3, 40_000)
    hand.ack(400e3, 40_000, inflight=0, app_limited=True)
    hand.trace.now_us += 1_000_000
    hand.trace.transmit_from_idle()
    hand.ack(400e3, 41_000, app_limited=True, new_round=True)
    hand.ack(390e3, 41_000, inflight=0, app_limited=True)
    hand.trace.now_us += 11_000_000
    hand.trace.transmit_from_idle()
    hand.ack(100e3, 55_000, app_limited=True, new_round=True)
    hand.round(390e3, 56_000)
    hand.ack(390e3, 56_000, wait_us=10_100_000)
    hand.ack(390e3, 56_000)
    return hand.trace


def recovery(attempt):
    """Conservation for a round, then growth within the target; the window comes back at the end."""
    hand = Hand("recovery", attempt, srtt_us=50_000, draws=[3])
    hand.fill_pipe(500e3, 50_000)
    for _ in range(12):
        hand.ack(500e3, 50_000, newly=3, inflight=40)
    for _ in range(2):
        hand.ack(500e3, 50_000, newly=2, inflight=30, lost=6, recovery="begin")
        hand.ack(500e3, 50_000, newly=1, inflight=28, lost=3)
        hand.ack(500e3, 50_000, newly=4, inflight=30)
        hand.ack(500e3, 50_000, newly=2, inflight=31, new_round=True)
        hand.ack(500e3, 50_000, newly=2, inflight=31)
        hand.ack(500e3, 50_000, newly=2, inflight=26, lost=5)
        hand.ack(500e3, 50_000, newly=2, inflight=30)
        hand.ack(500e3, 50_000, newly=2, inflight=30, recovery="end")
        for _ in range(2):
            hand.ack(500e3, 50_000, newly=3, inflight=45, new_round=True)
    # Down to a segment: nothing else is in flight.
    hand.ack(None, 50_000, newly=0, inflight=0, has_rtt=False, lost=45, recovery="begin")
    hand.ack(None, 50_000, newly=1, inflight=0, has_rtt=False)
    hand.ack(None, 50_000, newly=1, inflight=1, has_rtt=False, new_round=True)
    hand.ack(500e3, 50_000, newly=1, inflight=2, recovery="end")
    return hand.trace


def recovery_in_startup(attempt):
    """Before the pipe is full, the window may exceed the target until an initial window is delivered."""
    hand = Hand("recovery_in_startup", attempt, initial_segments=20, srtt_us=50_000)
    for rate in [50e3, 60e3, 90e3, 180e3]:
        hand.round(rate, 50_000, acks=4, newly=2)
    hand.ack(180e3, 50_000, newly=1, inflight=20, lost=4, recovery="begin")
    hand.ack(180e3, 50_000, newly=2, inflight=19)
    hand.ack(180e3, 50_000, newly=2, inflight=19, new_round=True)
    hand.ack(180e3, 50_000, newly=2, inflight=19, recovery="end")
    hand.round(300e3, 50_000)
    return hand.trace


def timeout(attempt):
    """A timeout outside of recovery, one that repeats, one in fast recovery and one in ProbeRTT."""
    hand = Hand("timeout", attempt, srtt_us=50_000, draws=[3, 6])
    hand.fill_pipe(500e3, 50_000)
    for _ in range(12):
        hand.ack(500e3, 50_000, newly=3, inflight=40)

    def time_out(wait_us):
        hand.trace.now_us += wait_us
        hand.trace.timeout()

    def come_back():
        for inflight in [1, 3, 6]:
            hand.ack(None, 50_000, newly=1, inflight=inflight, has_rtt=False)
        hand.ack(500e3, 50_000, newly=2, inflight=8, recovery="end")
        hand.ack(500e3, 50_000, newly=2, inflight=9, new_round=True)

    time_out(300_000)
    come_back()
    time_out(300_000)
    time_out(600_000)
    come_back()
    hand.ack(500e3, 50_000, newly=2, inflight=30, lost=6, recovery="begin")
    hand.ack(500e3, 50_000, newly=2, inflight=30)
    time_out(300_000)
    come_back()
    hand.ack(500e3, 55_000, wait_us=10_500_000)
    hand.ack(500e3, 55_000, inflight=4, app_limited=True)
    time_out(300_000)
    hand.ack(None, 55_000, inflight=1, has_rtt=False, new_round=True)
    hand.ack(400e3, 55_000, inflight=2, app_limited=True)
    hand.ack(400e3, 55_000, inflight=2, app_limited=True, recovery="end")
    hand.ack(400e3, 55_000, inflight=8, app_limited=True)
    return hand.trace


def older_window(attempt):
    """ProbeRTT restores the window that it found, not that of an earlier recovery."""
    hand = Hand("older_window", attempt, srtt_us=50_000, draws=[3, 0])
    hand.fill_pipe(500e3, 50_000)
    for _ in range(5):
        hand.ack(500e3, 50_000, newly=8, inflight=40)
    hand.ack(500e3, 50_000, newly=2, inflight=30, lost=6, recovery="begin")
    hand.ack(500e3, 50_000, newly=2, inflight=30, recovery="end")
    for _ in range(11):
        hand.round(250e3, 50_000, acks=1, inflight=20)
    hand.round(500e3, 50_000, acks=2, inflight=20)
    hand.ack(500e3, 50_000, inflight=20, wait_us=10_100_000)
    hand.ack(500e3, 50_000, inflight=4, app_limited=True)
    hand.ack(500e3, 50_000, inflight=4, new_round=True, app_limited=True)
    hand.ack(500e3, 50_000, inflight=4, wait_us=210_000, app_limited=True)
    hand.ack(500e3, 50_000, inflight=20)
    return hand.trace


def quanta(attempt):
    """Pacing rates on both sides of 24 Mbit/s, and one with the largest quantum."""
    hand = Hand("quanta", attempt, mss=1460, srtt_us=10_000, initial_segments=4, draws=[4])
    for rate in [1.02e6, 1.06e6, 5e6, 21e6, 90e6]:
        hand.round(rate, 10_000, acks=2, newly=5, inflight=300)
    for _ in range(4):
        hand.round(90e6, 10_000, acks=1, newly=600, inflight=3000)
    hand.ack(90e6, 10_000, inflight=600)
    hand.ack(90e6, 10_000, inflight=600)
    return hand.trace


def makers():
    return [
        full_pipe,
        gain_cycle,
        phases,
        bandwidth_filter,
        round_trip_filter,
        probe_rtt_in_startup,
        idle,
        recovery,
        recovery_in_startup,
        timeout,
        older_window,
        quanta,
    ]
