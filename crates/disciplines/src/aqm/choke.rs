//! CHOKe: RED, and an arriving packet that matches a queued packet of its flow is dropped with it.
//!
//! # Principles
//! - A flow with more than its share of the queue is matched more often. So the queue itself estimates which
//!   flows send too much, without state per flow.
//! - While the average is below `min` all packets are accepted. From `min` on, an arriving packet is compared
//!   with one that is drawn from the queue at random: if both are of one flow, both are dropped; if not, RED
//!   decides about the arriving one.
//! - So an unresponsive flow loses twice: the arriving packet and a queued one. A flow with few queued
//!   packets is rarely matched.
//! - `candidates` draws several packets instead of one: with many greedy flows one draw seldom finds a match.
//! - Departure order is order of arrival.
//!
//! # Deviations
//! - Both thresholds belong to the range above them, as in `red`.
//! - A matched packet and its loss do not count in RED's spacing of drops; the paper does not specify this. A
//!   matched packet is dropped even if its sender supports ECN.
//! - RED's part is the same as in `red`: a queue of at most one unit causes neither drops nor marks, and the
//!   packet with which the average comes above `min` only starts the count. The comparison is made with any
//!   queue that is not empty.
//! - Candidates are drawn one after the other, each from what is then queued: one that did not match may be
//!   drawn again. All are drawn even if the first one matches, and all that match are dropped. The paper does
//!   not specify this.
//! - The paper's rule that raises the number of candidates with the average is left out.
//! - `tc` counts packets only and requires `limit`; here thresholds may be bytes as well, and `limit`
//!   defaults to 300 packets, which makes the thresholds 25 and 75. The draw is over packets in either case.
//!   `gentle`, `weight` and `candidates` are not in `tc`.
//!
//! # Cost
//! - The same as `red`, and a draw per candidate and arrival while the average is above `min`. Taking a
//!   packet out of the middle is as cheap as sending one: the queue is a list inside an array without holes.
//!
//! # References
//! - R. Pan, B. Prabhakar, K. Psounis, "CHOKe: A Stateless Active Queue Management Scheme for Approximating
//!   Fair Bandwidth Allocation", INFOCOM 2000.
//! - A. Tang, J. Wang, S. Low, "Understanding CHOKe: Throughput and Spatial Characteristics", IEEE/ACM
//!   Transactions on Networking 12(4), 2004: an unresponsive flow gets at most 1/(e+1) of the link, 27 %.
//! - tc-choke(8), tc-red(8) for names and defaults.

use giveway_qdisc::blocks::DenseFifo;
use giveway_qdisc::blocks::red::{Detector, RedDecision};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowKey, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties,
    Qdisc, Rate, Rng, Share, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::thresholds::{Idle, Monitor, Thresholds, bandwidth};

/// Parameters of `choke`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity; packets beyond it are dropped at any average. A number without a unit counts packets, as in
    /// tc.
    #[schemars(extend("x-bare" = "p"))]
    pub limit: Limit,
    /// Average from which arriving packets are compared, in packets or in bytes; by default a third of `max`.
    #[schemars(extend("x-bare" = "p"))]
    pub min: Option<Limit>,
    /// Average at which RED's probability reaches `probability`, in the same unit; by default a quarter of
    /// `limit`.
    #[schemars(extend("x-bare" = "p"))]
    pub max: Option<Limit>,
    /// Length of an average packet: for idle times, and for `burst` when thresholds are in bytes.
    pub avpkt: Bytes,
    /// Burst of packets that does not raise the average to `min`; by default (2 min + max) / 3.
    pub burst: Option<Packets>,
    /// Weight of the newest length in the average, in place of `burst`.
    pub weight: Option<Share>,
    /// Rate of the link, for idle times; by default the rate of the port.
    pub bandwidth: Option<Rate>,
    /// RED's probability at `max`.
    pub probability: Share,
    /// Number of queued packets that an arriving packet is compared with.
    pub candidates: u32,
    /// RED marks packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// Above `max` RED's probability rises to 1 at twice `max` instead of jumping there.
    pub gentle: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Limit::Packets(300),
            min: None,
            max: None,
            avpkt: Bytes(1000),
            burst: None,
            weight: None,
            bandwidth: None,
            probability: Share::new(0.02).expect("2 % is a share"),
            candidates: 1,
            ecn: false,
            gentle: false,
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
            auto_weight: false,
        }
    }
}

/// More draws than this per arrival cost time and change little: the paper has one and, where it adapts, a
/// few, and 16 leave few packets of a greedy flow.
const MAX_CANDIDATES: u32 = 16;

impl Discipline for Config {
    const SUMMARY: &'static str =
        "CHOKe: RED; also drops an arrival and a random queued packet if both are of one flow";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Choke<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Choke<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let thresholds = self.thresholds();
        thresholds.check_avpkt()?;
        if self.candidates == 0 {
            return Err(Invalid::new("candidates", "must be at least 1; with 0 it is RED: write \"red\""));
        }
        if self.candidates > MAX_CANDIDATES {
            let message = format!(
                "{} is above {MAX_CANDIDATES}: write for example 1, as in the paper",
                self.candidates
            );
            return Err(Invalid::new("candidates", message));
        }
        if self.weight.is_some() && self.burst.is_some() {
            let message = "weight and burst both set the speed of the average: give one of them";
            return Err(Invalid::new("weight", message));
        }
        let (unit, curve) = thresholds.curve()?;
        let bandwidth = bandwidth(self.bandwidth, context)?;
        let weight = thresholds.weight(unit, &curve, bandwidth)?;
        let detector = Detector::new(curve, weight, self.probability.get(), false, None);
        Ok(Choke {
            limit: self.limit,
            min: curve.min,
            candidates: self.candidates,
            ecn: self.ecn,
            monitor: Monitor::new(unit, detector, Idle::new(bandwidth, self.avpkt.0)),
            follows_link: self.bandwidth.is_none(),
            rng: context.streams.rng(),
            queue: DenseFifo::with_capacity(self.limit.initial_capacity()),
            backlog: Backlog::ZERO,
            met: 0,
        })
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
            Config { candidates: 4, ecn: true, ..quick.clone() },
            Config { candidates: 2, gentle: true, probability: Share::default(), ..quick },
            Config {
                limit: Limit::Bytes(12_000),
                weight: half,
                ecn: true,
                gentle: true,
                ..Config::default()
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        self.thresholds().warnings(context)
    }
}

/// The discipline `choke`: one queue and the state of RED.
pub struct Choke<P> {
    limit: Limit,
    min: f64,
    candidates: u32,
    ecn: bool,
    monitor: Monitor,
    /// True if the rate for idle times is the link's rate.
    follows_link: bool,
    rng: Rng,
    queue: DenseFifo<Packet<P>>,
    backlog: Backlog,
    /// Number of arriving packets that matched, since creation or reset.
    met: u64,
}

impl<P> Qdisc<P> for Choke<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.monitor.observe(self.backlog, cx.now());
        if self.monitor.detector.average() >= self.min && self.drops_match(pkt.meta.flow, cx) {
            return cx.drop(pkt, DropReason::Early);
        }
        let length = self.monitor.length(self.backlog);
        let verdict = self.monitor.detector.decide(length, 1.0, || self.rng.uniform());
        if !self.limit.admits(self.backlog, pkt.bytes()) {
            self.monitor.detector.on_overflow();
            return cx.drop(pkt, DropReason::Overlimit);
        }
        if verdict != RedDecision::Accept && !(self.ecn && cx.mark(&mut pkt)) {
            return cx.drop(pkt, DropReason::Early);
        }
        self.backlog.add(pkt.bytes());
        self.queue.push_back(pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let Some(pkt) = self.queue.pop_front() else { return Next::Empty };
        self.backlog.sub(pkt.bytes());
        self.monitor.idle.on_departure(pkt.bytes(), cx.now());
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(pkt) = self.queue.pop_front() {
            cx.drop(pkt, DropReason::Reset);
        }
        self.backlog = Backlog::ZERO;
        self.monitor.reset();
        self.met = 0;
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        if self.follows_link {
            self.monitor.idle.rate_changed(rate);
        }
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.monitor.gauges(visit);
        visit("met_packets", self.met as f64);
    }
}

impl<P> Choke<P> {
    /// Draws the candidates and drops the packets of this flow. Returns true if there were any.
    fn drops_match(&mut self, flow: FlowKey, cx: &mut Cx<'_, P>) -> bool {
        let mut met = false;
        for _ in 0..self.candidates {
            if self.queue.is_empty() {
                break;
            }
            let number = self.rng.below(self.queue.len() as u64) as usize;
            if self.queue.get(number).is_some_and(|candidate| candidate.meta.flow == flow) {
                let candidate = self.queue.remove(number);
                self.backlog.sub(candidate.bytes());
                cx.drop(candidate, DropReason::Early);
                met = true;
            }
        }
        self.met += u64::from(met);
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::{build_error, context};
    use crate::testing::shares::{Sender, run, ten_unresponsive_flows};
    use crate::testing::trace::{T1, trace};
    use giveway_qdisc::blocks::red::Curve;
    use giveway_qdisc::{Ecn, Outbox, Rng, Span, Streams, Time};
    use proptest::prelude::*;

    fn built(spec: &str) -> Choke<u32> {
        let crate::Spec::choke(config) = spec.parse().unwrap() else { panic!("{spec} is choke") };
        config.build(&context()).unwrap()
    }

    /// Offers a packet. Returns the names of the dropped packets and the number of marks.
    fn offer(q: &mut Choke<u32>, flow: u64, name: u32, ecn: Ecn) -> (Vec<u32>, usize) {
        let mut out = Outbox::default();
        let mut pkt = Packet::new(FlowKey(flow), 1000, name);
        pkt.meta.ecn = ecn;
        q.enqueue(pkt, &mut Cx::new(Time::ms(1), &mut out));
        (out.dropped.into_iter().map(|(pkt, _)| pkt.payload).collect(), out.marked.len())
    }

    fn names(q: &Choke<u32>) -> Vec<u32> {
        q.queue.iter().map(|pkt| pkt.payload).collect()
    }

    #[test]
    fn is_a_fifo_below_min() {
        assert_eq!(trace("choke", 1000, T1), trace("fifo", 1000, T1));
        assert_eq!(
            trace("choke limit 4p min 3p max 4p weight 0.001", 1000, T1),
            trace("fifo limit 4p", 1000, T1)
        );
    }

    /// With weight 1 the average is the length of the queue at each arrival; with `probability 0` RED drops
    /// nothing below max. A1 is on the wire. A3 arrives at an average of 1, below `min 2p`, so it is not
    /// compared. A4 matches with certainty, since both queued packets are of its flow; which of them is
    /// dropped is random.
    #[test]
    fn a_matching_packet_is_dropped_with_its_match() {
        let line = trace(
            "choke limit 9p min 2p max 8p weight 1 probability 0",
            1000,
            "0 A1 1000; 0.1 A2 1000; 0.2 A3 1000; 0.3 A4 1000; 0.4 B1 1000",
        );
        assert!(
            ["A1[0-1] A3[1-2] B1[2-3] | A2@0.3 A4@0.3", "A1[0-1] A2[1-2] B1[2-3] | A3@0.3 A4@0.3"]
                .contains(&line.as_str()),
            "{line}"
        );
        // Packets of other flows do not match: B1 and B2 pass.
        assert_eq!(
            trace(
                "choke limit 9p min 1p max 8p weight 1 probability 0",
                1000,
                "0 A1 1000; 0.1 A2 1000; 0.2 B1 1000; 1.1 C1 1000"
            ),
            "A1[0-1] A2[1-2] B1[2-3] C1[3-4] |"
        );
    }

    /// An arriving packet is also compared with a queue of one packet, which a match empties.
    #[test]
    fn a_match_can_empty_the_queue() {
        let mut q = built("choke limit 9p min 1p max 8p weight 1 probability 0");
        assert_eq!(offer(&mut q, 0, 1, Ecn::NotCapable), (vec![], 0));
        assert_eq!(offer(&mut q, 0, 2, Ecn::NotCapable), (vec![1, 2], 0));
        assert_eq!(q.backlog(), Backlog::ZERO);
        assert_eq!(offer(&mut q, 0, 3, Ecn::NotCapable), (vec![], 0));
    }

    /// The link is busy with its last packet even if a drop, not a departure, emptied the queue.
    #[test]
    fn idle_time_counts_from_the_wire() {
        let mut q = built("choke limit 9p min 1p max 8p weight 0.5 probability 0");
        let mut out = Outbox::default();
        let arrive = |q: &mut Choke<u32>, now, out: &mut Outbox<u32>| {
            q.enqueue(Packet::new(FlowKey(0), 1000, 0), &mut Cx::new(now, out));
        };
        let at = |us| Time::ZERO + Span::us(us);
        (0..4).for_each(|_| arrive(&mut q, at(0), &mut out));
        // Averages 0, 0.5, 1.25 (a match, one packet remains), then 1.125 (a match, no packet remains).
        assert_eq!((q.monitor.detector.average(), q.backlog.packets), (1.125, 0));
        arrive(&mut q, at(0), &mut out);
        assert_eq!((q.monitor.detector.average(), q.backlog.packets), (0.5625, 1));
        let _ = q.dequeue(&mut Cx::new(at(0), &mut out));
        // On the wire until 1 ms; the link could have sent two more packets until 3.5 ms.
        arrive(&mut q, at(3500), &mut out);
        assert_eq!(q.monitor.detector.average(), 0.5625 / 8.0);
    }

    /// With several candidates all that match are dropped: a single flow empties the queue.
    #[test]
    fn all_candidates_that_match_are_dropped() {
        let mut q = built("choke limit 9p min 3p max 8p weight 1 probability 0 candidates 2");
        (1..=3).for_each(|name| assert_eq!(offer(&mut q, 0, name, Ecn::NotCapable), (vec![], 0)));
        let (mut gone, marked) = offer(&mut q, 0, 4, Ecn::NotCapable);
        assert_eq!((gone.len(), gone.pop(), marked), (3, Some(4), 0));
        assert_eq!(names(&q).len(), 1);
        // A packet of B matches no packet of A, with any number of draws.
        (5..=6).for_each(|name| assert_eq!(offer(&mut q, 0, name, Ecn::NotCapable), (vec![], 0)));
        assert_eq!(offer(&mut q, 1, 7, Ecn::NotCapable), (vec![], 0));
    }

    #[test]
    fn red_decides_on_packets_without_a_match() {
        // Above max every packet is dropped, except ECN-capable ones, which are marked.
        let full = |options: &str| {
            let mut q = built(&format!("choke limit 9p min 1p max 3p weight 1 {options}"));
            (0..3).for_each(|flow| assert_eq!(offer(&mut q, flow, flow as u32, Ecn::Ect0), (vec![], 0)));
            q
        };
        assert_eq!(offer(&mut full("probability 0"), 9, 9, Ecn::Ect0), (vec![9], 0));
        assert_eq!(offer(&mut full("probability 0 ecn"), 9, 9, Ecn::Ect0), (vec![], 1));
        assert_eq!(offer(&mut full("probability 0 ecn"), 9, 9, Ecn::NotCapable), (vec![9], 0));
        assert_eq!(offer(&mut full("probability 0 gentle"), 9, 9, Ecn::NotCapable), (vec![], 0));
        // A match is dropped even if its sender supports ECN.
        let mut q = built("choke limit 9p min 1p max 8p weight 1 ecn");
        offer(&mut q, 0, 1, Ecn::Ect0);
        assert_eq!(offer(&mut q, 0, 2, Ecn::Ect0), (vec![1, 2], 0));
    }

    #[test]
    fn a_full_buffer_refuses() {
        let mut q = built("choke limit 3p min 2p max 3p weight 0.001");
        (0..3).for_each(|flow| assert_eq!(offer(&mut q, flow, flow as u32, Ecn::Ect0), (vec![], 0)));
        assert_eq!(offer(&mut q, 4, 4, Ecn::Ect0), (vec![4], 0));
        assert_eq!(names(&q), [0, 1, 2]);
    }

    #[test]
    fn invalid_and_unusual_parameters_are_reported() {
        assert_eq!(build_error("choke candidates 0").parameter, "candidates");
        assert_eq!(build_error("choke candidates 17").parameter, "candidates");
        assert_eq!(build_error("choke candidates 4294967295").parameter, "candidates");
        assert_eq!(build_error("choke min 80p").parameter, "min");
        assert_eq!(build_error("choke min 30000b").parameter, "min");
        assert_eq!(build_error("choke max 400p").parameter, "max");
        assert_eq!(build_error("choke burst 3").parameter, "burst");
        assert_eq!(build_error("choke weight 0.002 burst 50").parameter, "weight");
        assert_eq!(build_error("choke avpkt 0").parameter, "avpkt");
        let warnings = |spec: &str| spec.parse::<crate::Spec>().unwrap().warnings(&context());
        assert!(warnings("choke").is_empty());
        assert!(warnings("choke min 50p")[0].starts_with("max: 75 is less than twice min"));
    }

    /// Ten unresponsive flows: 0.84 with RED, 0.91 with one candidate, 0.97 with four, as measured.
    #[test]
    fn is_fairer_than_red_to_unresponsive_flows() {
        let red = ten_unresponsive_flows("red limit 300p");
        let [one, four] = ["choke", "choke candidates 4"].map(ten_unresponsive_flows);
        assert!(one > red + 0.05 && one > ten_unresponsive_flows("fifo limit 300p") + 0.06, "{one} {red}");
        assert!(four > one + 0.03, "{four} {one}");
    }

    /// One flow that sends as fast as the link and 32 responsive flows, as in the paper's first comparison:
    /// RED leaves it half of the link, CHOKe less than 27 %, the maximum that Tang, Wang and Low proved.
    #[test]
    fn bounds_the_share_of_a_greedy_flow() {
        let mut flows = vec![Sender::Window; 33];
        flows[0] = Sender::Unresponsive(1.0);
        let greedy = |spec| run(spec, &flows, 80_000)[0].sent as f64 / 60_000.0;
        assert!(greedy("red limit 300p") > 0.5);
        assert!((0.1..0.27).contains(&greedy("choke")));
        assert!(greedy("choke candidates 2") < 0.12);
    }

    /// Next to a flow twice as fast as the link, three responsive flows get a third of it, and a slow one
    /// loses little.
    #[test]
    fn keeps_room_for_responsive_flows() {
        let flows = [
            Sender::Unresponsive(2.0),
            Sender::Window,
            Sender::Window,
            Sender::Window,
            Sender::Unresponsive(0.02),
        ];
        let seen = |spec| {
            let counters = run(spec, &flows, 80_000);
            let responsive: u64 = counters[1..4].iter().map(|flow| flow.sent).sum();
            (responsive as f64 / 60_000.0, counters[4].loss())
        };
        let (crowded, lost) = seen("red limit 300p");
        assert!(crowded < 0.05 && lost > 0.4, "{crowded} {lost}");
        let (share, loss) = seen("choke");
        assert!(share > 0.33 && loss < 0.03, "{share} {loss}");
    }

    /// A simple CHOKe as a reference: the queued packets in a vector, and their numbers in another.
    struct Plain {
        config: Config,
        detector: Detector,
        rng: Rng,
        queue: Vec<(u64, u64)>,
        numbers: Vec<u64>,
    }

    impl Plain {
        fn take(&mut self, name: u64) {
            self.queue.retain(|(other, _)| *other != name);
            let number = self.numbers.iter().position(|other| *other == name).unwrap();
            // The last number belongs to the arriving packet.
            let last = self.numbers.pop().unwrap();
            if last != name {
                self.numbers[number] = last;
            }
        }

        /// Returns the names of the dropped packets.
        fn enqueue(&mut self, name: u64, flow: u64, missed: u64) -> Vec<u64> {
            self.detector.observe(self.queue.len() as f64, missed, Time::ZERO);
            let mut dropped = Vec::new();
            if self.detector.average() >= 3.0 {
                for _ in 0..self.config.candidates {
                    if self.queue.is_empty() {
                        break;
                    }
                    let candidate = self.numbers[self.rng.below(self.numbers.len() as u64) as usize];
                    if self.queue.contains(&(candidate, flow)) {
                        self.take(candidate);
                        dropped.push(candidate);
                    }
                }
            }
            let refused = !dropped.is_empty()
                || self.detector.decide(self.queue.len() as f64, 1.0, || self.rng.uniform())
                    != RedDecision::Accept;
            if refused {
                dropped.push(name);
            } else {
                self.queue.push((name, flow));
                self.numbers.push(name);
            }
            dropped
        }
    }

    proptest! {
        /// With the same random draws it drops the same packets as the simple reference.
        #[test]
        fn equals_the_reference(
            ops in prop::collection::vec((0..3u8, 0..5u64), 1..300), seed: u64, candidates in 1..5u32, gentle: bool,
        ) {
            let config = Config {
                limit: Limit::Packets(1000),
                min: Some(Limit::Packets(3)),
                max: Some(Limit::Packets(9)),
                weight: Share::new(0.4),
                probability: Share::new(0.3).unwrap(),
                candidates,
                gentle,
                ..Config::default()
            };
            let place = LinkContext::new(Rate::mbit(8), Streams::new(seed));
            let mut q: Choke<u64> = config.build(&place).unwrap();
            let curve = Curve { min: 3.0, max: 9.0, gentle };
            let mut plain = Plain {
                config,
                detector: Detector::new(curve, 0.4, 0.3, false, None),
                rng: place.streams.rng(),
                queue: Vec::new(),
                numbers: Vec::new(),
            };
            let mut out = Outbox::default();
            for (name, (op, flow)) in (0u64..).zip(ops) {
                // Time does not pass, so the link is never idle.
                let mut cx = Cx::new(Time::ZERO, &mut out);
                if op == 0 {
                    let expected = plain.queue.first().map(|(name, _)| *name);
                    prop_assert_eq!(q.dequeue(&mut cx).packet().map(|pkt| pkt.payload), expected);
                    expected.into_iter().for_each(|name| plain.take(name));
                } else {
                    q.enqueue(Packet::new(FlowKey(flow), 1000, name), &mut cx);
                    let dropped: Vec<u64> = out.dropped.drain(..).map(|(pkt, _)| pkt.payload).collect();
                    prop_assert_eq!(dropped, plain.enqueue(name, flow, 0));
                }
                prop_assert!(q.queue.iter().map(|pkt| pkt.payload).eq(plain.queue.iter().map(|(name, _)| *name)));
            }
        }

        /// The probability of a match is the flow's share of the queue, whichever packets were removed
        /// before.
        #[test]
        fn the_draw_is_uniform(own in 1..20u64, others in 1..20u64, seed: u64) {
            let place = LinkContext::new(Rate::mbit(8), Streams::new(seed));
            let config = Config {
                min: Some(Limit::Packets(1)),
                max: Some(Limit::Packets(100)),
                weight: Share::new(1.0),
                probability: Share::default(),
                ..Config::default()
            };
            let mut q: Choke<u32> = config.build(&place).unwrap();
            let mut met = 0;
            for round in 0..600 {
                // Each trial has a new queue that starts at another position.
                let mut out = Outbox::default();
                let mut cx = Cx::new(Time::ZERO, &mut out);
                for place in 0..own + others {
                    let flow = u64::from((place + round) % (own + others) >= own);
                    q.queue.push_back(Packet::new(FlowKey(flow), 1000, 0));
                    q.backlog.add(1000);
                }
                q.enqueue(Packet::new(FlowKey(0), 1000, 0), &mut cx);
                while q.dequeue(&mut cx).packet().is_some() {}
                met += u64::from(!out.dropped.is_empty());
            }
            let share = own as f64 / (own + others) as f64;
            // Six standard deviations of 600 draws.
            let spread = 6.0 * libm::sqrt(share * (1.0 - share) / 600.0);
            prop_assert!((met as f64 / 600.0 - share).abs() < spread, "{met} of 600, {share}");
        }
    }
}
