"""BBR version 1 as in draft-cardwell-iccrg-bbr-congestion-control-00: the machine that `oracle.py` drives."""

import math
from dataclasses import dataclass

FILTER_ROUNDS = 10  # BtlBwFilterLen
FILTER_US = 10_000_000  # RTpropFilterLen, which is also ProbeRTTInterval
PROBE_RTT_US = 200_000  # ProbeRTTDuration
CYCLE = [5 / 4, 3 / 4, 1, 1, 1, 1, 1, 1]
MIN_SEGMENTS = 4  # BBRMinPipeCwnd


@dataclass(frozen=True)
class Readings:
    """Readings of passages that the draft leaves open. The traces were made with the defaults."""

    # Section 2 names 2/ln(2) and about 2.89. The formula counts.
    high_gain: float = 2 / math.log(2)
    # Section 4.1.1.2: the maximum over the past ten round trips. They are the present one and nine before.
    # The filter is exact, not an estimate from a few samples.
    filter_keeps_rounds: int = FILTER_ROUNDS
    # Section 4.2.1 has the initial rate come from the first round trip that is known, and section 4.3.1 sets
    # it at the start, from 1 ms if none is known. Before the pipe is full the rate never falls, so that rate
    # would stay. It is set again at the first sample.
    rate_from_first_sample: bool = True
    # Section 4.3.1 sets the initial rate with the pacing gain before it enters Startup, where the gain is
    # set. The gain of Startup is meant, for section 4.2.1 has "the initial pacing_gain".
    #
    # Section 4.3.5 enters ProbeRTT and then calls BBRSaveCwnd(), without keeping its value and with the new
    # state, for which the function gives the larger of cwnd and prior_cwnd. Section 4.2.3.4 wants the last
    # cwnd that was not modulated, so prior_cwnd is set, and before the state changes.
    save_after_entering: bool = False
    # Section 4.2.3.4: conservation ends after one round trip in recovery. It is the time until a segment is
    # acknowledged that was sent after recovery began. The rounds of section 4.1.1.3 go on as they were.
    # Otherwise recovery starts a round, and its end ends the conservation.
    recovery_starts_round: bool = False
    # Section 4.2.3.4 does not say whether a timeout ends the conservation of a fast recovery. It goes on with
    # the normal approach, so it does.
    timeout_keeps_conservation: bool = False
    # Section 4.2.3.4 restores the window upon the end of recovery: before the steps of the acknowledgement
    # that ends it, so that they may bound it.
    restore_after_steps: bool = False
    # Section 4.2.2: 64 KBytes.
    largest_quantum: int = 64 * 1024
    # Section 4.3.4.4 sets idle_start, section 4.3.5 reads idle_restart: one variable. Every acknowledgement
    # clears it.
    #
    # Section 4.3.4.3 compares the data in flight with BBRInflight(gain), which has three quanta more than the
    # text of section 4.3.4.1 ("5/4 * estimated_BDP"). The pseudocode counts. The quantum is that of the
    # acknowledgement before.
    bare_bdp_in_cycle: bool = False
    # Section 4.1.1.5 updates for every acknowledgement, also where the rate sampler has no valid sample (its
    # interval is shorter than the least round trip). Then the rounds are counted and BtlBw stays.
    #
    # Sizes: packets are bytes here, and one packet is a segment. The entry of a recovery comes before the
    # steps of its acknowledgement, with the data in flight after it.


@dataclass
class Ack:
    now_us: int
    newly: int  # bytes newly delivered
    delivered: int  # all bytes delivered, with these
    prior_delivered: int  # bytes delivered when the newest acknowledged segment was sent
    sample: tuple[int, int] | None  # bytes and interval of the delivery rate
    app_limited: bool  # of the sample
    rtt_us: int | None
    lost: int  # bytes newly lost
    inflight: int
    prior_inflight: int
    recovery: str  # "begin", "end" or ""


class Bbr:
    """The draft's variables by their names; bytes, microseconds, bytes a second. `draw` gives 0 to 6."""

    def __init__(self, now_us, mss, initial_window, srtt_us, draw, readings=Readings()):
        self.readings = readings
        self.draw = draw
        self.mss = mss
        self.initial_window = initial_window
        self.cwnd = float(initial_window)
        self.samples = []  # (round, rate), the filter
        self.btlbw = 0.0
        self.rtprop_us = math.inf if srtt_us is None else srtt_us
        self.rtprop_stamp_us = now_us
        self.rtprop_expired = False
        self.probe_rtt_done_us = None
        self.probe_rtt_round_done = False
        self.packet_conservation = False
        self.prior_cwnd = 0.0
        self.idle_restart = False
        self.next_round_delivered = 0
        self.round_start = False
        self.round_count = 0
        self.filled_pipe = False
        self.full_bw = 0.0
        self.full_bw_count = 0
        self.send_quantum = mss
        self.cycle_stamp_us = now_us
        self.cycle_index = 0
        self.in_recovery = False
        self.conservation_until = 0
        self.delivered = 0
        self.nearest = math.inf  # least distance of a decision from its other side, in bytes
        self.enter_startup()
        self.rate_is_guess = srtt_us is None
        self.init_pacing_rate(1000 if srtt_us is None else srtt_us)

    # Section 3.5.2

    def ack(self, ack):
        self.delivered = ack.delivered
        if ack.recovery == "begin":
            self.enter_fast_recovery(ack)
        if ack.recovery == "end" and not self.readings.restore_after_steps:
            self.exit_recovery()
        self.update_btlbw(ack)
        self.check_cycle_phase(ack)
        self.check_full_pipe(ack)
        self.check_drain(ack)
        self.update_rtprop(ack)
        self.check_probe_rtt(ack)
        if self.rate_is_guess and ack.rtt_us is not None:
            self.rate_is_guess = False
            if self.readings.rate_from_first_sample:
                self.init_pacing_rate(ack.rtt_us)
        self.set_pacing_rate(self.pacing_gain)
        self.set_send_quantum()
        self.set_cwnd(ack)
        if ack.recovery == "end" and self.readings.restore_after_steps:
            self.exit_recovery()

    # Section 4.1

    def update_round(self, ack):
        self.round_start = ack.prior_delivered >= self.next_round_delivered
        if self.round_start:
            self.next_round_delivered = ack.delivered
            self.round_count += 1

    def update_btlbw(self, ack):
        self.update_round(ack)
        if ack.sample is None:
            return
        rate = ack.sample[0] / ack.sample[1] * 1e6
        if rate >= self.btlbw or not ack.app_limited:
            self.samples.append((self.round_count, rate))
            oldest = self.round_count - self.readings.filter_keeps_rounds
            self.samples = [sample for sample in self.samples if sample[0] > oldest]
            self.btlbw = max(rate for _, rate in self.samples)

    def update_rtprop(self, ack):
        self.rtprop_expired = ack.now_us > self.rtprop_stamp_us + FILTER_US
        if ack.rtt_us is not None and (ack.rtt_us <= self.rtprop_us or self.rtprop_expired):
            self.rtprop_us = ack.rtt_us
            self.rtprop_stamp_us = ack.now_us

    # Section 4.2

    def init_pacing_rate(self, rtt_us):
        self.pacing_rate = self.pacing_gain * self.initial_window / rtt_us * 1e6

    def set_pacing_rate(self, gain):
        rate = gain * self.btlbw
        if self.filled_pipe or rate > self.pacing_rate:
            self.pacing_rate = rate

    def set_send_quantum(self):
        if self.pacing_rate * 8 < 1.2e6:
            self.send_quantum = self.mss
        elif self.pacing_rate * 8 < 24e6:
            self.send_quantum = 2 * self.mss
        else:
            self.send_quantum = min(self.pacing_rate * 1e-3, self.readings.largest_quantum)

    def bdp(self, gain):
        return gain * self.btlbw * self.rtprop_us / 1e6

    def inflight(self, gain):
        if self.rtprop_us == math.inf:
            return self.initial_window
        return self.bdp(gain) + 3 * self.send_quantum

    def at_most(self, bytes_, bound):
        self.nearest = min(self.nearest, abs(bytes_ - bound))
        return bytes_ <= bound

    def enter_fast_recovery(self, ack):
        self.prior_cwnd = self.save_cwnd()
        self.cwnd = ack.inflight + max(ack.newly, self.mss)
        self.packet_conservation = True
        self.in_recovery = True
        self.conservation_until = ack.delivered
        if self.readings.recovery_starts_round:
            self.next_round_delivered = ack.delivered

    def exit_recovery(self):
        self.in_recovery = False
        self.packet_conservation = False
        self.restore_cwnd()

    def timeout(self, now_us):
        self.prior_cwnd = self.save_cwnd()
        self.cwnd = float(self.mss)
        self.in_recovery = True
        if not self.readings.timeout_keeps_conservation:
            self.packet_conservation = False

    def save_cwnd(self):
        if not self.in_recovery and self.state != "probe_rtt":
            return self.cwnd
        return max(self.prior_cwnd, self.cwnd)

    def restore_cwnd(self):
        self.cwnd = max(self.cwnd, self.prior_cwnd)

    def end_conservation(self, ack):
        if not self.packet_conservation or ack.recovery == "begin":
            return
        if self.readings.recovery_starts_round:
            ended = self.round_start
        else:
            ended = ack.prior_delivered >= self.conservation_until
        if ended:
            self.packet_conservation = False

    def set_cwnd(self, ack):
        target = self.inflight(self.cwnd_gain)
        self.end_conservation(ack)
        if ack.lost > 0:
            self.cwnd = max(self.cwnd - ack.lost, self.mss)
        if self.packet_conservation:
            self.cwnd = max(self.cwnd, ack.inflight + ack.newly)
        else:
            if self.filled_pipe:
                self.cwnd = min(self.cwnd + ack.newly, target)
            elif self.delivered < self.initial_window or not self.at_most(target, self.cwnd):
                self.cwnd += ack.newly
            self.cwnd = max(self.cwnd, MIN_SEGMENTS * self.mss)
        if self.state == "probe_rtt":
            self.cwnd = min(self.cwnd, MIN_SEGMENTS * self.mss)

    # Section 4.3

    def enter_startup(self):
        self.state = "startup"
        self.pacing_gain = self.cwnd_gain = self.readings.high_gain

    def check_full_pipe(self, ack):
        if self.filled_pipe or not self.round_start or ack.app_limited:
            return
        self.nearest = min(self.nearest, abs(self.btlbw - self.full_bw * 1.25))
        if self.btlbw >= self.full_bw * 1.25:
            self.full_bw = self.btlbw
            self.full_bw_count = 0
            return
        self.full_bw_count += 1
        if self.full_bw_count >= 3:
            self.filled_pipe = True

    def check_drain(self, ack):
        if self.state == "startup" and self.filled_pipe:
            self.state = "drain"
            self.pacing_gain = 1 / self.readings.high_gain
            self.cwnd_gain = self.readings.high_gain
        if self.state == "drain" and self.at_most(ack.inflight, self.inflight(1.0)):
            self.enter_probe_bw(ack.now_us)

    def enter_probe_bw(self, now_us):
        self.state = "probe_bw"
        self.pacing_gain = 1
        self.cwnd_gain = 2
        self.cycle_index = len(CYCLE) - 1 - self.draw()
        self.advance_cycle_phase(now_us)

    def check_cycle_phase(self, ack):
        if self.state == "probe_bw" and self.is_next_cycle_phase(ack):
            self.advance_cycle_phase(ack.now_us)

    def advance_cycle_phase(self, now_us):
        self.cycle_stamp_us = now_us
        self.cycle_index = (self.cycle_index + 1) % len(CYCLE)
        self.pacing_gain = CYCLE[self.cycle_index]

    def is_next_cycle_phase(self, ack):
        is_full_length = ack.now_us - self.cycle_stamp_us > self.rtprop_us
        in_flight = self.bdp if self.readings.bare_bdp_in_cycle else self.inflight
        if self.pacing_gain == 1:
            return is_full_length
        if self.pacing_gain > 1:
            low = ack.lost == 0 and not self.at_most(in_flight(self.pacing_gain), ack.prior_inflight)
            return is_full_length and not low
        return is_full_length or self.at_most(ack.prior_inflight, in_flight(1))

    def transmit_from_idle(self, now_us):
        """BBRHandleRestartFromIdle, where nothing is in flight and the application limits the flow."""
        self.idle_restart = True
        if self.state == "probe_bw":
            self.set_pacing_rate(1)

    def check_probe_rtt(self, ack):
        if self.state != "probe_rtt" and self.rtprop_expired and not self.idle_restart:
            before = self.save_cwnd()
            self.state = "probe_rtt"
            self.pacing_gain = self.cwnd_gain = 1
            self.prior_cwnd = self.save_cwnd() if self.readings.save_after_entering else before
            self.probe_rtt_done_us = None
        if self.state == "probe_rtt":
            self.handle_probe_rtt(ack)
        self.idle_restart = False

    def handle_probe_rtt(self, ack):
        """The caller marks the samples of this state as limited by the application."""
        if self.probe_rtt_done_us is None:
            if ack.inflight <= MIN_SEGMENTS * self.mss:
                self.probe_rtt_done_us = ack.now_us + PROBE_RTT_US
                self.probe_rtt_round_done = False
                self.next_round_delivered = ack.delivered
            return
        if self.round_start:
            self.probe_rtt_round_done = True
        if self.probe_rtt_round_done and ack.now_us > self.probe_rtt_done_us:
            self.rtprop_stamp_us = ack.now_us
            self.restore_cwnd()
            if self.filled_pipe:
                self.enter_probe_bw(ack.now_us)
            else:
                self.enter_startup()
