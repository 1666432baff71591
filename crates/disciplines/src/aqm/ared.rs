//! Adaptive RED: RED without manual tuning. Thresholds and weight follow from the link's rate and a target
//! delay, and the drop probability adapts to the traffic.
//!
//! # Principles
//! - The average queue should be in the middle between the thresholds, whatever the traffic: `max_p` rises by
//!   steps while it is above the middle fifth, and falls by a factor while it is below.
//! - `max_p` moves slowly, every half second at most, and within 1 % to 50 %: RED reacts in between.
//! - `min` is half of `target` at the link's rate, and at least 5 packets; `max` is three times `min`.
//! - Thresholds count packets, and `avpkt` is their length: if packets are k times as long, the queue settles
//!   at k times `target`. Write `avpkt 1500b` where bulk TCP sends full packets.
//! - The average follows the queue within a second: w = 1 - exp(-1/C), C in packets per second.
//! - It is `red` with these parameters, in packets, `gentle` and `wait` on. For explicit thresholds use `red
//!   adaptive`.
//!
//! # Deviations
//! - The thresholds and the weight follow from the rate for which it was built. They cannot follow a link
//!   that varies.
//! - `max_p` is clamped to `bottom` and `top`; the published steps could leave the range by one step.
//! - Steps are taken at arrivals, when an interval has passed since the last one, as in ns-2; the paper has a
//!   clock.
//! - The default `limit` is four times `max`, the relation that tc-red(8) uses.
//!
//! # Cost
//! - The same as `red`.
//!
//! # References
//! - Floyd, Gummadi and Shenker 2001, "Adaptive RED: An Algorithm for Increasing the Robustness of RED's
//!   Active Queue Management", sections 3 (adaptation) and 4 (automatic parameters).

use giveway_qdisc::blocks::red::{Adapt, Curve, Detector, weight_for_rate};
use giveway_qdisc::{Bytes, Invalid, Limit, LinkContext, Properties, Share, Span, check_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::thresholds::Unit;
use crate::red::{Red, Setup, Victim};
use crate::{Advice, Discipline};

/// Parameters of `ared`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity; by default four times `max`, in packets.
    pub limit: Option<Limit>,
    /// The delay that the queue may cause: the thresholds follow from it.
    pub target: Span,
    /// Length of an average packet.
    pub avpkt: Bytes,
    /// `max_p` in the beginning.
    pub probability: Share,
    /// Interval between adaptations of `max_p`.
    pub interval: Span,
    /// Largest increment of `max_p` when the average is too high.
    pub alpha: Share,
    /// Factor of `max_p` when the average is too low.
    pub beta: Share,
    /// `max_p` does not fall below this.
    pub bottom: Share,
    /// `max_p` does not rise above this.
    pub top: Share,
    /// Above `max` the probability rises to 1 at twice `max` instead of jumping there.
    pub gentle: bool,
    /// After a drop, no other one before the mean gap has passed.
    pub wait: bool,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
    /// The packet that is dropped when the buffer is full.
    pub drop: Victim,
}

impl Default for Config {
    fn default() -> Config {
        let share = |value| Share::new(value).expect("a share lies between 0 and 1");
        let adapt = Adapt::default();
        Config {
            limit: None,
            target: Span::ms(5),
            avpkt: Bytes(500),
            probability: share(0.1),
            interval: adapt.interval,
            alpha: share(adapt.alpha),
            beta: share(adapt.beta),
            bottom: share(adapt.bottom),
            top: share(adapt.top),
            gentle: true,
            wait: true,
            ecn: false,
            drop: Victim::Tail,
        }
    }
}

/// `min` is at least this many packets, so that slow links are not starved (section 4).
const MIN_THRESHOLD: f64 = 5.0;

/// Ratio of the largest packet to `avpkt` from which advice is given. The default of `avpkt` comes from the
/// papers, 500 bytes.
const TOO_LARGE: u64 = 2;

impl Config {
    /// C: average packets per second.
    fn packets_per_s(&self, context: &LinkContext) -> f64 {
        context.rate.bytes_per_s() / self.avpkt.0.max(1) as f64
    }

    fn curve(&self, context: &LinkContext) -> Curve {
        let min = (self.packets_per_s(context) * self.target.as_s() / 2.0).max(MIN_THRESHOLD);
        Curve { min, max: 3.0 * min, gentle: self.gentle }
    }

    /// Delay of the queue on that link when the average is in the middle between the thresholds, with packets
    /// of this length.
    fn standing(&self, packet: Bytes, context: &LinkContext) -> Span {
        context.rate.time_for((2.0 * self.curve(context).min * packet.0 as f64) as u64)
    }

    /// Capacity of the queue on that link.
    pub(crate) fn limit(&self, context: &LinkContext) -> Limit {
        self.limit.unwrap_or_else(|| Limit::Packets(libm::ceil(4.0 * self.curve(context).max) as u64))
    }

    /// The detector of congestion on that link.
    pub(crate) fn detector(&self, context: &LinkContext) -> Result<Detector, Invalid> {
        check_limit("limit", self.limit(context), context.mtu)?;
        if self.avpkt.0 == 0 {
            return Err(Invalid::new("avpkt", "must be at least 1 byte, for example \"500b\""));
        }
        if self.interval.is_zero() {
            return Err(Invalid::new("interval", "must be above 0, for example \"500ms\""));
        }
        if self.bottom > self.top {
            return Err(Invalid::new("bottom", format!("{} is above top ({})", self.bottom, self.top)));
        }
        let adapt = Adapt {
            interval: self.interval,
            alpha: self.alpha.get(),
            beta: self.beta.get(),
            bottom: self.bottom.get(),
            top: self.top.get(),
        };
        let weight = weight_for_rate(self.packets_per_s(context));
        Ok(Detector::new(self.curve(context), weight, self.probability.get(), self.wait, Some(adapt)))
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "Adaptive RED: thresholds from a target delay, a drop probability that adapts";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Red<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Red<P>, Invalid> {
        let limit = self.limit(context);
        let detector = self.detector(context)?;
        let setup = Setup {
            limit,
            unit: Unit::Packets,
            avpkt: self.avpkt.0,
            bandwidth: context.rate,
            follows_link: true,
            bytemode: false,
            ecn: self.ecn,
            harddrop: false,
            nodrop: false,
            victim: self.drop,
        };
        let monitor = setup.monitor(detector);
        Ok(Red::new(setup, monitor, context.streams.rng()))
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        Properties::plain(self.limit(context)).marking(self.ecn)
    }

    fn variants() -> Vec<Config> {
        vec![
            // A queue of 20,000 bytes, as BSQ's comparison has it.
            Config { limit: Some(Limit::Bytes(20_000)), ..Config::default() },
            Config { limit: Some(Limit::Packets(12)), ecn: true, drop: Victim::Random, ..Config::default() },
            Config {
                target: Span::us(100),
                gentle: false,
                wait: false,
                drop: Victim::Head,
                ..Config::default()
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        let curve = self.curve(context);
        if curve.min <= MIN_THRESHOLD {
            warnings.push(format!(
                "target: {} cannot be reached at {}: min has its floor of 5 packets, and the queue settles near {}",
                self.target,
                context.rate,
                self.standing(self.avpkt, context)
            ));
        }
        let packets = match self.limit(context) {
            Limit::Packets(packets) => packets as f64,
            Limit::Bytes(bytes) => bytes as f64 / self.avpkt.0.max(1) as f64,
        };
        if packets < curve.max {
            warnings.push(format!(
                "limit: {} are fewer packets than max ({:.1}): the buffer overflows before the probability has risen",
                self.limit(context),
                curve.max
            ));
        }
        warnings
    }

    fn advice(&self, largest: Bytes, context: &LinkContext) -> Vec<Advice> {
        // At the floor the thresholds do not depend on `avpkt`, and a separate warning states the delay.
        let matters = self.curve(context).min > MIN_THRESHOLD;
        if !matters || largest.0 < self.avpkt.0.saturating_mul(TOO_LARGE) {
            return Vec::new();
        }
        let times = largest.0 as f64 / self.avpkt.0.max(1) as f64;
        vec![Advice {
            warning: format!(
                "packets of {largest} are {times:.1} times avpkt ({}): the queue settles near {:.1} ms, not at target ({})",
                self.avpkt,
                self.standing(largest, context).as_s() * 1e3,
                self.target
            ),
            help: format!("write avpkt {largest}"),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::{Cx, FlowKey, Outbox, Packet, Qdisc, Rate, Streams, Time};

    fn context(rate: Rate) -> LinkContext {
        LinkContext::new(rate, Streams::new(1))
    }

    /// The link of BSQ's comparison: 12.5 Mbit/s, packets of 500 bytes, 3,125 of them per second.
    #[test]
    fn parameters_follow_from_rate_and_target() {
        let config = Config::default();
        let place = context(Rate::kbit(12_500));
        assert_eq!(config.packets_per_s(&place), 3125.0);
        let curve = config.curve(&place);
        assert_eq!((curve.min, curve.max), (7.8125, 23.4375));
        assert_eq!(Adapt::band(&curve), (14.0625, 17.1875));
        assert_eq!(config.limit(&place), Limit::Packets(94));
        // A slow link has the floor.
        let slow = config.curve(&context(Rate::mbit(1)));
        assert_eq!((slow.min, slow.max), (5.0, 15.0));
    }

    /// The thresholds of that link, and averages of 20, 10 and 15 packets at the moments of adaptation.
    #[test]
    fn max_p_follows_the_average() {
        let curve = Config::default().curve(&context(Rate::kbit(12_500)));
        let averages = [20.0, 20.0, 20.0, 10.0, 10.0, 15.0];
        let steps = averages.iter().scan(0.1, |max_p, average| {
            *max_p = Adapt::default().step(*max_p, *average, &curve);
            Some(*max_p)
        });
        for (step, expected) in steps.zip([0.11, 0.12, 0.13, 0.117, 0.1053, 0.1053]) {
            assert!((step - expected).abs() < 1e-12, "{step} is not {expected}");
        }
    }

    /// Under an unresponsive load above the link's rate `max_p` rises by one step per half second up to
    /// `top`, and under a light load it falls to `bottom`.
    #[test]
    fn max_p_climbs_under_load_and_falls_after() {
        let place = context(Rate::kbit(12_500));
        let mut q: Red<u64> = Config::default().build(&place).unwrap();
        let mut out = Outbox::default();
        let mut now = Time::ms(1);
        // A second of slots of 0.32 ms: the link sends one packet in each, and so many arrive in ten of them.
        let mut second = |arrivals: u64| {
            for slot in 0..3125 {
                for _ in slot * arrivals / 10..(slot + 1) * arrivals / 10 {
                    q.enqueue(Packet::new(FlowKey(0), 500, 0), &mut Cx::new(now, &mut out));
                }
                let _ = q.dequeue(&mut Cx::new(now, &mut out));
                out.dropped.clear();
                now += Span::us(320);
            }
            let mut max_p = None;
            q.gauges(&mut |name, value| max_p = max_p.or((name == "max_p").then_some(value)));
            max_p.expect("the gauge is there")
        };
        // Twice the link's rate: two steps of 0.01 per second once the average is above the band.
        let rising: Vec<f64> = (0..30).map(|_| second(20)).collect();
        assert!((rising[5] - rising[4] - 0.02).abs() < 1e-9, "{rising:?}");
        assert_eq!(rising[29], 0.5);
        // 30 % of the link's rate: two factors of 0.9 per second.
        let falling: Vec<f64> = (0..40).map(|_| second(3)).collect();
        assert!((falling[5] / falling[4] - 0.81).abs() < 1e-9, "{falling:?}");
        assert_eq!(falling[39], 0.01);
    }

    #[test]
    fn usual_mistakes_cause_warnings() {
        let warnings = |spec: &str, rate| spec.parse::<crate::Spec>().unwrap().warnings(&context(rate));
        assert!(warnings("ared", Rate::kbit(12_500)).is_empty());
        assert!(warnings("ared", Rate::mbit(1))[0].starts_with("target: 5ms cannot be reached at 1mbit"));
        assert!(warnings("ared limit 20p", Rate::kbit(12_500))[0].starts_with("limit: 20p are fewer"));
        // Packets of 1,500 bytes are three times what the default is made for; a factor of two is the
        // least that causes advice.
        let advise =
            |spec: &str, largest, rate| spec.parse::<crate::Spec>().unwrap().advice(largest, &context(rate));
        let advice = advise("ared", Bytes(1500), Rate::mbit(100));
        assert_eq!(
            advice[0].warning,
            "packets of 1500b are 3.0 times avpkt (500b): the queue settles near 15.0 ms, not at target (5ms)"
        );
        assert_eq!(advice[0].help, "write avpkt 1500b");
        assert_eq!(advise("tbf rate 50mbit burst 3kb child (ared)", Bytes(1500), Rate::mbit(100)), advice);
        assert_eq!(advise("prio bands 2 children [(fifo) (ared)]", Bytes(1500), Rate::mbit(100)), advice);
        assert_eq!(advise("bsqred", Bytes(1500), Rate::mbit(100)), advice);
        assert_eq!(advise("ared", Bytes(1000), Rate::mbit(100)).len(), 1);
        for (spec, largest, rate) in [
            ("ared", Bytes(999), Rate::mbit(100)),
            ("ared avpkt 1500b", Bytes(1500), Rate::mbit(100)),
            // At the floor of 5 packets, for packets of any length.
            ("ared", Bytes(1500), Rate::mbit(1)),
            // `red` has explicit thresholds, in bytes or in packets.
            ("red avpkt 500b", Bytes(1500), Rate::mbit(100)),
        ] {
            assert_eq!(advise(spec, largest, rate), [], "{spec} at {rate}");
        }
        let upside_down = Config { bottom: Share::new(0.6).unwrap(), ..Config::default() };
        assert_eq!(
            upside_down.build::<u64>(&context(Rate::mbit(1))).map(|_| ()).unwrap_err().parameter,
            "bottom"
        );
    }
}
