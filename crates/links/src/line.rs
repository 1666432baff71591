//! The wire of a link: delay and impairments.
//!
//! The words come from `netem` (tc-netem(8)), with these differences:
//! - Delay and jitter: `netem` sorts its queue, so jitter reorders. Here packets keep their order unless
//!   `unordered` is set. The same holds for a delay that falls.
//! - `corrupt`: `netem` changes a bit, and the receiver discards the packet by a checksum. Here the far end
//!   of the link discards it, as the frame check of a real link does.
//! - `reorder`: in `netem` a packet is sent at once, in front of those that wait for the delay. Here it is
//!   late, by the time in which the link sends `distance` packets of its length, and a picosecond. If the
//!   link is busy with equal packets, exactly `distance` packets overtake it, which is its extent by RFC
//!   4737, section 4.2. The delay is never shorter than the wire's.
//! - `duplicate`: the copy arrives right behind the packet.

use giveway_qdisc::{Rate, Rng, Share, Span, Streams, Time};

use crate::lateness::Lateness;
use crate::loss::Loss;
use crate::profile::{Course, Profile};

/// Late packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of the packets.
    pub percent: Share,
    /// Number of packets by which each is late.
    pub distance: u32,
}

/// The varying quantities of a link, and the impairments of its wire.
#[derive(Clone, Debug, Default)]
pub struct Impairments {
    /// The rate over time, in place of the constant one.
    pub rate: Option<Profile>,
    /// The delay over time, in place of the constant one.
    pub delay: Option<Profile>,
    /// The model of loss, if it is more than a probability.
    pub loss: Option<Loss>,
    /// Probability that a packet arrives damaged, and is discarded.
    pub corrupt: Share,
    /// Probability that a packet arrives twice.
    pub duplicate: Share,
    /// Packets that arrive late.
    pub reorder: Option<Reorder>,
    /// True if packets overtake each other by their jitter, or when the delay falls.
    pub unordered: bool,
    /// The lateness of the thread or timer that takes packets from the queue, if it is not on time.
    pub dispatch_jitter: Option<Lateness>,
}

impl Impairments {
    /// True if a wire with this loss and jitter is neither constant nor perfect.
    pub fn any(&self, loss: Share, jitter: Span) -> bool {
        let Impairments { rate, delay, loss: model, corrupt, duplicate, reorder, dispatch_jitter, .. } = self;
        let shares = [loss, *corrupt, *duplicate];
        let models = rate.is_some() || delay.is_some() || model.is_some() || reorder.is_some();
        models
            || dispatch_jitter.is_some()
            || !jitter.is_zero()
            || shares.iter().any(|share| share.get() > 0.0)
    }

    /// The shortest delay of a wire whose constant delay is `delay`.
    pub fn least_delay(&self, delay: Span) -> Span {
        self.delay.as_ref().map_or(delay, |profile| Span::from_ps(profile.least()))
    }
}

/// The fate of a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It arrives at this time.
    Arrives(Time),
    /// It arrives at this time, and a copy right behind it.
    ArrivesTwice(Time),
}

/// A wire: one direction of a link behind its transmitter.
#[derive(Debug)]
pub struct Line {
    delay: Delay,
    loss: Loss,
    in_bad: bool,
    jitter: Span,
    unordered: bool,
    /// Arrival of the last packet in order.
    last: Time,
    /// The time from which a delay that varies, and hand-overs, are counted.
    start: Time,
    /// Draws loss and jitter.
    rng: Rng,
    corrupt: Option<(Share, Rng)>,
    duplicate: Option<(Share, Rng)>,
    reorder: Option<(Reorder, Rng)>,
}

/// The delay of a wire.
#[derive(Debug)]
enum Delay {
    Constant(Span),
    Varying { course: Course, until: Time, delay: Span },
}

impl Line {
    /// A wire with a constant delay, a loss and a jitter, and further impairments, which take the place of
    /// the first two. `streams` are the random streams of the wire.
    pub fn new(
        (delay, loss, jitter): (Span, Share, Span),
        impairments: &Impairments,
        streams: &Streams,
    ) -> Line {
        Line::starting((delay, loss, jitter), impairments, streams, Time::ZERO)
    }

    /// Like [`new`](Line::new); a delay that varies and hand-overs start at `start`.
    pub fn starting(
        (delay, loss, jitter): (Span, Share, Span),
        impairments: &Impairments,
        streams: &Streams,
        start: Time,
    ) -> Line {
        let draws =
            |share: Share, name: &str| (share.get() > 0.0).then(|| (share, streams.within(name).rng()));
        let varying = |profile: &Profile| Delay::Varying { course: profile.course(), until: start, delay };
        Line {
            delay: impairments.delay.as_ref().map_or(Delay::Constant(delay), varying),
            loss: impairments.loss.unwrap_or(Loss::Random(loss)),
            in_bad: false,
            jitter,
            unordered: impairments.unordered,
            last: Time::ZERO,
            start,
            rng: streams.rng(),
            corrupt: draws(impairments.corrupt, "corrupt"),
            duplicate: draws(impairments.duplicate, "duplicate"),
            reorder: impairments.reorder.map(|reorder| (reorder, streams.within("reorder").rng())),
        }
    }

    /// Gives the wire other properties from `now` on, at which a delay that varies starts. Packets on the
    /// wire are not overtaken for that reason, and loss and jitter go on drawing from their stream.
    pub fn change(
        &mut self,
        wire: (Span, Share, Span),
        impairments: &Impairments,
        streams: &Streams,
        now: Time,
    ) {
        let mut changed = Line::starting(wire, impairments, streams, now);
        // What is on the wire keeps its arrival, and the new wire starts behind it.
        changed.last = self.last;
        std::mem::swap(&mut changed.rng, &mut self.rng);
        *self = changed;
    }

    /// This wire behind packets of which the last in order arrives at `last`.
    pub fn behind(self, last: Time) -> Line {
        Line { last, ..self }
    }

    /// Changes a constant delay, for later packets. Packets on the wire are not overtaken, unless it is
    /// `unordered`. Returns false if the delay varies.
    pub fn set_delay(&mut self, delay: Span) -> bool {
        let constant = matches!(self.delay, Delay::Constant(_));
        if constant {
            self.delay = Delay::Constant(delay);
        }
        constant
    }

    /// Changes the probability of a loss, for later packets. Returns false if the loss follows another model.
    pub fn set_loss(&mut self, loss: Share) -> bool {
        let random = matches!(self.loss, Loss::Random(_));
        if random {
            self.loss = Loss::Random(loss);
        }
        random
    }

    /// The transmission of the last packet did not end, and is given up at `now`: later packets do not wait
    /// for it.
    pub fn resume(&mut self, now: Time) {
        if self.last == Time::NEVER {
            self.last = now;
        }
    }

    /// No packet ends its transmission before `now`. In real time this spreads the work of a delay that
    /// varies.
    pub fn pass(&mut self, now: Time) {
        self.delay.at(now);
    }

    /// Restarts the clock: the time `then` becomes zero. A delay that varies goes on; hand-overs are counted
    /// from then on.
    pub fn rebase(&mut self, then: Time) {
        self.pass(then);
        let moved = |at: Time| match at {
            Time::NEVER => Time::NEVER,
            at => Time::ZERO + at.since(then),
        };
        self.last = moved(self.last);
        self.start = moved(self.start);
        if let Delay::Varying { until, .. } = &mut self.delay {
            *until = moved(*until);
        }
    }

    /// True if it loses, copies and damages nothing, and every packet arrives after the same delay.
    pub fn is_perfect(&self) -> bool {
        self.is_constant() && self.loss.is_none() && self.corrupt.is_none() && self.duplicate.is_none()
    }

    /// True if packets arrive in the order of their transmission, each after the same delay.
    pub fn is_constant(&self) -> bool {
        matches!(self.delay, Delay::Constant(_)) && self.jitter.is_zero() && self.reorder.is_none()
    }

    /// The fate of a packet of `bytes` bytes whose transmission ends at `end`. `rate` is the link's present
    /// rate. Ends come in order.
    #[inline]
    pub fn carry(&mut self, bytes: u32, end: Time, rate: Rate) -> Fate {
        if self.loss.loses(end, self.start, &mut self.in_bad, &mut self.rng) {
            return Fate::Lost;
        }
        if let Some((share, rng)) = &mut self.corrupt
            && rng.uniform() < share.get()
        {
            return Fate::Lost;
        }
        let mut at = end + self.delay.at(end);
        if !self.jitter.is_zero() {
            at += Span::from_ps(self.rng.below(self.jitter.as_ps() + 1));
        }
        // A packet with less jitter, or after a fall of the delay, waits for the one before it, as on a real
        // wire.
        if !self.unordered {
            at = at.max(self.last);
            self.last = at;
        }
        if let Some((Reorder { percent, distance }, rng)) = &mut self.reorder
            && rng.uniform() < percent.get()
        {
            // After `last`, so that this packet alone is late. The picosecond puts it behind the packet that
            // ends at the same time.
            at += rate.time_for(u64::from(bytes)) * u64::from(*distance) + Span::from_ps(1);
        }
        if let Some((share, rng)) = &mut self.duplicate
            && rng.uniform() < share.get()
        {
            return Fate::ArrivesTwice(at);
        }
        Fate::Arrives(at)
    }
}

impl Delay {
    #[inline]
    fn at(&mut self, end: Time) -> Span {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Varying { course, until, delay } => {
                // The delay is taken when the packet enters the wire.
                while *until <= end && *until != Time::NEVER {
                    let piece = course.next();
                    *until += piece.length;
                    *delay = Span::from_ps(piece.value);
                }
                *delay
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Shape;
    use crate::quantity::Quantity;
    use giveway_qdisc::blocks::Gilbert;

    const RATE: Rate = Rate::mbit(12);

    fn share(share: f64) -> Share {
        Share::new(share).unwrap()
    }

    fn line(loss: Share, jitter: Span, impairments: &Impairments) -> Line {
        Line::new((Span::ms(10), loss, jitter), impairments, &Streams::new(3).within("wire"))
    }

    #[test]
    fn a_delay_and_a_loss_can_be_set_and_nothing_is_overtaken() {
        let mut wire = line(Share::default(), Span::ZERO, &Impairments::default()).behind(Time::ms(12));
        assert!(wire.set_delay(Span::ms(1)));
        let fate = |wire: &mut Line, ms| wire.carry(1500, Time::ms(ms), RATE);
        assert_eq!(fate(&mut wire, 5), Fate::Arrives(Time::ms(12)), "the last packet arrives then");
        assert_eq!(fate(&mut wire, 20), Fate::Arrives(Time::ms(21)));
        assert!(wire.set_loss(share(1.0)));
        assert_eq!(fate(&mut wire, 30), Fate::Lost);
        let bursts =
            Loss::Gilbert(Gilbert { p: share(0.1), r: share(0.5), bad: share(1.0), good: share(0.0) });
        let mut other =
            line(Share::default(), Span::ZERO, &Impairments { loss: Some(bursts), ..Impairments::default() });
        assert!(!other.set_loss(share(0.1)));
    }

    /// The fates of packets that a busy link sends one per millisecond.
    fn fates(line: &mut Line, packets: u64) -> Vec<Fate> {
        (1..=packets).map(|n| line.carry(1500, Time::ms(n), RATE)).collect()
    }

    /// The packets in the order of their arrival, by number from 1.
    fn arrivals(fates: &[Fate]) -> Vec<u64> {
        let mut arrivals: Vec<(Time, u64)> = Vec::new();
        for (fate, number) in fates.iter().zip(1..) {
            match fate {
                Fate::Lost => {}
                Fate::Arrives(at) => arrivals.push((*at, number)),
                Fate::ArrivesTwice(at) => arrivals.extend([(*at, number), (*at, number)]),
            }
        }
        arrivals.sort();
        arrivals.into_iter().map(|(_, number)| number).collect()
    }

    /// RFC 4737, section 3.3: a packet is reordered if its number is below the number of a packet that
    /// arrived before. Section 4.2.2: its extent is the number of arrivals since the earliest with a
    /// higher number.
    fn extents(arrivals: &[u64]) -> Vec<usize> {
        let mut extents = Vec::new();
        let mut highest = 0;
        for (i, number) in arrivals.iter().enumerate() {
            if *number < highest {
                let earliest = arrivals[..i].iter().position(|other| other > number).unwrap();
                extents.push(i - earliest);
            }
            highest = highest.max(*number);
        }
        extents
    }

    /// Gilbert's model with p = 1 % and r = 20 %. The stationary share of losses is p / (p + r) = 4.76 %. A
    /// burst has a geometric length with the mean 1/r = 5. There are some 9,500 bursts among 10^6 packets, so
    /// the standard error of the mean length is sqrt(1 - r) / r / sqrt(9500) = 0.046, and the standard error
    /// of the share is 0.065 % (variance of a two-state chain). Bounds are four standard errors.
    #[test]
    fn gilbert_loses_its_share_in_bursts_of_its_length() {
        let loss =
            Loss::Gilbert(Gilbert { p: share(0.01), r: share(0.2), bad: share(1.0), good: share(0.0) });
        assert!((loss.mean() - 0.01 / 0.21).abs() < 1e-12);
        let mut line =
            line(Share::default(), Span::ZERO, &Impairments { loss: Some(loss), ..Default::default() });
        let lost: Vec<bool> = fates(&mut line, 1_000_000).iter().map(|fate| *fate == Fate::Lost).collect();
        let count = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((count / 1e6 - 0.047_619).abs() < 0.002_6, "{count}");
        assert!((count / bursts - 5.0).abs() < 0.19, "{}", count / bursts);
        // The lengths are geometric: a share r of the bursts has one packet.
        let single = lost.windows(3).filter(|three| !three[0] && three[1] && !three[2]).count() as f64;
        assert!((single / bursts - 0.2).abs() < 4.0 * libm::sqrt(0.2 * 0.8 / bursts), "{}", single / bursts);
    }

    /// The states of Gilbert and Elliott lose 50 % and 0.1 %: (1/11) 0.5 + (10/11) 0.001 = 4.636 %.
    #[test]
    fn elliott_loses_in_both_states() {
        let loss =
            Loss::Gilbert(Gilbert { p: share(0.01), r: share(0.1), bad: share(0.5), good: share(0.001) });
        assert!((loss.mean() - 0.046_364).abs() < 1e-6);
        let mut line =
            line(Share::default(), Span::ZERO, &Impairments { loss: Some(loss), ..Default::default() });
        let count = fates(&mut line, 1_000_000).iter().filter(|fate| **fate == Fate::Lost).count() as f64;
        // Correlation over 1/(p + r) = 9 packets multiplies the variance by about 2 / 0.11 in the bad part.
        assert!((count / 1e6 - 0.046_364).abs() < 0.002_5, "{count}");
    }

    #[test]
    fn a_handover_loses_at_its_seams_only() {
        let loss = Loss::Handover { every: Span::ms(100), lasts: Span::ms(5), percent: share(1.0) };
        let mut line =
            line(Share::default(), Span::ZERO, &Impairments { loss: Some(loss), ..Default::default() });
        let lost: Vec<u64> = (1..)
            .zip(fates(&mut line, 250))
            .filter(|(_, fate)| *fate == Fate::Lost)
            .map(|(n, _)| n)
            .collect();
        assert_eq!(lost, [100, 101, 102, 103, 104, 200, 201, 202, 203, 204]);
    }

    /// A share of 1 % late by 3 packets. A late packet is not reordered only if all three behind it are late,
    /// too, which is rare; two late ones in one another's way change the extent by one.
    #[test]
    fn reordered_packets_have_their_share_and_their_extent() {
        let reorder = Some(Reorder { percent: share(0.01), distance: 3 });
        let mut line = line(Share::default(), Span::ZERO, &Impairments { reorder, ..Default::default() });
        let extents = extents(&arrivals(&fates(&mut line, 200_000)));
        // 2,000 with a standard deviation of 44.5; four of them.
        assert!((1822..=2178).contains(&extents.len()), "{}", extents.len());
        let exact = extents.iter().filter(|extent| **extent == 3).count() as f64 / extents.len() as f64;
        // 1 - 3 % - 3 % have no other late packet among the three before or behind them.
        assert!(exact > 0.92, "{exact}");
        assert!(extents.iter().all(|extent| (1..=6).contains(extent)));
    }

    #[test]
    fn jitter_keeps_the_order_unless_it_may_not() {
        for unordered in [false, true] {
            let impairments = Impairments { unordered, ..Default::default() };
            let fates = fates(&mut line(Share::default(), Span::ms(5), &impairments), 10_000);
            assert_eq!(extents(&arrivals(&fates)).is_empty(), !unordered);
            for (fate, n) in fates.iter().zip(1..) {
                let Fate::Arrives(at) = fate else { panic!("nothing is lost") };
                let late = at.since(Time::ms(n));
                assert!(late >= Span::ms(10) && late <= Span::ms(15), "{late}");
            }
        }
    }

    #[test]
    fn copies_and_damage_have_their_shares() {
        let impairments = Impairments { duplicate: share(0.02), corrupt: share(0.05), ..Default::default() };
        let fates = fates(&mut line(Share::default(), Span::ZERO, &impairments), 100_000);
        let lost = fates.iter().filter(|fate| **fate == Fate::Lost).count() as f64;
        let twice = fates.iter().filter(|fate| matches!(fate, Fate::ArrivesTwice(_))).count() as f64;
        // Four standard deviations: 276 of 5,000, 171 of 1,900.
        assert!((lost - 5000.0).abs() < 276.0, "{lost}");
        assert!((twice - 0.02 * (100_000.0 - lost)).abs() < 171.0, "{twice}");
    }

    #[test]
    fn one_more_impairment_changes_no_other() {
        let loss = |impairments: &Impairments| -> Vec<bool> {
            let fates = fates(&mut line(share(0.1), Span::ZERO, impairments), 1000);
            fates.iter().map(|fate| *fate == Fate::Lost).collect()
        };
        let reorder = Some(Reorder { percent: share(0.5), distance: 2 });
        let more = Impairments { duplicate: share(0.5), reorder, ..Default::default() };
        assert_eq!(loss(&Impairments::default()), loss(&more));
    }

    /// The delay falls from 30 ms to 10 ms at 100 ms: packets after that would overtake those before.
    #[test]
    fn a_delay_that_falls_keeps_the_order_unless_it_may_not() {
        let points = [(Span::ZERO, 30), (Span::ms(100), 10)];
        let points = points.map(|(at, ms)| (at, Span::ms(ms).as_ps()));
        let delay = Some(Profile::points(Quantity::Delay, Shape::Steps, &points, false).unwrap());
        let impairments = Impairments { delay, ..Default::default() };
        assert_eq!(impairments.least_delay(Span::s(1)), Span::ms(10));
        let all = fates(&mut line(Share::default(), Span::ZERO, &impairments), 130);
        assert_eq!(all[98], Fate::Arrives(Time::ms(129)));
        assert_eq!(all[99], Fate::Arrives(Time::ms(129)), "it waits for the one before");
        assert_eq!(all[129], Fate::Arrives(Time::ms(140)));
        let impairments = Impairments { unordered: true, ..impairments };
        let all = fates(&mut line(Share::default(), Span::ZERO, &impairments), 130);
        assert_eq!(all[99], Fate::Arrives(Time::ms(110)));
    }
}
