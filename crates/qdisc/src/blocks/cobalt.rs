//! COBALT: CoDel and BLUE for one queue, or for each of many (Høiland-Jørgensen, Täht and Morton 2018; Palmei
//! et al. 2019).
//!
//! CoDel signals to senders that respond, as in [`codel`](super::codel), with two changes. After the delay
//! has fallen below the target, the count steps down at the times at which it would have stepped up, instead
//! of being reset; so congestion that returns soon meets the rate of signals at which it ended. And a head
//! that is above the target is signalled at the next due time, without another interval of waiting, as long
//! as the count has not reached zero.
//!
//! BLUE drops for senders that do not respond: a probability rises when the queue overflows and falls when it
//! is empty, each at most once per target.
//!
//! [`Cobalt`] is the state of one queue, 24 bytes; [`Law`] has the parameters of all queues of a discipline.
//! The caller owns the queue, and reports when it overflows and when it is empty.

use super::codel::over_root;
use crate::cx::Cx;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::{Share, Span, Time};

/// The parameters of COBALT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// The acceptable standing delay, and the minimum time between two steps of BLUE's probability.
    pub target: Span,
    /// Time above the target before the first signal; about the largest usual round-trip time.
    pub interval: Span,
    /// True if packets of ECN-capable transports are marked instead of dropped by CoDel.
    pub ecn: bool,
    /// True if the first signal does not wait for an interval, as in CAKE of Linux. It comes with the second
    /// packet above the target in a queue that has had no congestion before, and in one whose last packet
    /// below the target left more than an interval ago.
    pub at_once: bool,
    /// Step of BLUE's probability at an overflow.
    pub increment: Probability,
    /// Step of BLUE's probability while the queue is empty.
    pub decrement: Probability,
}

/// A probability in parts of 65,536, less than 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u16);

impl Probability {
    /// The step of BLUE at an overflow in CAKE: 1/256.
    pub const INCREMENT: Probability = Probability(256);
    /// The step of BLUE at an empty queue in CAKE: 1/4096.
    pub const DECREMENT: Probability = Probability(16);

    /// The nearest probability to a share.
    pub fn of(share: Share) -> Probability {
        // The conversion saturates.
        Probability((share.get() * 65_536.0 + 0.5) as u16)
    }

    /// The probability as a number.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 65_536.0
    }

    #[inline]
    fn happens(self, rng: &mut Rng) -> bool {
        self.0 > 0 && ((rng.word() >> 48) as u16) < self.0
    }
}

/// The state of one queue under COBALT.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cobalt {
    /// Time of the next signal while the count is not zero; otherwise the time until which the state is kept
    /// after the last packet.
    next: Time,
    /// Time of the last step of BLUE's probability.
    blue_at: Time,
    /// CoDel's count: signals are an interval / sqrt(count) apart.
    count: u32,
    /// BLUE's probability.
    probability: Probability,
    /// True while the sojourn time is above the target.
    dropping: bool,
    /// True if there has been congestion.
    begun: bool,
}

const _: () = assert!(size_of::<Cobalt>() == 24);

impl Cobalt {
    /// Decides on a packet that is about to leave: true if it is to be dropped. Otherwise it may have been
    /// marked. `above` is the sojourn time above which there is congestion: the target, or longer on a link
    /// on which a few packets take longer.
    #[inline]
    pub fn drops<P>(
        &mut self,
        law: &Law,
        above: Span,
        pkt: &mut Packet<P>,
        cx: &mut Cx<'_, P>,
        rng: &mut Rng,
    ) -> bool {
        !self.passes(law, above, pkt.meta.arrived, cx.now()) && self.decides(law, above, pkt, cx, rng)
    }

    /// True if a packet that arrived at this time leaves and there is nothing to decide. Otherwise
    /// [`Cobalt::drops`] decides, and this call has changed nothing.
    #[inline]
    pub fn passes(&mut self, law: &Law, above: Span, arrived: Time, now: Time) -> bool {
        let passes = now.since(arrived) <= above && self.count == 0 && self.probability.0 == 0;
        if passes {
            self.dropping = false;
            self.next = now + law.interval;
        }
        passes
    }

    #[inline(never)]
    fn decides<P>(
        &mut self,
        law: &Law,
        above: Span,
        pkt: &mut Packet<P>,
        cx: &mut Cx<'_, P>,
        rng: &mut Rng,
    ) -> bool {
        let now = cx.now();
        // Due by the schedule before this packet: a new state below begins its own.
        let due = self.is_due(now);
        let mut overdue = self.next < now;
        let mut dropped = false;
        if now.since(pkt.meta.arrived) > above {
            if !self.dropping {
                self.dropping = true;
                let waits = !law.at_once || self.begun;
                self.next = if waits { now + over_root(law.interval, self.count) } else { now };
            }
            self.count = self.count.max(1);
            self.begun = true;
            if due {
                dropped = !(law.ecn && cx.mark(pkt));
                self.count = self.count.saturating_add(1);
                self.next += over_root(law.interval, self.count);
                overdue = self.next < now;
            }
        } else {
            self.dropping = false;
            while self.is_due(now) {
                self.step_down(law);
                overdue = self.next < now;
            }
        }
        if !law.at_once {
            overdue = self.next < now;
        }
        dropped |= self.probability.happens(rng);
        if self.count == 0 {
            self.next = now + law.interval;
        } else if overdue && !dropped {
            // Signals that are overdue are not made up for.
            self.next = now;
        }
        dropped
    }

    /// The queue overflowed, and lost a packet. True if BLUE starts to drop.
    #[cold]
    pub fn on_overflow(&mut self, law: &Law, now: Time) -> bool {
        let mut begins = false;
        if now.since(self.blue_at) > law.target {
            begins = self.probability.0 == 0;
            self.probability.0 = self.probability.0.saturating_add(law.increment.0);
            self.blue_at = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1);
        self.begun = true;
        begins
    }

    /// The queue was found empty. True if BLUE ceases to drop.
    #[inline]
    pub fn on_empty(&mut self, law: &Law, now: Time) -> bool {
        let mut ceases = false;
        if self.probability.0 > 0 && now.since(self.blue_at) > law.target {
            self.probability.0 = self.probability.0.saturating_sub(law.decrement.0);
            self.blue_at = now;
            ceases = self.probability.0 == 0;
        }
        self.dropping = false;
        if self.is_due(now) {
            self.step_down(law);
        }
        ceases
    }

    /// True if the state of an empty queue equals a new one's: BLUE's probability and CoDel's count are zero,
    /// and the last packet left at least an interval ago.
    #[inline]
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.count == 0 && self.probability.0 == 0 && now >= self.next
    }

    /// True if the state of an empty queue will be at rest later, and [`Cobalt::on_empty`] changes nothing of
    /// it until then.
    #[inline]
    pub fn waits(&self, now: Time) -> bool {
        self.count == 0 && self.probability.0 == 0 && !self.dropping && now < self.next
    }

    /// CoDel's count.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// BLUE's probability.
    pub fn probability(&self) -> Probability {
        self.probability
    }

    /// True while the sojourn time is above the target.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    #[inline]
    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.next
    }

    /// One signal fewer per interval. Each step was a signal before, so their number is bounded by it.
    #[cold]
    fn step_down(&mut self, law: &Law) {
        self.count -= 1;
        self.next += over_root(law.interval, self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, FlowKey, Outbox, Streams};

    const LAW: Law = Law {
        target: Span::ms(5),
        interval: Span::ms(100),
        ecn: true,
        at_once: false,
        increment: Probability::INCREMENT,
        decrement: Probability::DECREMENT,
    };

    /// Decisions about packets that have waited for a given time, one per millisecond.
    struct Bench {
        law: Law,
        state: Cobalt,
        ms: u64,
        rng: Rng,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { law: LAW, state: Cobalt::default(), ms: 1000, rng: Streams::new(1).rng() }
        }

        /// The milliseconds at which packets that waited for `sojourn` are dropped or marked.
        fn signals(&mut self, packets: u64, sojourn: Span, ecn: Ecn) -> Vec<u64> {
            let mut signals = Vec::new();
            for _ in 0..packets {
                self.ms += 1;
                let mut out = Outbox::default();
                let mut pkt = Packet::new(FlowKey(1), 1000, 0u32);
                pkt.meta.ecn = ecn;
                let now = Time::ms(self.ms);
                pkt.meta.arrived = Time::from_ps(now.as_ps() - sojourn.as_ps());
                let cx = &mut Cx::new(now, &mut out);
                let dropped = self.state.drops(&self.law, LAW.target, &mut pkt, cx, &mut self.rng);
                if dropped || !out.marked.is_empty() {
                    signals.push(self.ms - 1000);
                }
            }
            signals
        }
    }

    /// Above the target from 1 ms on: the first signal after an interval, at 101 ms with a count of 1. With
    /// each signal the count rises before the next time is computed: 100 / sqrt(2) = 70.7 ms later, then 57.7
    /// ms, 50 ms and 44.7 ms.
    #[test]
    fn signals_follow_the_inverse_square_root() {
        let expected = [101, 172, 230, 280, 325];
        assert_eq!(Bench::new().signals(330, Span::ms(6), Ecn::NotCapable), expected);
        assert_eq!(Bench::new().signals(330, Span::ms(6), Ecn::Ect0), expected, "marks at the same times");
        assert!(Bench::new().signals(330, Span::ms(5), Ecn::NotCapable).is_empty(), "not above the target");
    }

    /// The second packet above the target is signalled, and the schedule starts with the first one: 70.7 ms
    /// after 1 ms, then 57.7 ms. It is so again after a pause of more than an interval, but not after a
    /// shorter one.
    #[test]
    fn the_first_signal_may_come_at_once() {
        let mut bench = Bench { law: Law { at_once: true, ..LAW }, ..Bench::new() };
        assert_eq!(bench.signals(150, Span::ms(6), Ecn::NotCapable), [2, 72, 130]);
        bench.signals(1000, Span::ms(1), Ecn::NotCapable);
        assert_eq!(bench.state.count(), 0);
        let mut soon = Bench { law: bench.law, state: bench.state, ..Bench::new() };
        (bench.ms, soon.ms) = (2150 + 101, 2150 + 99);
        assert_eq!(bench.signals(50, Span::ms(6), Ecn::NotCapable), [1253]);
        assert!(soon.signals(50, Span::ms(6), Ecn::NotCapable).is_empty());
    }

    /// The count is 6 after five signals. It steps down at the times of the schedule, which were 40.8 ms
    /// apart and get longer, and does not fall to zero at once.
    #[test]
    fn the_count_steps_down_when_the_delay_is_low() {
        let mut bench = Bench::new();
        bench.signals(330, Span::ms(6), Ecn::NotCapable);
        assert_eq!(bench.state.count(), 6);
        let mut counts = Vec::new();
        for _ in 0..8 {
            bench.signals(50, Span::ms(1), Ecn::NotCapable);
            counts.push(bench.state.count());
        }
        assert_eq!(counts, [5, 4, 3, 2, 2, 1, 1, 0]);
        // Congestion that returned before would have met the old rate, without an interval of waiting.
        let mut soon = Bench::new();
        soon.signals(330, Span::ms(6), Ecn::NotCapable);
        soon.signals(50, Span::ms(1), Ecn::NotCapable);
        let again = soon.signals(100, Span::ms(6), Ecn::NotCapable);
        assert_eq!(again, [426, 467], "100 / sqrt(5) = 44.7 ms after 380 + 1 ms");
    }

    /// BLUE rises by 1/256 per overflow and falls by 1/4096 per empty queue, at most once per 5 ms.
    #[test]
    fn blue_rises_with_overflows_and_falls_when_empty() {
        let mut state = Cobalt::default();
        let at = |tenths: u64| Time::us(1_000_000 + 100 * tenths);
        assert!(state.on_overflow(&LAW, at(0)), "BLUE begins");
        assert!(!state.on_overflow(&LAW, at(50)), "not within a target");
        assert_eq!(state.probability().get(), 1.0 / 256.0);
        assert!(!state.on_overflow(&LAW, at(51)));
        assert_eq!(state.probability().get(), 2.0 / 256.0);
        let ceased = (0..).find(|step| state.on_empty(&LAW, at(102 + 51 * step)));
        assert_eq!((ceased, state.probability().get()), (Some(31), 0.0), "32 steps of 1/4096");
        assert!(!state.is_at_rest(at(102)), "the count is not zero yet");
        assert!((0..100).any(|step| !state.on_empty(&LAW, at(10_000 + 2_000 * step)) && state.count() == 0));
        assert!(state.is_at_rest(at(1_000_000)));
    }

    /// With a probability of a half, half of the packets are dropped, also from ECN-capable senders.
    #[test]
    fn blue_drops_without_delay_and_without_marks() {
        let mut bench = Bench::new();
        bench.state.probability = Probability::of(Share::new(0.5).unwrap());
        let dropped = bench.signals(10_000, Span::ms(1), Ecn::Ect0).len();
        // The standard deviation is 50.
        assert!((4800..5200).contains(&dropped), "{dropped}");
        assert_eq!(Probability::of(Share::new(1.0).unwrap()).get(), 65_535.0 / 65_536.0);
    }
}
