//! PIP: drops at random at arrival, with a probability that a controller moves so that the queue stays at a
//! reference length.
//!
//! # Principles
//! - The probability has an integral part, which a queue above `target` raises as long as it lasts, and a
//!   proportional part, which follows the change of the queue and prevents overshoot.
//! - It is updated at every arrival, by the time since the last one: the loop is as fast with few packets as
//!   with many.
//! - The queue itself is a plain FIFO.
//!
//! # Deviations
//! - FPIP's section 2.2.4 prints the step, and uses the probability to detect congestion; the poster on PIP
//!   itself was not available. Dropping with this probability is what "PIP alone" means here.
//! - The block `pip` documents the points that the printed step leaves open (units, bounds, pauses).
//!   `noclamp` is the step as printed, without bounds on the probability.
//! - The reference is a number of packets. A `target` in bytes counts bytes, in packets of `avpkt`.
//! - The gains are the paper's. They are high: about 500 times (integral) and 30 times (proportional) the
//!   gains of ns-2's PI at the same reference.
//!
//! # Cost
//! - A few floating-point operations and a draw per arrival. State of one queue.
//!
//! # References
//! - H. Zhang, J. Jiang, W. Dou, "A Fair Bandwidth Allocation Mechanism with Preference to Short Flows",
//!   Journal of Software 18(3), 2007: section 2.2.4 for the step, section 3.1 for the values.
//! - H. Zhang, B. Liu, W. Dou, "Design of a robust active queue management algorithm based on feedback
//!   compensation", SIGCOMM 2003 (poster): named there as its source; only its title was available.

use giveway_qdisc::blocks::Buffer;
use giveway_qdisc::blocks::pip::{Gains, Length, Pip as Controller};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, Rng, Span,
    check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `pip`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity; packets beyond it are dropped.
    pub limit: Limit,
    /// Reference length of the queue (q0): in packets, or in bytes.
    pub target: Limit,
    /// Length of a packet, if `target` is in bytes.
    pub avpkt: Bytes,
    /// Integral time (T), packet-seconds: an excess of this many packets for one second raises the
    /// probability by 1.
    pub t: f64,
    /// Proportional time (tau): each additional packet raises the probability at once by tau / T - `kh`.
    pub tau: Span,
    /// Position feedback (K_h), per packet.
    pub kh: f64,
    /// Longest pause between two arrivals that counts; by default all pauses count in full.
    pub max_dt: Option<Span>,
    /// Keep the probability between 0 and 1. Without it an idle link hides the congestion after
    /// it.
    pub clamp: bool,
    /// Mark packets instead of dropping them if their sender supports ECN.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Config {
        let gains = Gains::default();
        Config {
            limit: Limit::Bytes(300_000),
            target: Limit::Packets(gains.target as u64),
            avpkt: Bytes(1000),
            t: gains.t,
            tau: Span::from_s_f64(gains.tau),
            kh: gains.kh,
            max_dt: gains.most,
            clamp: gains.clamp,
            ecn: false,
        }
    }
}

impl Config {
    fn gains(&self, target: f64) -> Gains {
        let Config { t, tau, kh, max_dt, clamp, .. } = *self;
        Gains { t, tau: tau.as_s(), kh, target, clamp, most: max_dt }
    }

    /// The controller, and its unit of the queue's length.
    pub(crate) fn controller(&self) -> Result<(Controller, Length), Invalid> {
        let (length, target) = Length::new(self.target, self.avpkt)?;
        Ok((Controller::new(self.gains(target).checked()?), length))
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "PIP: random drops at arrival, with a probability controlled by the queue's length";
    type Qdisc<P: 'static> = Pip<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Pip<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let (controller, length) = self.controller()?;
        Ok(Pip {
            fresh: controller,
            controller,
            length,
            ecn: self.ecn,
            rng: context.streams.rng(),
            queue: Buffer::new(self.limit),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit).marking(self.ecn)
    }

    fn variants() -> Vec<Config> {
        let quick = Config { target: Limit::Packets(2), t: 0.1, ..Config::default() };
        vec![
            Config { limit: Limit::Packets(5), ..quick.clone() },
            Config { limit: Limit::Bytes(20_000), target: Limit::Bytes(3000), ecn: true, ..quick.clone() },
            Config { clamp: false, max_dt: Some(Span::ms(1)), ..quick },
        ]
    }

    fn warnings(&self, _: &LinkContext) -> Vec<String> {
        let mut warnings = self.gains(0.0).warnings();
        warnings.extend(above_limit("target", self.target, self.limit));
        warnings
    }
}

/// Warning about a `parameter` with a length that the queue never reaches.
pub(crate) fn above_limit(parameter: &str, target: Limit, limit: Limit) -> Option<String> {
    let never = match (target, limit) {
        (Limit::Packets(target), Limit::Packets(limit)) => target >= limit,
        (Limit::Bytes(target), Limit::Bytes(limit)) => target >= limit,
        // Packets of a few hundred bytes on average are usual; below that the queue never gets there.
        (Limit::Packets(target), Limit::Bytes(limit)) => target.saturating_mul(64) >= limit,
        (Limit::Bytes(target), Limit::Packets(limit)) => target >= limit.saturating_mul(1500),
    };
    never.then(|| format!("{parameter}: the queue never is as long as {target} with a limit of {limit}"))
}

/// The queue and its controller.
pub struct Pip<P> {
    /// The controller in its initial state.
    fresh: Controller,
    controller: Controller,
    length: Length,
    ecn: bool,
    rng: Rng,
    queue: Buffer<P>,
}

impl<P> Qdisc<P> for Pip<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let probability = self.controller.arrival(self.length.of(self.queue.backlog()), cx.now());
        let signal = probability > 0.0 && self.rng.uniform() < probability;
        if signal && !(self.ecn && self.queue.admits(pkt.bytes()) && cx.mark(&mut pkt)) {
            return cx.drop(pkt, DropReason::Early);
        }
        self.queue.push(pkt, cx);
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        self.queue.pop().map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.queue.reset(cx);
        self.controller = self.fresh;
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("drop_probability", self.controller.probability());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::rates::{Flow, Outcome, offer};
    use crate::testing::trace;
    use giveway_qdisc::{Rate, Streams};

    fn with(spec: &str, flows: &[Flow]) -> Outcome {
        offer(spec, Rate::mbit(10), flows, 30)
    }

    /// There are no drops while the queue is not longer than the reference, as in T1.
    #[test]
    fn is_a_fifo_below_its_reference() {
        use trace::{T1, trace};
        assert_eq!(trace("pip limit 300p", 1000, T1), trace("fifo limit 300p", 1000, T1));
    }

    /// Ten unresponsive senders of twice the link's rate: half of the packets are dropped, and the queue
    /// stays at the reference, in packets or in bytes.
    #[test]
    fn the_queue_stands_at_its_reference() {
        let flows = [Flow { kbit: 2000, bytes: 500 }; 10];
        for (spec, packets) in
            [("pip", 50.0), ("pip target 100p", 100.0), ("pip target 30kb avpkt 500b", 60.0)]
        {
            let outcome = with(spec, &flows);
            assert!((outcome.utilization - 1.0).abs() < 0.001, "{spec}: {outcome:?}");
            assert!((outcome.queue_packets / packets - 1.0).abs() < 0.05, "{spec}: {outcome:?}");
        }
        // At half the link's rate the queue is empty on average. A step from 0 to 1 packet raises the
        // probability from 0 to 0.0006, so a few of the 37,500 packets are dropped.
        let light = with("pip", &[Flow { kbit: 500, bytes: 500 }; 10]);
        assert!(light.queue_packets < 3.0 && light.dropped < 38, "{light:?}");
    }

    #[test]
    fn mistakes_are_reported() {
        let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
        let wrong =
            |text: &str| text.parse::<Spec>().unwrap().build_numbered(&context).err().unwrap().to_string();
        assert_eq!(
            wrong("pip t 0"),
            "t: 0 is not an integral time: write for example 200 (packet-seconds), as in the paper"
        );
        assert_eq!(
            wrong("pip kh -1"),
            "kh: -1 is not a gain: write for example 0.0014 (per packet), as in the paper"
        );
        assert_eq!(
            wrong("pip avpkt 0b"),
            "avpkt: 0 bytes are too few for a packet: write for example \"1000b\""
        );
        let warned = |text: &str| text.parse::<Spec>().unwrap().warnings(&context).join("; ");
        assert_eq!(warned("pip"), "");
        assert!(warned("pip noclamp").contains("goes unnoticed for as long"));
        assert!(warned("pip kh 0.1").contains("a growing queue lowers the drop probability"));
        assert!(warned("pip limit 20p").contains("the queue never is as long as 50p with a limit of 20p"));
    }
}
