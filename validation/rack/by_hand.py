"""Traces for the second RACK-TLP made by hand, for each rule of the RFC."""

from events import Trace


def probe_timer():
    """A PTO without a sample, with one, for one segment, and restarted. None after the last byte."""
    trace = Trace("probe_timer", rto_us=1_200_000)
    trace.send()
    trace.wait(300_000)
    trace.ack(1)
    trace.send(3)
    trace.wait(100_000)
    trace.send()
    trace.wait(100_000)
    trace.ack(2)
    trace.wait(50_000)
    trace.ack(4)
    trace.wait(200_000)
    trace.ack(5)
    trace.send(2)
    trace.wait(1_500_000)
    return trace


def limited_by_rto():
    """Twice the smoothed round trip is later than the RTO."""
    trace = Trace("limited_by_rto", rto_us=250_000)
    trace.send(2)
    trace.wait(200_000)
    trace.ack(1)
    trace.send(1)
    trace.wait(200_000)
    trace.ack(2)
    trace.wait(260_000)
    trace.wait(260_000)
    return trace


def small_reordering():
    """Two segments overtake one, which arrives within the reordering window: now reordering is known."""
    trace = Trace("small_reordering")
    trace.send(4)
    trace.wait(40_000)
    trace.ack(4)
    trace.send(6, gap_us=1000)
    trace.wait(34_000)
    trace.ack(4, [(5, 6)])
    trace.wait(1000)
    trace.ack(4, [(5, 7)])
    trace.wait(3000)
    trace.ack(7)
    trace.wait(1000)
    trace.ack(10)
    trace.send(6)
    trace.wait(40_000)
    trace.ack(10, [(11, 16)])
    trace.wait(5000)
    trace.ack(16)
    return trace


def reordering_timer():
    """The reordering timer finds a lost segment. In recovery the next ones are found at once."""
    trace = Trace("reordering_timer")
    trace.send(4)
    trace.wait(40_000)
    trace.ack(4)
    trace.send(6)
    trace.wait(40_400)
    trace.ack(4, [(5, 6)])
    trace.wait(10_000)
    trace.retransmit(4)
    trace.wait(100)
    trace.ack(4, [(5, 6), (9, 10)])
    trace.retransmit(6)
    trace.retransmit(7)
    trace.retransmit(8)
    trace.wait(41_000)
    trace.ack(10)
    trace.send(2)
    trace.wait(40_000)
    trace.ack(12)
    return trace


def dup_thresh():
    """Three SACKed segments and no reordering so far: no time for settling."""
    trace = Trace("dup_thresh")
    trace.send(2)
    trace.wait(20_000)
    trace.ack(2)
    trace.send(8, gap_us=100)
    trace.wait(19_400)
    trace.ack(3)
    trace.wait(200)
    trace.ack(3, [(4, 5)])
    trace.wait(100)
    trace.ack(3, [(4, 6)])
    trace.wait(100)
    trace.ack(3, [(4, 7)])
    trace.retransmit(3)
    trace.wait(21_000)
    trace.ack(10)
    return trace


def ties():
    """Segments of one moment: the higher sequence number counts as later."""
    trace = Trace("ties")
    trace.send(1)
    trace.wait(10_000)
    trace.ack(1)
    trace.send(6)
    trace.wait(10_000)
    trace.ack(1, [(3, 4)])
    trace.wait(100)
    trace.ack(1, [(3, 5)])
    trace.wait(5000)
    trace.retransmit(1)
    trace.retransmit(2)
    trace.wait(10_000)
    trace.ack(2, [(3, 5)])
    trace.wait(3000)
    trace.ack(3, [(3, 5)])
    trace.wait(20_000)
    return trace


def lost_retransmission():
    """A retransmitted segment is lost again. One that was sent later tells."""
    trace = Trace("lost_retransmission")
    trace.send(2)
    trace.wait(30_000)
    trace.ack(2)
    trace.send(8)
    trace.wait(30_000)
    trace.ack(2, [(4, 8)])
    trace.retransmit(2)
    trace.wait(50)
    trace.retransmit(3)
    trace.wait(1000)
    trace.send(2)
    trace.wait(29_500)
    trace.ack(2, [(3, 8)])
    trace.wait(2000)
    trace.ack(2, [(10, 11), (3, 8)])
    trace.retransmit(2)
    trace.wait(32_000)
    trace.ack(12)
    return trace


def spurious_retransmission():
    """A segment arrives less than a round trip after its retransmission: that is not a sample of RACK.rtt."""
    trace = Trace("spurious_retransmission")
    trace.send(4)
    trace.wait(50_000)
    trace.ack(4)
    trace.send(5)
    trace.wait(50_000)
    trace.ack(4, [(5, 9)])
    trace.retransmit(4)
    trace.wait(4000)
    trace.ack(9)
    trace.send(4)
    trace.wait(46_000)
    trace.ack(9, dsack=(4, 5))
    trace.wait(4500)
    trace.ack(9, [(12, 13)])
    trace.wait(30_000)
    return trace


def lost_but_delivered():
    """A segment that is marked lost arrives before it is retransmitted."""
    trace = Trace("lost_but_delivered")
    trace.send(4)
    trace.wait(50_000)
    trace.ack(4)
    trace.send(8, gap_us=200)
    trace.wait(48_500)
    trace.ack(4, [(5, 8)])
    trace.wait(5000)
    trace.ack(8)
    trace.wait(400)
    trace.ack(8, [(10, 11)])
    trace.wait(600)
    trace.ack(11)
    trace.wait(20_000)
    return trace


def window_growth():
    """A D-SACK a round grows the reordering window, up to SRTT. Sixteen recoveries without one reset it."""
    trace = Trace("window_growth")
    trace.send(4)
    trace.wait(40_000)
    trace.ack(4)
    trace.send(3)
    trace.wait(41_000)
    trace.ack(4, [(5, 6)])
    trace.wait(2000)
    trace.ack(7)
    base = 7
    for _ in range(5):
        trace.send(3)
        trace.wait(40_000)
        trace.ack(base + 1, dsack=(base - 1, base))
        trace.wait(500)
        trace.ack(base + 1, [(base + 2, base + 3)], dsack=(base - 2, base - 1))
        trace.wait(500)
        trace.ack(base + 3)
        base += 3
    for _ in range(17):
        trace.send(2)
        trace.wait(40_000)
        trace.ack(base, [(base + 1, base + 2)])
        trace.wait(70_000)
        trace.retransmit(base)
        trace.wait(41_000)
        trace.ack(base + 2)
        base += 2
    trace.send(2)
    trace.wait(40_000)
    trace.ack(base, [(base + 1, base + 2)])
    trace.wait(70_000)
    return trace


def probes():
    """Probes of new data and of the last segment, and what the acknowledgements say of them."""
    trace = Trace("probes")
    trace.send(2)
    trace.wait(20_000)
    trace.ack(2)
    # New data, acknowledged.
    trace.send(3)
    trace.unsent = 1
    trace.wait(60_000)
    trace.ack(6)
    # The last segment was lost, and the probe repaired the loss: the next data tell.
    trace.send(3)
    trace.wait(20_000)
    trace.ack(8)
    trace.fire()
    trace.wait(20_000)
    trace.ack(9)
    trace.send(2)
    trace.wait(20_000)
    trace.ack(11)
    # It was not lost, and its copy comes back as a D-SACK.
    trace.send(2)
    trace.fire()
    trace.wait(1000)
    trace.ack(13)
    trace.wait(19_000)
    trace.ack(13, dsack=(12, 13))
    # It was not lost, and the receiver has no D-SACK: a duplicate acknowledgement.
    trace.send(2)
    trace.fire()
    trace.wait(1000)
    trace.ack(15)
    trace.wait(19_000)
    trace.ack(15)
    # No sample since the last probe: no second probe, the RTO is armed instead.
    trace.send(2)
    trace.fire()
    trace.wait(20_000)
    trace.ack(15, dsack=(16, 17))
    trace.send(1)
    trace.fire()
    trace.fire()
    return trace


def probe_in_flight():
    """A probe that is not answered: no second one, though there are new samples."""
    trace = Trace("probe_in_flight")
    trace.send(2)
    trace.wait(20_000)
    trace.ack(2)
    trace.send(4)
    trace.fire()
    trace.wait(15_000)
    trace.ack(3)
    trace.wait(1000)
    trace.ack(4)
    trace.fire()
    trace.wait(10_000)
    # The SACK of the probe shows that the others are lost: recovery begins, and the probe is forgotten.
    trace.ack(4, [(5, 6)])
    trace.wait(10_000)
    trace.retransmit(4)
    trace.wait(20_000)
    trace.ack(6)
    trace.send(2)
    trace.wait(20_000)
    trace.ack(8)
    return trace


def timeouts():
    """Two RTOs: the probe was lost, and the retransmitted segment was lost."""
    trace = Trace("timeouts", rto_us=300_000)
    trace.send(2)
    trace.wait(200_000)
    trace.ack(2)
    trace.send(4)
    trace.wait(299_000)
    trace.send(1)
    trace.wait(320_000)
    trace.retransmit(2)
    trace.wait(200_000)
    trace.ack(3)
    trace.retransmit(3)
    trace.retransmit(4)
    trace.wait(200_000)
    trace.ack(5, [(6, 7)])
    trace.wait(60_000)
    trace.retransmit(5)
    trace.wait(200_000)
    trace.ack(7)
    trace.send(2)
    trace.wait(150_000)
    trace.ack(9)
    return trace


def timeout_in_recovery():
    """An RTO marks the first segment and leaves what was sent just before."""
    trace = Trace("timeout_in_recovery", rto_us=300_000)
    trace.send(2)
    trace.wait(100_000)
    trace.ack(2)
    trace.send(6)
    trace.wait(100_000)
    trace.ack(2, [(4, 7)])
    trace.wait(1000)
    trace.retransmit(2)
    trace.wait(97_000)
    trace.retransmit(3)
    trace.wait(2000)
    trace.ack(2, [(4, 8)])
    trace.send(1)
    trace.wait(99_500)
    trace.retransmit(2)
    trace.wait(50_000)
    trace.ack(3, [(4, 8)])
    trace.wait(50_000)
    trace.ack(9)
    return trace


def traces():
    return [
        probe_timer(),
        limited_by_rto(),
        small_reordering(),
        reordering_timer(),
        dup_thresh(),
        ties(),
        lost_retransmission(),
        spurious_retransmission(),
        lost_but_delivered(),
        window_growth(),
        probes(),
        probe_in_flight(),
        timeouts(),
        timeout_in_recovery(),
    ]
