//! CoDel's control law, for one queue or for each of many. When the sojourn time at the head has been above
//! the target for an interval, the head is dropped, and further packets after shrinking intervals (RFC 8289,
//! section 5).
//!
//! [`Codel`] is the state of one queue, 32 bytes; [`Law`] has the parameters of all queues of a discipline.
//! The caller owns the queue and passes a closure that removes its head, so a packet is always in one place:
//! it is returned, or moved into the context as a drop.

use crate::cx::{Cx, DropReason};
use crate::packet::Packet;
use crate::units::{Bytes, Span, Time};

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    /// TARGET: the acceptable standing delay. RFC 8289, section 4 recommends 5 ms.
    pub target: Span,
    /// INTERVAL: time above the target before the first drop; about the largest usual round-trip time.
    pub interval: Span,
    /// MAXPACKET: a backlog of at most this many bytes is never dropped from (RFC 8289, section 5.3).
    pub mtu: Bytes,
    /// True if packets of ECN-capable transports are marked instead of dropped.
    pub ecn: bool,
    /// Sojourn time above which packets are always marked if their sender supports ECN.
    pub ce_threshold: Option<Span>,
}

/// The state of one queue under CoDel.
#[derive(Clone, Copy, Debug)]
pub struct Codel {
    /// `first_above_time_`: time from which a head above the target may be dropped; never while it is below.
    first_above: Time,
    /// `drop_next_`: time of the next drop in the drop state.
    drop_next: Time,
    /// `count_`: drops since the drop state was entered; it continues from the previous drop state if that
    /// was recent.
    count: u32,
    /// `lastcount_`: the count with which the drop state was entered.
    last_count: u32,
    /// `dropping_`: true in the drop state.
    dropping: bool,
}

const _: () = assert!(size_of::<Codel>() <= 32);

impl Default for Codel {
    fn default() -> Codel {
        Codel { first_above: Time::NEVER, drop_next: Time::ZERO, count: 0, last_count: 0, dropping: false }
    }
}

impl Law {
    /// Time until the next drop, rounded down to a picosecond: `control_law` of RFC 8289, section 5.6.
    ///
    /// RFC 8289, section 5.6 returns t + INTERVAL / sqrt(count). An integer square root needs no
    /// approximation.
    #[inline]
    fn step(&self, count: u32) -> Span {
        over_root(self.interval, count)
    }
}

/// `interval` / sqrt(`count`), rounded down to a picosecond; a count of 0 stands for 1.
pub(super) fn over_root(interval: Span, count: u32) -> Span {
    let interval = u128::from(interval.as_ps());
    let squared = interval * interval / u128::from(count.max(1));
    Span::from_ps(u64::try_from(squared.isqrt()).expect("a root is no longer than the interval"))
}

impl Codel {
    /// Dequeues a packet, after the drops that the law requires.
    ///
    /// `pop` removes the head of the queue and returns it with the number of bytes that remain.
    #[inline]
    pub fn dequeue<P>(
        &mut self,
        law: &Law,
        cx: &mut Cx<'_, P>,
        mut pop: impl FnMut() -> Option<(Packet<P>, u64)>,
    ) -> Option<Packet<P>> {
        let now = cx.now();
        // RFC 8289, section 5.5: `dodequeue` returns the head and whether it may be dropped; the state
        // machine below then keeps, enters or leaves the drop state.
        let head = self.head(law, now, &mut pop);
        let mut sent = match head {
            Some((pkt, false)) => {
                // RFC 8289, section 5.5: a sojourn time below TARGET leaves the drop state.
                self.dropping = false;
                pkt
            }
            Some((pkt, true)) if self.dropping => self.keep_dropping(law, cx, pkt, &mut pop)?,
            Some((pkt, true)) => self.start_dropping(law, cx, pkt, &mut pop)?,
            None => {
                self.dropping = false;
                return None;
            }
        };
        if law.ce_threshold.is_some_and(|most| now.since(sent.meta.arrived) > most) {
            cx.mark(&mut sent);
        }
        Some(sent)
    }

    /// Number of drops in the current or last drop state.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// True in the drop state.
    pub fn dropping(&self) -> bool {
        self.dropping
    }

    /// The head of the queue, and whether it may be dropped: `dodequeue` of RFC 8289, section 5.6.
    #[inline]
    fn head<P>(
        &mut self,
        law: &Law,
        now: Time,
        pop: &mut impl FnMut() -> Option<(Packet<P>, u64)>,
    ) -> Option<(Packet<P>, bool)> {
        let Some((pkt, left)) = pop() else {
            // RFC 8289, section 5.6: an empty queue cannot be above the target.
            self.first_above = Time::NEVER;
            return None;
        };
        let sojourn = now.since(pkt.meta.arrived);
        if sojourn < law.target || left <= law.mtu.0 {
            // RFC 8289, section 5.6: below the target, or with at most one MTU queued, the head has to stay
            // above the target for another whole interval before the next drop.
            self.first_above = Time::NEVER;
        } else if self.first_above == Time::NEVER {
            self.first_above = now + law.interval;
        } else {
            return Some((pkt, now >= self.first_above));
        }
        Some((pkt, false))
    }

    /// Drops the packets that are due by now, in the drop state and with a head above the target.
    #[cold]
    fn keep_dropping<P>(
        &mut self,
        law: &Law,
        cx: &mut Cx<'_, P>,
        mut pkt: Packet<P>,
        pop: &mut impl FnMut() -> Option<(Packet<P>, u64)>,
    ) -> Option<Packet<P>> {
        // RFC 8289, section 5.5: a link that was busy with large packets may have several drops due at once.
        while cx.now() >= self.drop_next {
            if law.ecn && cx.mark(&mut pkt) {
                self.count += 1;
                self.drop_next += law.step(self.count);
                break; // Further drops that are due become marks of the following packets.
            }
            cx.drop(pkt, DropReason::Congested);
            // `count_` includes the drop that ends the state, as in Linux and in the authors' first listing.
            self.count += 1;
            let (next, late) = self.head_or_leave(law, cx.now(), pop)?;
            pkt = next;
            if !late {
                self.dropping = false;
                break;
            }
            // RFC 8289, section 5.5: the step starts at the time at which this drop was due, so a late call
            // does not slow down the drops.
            self.drop_next += law.step(self.count);
        }
        Some(pkt)
    }

    /// Enters the drop state with one drop, after an interval above the target.
    #[cold]
    fn start_dropping<P>(
        &mut self,
        law: &Law,
        cx: &mut Cx<'_, P>,
        mut pkt: Packet<P>,
        pop: &mut impl FnMut() -> Option<(Packet<P>, u64)>,
    ) -> Option<Packet<P>> {
        if !(law.ecn && cx.mark(&mut pkt)) {
            cx.drop(pkt, DropReason::Congested);
            // The new head is returned in any case, so its sojourn time has no effect.
            (pkt, _) = self.head_or_leave(law, cx.now(), pop)?;
        }
        self.dropping = true;
        // RFC 8289, section 5.5: if the last drop state ended recently (within 16 intervals), its drop rate
        // is a better start than the slowest one.
        let last_time = self.count - self.last_count;
        let recent = cx.now().since(self.drop_next) < law.interval * 16;
        self.count = if last_time > 1 && recent { last_time } else { 1 };
        self.last_count = self.count;
        self.drop_next = cx.now() + law.step(self.count);
        Some(pkt)
    }

    /// Removes the packet behind a dropped one. It exists, since more than an MTU was queued behind the drop.
    fn head_or_leave<P>(
        &mut self,
        law: &Law,
        now: Time,
        pop: &mut impl FnMut() -> Option<(Packet<P>, u64)>,
    ) -> Option<(Packet<P>, bool)> {
        let head = self.head(law, now, pop);
        if head.is_none() {
            self.dropping = false;
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, FlowKey, Outbox};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const LAW: Law = Law {
        target: Span::ms(5),
        interval: Span::ms(100),
        mtu: Bytes(1500),
        ecn: false,
        ce_threshold: None,
    };

    /// A queue under CoDel that records its departures and drops by name.
    #[derive(Default)]
    struct Bench {
        queue: VecDeque<Packet<u32>>,
        codel: Codel,
        out: Outbox<u32>,
    }

    impl Bench {
        fn enqueue(&mut self, name: u32, bytes: u32, ecn: Ecn, now: Time) {
            let mut pkt = Packet::new(FlowKey(0), bytes, name);
            pkt.meta.arrived = now;
            pkt.meta.ecn = ecn;
            self.queue.push_back(pkt);
        }
        /// Dequeues a packet. Returns its name, and the names of the packets that were dropped before it.
        fn dequeue(&mut self, law: &Law, now: Time) -> (Option<u32>, Vec<u32>) {
            let Bench { queue, codel, out } = self;
            let sent = codel.dequeue(law, &mut Cx::new(now, out), || {
                let pkt = queue.pop_front()?;
                Some((pkt, queue.iter().map(|behind| u64::from(behind.bytes())).sum()))
            });
            let dropped = out.dropped.drain(..).map(|(pkt, why)| {
                assert_eq!(why, DropReason::Congested);
                pkt.payload
            });
            let dropped = dropped.collect();
            (sent.map(|pkt| pkt.payload), dropped)
        }
        /// Overload between two times: two packets arrive per millisecond, and one is dequeued.
        fn overload(&mut self, law: &Law, from_ms: u64, until_ms: u64, ecn: Ecn) -> Vec<(u64, Vec<u32>)> {
            let mut drops = Vec::new();
            for ms in from_ms..until_ms {
                for half in 0..2 {
                    self.enqueue((2 * ms + half) as u32, 1000, ecn, Time::us(1000 * ms + 500 * half));
                }
                let (_, dropped) = self.dequeue(law, Time::us(1000 * ms + 999));
                if !dropped.is_empty() {
                    drops.push((ms, dropped));
                }
            }
            drops
        }
        /// Drains the queue, one packet per millisecond.
        fn drain(&mut self, law: &Law, from_ms: u64) -> u64 {
            let mut ms = from_ms;
            while self.dequeue(law, Time::us(1000 * ms + 999)).0.is_some() {
                ms += 1;
            }
            ms
        }
    }

    #[test]
    fn the_interval_shrinks_with_the_root_of_the_count() {
        for count in 1..2000u32 {
            let exact = 1e11 / libm::sqrt(f64::from(count));
            assert!((LAW.step(count).as_ps() as f64 - exact).abs() <= 1.0, "{count}");
        }
        assert_eq!(LAW.step(4), Span::ms(50));
        assert_eq!(LAW.step(10_000), Span::ms(1));
    }

    #[test]
    fn a_short_burst_causes_no_drops() {
        let mut bench = Bench::default();
        // 90 packets at once take 90 ms to leave: above the target, but for less than the interval.
        for name in 0..90 {
            bench.enqueue(name, 1000, Ecn::NotCapable, Time::ms(1));
        }
        for name in 0..90 {
            assert_eq!(bench.dequeue(&LAW, Time::ms(1 + u64::from(name))), (Some(name), vec![]));
        }
    }

    #[test]
    fn there_are_no_drops_while_at_most_an_mtu_is_queued() {
        // Three packets are always queued, each for three seconds: far above the target, with two behind the
        // head.
        let drops = |bytes| {
            let mut bench = Bench::default();
            let mut dropped = 0;
            for second in 0..60 {
                bench.enqueue(second, bytes, Ecn::NotCapable, Time::s(1 + u64::from(second)));
                if second >= 2 {
                    dropped += bench.dequeue(&LAW, Time::s(1 + u64::from(second))).1.len();
                }
            }
            dropped
        };
        assert_eq!(drops(750), 0);
        assert!(drops(751) > 0, "one more byte behind the head makes it a standing queue");
    }

    #[test]
    fn the_count_continues_if_congestion_returns_soon() {
        let mut bench = Bench::default();
        bench.overload(&LAW, 0, 1000, Ecn::NotCapable);
        assert!(bench.codel.dropping());
        // The drop state began with a count of 1, which is now `reached`.
        let reached = bench.codel.count();
        assert!(reached > 10, "{reached}");
        let quiet = bench.drain(&LAW, 1000);
        assert!(!bench.codel.dropping());
        // The drop that ends the drop state is counted.
        let left_with = bench.codel.count();

        // A second overload soon after: the first drop comes after an interval, the second at the old rate.
        let soon = quiet + 100;
        let drops = bench.overload(&LAW, soon, soon + 200, Ecn::NotCapable);
        let resumed = left_with - 1;
        assert_eq!(bench.codel.last_count, resumed, "the count continues");
        let pace = libm::ceil(100.0 / libm::sqrt(f64::from(resumed))) as u64;
        assert!(pace < 40);
        assert_eq!(drops[1].0 - drops[0].0, pace);

        // The count is reset 16 intervals after the next drop would have been due.
        let resumes_with = |later: Span| {
            let mut other = Bench::default();
            let due = Time::s(10);
            other.codel = Codel { count: 9, last_count: 2, drop_next: due, ..Codel::default() };
            for name in 0..10 {
                other.enqueue(name, 1000, Ecn::NotCapable, Time::s(1));
            }
            other.codel.first_above = Time::s(2);
            assert_eq!(other.dequeue(&LAW, due + later), (Some(1), vec![0]));
            other.codel.count()
        };
        assert_eq!(resumes_with(Span::from_ps(1_599_999_999_999)), 7);
        assert_eq!(resumes_with(Span::ms(1600)), 1);
    }

    #[test]
    fn packets_are_marked_at_the_times_at_which_others_are_dropped() {
        let law = Law { ecn: true, ..LAW };
        let mut bench = Bench::default();
        let drops = bench.overload(&law, 0, 600, Ecn::Ect0);
        assert!(drops.is_empty());
        let marked = bench.out.marked.len();
        assert_eq!(marked as u32, bench.codel.count());

        let mut dropper = Bench::default();
        let dropped = dropper.overload(&law, 0, 600, Ecn::NotCapable);
        assert_eq!(dropped.len(), marked, "marks and drops are at the same times");
    }

    #[test]
    fn the_marking_threshold_is_independent_of_the_law() {
        let law = Law { ce_threshold: Some(Span::ms(1)), ..LAW };
        let mut bench = Bench::default();
        for name in 0..4 {
            bench.enqueue(name, 1000, Ecn::Ect1, Time::ms(1));
        }
        for at in [Time::us(1500), Time::ms(2), Time::us(2001), Time::ms(3)] {
            assert!(bench.dequeue(&law, at).1.is_empty());
        }
        assert_eq!(bench.out.marked.len(), 2, "a sojourn time equal to the threshold is not marked");
    }

    // -----------------------------------------------------------------------------------------------
    // A slow and simple model of the RFC: plain integers, with the names of RFC 8289, section 5
    // -----------------------------------------------------------------------------------------------

    struct Rfc {
        queue: VecDeque<(u32, i128, i128)>, // name, bytes, time stamp
        first_above_time: i128,
        drop_next: i128,
        count: i128,
        lastcount: i128,
        dropping: bool,
        dropped: Vec<u32>,
    }

    const TARGET: i128 = 5_000_000_000;
    const INTERVAL: i128 = 100_000_000_000;

    impl Rfc {
        fn new() -> Rfc {
            Rfc {
                queue: VecDeque::new(),
                first_above_time: 0,
                drop_next: 0,
                count: 0,
                lastcount: 0,
                dropping: false,
                dropped: Vec::new(),
            }
        }
        /// The largest whole number whose square times the count is not above the interval squared.
        fn control_law(t: i128, count: i128) -> i128 {
            let (mut low, mut high) = (0, INTERVAL + 1);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if middle * middle * count <= INTERVAL * INTERVAL { low = middle } else { high = middle }
            }
            t + low
        }
        fn dodequeue(&mut self, now: i128) -> (Option<u32>, bool) {
            let Some((name, _, stamp)) = self.queue.pop_front() else {
                self.first_above_time = 0;
                return (None, false);
            };
            let mut ok_to_drop = false;
            let bytes: i128 = self.queue.iter().map(|(_, bytes, _)| bytes).sum();
            if now - stamp < TARGET || bytes <= 1500 {
                self.first_above_time = 0;
            } else if self.first_above_time == 0 {
                self.first_above_time = now + INTERVAL;
            } else if now >= self.first_above_time {
                ok_to_drop = true;
            }
            (Some(name), ok_to_drop)
        }
        fn dequeue(&mut self, now: i128) -> Option<u32> {
            let mut r = self.dodequeue(now);
            if self.dropping {
                if !r.1 {
                    self.dropping = false;
                }
                while now >= self.drop_next && self.dropping {
                    self.dropped.extend(r.0);
                    self.count += 1;
                    r = self.dodequeue(now);
                    if !r.1 {
                        self.dropping = false;
                    } else {
                        self.drop_next = Rfc::control_law(self.drop_next, self.count);
                    }
                }
            } else if r.1 {
                self.dropped.extend(r.0);
                r = self.dodequeue(now);
                self.dropping = true;
                let delta = self.count - self.lastcount;
                self.count = 1;
                if delta > 1 && now - self.drop_next < 16 * INTERVAL {
                    self.count = delta;
                }
                self.drop_next = Rfc::control_law(now, self.count);
                self.lastcount = self.count;
            }
            r.0
        }
    }

    /// One phase of a random trace: number of steps, time between them, arrivals and departures per step, and
    /// lengths, which are used in turn. Balanced phases with long gaps have a backlog around the MTU, with
    /// long sojourn times.
    fn phase() -> impl Strategy<Value = (u16, u32, u8, u8, [u32; 4])> {
        let bytes = || prop_oneof![Just(40u32), Just(750), Just(751), Just(1500), 40..1501u32];
        let overload = (1..400u16, 1..3_000u32, 0..4u8, 0..3u8);
        let balanced = (1..40u16, 5_000..60_000u32, Just(1u8), Just(1u8));
        let start = (Just(1u16), Just(100u32), 1..6u8, Just(0u8));
        (prop_oneof![overload, balanced, start], [bytes(), bytes(), bytes(), bytes()])
            .prop_map(|((steps, gap, arrivals, departures), bytes)| (steps, gap, arrivals, departures, bytes))
    }

    /// A minute at a link of one packet per millisecond: overload from 200 % to 110 % of its rate, with
    /// pauses shorter and longer than 16 intervals.
    #[test]
    fn a_minute_of_overload_equals_the_model_of_the_rfc() {
        let mut bench = Bench::default();
        let mut rfc = Rfc::new();
        let (mut name, mut drops, mut most) = (0, 0, 0);
        for ms in 1..60_000u64 {
            let now = Time::ms(ms);
            // Eight seconds each: five seconds of load, then a pause of 1 s to 3 s. The load decreases from
            // one to the next.
            let (round, within) = (ms / 8000, ms % 8000);
            let percent = if within < 5000 + 250 * round { 200 - 12 * round } else { 0 };
            for _ in ms * percent / 100..(ms + 1) * percent / 100 {
                let bytes = [1500, 40, 1000][name as usize % 3];
                bench.enqueue(name, bytes, Ecn::NotCapable, now);
                rfc.queue.push_back((name, i128::from(bytes), i128::from(now.as_ps())));
                name += 1;
            }
            let (sent, dropped) = bench.dequeue(&LAW, now);
            assert_eq!(sent, rfc.dequeue(i128::from(now.as_ps())));
            assert_eq!(dropped, std::mem::take(&mut rfc.dropped));
            drops += dropped.len();
            most = most.max(bench.codel.count());
        }
        assert!(drops > 1000 && most > 100, "{drops} {most}");
    }

    proptest! {
        /// Departures and drops of each call match the model of the RFC.
        #[test]
        fn equals_the_model_of_the_rfc(phases in prop::collection::vec(phase(), 1..24)) {
            let mut bench = Bench::default();
            let mut rfc = Rfc::new();
            // The trace begins after the epoch, because time 0 means "not set" in the RFC.
            let mut now = Time::ms(1);
            let mut name = 0;
            for (steps, gap_us, arrivals, departures, bytes) in phases {
                for _ in 0..steps {
                    now += Span::us(u64::from(gap_us));
                    for _ in 0..arrivals {
                        let bytes = bytes[name as usize % 4];
                        bench.enqueue(name, bytes, Ecn::NotCapable, now);
                        rfc.queue.push_back((name, i128::from(bytes), i128::from(now.as_ps())));
                        name += 1;
                    }
                    for _ in 0..departures {
                        let (sent, dropped) = bench.dequeue(&LAW, now);
                        prop_assert_eq!(sent, rfc.dequeue(i128::from(now.as_ps())));
                        prop_assert_eq!(dropped, std::mem::take(&mut rfc.dropped));
                        prop_assert_eq!(bench.codel.dropping(), rfc.dropping);
                        prop_assert_eq!(i128::from(bench.codel.count()), rfc.count);
                    }
                }
            }
        }
    }
}
