"""RACK-TLP as in RFC 8985, sections 6, 7 and 8: the machine that `oracle.py` drives."""

import math
from dataclasses import dataclass

DUP_THRESH = 3
PERSIST = 16  # recoveries without a D-SACK after which the reordering window has its first size again


@dataclass(frozen=True)
class Readings:
    """Readings of passages that the RFC leaves open. The traces were made with the defaults."""

    # Section 6.2 step 5 sets the time of a lost segment to infinity. If it arrives all the same before it is
    # retransmitted, step 2 would put infinity into RACK.xmit_ts. The time of its transmission counts instead.
    # The alternative ignores such a segment in step 2.
    lost_but_delivered_counts: bool = True
    # Section 6.2 step 4: a D-SACK for the segment that a probe retransmitted counts as any other, for the
    # pseudocode has no exception.
    dsack_of_probe_counts: bool = True
    # Section 7.2 allows an inflated PTO for one segment, and its pseudocode has it. One segment means the
    # only one that is not acknowledged cumulatively.
    inflate_for_one_segment: bool = True

    # These passages are open too. No field switches them.
    #
    # Section 6.2 step 4 tests for a D-SACK in the function that step 5 calls, and the reordering timer calls
    # step 5. The timer has no new acknowledgement, so a D-SACK and the end of a recovery count once.
    #
    # Section 3.3.2 counts the segments that were SACKed since the last recovery, the pseudocode of section
    # 6.2 all that the scoreboard has as SACKed. The pseudocode counts.
    #
    # Section 6.3 marks segments lost without setting their times to infinity. Step 5 passes over all lost
    # segments until they are retransmitted.
    #
    # Recovery begins when a segment is marked lost, and ends when SND.UNA reaches SND.NXT of that moment. The
    # acknowledgement that ends it is already outside of recovery in step 4.
    #
    # Section 7.2 limits the PTO by the time at which the RTO would expire. It is the timer of RFC 6298
    # section 5, which goes on while another timer is armed: started by a transmission if it does not run,
    # restarted when new data are acknowledged, after a probe (section 7.3) and after an RTO. Here the RTO is
    # constant, without backoff.
    #
    # Section 7.2: a PTO is started by new data and by a cumulative acknowledgement. A pending one ends only
    # if the reordering timer is armed (section 8), a recovery begins or nothing is left to acknowledge.
    #
    # Section 7.4.2: a duplicate acknowledgement is one that is equal to SND.UNA and has no SACK block.
    #
    # RFC 6298 takes samples of segments that were sent once. Of several in an acknowledgement the newest
    # counts, for SRTT and for RACK.min_RTT, and every acknowledgement that has one gives a sample. The event
    # tells it.


@dataclass
class Segment:
    seq: int
    end: int
    sent_us: int
    retransmitted: bool = False
    lost: bool = False
    sacked: bool = False
    in_flight: bool = True  # its Segment.xmit_ts is not INFINITE_TS


class Rack:
    """The RFC's variables by their names; times in microseconds, None for what does not exist yet."""

    def __init__(self, una, rto_us, max_ack_delay_us, readings=Readings()):
        self.readings = readings
        self.una = self.next = una
        self.constant_rto_us = rto_us
        self.max_ack_delay_us = max_ack_delay_us
        self.segments = {}  # by first byte
        self.srtt_us = None
        self.min_rtt_us = None
        self.rtt_us = None
        self.newest = None  # (RACK.xmit_ts, RACK.end_seq)
        self.fack = una
        self.reordering_seen = False
        self.dsack_round = None
        self.reo_wnd_mult = 1
        self.reo_wnd_persist = PERSIST
        self.reo_wnd_us = 0.0
        self.recovery_point = None  # outside of recovery None
        self.tlp_end = None
        self.tlp_is_retrans = False
        self.sampled = False  # since the last probe
        self.reo_timer_us = None
        self.pto_us = None
        self.rto_us = None
        self.nearest_us = math.inf  # least time that a segment had left, to keep clear of rounding
        # What the last event did.
        self.lost = []
        self.probe = ""
        self.repaired = False

    def begin_event(self):
        self.lost = []
        self.probe = ""
        self.repaired = False

    def segs_sacked(self):
        return sum(segment.sacked for segment in self.segments.values())

    # Section 6.1

    def send(self, now_us, seq, length, retransmission):
        self.begin_event()
        self.transmit(now_us, seq, length, retransmission)
        if not retransmission:
            self.schedule_probe(now_us)

    def transmit(self, now_us, seq, length, retransmission):
        if retransmission:
            segment = self.segments[seq]
            segment.retransmitted, segment.lost, segment.in_flight = True, False, True
            segment.sent_us = now_us
        else:
            assert seq == self.next
            self.segments[seq] = Segment(seq, seq + length, now_us)
            self.next = seq + length
        if self.rto_us is None:
            self.rto_us = now_us + self.constant_rto_us

    # Sections 6.2 and 7.4

    def ack(self, now_us, ack, sacks, dsack, sample_us):
        """`sacks`: blocks (from, to), the first of them a D-SACK if `dsack`."""
        self.begin_event()
        if sample_us is not None:
            self.sample(sample_us)
        blocks = sacks[1:] if dsack else sacks
        delivered = self.deliver(ack, blocks)
        self.update(now_us, delivered)
        self.detect_reordering(delivered)
        advanced, duplicate = ack > self.una, ack == self.una and not sacks
        self.una = max(self.una, ack)
        dsack_of_probe = dsack and self.tlp_is_retrans and sacks[0][1] == self.tlp_end
        self.process_probe(ack, dsack_of_probe, duplicate)
        left = self.recovery_point is not None and self.una >= self.recovery_point
        if left:
            self.recovery_point = None
        self.adapt_window(dsack and (not dsack_of_probe or self.readings.dsack_of_probe_counts), left)
        if not self.segments:
            self.rto_us = None
        elif advanced:
            self.rto_us = now_us + self.constant_rto_us
        self.detect_loss_and_arm_timer(now_us)
        if not self.segments:
            self.pto_us = None
        elif advanced:
            self.schedule_probe(now_us)

    def sample(self, rtt_us):
        """RFC 6298 section 2, and step 1. No trace is long enough for the window of the minimum to matter."""
        self.srtt_us = rtt_us if self.srtt_us is None else 7 / 8 * self.srtt_us + rtt_us / 8
        self.min_rtt_us = rtt_us if self.min_rtt_us is None else min(self.min_rtt_us, rtt_us)
        self.sampled = True

    def deliver(self, ack, blocks):
        """The newly acknowledged segments. Segments are acknowledged whole."""
        delivered = []
        for segment in list(self.segments.values()):
            selectively = any(start <= segment.seq and segment.end <= end for start, end in blocks)
            if segment.end <= ack or selectively:
                if not segment.sacked:
                    delivered.append(segment)
                segment.sacked = True
            if segment.end <= ack:
                del self.segments[segment.seq]
        return delivered

    def update(self, now_us, delivered):
        """Step 2; no timestamps. The RFC wants the order of transmission; the sequence breaks ties."""
        for segment in sorted(delivered, key=lambda s: (s.sent_us, s.end)):
            rtt_us = now_us - segment.sent_us
            if segment.retransmitted and (self.min_rtt_us is None or rtt_us < self.min_rtt_us):
                continue
            if not segment.in_flight and not self.readings.lost_but_delivered_counts:
                continue
            self.rtt_us = rtt_us
            if self.newest is None or (segment.sent_us, segment.end) > self.newest:
                self.newest = (segment.sent_us, segment.end)

    def detect_reordering(self, delivered):
        """Step 3."""
        for segment in sorted(delivered, key=lambda s: s.end):
            if segment.end > self.fack:
                self.fack = segment.end
            elif segment.end < self.fack and not segment.retransmitted:
                self.reordering_seen = True

    def adapt_window(self, dsack, left_recovery):
        """Step 4, first part."""
        if self.dsack_round is not None and self.una >= self.dsack_round:
            self.dsack_round = None
        if self.dsack_round is None and dsack:
            self.dsack_round = self.next
            self.reo_wnd_mult += 1
            self.reo_wnd_persist = PERSIST
        elif left_recovery:
            self.reo_wnd_persist -= 1
            if self.reo_wnd_persist <= 0:
                self.reo_wnd_mult = 1

    def reordering_window(self):
        """Step 4, second part."""
        if not self.reordering_seen:
            if self.recovery_point is not None or self.segs_sacked() >= DUP_THRESH:
                return 0.0
        if self.min_rtt_us is None:
            return 0.0
        return min(self.reo_wnd_mult * self.min_rtt_us / 4, self.srtt_us)

    def detect_loss_and_arm_timer(self, now_us):
        """Step 5."""
        timeout_us = 0.0
        self.reo_wnd_us = self.reordering_window()
        for segment in sorted(self.segments.values(), key=lambda s: s.seq):
            if segment.sacked or not segment.in_flight or self.newest is None:
                continue
            if self.newest > (segment.sent_us, segment.end):
                remaining_us = segment.sent_us + self.rtt_us + self.reo_wnd_us - now_us
                self.nearest_us = min(self.nearest_us, remaining_us if remaining_us > 0 else math.inf)
                if remaining_us <= 0:
                    self.lose(segment)
                else:
                    timeout_us = max(remaining_us, timeout_us)
        self.reo_timer_us = now_us + timeout_us if timeout_us else None
        if self.lost and self.recovery_point is None:
            self.enter_recovery()
        if self.reo_timer_us is not None:
            self.pto_us = None  # section 8

    def lose(self, segment):
        if not segment.lost:
            self.lost.append(segment.seq)
        segment.lost, segment.in_flight = True, False

    def enter_recovery(self):
        self.recovery_point = self.next
        self.pto_us = None
        self.tlp_end = None  # section 7.1
        self.tlp_is_retrans = False

    def reo_timer(self, now_us):
        self.begin_event()
        self.detect_loss_and_arm_timer(now_us)

    def rto_timer(self, now_us):
        """Section 6.3."""
        self.begin_event()
        for segment in sorted(self.segments.values(), key=lambda s: s.seq):
            if segment.sacked or segment.lost:
                continue
            if segment.seq == self.una or segment.sent_us + (self.rtt_us or 0) + self.reo_wnd_us <= now_us:
                self.lose(segment)
        self.enter_recovery()
        self.reo_timer_us = None
        self.rto_us = now_us + self.constant_rto_us

    # Section 7

    def schedule_probe(self, now_us):
        """Section 7.2."""
        if self.recovery_point is not None or self.segs_sacked() or self.reo_timer_us is not None:
            return
        if self.srtt_us is None:
            pto_us = 1e6
        else:
            pto_us = 2 * self.srtt_us
            if len(self.segments) == 1 and self.readings.inflate_for_one_segment:
                pto_us += self.max_ack_delay_us
        self.pto_us = min(now_us + pto_us, self.rto_us)

    def pto_timer(self, now_us, available):
        """Section 7.3; `available`: length of the first unsent segment, zero if there is none."""
        self.begin_event()
        self.pto_us = None
        self.probe = "none"
        if self.tlp_end is None and self.sampled:
            self.tlp_is_retrans = not available
            if available:
                self.probe = "new"
                self.transmit(now_us, self.next, available, False)
            else:
                last = max(self.segments.values(), key=lambda s: s.end)
                self.probe = last.seq
                self.transmit(now_us, last.seq, last.end - last.seq, True)
            self.tlp_end = self.next
            self.sampled = False
        if self.segments:
            self.rto_us = now_us + self.constant_rto_us

    def process_probe(self, ack, dsack_of_probe, duplicate):
        """Section 7.4.2."""
        if self.tlp_end is None or ack < self.tlp_end:
            return
        if not self.tlp_is_retrans or dsack_of_probe:
            self.tlp_end = None
        elif ack > self.tlp_end:
            self.tlp_end = None
            self.repaired = True
        elif duplicate:
            self.tlp_end = None
