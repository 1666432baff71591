//! RED: drops at random, and early, with a probability that rises with the average length of the queue.
//!
//! # Principles
//! - The average, not the length, decides: a burst passes, a standing queue causes drops or marks.
//! - Below `min` nothing is dropped; from `min` to `max` the probability rises to `probability`; above, all
//!   packets are dropped, or with `gentle` the probability rises on to 1 at twice `max`.
//! - Drops are spread: the probability grows with the packets since the last drop, so that drops neither
//!   cluster nor fail to come. With `wait` two drops are at least the mean gap apart.
//! - While the link is idle the average decays as if the packets that could have been sent had found it
//!   empty.
//! - With `adaptive`, `probability` moves so that the average stays in the middle between the thresholds.
//! - The unit of the thresholds decides what is counted: bytes ("30kb") or packets ("30p").
//! - Parameters can be changed while packets are queued: the average stays, and so does a `probability` that
//!   has adapted. If the unit of the thresholds changes, the average starts with the length of the queue.
//!   When the limit is lowered, the newest packets above it are dropped, or with `drop head` the oldest.
//!
//! # Deviations
//! - On a link whose rate varies, idle times follow the rate. Thresholds and weight stay.
//! - `tc` counts bytes only and requires `limit`; here it defaults to 300,000 bytes, and with `tc`'s own
//!   rules (`max` a quarter of `limit`, `min` a third of `max`) to thresholds of 75,000 and 25,000.
//! - A queue of at most one unit causes neither drops nor marks (ns-2); the kernel has no such rule.
//! - Idle time starts when the last packet has been sent. In the kernel it starts when dequeue finds an empty
//!   queue; a parent that counts packets, such as HTB, does not call dequeue then, and the average stays.
//! - The packet with which the average comes above `min` only starts the count (ns-2).
//! - With `bytemode`, the probability is multiplied by length / `avpkt` and the count advances by that
//!   (ns-2's `bytes_`): the kernel has no such mode.
//! - The probability of 1 above `max` comes before the restart of the count; Floyd and Jacobson do not
//!   specify the order.
//! - `max_p` is clamped to 1 % and 50 % when it adapts; the published steps could leave that range by one
//!   step.
//! - A number is drawn for each packet. Linux draws one for each gap, as the authors propose to save random
//!   numbers; that is the same while the average stands still, and drops less while it moves (`cargo xtask
//!   test-kernel --oracle` has both).
//! - A packet is dropped if the draw is below its probability. So a probability of zero never drops, which
//!   "not above" would allow.
//!
//! # Cost
//! - A multiplication and an addition per packet; a division and a draw when the average is above `min`; a
//!   power after an idle time. State of one queue.
//!
//! # References
//! - Floyd and Jacobson 1993, "Random Early Detection Gateways for Congestion Avoidance": the algorithm;
//!   section 6.1 for the weight. Floyd 2000, "Recommendation on using the gentle variant of RED".
//! - Floyd, Gummadi and Shenker 2001, "Adaptive RED".
//! - tc-red(8) for names and defaults; RFC 3168 for marks.

use std::any::Any;

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::blocks::red::{Adapt, Curve, Detector, RedDecision};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc,
    Rate, Rng, Share, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::taking::same;
use crate::common::thresholds::{Idle, Monitor, Thresholds, Unit, bandwidth};

/// Parameters of `red`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity; packets beyond it are dropped at any average. A number without a unit counts bytes, as in
    /// tc.
    #[schemars(extend("x-bare" = "b"))]
    pub limit: Limit,
    /// Average from which packets are dropped at random, in bytes or in packets; by default a third of `max`.
    #[schemars(extend("x-bare" = "b"))]
    pub min: Option<Limit>,
    /// Average at which the probability reaches `probability`, in the same unit; by default a quarter of
    /// `limit`.
    #[schemars(extend("x-bare" = "b"))]
    pub max: Option<Limit>,
    /// Length of an average packet: for idle times, for `burst`, and for `bytemode`.
    pub avpkt: Bytes,
    /// Burst of packets that does not raise the average to `min`; by default (2 min + max) / 3.
    pub burst: Option<Packets>,
    /// Weight of the newest length in the average, in place of `burst`.
    pub weight: Option<Share>,
    /// The weight follows from the link's rate, in place of `burst`: 1 - exp(-1/C), C in average packets per
    /// second.
    pub auto_weight: bool,
    /// Rate of the link, for idle times; by default the rate of the port.
    pub bandwidth: Option<Rate>,
    /// The probability at `max`; with `adaptive` in the beginning.
    pub probability: Share,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Above `max`, packets are dropped even if their sender supports ECN.
    pub harddrop: bool,
    /// With `ecn`, packets whose sender does not support ECN are enqueued instead of dropped early.
    pub nodrop: bool,
    /// `probability` adapts every half second, between 1 % and 50 %.
    pub adaptive: bool,
    /// Above `max` the probability rises to 1 at twice `max` instead of jumping there.
    pub gentle: bool,
    /// After a drop, no other one before the mean gap has passed.
    pub wait: bool,
    /// Scale the probability with the length of the packet, so that large packets are likelier to be dropped.
    pub bytemode: bool,
    /// The packet that is dropped when the buffer is full.
    pub drop: Victim,
}

/// The packet that a full buffer drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// The arriving packet.
    Tail,
    /// The oldest packets, until the arriving packet fits.
    Head,
    /// Random packets, the arriving one included, until the arriving packet fits.
    Random,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Bytes(300_000),
            min: None,
            max: None,
            avpkt: Bytes(1000),
            burst: None,
            weight: None,
            auto_weight: false,
            bandwidth: None,
            probability: Share::new(0.02).expect("2 % is a share"),
            ecn: false,
            harddrop: false,
            nodrop: false,
            adaptive: false,
            gentle: false,
            wait: false,
            bytemode: false,
            drop: Victim::Tail,
        }
    }
}

impl Config {
    fn thresholds(&self) -> Thresholds {
        Thresholds {
            limit: self.limit,
            min: self.min,
            max: self.max,
            gentle: self.gentle,
            avpkt: self.avpkt,
            burst: self.burst,
            weight: self.weight,
            auto_weight: self.auto_weight,
        }
    }

    /// The thresholds and their unit.
    fn curve(&self) -> Result<(Unit, Curve), Invalid> {
        self.thresholds().curve()
    }

    /// The curve of the probability, in the unit of the thresholds, and the weight of the newest length.
    ///
    /// # Errors
    /// The parameter that is invalid.
    pub fn law(&self, context: &LinkContext) -> Result<(Curve, f64), Invalid> {
        let (unit, curve) = self.curve()?;
        let weight = self.thresholds().weight(unit, &curve, bandwidth(self.bandwidth, context)?)?;
        Ok((curve, weight))
    }

    /// Everything of a queue that does not change, and the state of RED, also for disciplines with several.
    ///
    /// # Errors
    /// The parameter that is invalid.
    pub(crate) fn parts(&self, context: &LinkContext) -> Result<(Setup, Monitor), Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        self.thresholds().check_avpkt()?;
        if self.nodrop && !self.ecn {
            return Err(Invalid::new(
                "nodrop",
                "without ecn there would be neither drops nor marks: write \"ecn nodrop\"",
            ));
        }
        let (unit, curve) = self.curve()?;
        let bandwidth = bandwidth(self.bandwidth, context)?;
        let weight = self.thresholds().weight(unit, &curve, bandwidth)?;
        let adapt = self.adaptive.then(Adapt::default);
        let setup = Setup {
            limit: self.limit,
            unit,
            avpkt: self.avpkt.0,
            bandwidth,
            follows_link: self.bandwidth.is_none(),
            bytemode: self.bytemode,
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: self.nodrop,
            victim: self.drop,
        };
        let detector = Detector::new(curve, weight, self.probability.get(), self.wait, adapt);
        let monitor = setup.monitor(detector);
        Ok((setup, monitor))
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "random early detection: random drops by average queue length";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Red<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Red<P>, Invalid> {
        let (setup, monitor) = self.parts(context)?;
        Ok(Red::new(setup, monitor, context.streams.rng()))
    }

    fn filled(&self, _: &LinkContext) -> Config {
        let Some((min, max, burst)) = self.thresholds().filled() else { return self.clone() };
        Config { min: Some(min), max: Some(max), burst, ..self.clone() }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit).marking(self.ecn)
    }

    fn variants() -> Vec<Config> {
        let half = Share::new(0.5);
        let quick = Config { limit: Limit::Packets(20), weight: half, ..Config::default() };
        vec![
            quick.clone(),
            Config { limit: Limit::Packets(4), drop: Victim::Head, ..quick.clone() },
            Config { ecn: true, nodrop: true, drop: Victim::Random, ..quick.clone() },
            Config { ecn: true, harddrop: true, adaptive: true, gentle: true, wait: true, ..quick },
            Config {
                limit: Limit::Bytes(12_000),
                weight: half,
                bytemode: true,
                gentle: true,
                ..Config::default()
            },
            // The routers of FPIP's comparison: 25/75/300 KB, 10 %.
            Config {
                probability: Share::new(0.1).expect("10 % is a share"),
                weight: Share::new(0.002),
                avpkt: Bytes(500),
                gentle: true,
                wait: true,
                bytemode: true,
                ..Config::default()
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = self.thresholds().warnings(context);
        if self.curve().is_ok() && self.probability.get() == 0.0 {
            warnings.push("probability: with 0 there are no early drops below max".into());
        }
        warnings
    }
}

/// Everything of the queue that does not change.
pub(crate) struct Setup {
    pub limit: Limit,
    pub unit: Unit,
    pub avpkt: u64,
    pub bandwidth: Rate,
    /// True if `bandwidth` is the rate of the link.
    pub follows_link: bool,
    pub bytemode: bool,
    pub ecn: bool,
    pub harddrop: bool,
    pub nodrop: bool,
    pub victim: Victim,
}

impl Setup {
    /// The state of RED of an empty queue.
    pub fn monitor(&self, detector: Detector) -> Monitor {
        Monitor::new(self.unit, detector, Idle::new(self.bandwidth, self.avpkt))
    }

    /// Number of mean packets that a packet counts as.
    #[inline]
    pub fn size(&self, bytes: u32) -> f64 {
        if self.bytemode { f64::from(bytes) / self.avpkt as f64 } else { 1.0 }
    }

    /// Marks a packet instead of an early drop. True if the packet stays.
    pub fn spares<P>(&self, pkt: &mut Packet<P>, verdict: RedDecision, cx: &mut Cx<'_, P>) -> bool {
        if !self.ecn || (self.harddrop && verdict == RedDecision::SignalAboveMax) {
            return false;
        }
        cx.mark(pkt) || self.nodrop
    }
}

/// The discipline `red`: one queue and the state of RED.
pub struct Red<P> {
    setup: Setup,
    monitor: Monitor,
    rng: Rng,
    queue: Queue<P>,
}

impl<P: 'static> Qdisc<P> for Red<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let length = self.monitor.observe(self.queue.backlog(), cx.now());
        let size = self.setup.size(pkt.bytes());
        let verdict = self.monitor.detector.decide(length, size, || self.rng.uniform());

        if !self.setup.limit.admits(self.queue.backlog(), pkt.bytes()) {
            self.monitor.detector.on_overflow();
            if !self.make_room(&pkt, cx) {
                return cx.drop(pkt, DropReason::Overlimit);
            }
        } else if verdict != RedDecision::Accept && !self.setup.spares(&mut pkt, verdict, cx) {
            return cx.drop(pkt, DropReason::Early);
        }
        self.queue.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let Some(pkt) = self.queue.pop() else { return Next::Empty };
        self.monitor.idle.on_departure(pkt.bytes(), cx.now());
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.monitor.reset();
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        if self.setup.follows_link {
            self.monitor.idle.rate_changed(rate);
        }
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.monitor.gauges(visit);
        visit("max_p", self.monitor.detector.max_p());
    }

    /// The queue, the average, and the packets since the last drop.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Red<P>>(old) else { return };
        self.monitor.take_over(&old.monitor, old.queue.backlog());
        std::mem::swap(&mut self.rng, &mut old.rng);
        std::mem::swap(&mut self.queue, &mut old.queue);
        match self.setup.victim {
            Victim::Tail | Victim::Random => self.queue.shorten(self.setup.limit, cx),
            Victim::Head => self.queue.shorten_from_the_head(self.setup.limit, cx),
        }
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

impl<P> Red<P> {
    pub(crate) fn new(setup: Setup, monitor: Monitor, rng: Rng) -> Red<P> {
        let queue = Queue::new(setup.limit);
        Red { setup, monitor, rng, queue }
    }

    /// Drops queued packets until the arriving one fits. Returns false if the policy selects the arriving
    /// packet.
    fn make_room(&mut self, arriving: &Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        if !self.setup.limit.admits(Backlog::ZERO, arriving.bytes()) {
            return false;
        }
        while !self.setup.limit.admits(self.queue.backlog(), arriving.bytes()) {
            let place = match self.setup.victim {
                Victim::Tail => return false,
                Victim::Head => 0,
                Victim::Random => self.rng.below(self.queue.len() as u64 + 1) as usize,
            };
            // The index after the last packet stands for the arriving packet.
            let Some(victim) = self.queue.remove(place) else { return false };
            cx.drop(victim, DropReason::Pushout);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::{build_error, context};
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::{Ecn, FlowKey, Outbox, Span, Streams, Time};
    use proptest::prelude::*;

    fn built(spec: &str) -> Red<u32> {
        let crate::Spec::red(config) = spec.parse().unwrap() else { panic!("{spec} is red") };
        config.build(&context()).unwrap()
    }

    fn gauge(q: &Red<u32>, wanted: &str) -> f64 {
        let mut found = None;
        q.gauges(&mut |name, value| found = found.or((name == wanted).then_some(value)));
        found.expect("the gauge is there")
    }

    /// Offers one packet to a queue of constant length: it is dropped, marked, or enqueued while the head
    /// leaves.
    #[derive(Debug, PartialEq)]
    enum Fate {
        Taken,
        Marked,
        Dropped(DropReason),
    }
    fn knock(q: &mut Red<u32>, bytes: u32, ecn: Ecn, now: Time) -> Fate {
        let mut out = Outbox::default();
        let mut pkt = Packet::new(FlowKey(0), bytes, 0);
        pkt.meta.ecn = ecn;
        q.enqueue(pkt, &mut Cx::new(now, &mut out));
        if let Some((_, why)) = out.dropped.pop() {
            return Fate::Dropped(why);
        }
        let _ = q.dequeue(&mut Cx::new(now, &mut out));
        if out.marked.is_empty() { Fate::Taken } else { Fate::Marked }
    }
    fn fill(q: &mut Red<u32>, packets: u32, bytes: u32) {
        for name in 0..packets {
            q.queue.push(Packet::new(FlowKey(0), bytes, name));
        }
    }

    #[test]
    fn is_a_fifo_below_min() {
        assert_eq!(trace("red limit 400p", 1000, T1), trace("fifo", 1000, T1));
        assert_eq!(
            trace("red limit 4p min 3p max 4p weight 0.001", 1000, T1),
            trace("fifo limit 4p", 1000, T1)
        );
    }

    /// With weight 1 the average is the length that an arrival finds.
    #[test]
    fn above_max_all_packets_are_dropped() {
        assert_eq!(
            trace(
                "red limit 9p min 1p max 3p weight 1 probability 0",
                1000,
                "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000; 0.4 A5 1000; 0.5 A6 1000; 1.1 A7 1000"
            ),
            // A1 is on the wire; A5 and A6 find three queued packets, A7 two.
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] A7[4-5] | A5@0.4 A6@0.5"
        );
    }

    #[test]
    fn thresholds_follow_from_the_limit_as_in_tc() {
        let thresholds = |limit| {
            let (unit, curve) = Config { limit, ..Config::default() }.curve().unwrap();
            (unit, curve.min, curve.max)
        };
        assert_eq!(thresholds(Config::default().limit), (Unit::Bytes, 25_000.0, 75_000.0));
        assert_eq!(thresholds(Limit::Packets(120)), (Unit::Packets, 10.0, 30.0));
    }

    /// A queue kept at 50 KB with thresholds 25 and 75 KB and 10 %: p_b is 5 %, so the mean gap is 20
    /// packets.
    #[test]
    fn gaps_between_drops() {
        let gaps = |spec: &str| {
            let mut q = built(spec);
            fill(&mut q, 50, 1000);
            let mut gaps = Vec::new();
            let mut since = 0;
            for _ in 0..200_000 {
                since += 1;
                if knock(&mut q, 1000, Ecn::NotCapable, Time::ZERO) != Fate::Taken {
                    gaps.push(since);
                    since = 0;
                }
            }
            gaps.remove(0); // the count started in the middle
            let mean = f64::from(gaps.iter().sum::<i32>()) / gaps.len() as f64;
            (gaps.iter().copied().min().unwrap(), gaps.iter().copied().max().unwrap(), mean)
        };
        let (least, most, mean) = gaps("red weight 1 probability 0.1");
        assert!(least == 1 && (19..=20).contains(&most), "{least} {most}");
        assert!((mean - 10.0).abs() < 0.2, "uniform in 1 to 19: {mean}");
        let (nearest, farthest, waited) = gaps("red weight 1 probability 0.1 wait");
        assert!(nearest == 20 && (39..=40).contains(&farthest), "{nearest} {farthest}");
        assert!((waited - 29.5).abs() < 0.3, "uniform in 20 to 39: {waited}");
    }

    /// The routers of FPIP's comparison, whose kilobytes are of 1,000: thresholds, the probability at an
    /// average of 50 and of 90 KB, the first averages of a queue that grows, and the gaps between drops at a
    /// probability of 5 %.
    #[test]
    fn can_be_set_as_in_fpips_comparison() {
        let spec = "red limit 300000b min 25000b max 75000b probability 0.1 avpkt 500b weight 0.002 gentle wait bytemode";
        let crate::Spec::red(config) = spec.parse().unwrap() else { panic!("{spec} is red") };
        assert_eq!(config.build::<u64>(&context()).unwrap().setup.avpkt, 500);
        let defaults = Config { min: None, max: None, ..config };
        assert!(
            <Config as Discipline>::variants().contains(&defaults),
            "its thresholds are those of the limit"
        );

        let mut q = built(spec);
        for average in [0.0, 4.0, 11.992, 23.968, 39.92, 59.84, 83.721, 111.553] {
            assert_eq!(knock(&mut q, 1000, Ecn::NotCapable, Time::ZERO), Fate::Taken);
            assert!((gauge(&q, "average_bytes") - average).abs() < 5e-4, "{average}");
            fill(&mut q, 2, 1000);
        }
        let at = |kilobytes| {
            let mut q = built(&spec.replace("0.002", "1"));
            fill(&mut q, kilobytes, 1000);
            knock(&mut q, 500, Ecn::NotCapable, Time::ZERO);
            gauge(&q, "drop_probability")
        };
        assert!((at(50) - 0.05).abs() < 1e-15 && (at(90) - 0.28).abs() < 1e-15);
        assert_eq!((at(24), at(150)), (0.0, 1.0));

        // The average packet has 500 bytes: one of 1,000 bytes has twice the probability.
        let gaps = |bytes| {
            let mut q = built(&spec.replace("0.002", "1"));
            fill(&mut q, 50_000 / bytes, bytes);
            let fates = (0..50_000).map(|_| knock(&mut q, bytes, Ecn::NotCapable, Time::ZERO) != Fate::Taken);
            let drops: Vec<usize> = fates.enumerate().filter(|(_, drop)| *drop).map(|(n, _)| n).collect();
            let gaps: Vec<usize> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
            (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap())
        };
        assert_eq!(gaps(500), (20, 39));
        assert_eq!(gaps(1000).0, 10);
        assert!(gaps(1000).1 <= 20);
    }

    /// The average and the probability after each of eight arrivals at a short queue without departures.
    #[test]
    fn eight_arrivals() {
        let mut q = built("red limit 100p min 2p max 6p weight 0.25 probability 0.5 gentle wait");
        let mut out = Outbox::default();
        let averages = [0.0, 0.25, 0.6875, 1.2656, 1.9492, 2.7119, 3.5339, 4.4005];
        let probabilities = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0890, 0.1917, 0.3001];
        for (average, p_b) in averages.into_iter().zip(probabilities) {
            q.enqueue(Packet::new(FlowKey(0), 500, 0), &mut Cx::new(Time::ms(1), &mut out));
            assert!((gauge(&q, "average_packets") - average).abs() < 5e-5, "{average}");
            assert!((gauge(&q, "drop_probability") - p_b).abs() < 5e-5, "{p_b}");
        }
        // With `wait` there is no drop before count * p_b is 1. It is 3 * 0.3 now.
        assert!(out.dropped.is_empty());
    }

    /// A queue of at most one unit is not congestion at any average: one packet, or one byte, which is an
    /// empty queue.
    #[test]
    fn a_queue_of_one_unit_causes_no_drops() {
        let above_max = |spec: &str, unit: f64| {
            let mut q = built(spec);
            // 90 units of average at a weight of 0.002.
            q.monitor.detector.observe(45_000.0 * unit, 0, Time::ZERO);
            q
        };
        const EARLY: Fate = Fate::Dropped(DropReason::Early);
        let knocks = |mut q: Red<u32>| {
            [(); 3].map(|()| {
                let fate = knock(&mut q, 500, Ecn::NotCapable, Time::ZERO);
                fill(&mut q, 1, 40);
                fate
            })
        };
        let bytes = above_max("red limit 300000b weight 0.002", 1000.0);
        assert_eq!(knocks(bytes), [Fate::Taken, EARLY, EARLY]);
        let packets = above_max("red limit 300p weight 0.002", 1.0);
        assert_eq!(knocks(packets), [Fate::Taken, Fate::Taken, EARLY]);
    }

    #[test]
    fn ecn_options_select_marks_or_drops() {
        let fates = |spec: &str, packets, ecn| {
            let mut q = built(spec);
            fill(&mut q, packets, 1000);
            let mut fates: Vec<Fate> = (0..60).map(|_| knock(&mut q, 1000, ecn, Time::ZERO)).collect();
            fates.retain(|fate| *fate != Fate::Taken);
            fates.dedup_by(|a, b| a == b);
            fates
        };
        const EARLY: Fate = Fate::Dropped(DropReason::Early);
        let between = |options: &str, ecn| fates(&format!("red weight 1 probability 0.1 {options}"), 50, ecn);
        assert_eq!(between("", Ecn::Ect0), [EARLY]);
        assert_eq!(between("ecn", Ecn::Ect0), [Fate::Marked]);
        assert_eq!(between("ecn", Ecn::NotCapable), [EARLY]);
        assert_eq!(between("ecn harddrop", Ecn::Ect1), [Fate::Marked]);
        assert_eq!(between("ecn nodrop", Ecn::NotCapable), []);
        let above = |options: &str, ecn| fates(&format!("red weight 1 probability 0.1 {options}"), 80, ecn);
        assert_eq!(above("ecn", Ecn::Ect0), [Fate::Marked]);
        assert_eq!(above("ecn harddrop", Ecn::Ect0), [EARLY]);
        assert_eq!(above("ecn nodrop", Ecn::NotCapable), []);
        assert_eq!(above("ecn harddrop nodrop", Ecn::NotCapable), [EARLY]);
        // A full buffer drops ECN-capable packets, too.
        let full = fates("red limit 50p min 25p max 50p weight 1 ecn", 50, Ecn::Ect0);
        assert_eq!(full, [Fate::Dropped(DropReason::Overlimit)]);
    }

    /// 8 Mbit/s, packets of 1,000 bytes: one per millisecond.
    #[test]
    fn the_average_decays_while_the_link_is_idle() {
        let mut q = built("red limit 100p weight 0.5");
        let mut out = Outbox::default();
        for _ in 0..8 {
            q.enqueue(Packet::new(FlowKey(0), 1000, 0), &mut Cx::new(Time::ms(10), &mut out));
        }
        let before = gauge(&q, "average_packets");
        for _ in 0..8 {
            let _ = q.dequeue(&mut Cx::new(Time::ms(20), &mut out));
        }
        // The link is busy until 21 ms, and then idle for 3.9 ms, the time of three packets.
        let mut idle = q.monitor.detector.clone();
        idle.observe(0.0, 3, Time::ZERO);
        q.enqueue(Packet::new(FlowKey(0), 1000, 0), &mut Cx::new(Time::ZERO + Span::us(24_900), &mut out));
        assert_eq!(gauge(&q, "average_packets"), idle.average());
        assert!((gauge(&q, "average_packets") - before / 16.0).abs() < 1e-12);
    }

    #[test]
    fn idle_time_counts_once() {
        let mut q = built("red limit 6000b weight 0.5");
        q.monitor.detector.observe(4000.0, 0, Time::ZERO);
        q.monitor.idle.since = Some(Time::ZERO);
        // The packets are too large for the buffer, so the queue stays empty. The second one finds no further
        // idle time.
        for average in [2000.0 / 16.0, 2000.0 / 32.0] {
            assert_eq!(
                knock(&mut q, 7000, Ecn::NotCapable, Time::ms(3)),
                Fate::Dropped(DropReason::Overlimit)
            );
            assert_eq!(gauge(&q, "average_bytes"), average);
        }
    }

    #[test]
    fn a_full_buffer_drops_the_configured_packet() {
        let arrivals = "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000";
        let with = |victim: &str| trace(&format!("red limit 2p weight 0.001 drop {victim}"), 1000, arrivals);
        assert_eq!(with("tail"), "A1[0-1] A2[1-2] A3[2-3] | A4@0.3");
        assert_eq!(with("head"), "A1[0-1] A3[1-2] A4[2-3] | A2@0.3");
        assert!(["A2@0.3", "A3@0.3", "A4@0.3"].iter().any(|drop| with("random").ends_with(drop)));
    }

    #[test]
    fn invalid_and_unusual_parameters_are_reported() {
        assert_eq!(build_error("red min 30p").parameter, "min");
        assert_eq!(build_error("red min 80000b").parameter, "min");
        assert_eq!(build_error("red max 400000b").parameter, "max");
        assert_eq!(build_error("red nodrop").parameter, "nodrop");
        assert_eq!(build_error("red burst 3").parameter, "burst");
        assert_eq!(build_error("red weight 0.002 burst 50").parameter, "weight");
        assert_eq!(build_error("red avpkt 0").parameter, "avpkt");
        let warnings = |spec: &str| spec.parse::<crate::Spec>().unwrap().warnings(&context());
        assert!(warnings("red").is_empty());
        assert!(warnings("red min 50000b")[0].starts_with("max: 75000 is less than twice min"));
        assert!(warnings("red limit 100000b max 75000b")[0].starts_with("limit: "));
        assert!(warnings("red limit 12000b")[0].starts_with("min: 1000 is less than two packets"));
    }

    proptest! {
        /// While the average is below min and the buffer has room, there are no drops and no marks.
        #[test]
        fn nothing_is_lost_below_min(ops in prop::collection::vec((any::<bool>(), 40..1500u32), 1..300), seed: u64) {
            let config = Config { limit: Limit::Packets(40), weight: Share::new(0.3), ..Config::default() };
            let link = LinkContext::new(Rate::mbit(8), Streams::new(seed));
            let mut q: Red<u32> = config.build(&link).unwrap();
            let mut out = Outbox::default();
            let mut now = Time::ms(1);
            for (arrives, bytes) in ops {
                now += Span::us(100);
                if !arrives {
                    let _ = q.dequeue(&mut Cx::new(now, &mut out));
                    continue;
                }
                let full = q.backlog().packets == 40;
                q.enqueue(Packet::new(FlowKey(0), bytes, 0), &mut Cx::new(now, &mut out));
                if let Some((_, why)) = out.dropped.pop() {
                    prop_assert_eq!(why, if full { DropReason::Overlimit } else { DropReason::Early });
                    prop_assert!(full || gauge(&q, "average_packets") >= 10.0 / 3.0);
                }
            }
        }
    }
}
