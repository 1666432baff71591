//! DualPI2: two queues, one with a low delay for scalable senders (L4S) and one for classic senders, with
//! marks and drops that are coupled so that both kinds of flows get about the same rate.
//!
//! # Principles
//! - Packets with ECT(1) or CE go to the L queue, all others to the C queue. With `any_ect` packets with
//!   ECT(0) go to the L queue as well, for DCTCP.
//! - A controller moves a base probability p' as in `pi2`, by the longer delay of the two queues. Classic
//!   packets are dropped or marked with p'^2; packets of the L queue are marked with `coupling_factor` times
//!   p'. So classic traffic slows scalable traffic down as if both shared one queue, although the L queue is
//!   short.
//! - The coupling makes windows equal, while p' is steady. Rates are in the inverse ratio of the round-trip
//!   times, and classic flows wait for about `target` longer. With few flows p' varies, and the mean of p'^2
//!   is above the square of the mean, so a classic flow gets less: a flow of Prague had 1.1 to 2.5 times the
//!   rate of one of Reno, with base round-trip times of 10 to 80 ms at 40 Mbit/s.
//! - The L queue has its own threshold: a packet is marked if it has waited for longer than `step_thresh`, or
//!   if more than that many packets are behind it. A packet is exempt if it arrived while at most
//!   `min_qlen_step` packets, itself included, were in the L queue: with 1, a lone packet is not marked.
//! - The L queue goes first. `classic_protection` is the share of the link that the C queue gets, in any
//!   case, as long as both queues have packets: the C queue earns credit while the L queue sends, and sends
//!   when it has it.
//! - When p' marks every packet of the L queue there is an overload, which marks do not end. Then packets of
//!   both queues are dropped with p'^2 whatever their ECN field is, so that the delay of the L queue stays
//!   low. With `overflow` p' rises no further instead, and the queues grow up to `limit`.
//! - Decisions of the controller are made at departure, or with `drop_enqueue` at arrival. The threshold is
//!   always at departure.
//! - While fewer than two packets of the link's MTU are queued, the controller neither drops nor marks.
//! - Parameters can be changed while packets are queued: p' stays, and so does the credit, if
//!   `classic_protection` does. A packet stays in its queue. When a limit is lowered, the newest packets of
//!   both queues above it are dropped.
//!
//! # Deviations
//! - There is no timer. Each call first makes the updates that are due, with the delays that a timer would
//!   have seen. After 4,096 updates (a minute) without a call the rest is skipped.
//! - The RFC's own AQM of the L queue is a ramp from 0.8 to 1.2 ms; the threshold is Linux's. It is the same
//!   for a ramp of no width (RFC 9332, appendix A.1).
//! - Marks and drops are drawn at random. The RFC's recur() counts the likelihood up to one, with the same
//!   mean.
//! - Priority and protection are a weighted round robin with credit. The RFC leaves the choice of the
//!   scheduler open, and also describes a time-shifted FIFO. Credit starts as after a classic packet of
//!   full size.
//! - The exception for a short queue is PIE's (RFC 8033, section 4.1). RFC 9332 does not have it, so at p' =
//!   100 % its queues would drop every packet.
//! - Memory is counted in bytes of IP packets, not with the structures of the kernel.
//! - `split_gso` and `no_split_gso` are read and have no effect, since packets are not aggregates here.
//! - `max_rtt` and `typical_rtt` replace parameters of the controller, as in tc; here a warning names those
//!   that were given in vain.
//! - A flow whose packets have different ECN fields is divided between the queues, and may be reordered.
//! - The rate of the link has no effect, since delays are measured. After a change of the rate the delay
//!   changes, and p' follows it within some updates. `step_thresh` in packets is another delay at another
//!   rate.
//!
//! # Cost
//! - As `pi2`: a draw per packet under congestion. The scheduler adds a comparison and an addition.
//!
//! # References
//! - De Schepper, Briscoe, White 2023: RFC 9332, section 2.1 for the coupling; RFC 9332, section 2.3 for the
//!   classifier; RFC 9332, section 4.2.2 for the scheduler; RFC 9332, section 4.2.3 for overload; and
//!   appendix A for the pseudo-code.
//! - De Schepper, Bondarenko, Tsang, Briscoe 2016: "PI2: A Linearized AQM for both Classic and Scalable TCP",
//!   CoNEXT 2016.
//! - tc-dualpi2(8) for names and defaults.

use std::any::Any;
use std::collections::VecDeque;

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::blocks::pi2::{Controller, Law};
use giveway_qdisc::{
    Backlog, Bytes, Cx, Depth, DropReason, Ecn, Invalid, Limit, LinkContext, Next, Packet, Packets,
    Properties, Qdisc, Rng, Share, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::aqm::pi2::{coupling, happens, law_warnings};
use crate::common::taking::same;
use crate::{Discipline, InLinux};

/// Parameters of `dualpi2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-idle" = ["split_gso", "no_split_gso"]))]
pub struct Config {
    /// Capacity of both queues together, in packets; packets beyond it are dropped.
    pub limit: Packets,
    /// Capacity of both queues together, in bytes; by default `limit` packets of the link's MTU.
    pub memlimit: Option<Bytes>,
    /// Target of the longer delay of the two queues.
    pub target: Span,
    /// Interval between updates of the probability.
    pub tupdate: Span,
    /// Gain of the delay's distance from the target, in Hz.
    pub alpha: f64,
    /// Gain of the delay's change between two updates, in Hz.
    pub beta: f64,
    /// The longest usual round-trip time: it sets `target`, `tupdate`, `alpha` and `beta`. By default it is
    /// six times `typical_rtt`.
    pub max_rtt: Option<Span>,
    /// The typical round-trip time: it sets `target`, `tupdate`, `alpha` and `beta`. By default it is a sixth
    /// of `max_rtt`.
    pub typical_rtt: Option<Span>,
    /// Ratio of the probability of marks in the L queue to the base probability, 1 to 255.
    pub coupling_factor: u32,
    /// Time in the L queue, or packets behind, above which a packet of the L queue is always marked.
    pub step_thresh: Depth,
    /// Length of the L queue up to which an arriving packet, itself included, is exempt from `step_thresh`.
    pub min_qlen_step: Packets,
    /// Share of the link for the C queue while both queues have packets.
    pub classic_protection: Share,
    /// Let the queues grow under overload, instead of dropping from both (`drop_on_overload`).
    #[schemars(extend("x-opposite" = "drop_on_overload"))]
    pub overflow: bool,
    /// Make decisions of the controller at arrival, instead of at departure (`drop_dequeue`).
    #[schemars(extend("x-opposite" = "drop_dequeue"))]
    pub drop_enqueue: bool,
    /// Put every packet whose sender supports ECN into the L queue, instead of those with ECT(1) or CE
    /// (`l4s_ect`).
    #[schemars(extend("x-opposite" = "l4s_ect"))]
    pub any_ect: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(10_000),
            memlimit: None,
            target: Span::ms(15),
            tupdate: Span::ms(16),
            alpha: 0.16,
            beta: 3.2,
            max_rtt: None,
            typical_rtt: None,
            coupling_factor: 2,
            step_thresh: Depth::Time(Span::ms(1)),
            min_qlen_step: Packets(0),
            classic_protection: Share::new(0.1).expect("10 % is a share"),
            overflow: false,
            drop_enqueue: false,
            any_ect: false,
        }
    }
}

/// tc-dualpi2(8): max_rtt = typical_rtt * 6, if only one of them is given.
const RTT_RATIO: u64 = 6;

impl Config {
    /// The law of the controller, with the round-trip times if they are given.
    fn law(&self) -> Result<Law, Invalid> {
        let k = coupling(self.coupling_factor)?;
        // tc-dualpi2(8): overflow limits the probability: to that at which every L packet is marked.
        let most = if self.overflow { 1.0 / k } else { 1.0 };
        let (longest, typical) = match (self.max_rtt, self.typical_rtt) {
            (None, None) => {
                let Config { alpha, beta, target, tupdate, .. } = *self;
                return Law { alpha, beta, target, tupdate, most }.checked();
            }
            (Some(longest), None) => (longest, longest / RTT_RATIO),
            (None, Some(typical)) => (typical * RTT_RATIO, typical),
            (Some(longest), Some(typical)) => (longest, typical),
        };
        let parameter = if self.typical_rtt.is_some() { "typical_rtt" } else { "max_rtt" };
        if typical.is_zero() || longest < typical {
            let message =
                format!("{typical} is not between 0 and max_rtt ({longest}): write for example \"15ms\"");
            return Err(Invalid::new(parameter, message));
        }
        // RFC 9332, appendix A.1: Tupdate = min(RTT_typ, RTT_max / 3), alpha = 0.1 * Tupdate / RTT_max^2,
        // beta = 0.3 / RTT_max.
        let tupdate = typical.min(longest / 3);
        let law = Law {
            alpha: 0.1 * tupdate.as_s() / (longest.as_s() * longest.as_s()),
            beta: 0.3 / longest.as_s(),
            target: typical,
            tupdate,
            most,
        };
        law.checked().map_err(|_| {
            Invalid::new(parameter, format!("a max_rtt of {longest} is too short: write at least \"10us\""))
        })
    }

    /// The capacity in bytes.
    fn memory(&self, mtu: Bytes) -> Bytes {
        self.memlimit.unwrap_or(Bytes(self.limit.0.saturating_mul(mtu.0)))
    }

    /// The queue of a packet: RFC 9332, section 2.3.
    #[inline]
    fn lane(&self, ecn: Ecn) -> Lane {
        match ecn {
            Ecn::Ect1 | Ecn::Marked => Lane::LowLatency,
            Ecn::Ect0 if self.any_ect => Lane::LowLatency,
            Ecn::Ect0 | Ecn::NotCapable => Lane::Classic,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "DualPI2: a queue of low delay for scalable senders beside one for classic senders (RFC 9332)";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = DualPi2<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<DualPi2<P>, Invalid> {
        let limit = Limit::Packets(self.limit.0);
        check_limit("limit", limit, context.mtu)?;
        if let Some(bytes) = self.memlimit {
            check_limit("memlimit", Limit::Bytes(bytes.0), context.mtu)?;
        }
        Ok(DualPi2 {
            memory: self.memory(context.mtu).0,
            coupling: coupling(self.coupling_factor)?,
            untouched: 2 * context.mtu.0,
            controller: Controller::new(self.law()?),
            scheduler: Scheduler::new(self.classic_protection, context.mtu),
            rng: context.streams.rng(),
            low_latency: Queue::new(limit),
            stepped: VecDeque::with_capacity(limit.initial_capacity()),
            classic: Queue::new(limit),
            as_of: Time::ZERO,
            counters: Counters::default(),
            config: self.clone(),
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux::named("dualpi2"))
    }

    fn filled(&self, context: &LinkContext) -> Config {
        Config { memlimit: Some(self.memory(context.mtu)), ..self.clone() }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        // The packets of a flow may have different ECN fields.
        Properties { keeps_flow_order: false, marks: true, ..Properties::plain(Limit::Packets(self.limit.0)) }
    }

    fn variants() -> Vec<Config> {
        let quick = Config {
            target: Span::us(100),
            tupdate: Span::us(100),
            alpha: 100.0,
            beta: 1000.0,
            step_thresh: Depth::Time(Span::us(50)),
            ..Config::default()
        };
        vec![
            Config { limit: Packets(5), ..Config::default() },
            quick.clone(),
            Config { memlimit: Some(Bytes(5000)), overflow: true, drop_enqueue: true, ..quick.clone() },
            Config {
                any_ect: true,
                step_thresh: Depth::Packets(3),
                min_qlen_step: Packets(2),
                max_rtt: Some(Span::ms(1)),
                ..quick
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let Ok(law) = self.law() else { return Vec::new() };
        let mut warnings = law_warnings(&law, self.limit, context);
        if let Depth::Time(threshold) = self.step_thresh
            && self.min_qlen_step.0 == 0
            && threshold < context.rate.time_for(context.mtu.0)
        {
            warnings.push(format!(
                "step_thresh: {threshold} is less than one packet of {} bytes takes at {} ({}), so a lone packet is marked if it waits for one; write a longer time, or min_qlen_step 1p",
                context.mtu.0,
                context.rate,
                context.rate.time_for(context.mtu.0).rough()
            ));
        }
        if self.classic_protection.get() == 0.0 {
            warnings.push(
                "classic_protection: with 0 % the C queue starves behind senders of the L queue that do not respond to marks"
                    .into(),
            );
        }
        if self.max_rtt.is_some() || self.typical_rtt.is_some() {
            let default = Config::default();
            let given = [
                ("target", self.target != default.target),
                ("tupdate", self.tupdate != default.tupdate),
                ("alpha", self.alpha != default.alpha),
                ("beta", self.beta != default.beta),
            ];
            warnings.extend(given.iter().filter(|(_, given)| *given).map(|(name, _)| {
                format!("{name}: it has no effect, because max_rtt and typical_rtt set it")
            }));
        }
        warnings
    }
}

/// A queue, and its AQM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// The L queue.
    LowLatency,
    /// The C queue.
    Classic,
}

/// Weighted round robin with credit: the L queue goes first, until the C queue has earned its share.
#[derive(Clone, Copy, Debug)]
struct Scheduler {
    /// Credit of the C queue per byte that the L queue sends, in millionths of a byte.
    earns: i64,
    /// Credit that the C queue pays per byte that it sends, in millionths of a byte.
    pays: i64,
    /// Credit while only one queue has packets.
    start: i64,
    /// Credit of the C queue, in millionths of a byte.
    credit: i64,
}

impl Scheduler {
    /// Parts of a byte in which credit is counted.
    const PARTS: i64 = 1_000_000;

    fn new(protection: Share, mtu: Bytes) -> Scheduler {
        let earns = (protection.get() * Scheduler::PARTS as f64 + 0.5) as i64;
        let pays = Scheduler::PARTS - earns;
        // A round begins as if a classic packet of full size had just left, so that a short burst of the L
        // queue does not wait.
        let start = -pays * mtu.0 as i64;
        Scheduler { earns, pays, start, credit: start }
    }

    /// The queue that sends next while both have packets: RFC 9332, section 4.2.2, priority that is
    /// conditional.
    #[inline]
    fn next(&self) -> Lane {
        if self.credit >= 0 { Lane::Classic } else { Lane::LowLatency }
    }

    /// A packet leaves while both queues have packets.
    #[inline]
    fn on_departure(&mut self, lane: Lane, bytes: u32) {
        self.credit += match lane {
            Lane::LowLatency => self.earns * i64::from(bytes),
            Lane::Classic => -self.pays * i64::from(bytes),
        };
    }

    fn restart(&mut self) {
        self.credit = self.start;
    }

    /// Continues another scheduler, if both protect the C queue alike.
    fn take_over(&mut self, old: &Scheduler) {
        if (self.earns, self.start) == (old.earns, old.start) {
            self.credit = old.credit;
        }
    }
}

/// Counters of `tc -s qdisc`.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Packets that entered the C queue.
    classic: u64,
    /// Packets that entered the L queue.
    low_latency: u64,
    /// Longest backlog of both queues in packets.
    most_packets: u64,
    /// Longest backlog of both queues in bytes.
    most_bytes: u64,
    /// Packets that were marked.
    marks: u64,
    /// Packets that were marked only because of the threshold.
    step_marks: u64,
}

/// The discipline `dualpi2`: two queues, the controller and the scheduler.
pub struct DualPi2<P> {
    config: Config,
    /// Capacity in bytes.
    memory: u64,
    /// k.
    coupling: f64,
    /// Bytes below which the controller neither drops nor marks.
    untouched: u64,
    controller: Controller,
    scheduler: Scheduler,
    rng: Rng,
    low_latency: Queue<P>,
    /// For each packet of the L queue, true if the threshold applies to it.
    stepped: VecDeque<bool>,
    classic: Queue<P>,
    /// Time of the last call.
    as_of: Time,
    counters: Counters,
}

impl<P: 'static> Qdisc<P> for DualPi2<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.catch_up(cx.now());
        let backlog = self.backlog();
        if u64::from(pkt.bytes()) > self.memory {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        if backlog.packets >= self.config.limit.0 || backlog.bytes + u64::from(pkt.bytes()) > self.memory {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        let lane = self.config.lane(pkt.meta.ecn);
        if self.config.drop_enqueue && !self.passes(lane, &mut pkt, cx) {
            return cx.drop(pkt, DropReason::Early);
        }
        self.push(lane, pkt);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.catch_up(cx.now());
        loop {
            let contended = !self.low_latency.is_empty() && !self.classic.is_empty();
            if !contended {
                self.scheduler.restart();
            }
            let lane = match self.low_latency.is_empty() {
                _ if contended => self.scheduler.next(),
                true => Lane::Classic,
                false => Lane::LowLatency,
            };
            let Some((mut pkt, exceeds)) = self.pop(lane, cx.now()) else { return Next::Empty };
            if !self.config.drop_enqueue && !self.passes(lane, &mut pkt, cx) {
                // RFC 9332, appendix A.1, dualpi2_dequeue(): after a drop the scheduler is asked again.
                cx.drop(pkt, DropReason::Congested);
                continue;
            }
            if exceeds && self.mark(&mut pkt, cx) {
                self.counters.step_marks += 1;
            }
            if contended {
                self.scheduler.on_departure(lane, pkt.bytes());
            }
            return Next::Packet(pkt);
        }
    }

    fn backlog(&self) -> Backlog {
        let (low_latency, classic) = (self.low_latency.backlog(), self.classic.backlog());
        Backlog { packets: low_latency.packets + classic.packets, bytes: low_latency.bytes + classic.bytes }
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.low_latency.reset(cx);
        self.classic.reset(cx);
        self.stepped.clear();
        self.controller.reset();
        self.scheduler.restart();
        self.as_of = Time::ZERO;
        self.counters = Counters::default();
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let base = self.controller.probability();
        let waited = |queue: &Queue<P>| arrival(queue).map_or(Span::ZERO, |at| self.as_of.since(at)).as_s();
        visit("base_probability", base);
        visit("classic_probability", base * base);
        visit("coupled_probability", (self.coupling * base).min(1.0));
        visit("delay_c_s", waited(&self.classic));
        visit("delay_l_s", waited(&self.low_latency));
        visit("queued_c_packets", self.classic.backlog().packets as f64);
        visit("queued_l_packets", self.low_latency.backlog().packets as f64);
        visit("arrived_c_packets", self.counters.classic as f64);
        visit("arrived_l_packets", self.counters.low_latency as f64);
        visit("most_queued_packets", self.counters.most_packets as f64);
        visit("most_queued_bytes", self.counters.most_bytes as f64);
        visit("marked_packets", self.counters.marks as f64);
        visit("step_marked_packets", self.counters.step_marks as f64);
        visit("credit_bytes", self.scheduler.credit as f64 / Scheduler::PARTS as f64);
    }

    /// Both queues, the controller, whose next update is when it was due, and the counters.
    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, DualPi2<P>>(old) else { return };
        old.catch_up(cx.now());
        self.controller.take_over(&old.controller);
        self.scheduler.take_over(&old.scheduler);
        (self.as_of, self.counters) = (old.as_of, old.counters);
        std::mem::swap(&mut self.rng, &mut old.rng);
        std::mem::swap(&mut self.low_latency, &mut old.low_latency);
        std::mem::swap(&mut self.stepped, &mut old.stepped);
        std::mem::swap(&mut self.classic, &mut old.classic);
        self.shorten(cx);
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// Arrival of the head of a queue.
fn arrival<P>(queue: &Queue<P>) -> Option<Time> {
    queue.iter().next().map(|head| head.meta.arrived)
}

impl<P: 'static> DualPi2<P> {
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let (low_latency, classic) = (&self.low_latency, &self.classic);
        // RFC 9332, appendix A.2, dualpi2_update(): curq = max(cq.time(), lq.time()).
        self.controller.catch_up(now, || arrival(low_latency).into_iter().chain(arrival(classic)).min());
        self.as_of = now;
    }

    /// Drops the newest packets of both queues, until the rest is within the limits.
    fn shorten(&mut self, cx: &mut Cx<'_, P>) {
        while self.backlog().packets > self.config.limit.0 || self.backlog().bytes > self.memory {
            let newest = |queue: &Queue<P>| queue.last().map(|last| last.meta.arrived);
            let victim = if newest(&self.low_latency) > newest(&self.classic) {
                self.stepped.pop_back();
                self.low_latency.pop_last()
            } else {
                self.classic.pop_last()
            };
            cx.drop(victim.expect("what exceeds a limit is queued"), DropReason::Overlimit);
        }
    }

    fn push(&mut self, lane: Lane, pkt: Packet<P>) {
        match lane {
            Lane::LowLatency => {
                self.counters.low_latency += 1;
                self.low_latency.push(pkt);
                // tc-dualpi2(8): the threshold may apply if the queue exceeds this length at the arrival.
                self.stepped.push_back(self.low_latency.backlog().packets > self.config.min_qlen_step.0);
            }
            Lane::Classic => {
                self.counters.classic += 1;
                self.classic.push(pkt);
            }
        }
        let backlog = self.backlog();
        self.counters.most_packets = self.counters.most_packets.max(backlog.packets);
        self.counters.most_bytes = self.counters.most_bytes.max(backlog.bytes);
    }

    /// Removes the head of a queue, with true if it exceeds the threshold.
    #[inline]
    fn pop(&mut self, lane: Lane, now: Time) -> Option<(Packet<P>, bool)> {
        match lane {
            Lane::Classic => Some((self.classic.pop()?, false)),
            Lane::LowLatency => {
                let pkt = self.low_latency.pop()?;
                let applies = self.stepped.pop_front().expect("each packet of the L queue has an entry");
                let exceeds = match self.config.step_thresh {
                    Depth::Time(threshold) => now.since(pkt.meta.arrived) > threshold,
                    Depth::Packets(threshold) => self.low_latency.backlog().packets > threshold,
                };
                Some((pkt, applies && exceeds))
            }
        }
    }

    /// Decides on a packet that is in neither queue, by the controller, and marks it; false if it is to be
    /// dropped.
    fn passes(&mut self, lane: Lane, pkt: &mut Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        if self.backlog().bytes + u64::from(pkt.bytes()) < self.untouched {
            return true;
        }
        let base = self.controller.probability();
        // RFC 9332, section 2.1: p_C = (p_CL / k)^2, with p_CL = k p'.
        let (classic, coupled) = (base * base, self.coupling * base);
        // RFC 9332, section 4.2.3: marks saturate at 100 %, and drops begin in both queues, or delay grows.
        let overload = coupled >= 1.0 && !self.config.overflow;
        match lane {
            Lane::LowLatency if overload && happens(classic, &mut self.rng) => false,
            // RFC 9332, appendix A.2, dualpi2_dequeue(): linear marks, also of the packets that overload
            // leaves.
            Lane::LowLatency => {
                if happens(coupled, &mut self.rng) {
                    self.mark(pkt, cx);
                }
                true
            }
            Lane::Classic if !happens(classic, &mut self.rng) => true,
            // RFC 9332, appendix A.2, dualpi2_dequeue(): overload disables ECN.
            Lane::Classic if overload || pkt.meta.ecn == Ecn::NotCapable => false,
            Lane::Classic => {
                self.mark(pkt, cx);
                true
            }
        }
    }

    /// Marks a packet of a sender with ECN, and counts it; false if it was marked before.
    fn mark(&mut self, pkt: &mut Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        let new = pkt.meta.ecn != Ecn::Marked && cx.mark(pkt);
        self.counters.marks += u64::from(new);
        new
    }
}

#[cfg(test)]
mod tests;
