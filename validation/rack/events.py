"""Events for the second RACK-TLP, and rows of the table."""

import math

from rack import Rack

MSS = 1000

COLUMNS = (
    "trace,event,time_us,rto,max_ack_delay,seq,len,retransmission,ack,sacks,dsack,sample_us,"
    "lost,recovery,reo_wnd_us,rack_rtt_us,min_rtt_us,srtt_us,reo_timer_us,pto_us,rto_us,probe,repaired"
)


def text(value):
    """With thousandths of a microsecond."""
    if value is None:
        return ""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def state(of):
    """The columns of the state after an event."""
    lost = ";".join(str(seq) for seq in of.lost)
    times = [of.reo_wnd_us, of.rtt_us, of.min_rtt_us, of.srtt_us, of.reo_timer_us, of.pto_us, of.rto_us]
    recovery = int(of.recovery_point is not None)
    end = [str(of.probe), str(int(of.repaired))]
    return ",".join([lost, str(recovery)] + [text(time) for time in times] + end)


class Trace:
    """Events for one connection with the state after each. Segments of `MSS` bytes are counted from zero."""

    def __init__(self, name, rto_us=1_000_000, max_ack_delay_us=40_000):
        self.name = name
        self.first = 1001
        self.now_us = 1_000_000
        self.initial = (self.first, rto_us, max_ack_delay_us)
        self.rack = Rack(*self.initial)
        self.unsent = 0  # segments that a probe may use
        self.on_loss = None  # called with the segments that an event marked
        self.events = []
        self.rows = []
        self.row("start", rto=rto_us, max_ack_delay=max_ack_delay_us, seq=self.first, len=MSS)

    def row(self, event, **inputs):
        names = ("rto", "max_ack_delay", "seq", "len", "retransmission", "ack", "sacks", "dsack", "sample_us")
        columns = ",".join(str(inputs.get(name, "")) for name in names)
        self.rows.append(f"{self.name},{event},{self.now_us},{columns},{state(self.rack)}")

    def happen(self, method, *arguments):
        self.events.append((method, (self.now_us, *arguments)))
        getattr(self.rack, method)(self.now_us, *arguments)

    def byte(self, number):
        return self.first + number * MSS

    def number(self, byte):
        return (byte - self.first) // MSS

    def send(self, count=1, gap_us=0):
        """New data."""
        for _ in range(count):
            seq = self.rack.next
            self.happen("send", seq, MSS, False)
            self.row("send", seq=seq, len=MSS, retransmission=0)
            if gap_us:
                self.wait(gap_us)

    def retransmit(self, number):
        self.happen("send", self.byte(number), MSS, True)
        self.row("send", seq=self.byte(number), len=MSS, retransmission=1)

    def ack(self, number, sacks=(), dsack=None):
        """All before segment `number` has arrived, and segments `from` to `to - 1` of each SACK block."""
        blocks = ([dsack] if dsack else []) + list(sacks)
        blocks = [(self.byte(start), self.byte(end)) for start, end in blocks]
        sample_us = self.sample(self.byte(number), blocks[1:] if dsack else blocks)
        self.happen("ack", self.byte(number), blocks, dsack is not None, sample_us)
        text = ";".join(f"{start}-{end}" for start, end in blocks)
        sample_us = "" if sample_us is None else sample_us
        self.row("ack", ack=self.byte(number), sacks=text, dsack=int(dsack is not None), sample_us=sample_us)
        self.tell_losses()

    def sample(self, ack, blocks):
        """RFC 6298: of the newest segment that is acknowledged now and was sent once."""
        newest = None
        for segment in self.rack.segments.values():
            now = segment.end <= ack or any(start <= segment.seq < end for start, end in blocks)
            if now and not segment.sacked and not segment.retransmitted:
                newest = max(newest or 0, segment.sent_us)
        return None if newest is None else self.now_us - newest

    def tell_losses(self):
        if self.rack.lost and self.on_loss:
            self.on_loss([self.number(seq) for seq in self.rack.lost])

    def next_timer(self):
        """Section 8: one timer at a time."""
        for name in ["reo", "pto", "rto"]:
            expiry_us = getattr(self.rack, "reo_timer_us" if name == "reo" else f"{name}_us")
            if expiry_us is not None:
                return name, max(math.ceil(expiry_us), self.now_us)
        return None, math.inf

    def fire(self):
        """The timer that is armed expires."""
        name, self.now_us = self.next_timer()
        if name == "pto":
            available = MSS if self.unsent else 0
            self.happen("pto_timer", available)
            self.row("pto_timer", len=available)
            if self.rack.probe == "new":
                self.unsent -= 1
        else:
            self.happen(f"{name}_timer")
            self.row(f"{name}_timer")
        self.tell_losses()

    def wait(self, us):
        """Time passes, and the timers that expire meanwhile do."""
        end_us = self.now_us + us
        while self.next_timer()[1] <= end_us:
            self.fire()
        self.now_us = end_us
