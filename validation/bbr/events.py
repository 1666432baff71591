"""Events for the second BBR, and rows of the table."""

import math
import random

from bbr import Ack, Bbr

COLUMNS = (
    "trace,event,time_us,mss,initial_window,newly,delivered,prior_delivered,sample_bytes,interval_us,"
    "app_limited,rtt_us,lost,inflight,prior_inflight,recovery,draw,"
    "mode,pacing_gain,cwnd_gain,btlbw,rtprop_us,round,full_pipe,cwnd,pacing_rate"
)


def decimals(value):
    return f"{value:.6f}".rstrip("0").rstrip(".")


def state(of):
    """The columns of the state after an event."""
    rtprop_us = "" if of.rtprop_us == math.inf else of.rtprop_us
    gains = f"{decimals(of.pacing_gain)},{decimals(of.cwnd_gain)}"
    model = f"{decimals(of.btlbw)},{rtprop_us},{of.round_count},{int(of.filled_pipe)}"
    return f"{of.state},{gains},{model},{math.floor(of.cwnd)},{decimals(of.pacing_rate)}"


class Trace:
    """Events for one connection with the state after each."""

    def __init__(self, name, mss=1000, initial_segments=10, srtt_us=None, draws=(), attempt=0):
        self.name = name
        self.random = random.Random(f"giveway bbr {name} {attempt}")
        self.draws = list(draws)  # the first ones, the others are random
        self.drawn = []
        self.known_draws = 0  # drawn before the present row
        self.now_us = 1_000_000
        self.mss = mss
        self.initial = (self.now_us, mss, initial_segments * mss, srtt_us)
        self.bbr = Bbr(*self.initial, self.draw)
        self.delivered = 0
        self.events = []
        self.rows = []
        rtt_us = "" if srtt_us is None else srtt_us
        self.row("start", mss=mss, initial_window=initial_segments * mss, rtt_us=rtt_us)

    def draw(self):
        number = self.draws.pop(0) if self.draws else self.random.randrange(7)
        self.drawn.append(number)
        return number

    def row(self, event, **inputs):
        names = COLUMNS.split(",")[3:16]
        columns = ",".join(str(inputs.get(name, "")) for name in names)
        draw = self.drawn[-1] if len(self.drawn) > self.known_draws else ""
        self.rows.append(f"{self.name},{event},{self.now_us},{columns},{draw},{state(self.bbr)}")
        self.known_draws = len(self.drawn)

    def acknowledged(self, ack):
        self.now_us = ack.now_us
        self.events.append(("ack", ack))
        self.bbr.ack(ack)
        sample_bytes, interval_us = ack.sample or ("", "")
        self.row(
            "ack",
            newly=ack.newly,
            delivered=ack.delivered,
            prior_delivered=ack.prior_delivered,
            sample_bytes=sample_bytes,
            interval_us=interval_us,
            app_limited=int(ack.app_limited),
            rtt_us="" if ack.rtt_us is None else ack.rtt_us,
            lost=ack.lost,
            inflight=ack.inflight,
            prior_inflight=ack.prior_inflight,
            recovery=ack.recovery,
        )

    def timeout(self):
        self.events.append(("timeout", self.now_us))
        self.bbr.timeout(self.now_us)
        self.row("timeout")

    def transmit_from_idle(self):
        self.events.append(("transmit_from_idle", self.now_us))
        self.bbr.transmit_from_idle(self.now_us)
        self.row("idle_restart")
