//! FPIP: short flows get the rate that they request, and long flows share the rest equally. An edge separates
//! the two; a core needs only labels and the number of long flows.
//!
//! # Principles
//! - A flow is short until it has sent more than `threshold` bytes. Its packets are never dropped early: they
//!   are few, and a short transfer that loses a packet waits for a timeout.
//! - A packet of a long flow carries the flow's rate r. It is dropped with probability 1 - R / r, so that at
//!   most R of each flow remains.
//! - R, the fair share, is the capacity that short flows leave, divided by the number of long flows: (C -
//!   sRate) / N, equation (4). R takes this value whenever the controller PIP, a function of the queue's
//!   length, detects congestion, which it does with its probability p.
//! - Otherwise, while the accepted rate is below the capacity, R grows by capacity over accepted rate:
//!   equation (9). So long flows that are slower than their share leave it to the others.
//! - The two rules work against each other, and the queue stays near PIP's reference.
//! - An accepted packet leaves with a label of at most R, for the next router. A packet without a label is
//!   first labelled here (`edge`).
//!
//! # Deviations
//! On a link whose rate varies, C is the present rate, and R follows by its own equations.
//!
//! The paper leaves these points open. They are numbered, so that tests can name them.
//! - F1. Equation (9) applies at every packet that finds no congestion (`adjust packet`). Some tens of
//!   packets can raise R from any value to the link's rate. That works because PIP lowers R again. If it
//!   applies once per `adjust_every` (`adjust window`) or never, the link idles. A test shows all three.
//! - F2. R is at most the link's rate (`cap`). A higher value has no meaning, and takes longer to fall.
//! - F3. Long flows together have at least a thousandth of the link (`floor`), so R is never 0. Equation (4)
//!   gives 0 when short flows exceed the link. Equation (9) then multiplies 0, all long packets are dropped,
//!   and the queue drains. If PIP's probability is 0 by then, equation (4) never applies again, and long
//!   flows starve permanently. A long flood does not cause this, since PIP remembers it for seconds; a short
//!   burst next to slow long flows does. A test shows both. A floor for each flow (`floor_each`) exceeds the
//!   fair share of more than a thousand flows, and then limits none of them; a test shows that.
//! - F4, F5. Without long flows R stays. An accepted rate of 0 counts as a thousandth of the link.
//! - F6. Rates decay by the time since their last update. Read literally, the clock of sRate counts short
//!   packets only, and the decay between long packets would be applied twice.
//! - F7. Every arrival updates PIP, and one draw decides on congestion. The drop has its own draw, only if
//!   its probability is above 0.
//! - F8, F9, F10. The block `edge` decides when a flow becomes long, with which rate it starts, and when it
//!   is forgotten.
//! - F11. Accepted packets leave with the label min(r, R), as in CSFQ. The paper mentions relabelling in
//!   section 4.1 only.
//! - F12. Every output runs the core, also an edge router's: the paper's bottleneck is an output of its
//!   edge router.
//! - F13. Long flows are counted in a table. Each `sweep` removes those that have been silent for `idle`
//!   (T_n). Both tables are bounded; at the bound, the flows that have been silent longest are removed.
//! - F15. A full buffer drops arriving packets without a signal to the controllers. Short flows lose packets
//!   only there.
//! - PIP's probability stays between 0 and 1 (`clamp`). The block `pip` documents the units of its constants.
//! - `adaptive` is the threshold of section 4.1 that moves with congestion. The paper gives no rule for it.
//!   Here it is `threshold` at p = 0, three packets at p = 1, and linear in between.
//!
//! FPIP has one more weakness. When every long flow sends more than its share, the accepted rate is exactly
//! the link's rate. Equation (4) cannot go below C / N, p stays at 1, and the queue keeps the length that it
//! had at the start.
//!
//! # Cost
//! - Core: two exponentials per packet (one if both constants are equal), one or two draws, and a table
//!   look-up for long flows. Edge: a look-up, and an exponential for long flows.
//! - 64 bytes per flow of the last five seconds at the edge, 48 per long flow in the core, in tables that are
//!   half full.
//!
//! # References
//! - H. Zhang, J. Jiang, W. Dou, "A Fair Bandwidth Allocation Mechanism with Preference to Short Flows",
//!   Journal of Software 18(3), 2007: sections 2.2.1 (edge, equation 1), 2.2.2 (short flows, 2 and 3), 2.2.3
//!   (number of long flows), 2.2.4 (fair share, 4 to 11), 3.1 (values), 4 (threshold, T_n, state).
//! - I. Stoica, S. Shenker, H. Zhang, "Core-Stateless Fair Queueing", SIGCOMM 1998: labels and relabelling.

use giveway_qdisc::blocks::pip::{Length, Pip};
use giveway_qdisc::blocks::{AveragedRate, Averaging, Buffer, Edge, Memory, RecentFlows, SameInstant, Step};
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowKey, FlowTable, Invalid, Label, Limit, LinkContext, Next, Packet,
    Properties, Qdisc, Rate, Rng, Share, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fpip_edge::{MEMORY, threshold};
use crate::{Discipline, Needs};

/// Parameters of `fpip`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity; packets beyond it are dropped.
    pub limit: Limit,
    /// Label packets without a label here.
    pub edge: bool,
    /// Amount that a flow sends before it is long (bitThresh): bytes, or packets of the link's MTU.
    pub threshold: Limit,
    /// The threshold moves with congestion, down to three packets of the link's MTU.
    pub adaptive: bool,
    /// The time that the rate of a long flow is averaged over, at the edge (K_r).
    pub window: Span,
    /// The time that the rate of all short flows together is averaged over (K_s).
    pub short_window: Span,
    /// The time that the accepted rate is averaged over (K_c).
    pub accepted_window: Span,
    /// The contribution of packets of one instant to a rate.
    pub same_instant: SameInstant,
    /// The length at which the queue is congested (q0): in packets, or in bytes.
    pub target: Limit,
    /// Length of a packet, where `target` is in bytes.
    pub avpkt: Bytes,
    /// PIP's integral time (T), packet-seconds.
    pub t: f64,
    /// PIP's proportional time (tau).
    pub tau: Span,
    /// PIP's position feedback (K_h), per packet.
    pub kh: f64,
    /// The longest pause between two arrivals that counts for PIP; by default all do.
    pub max_dt: Option<Span>,
    /// Keep PIP's probability between 0 and 1. Without it an idle link hides the congestion after
    /// it.
    #[schemars(extend("x-hidden" = true))]
    pub clamp: bool,
    /// Time at which the fair share grows without congestion, equation (9).
    #[schemars(extend("x-hidden" = true))]
    pub adjust: Adjust,
    /// Interval between adjustments, with `adjust window`.
    #[schemars(extend("x-hidden" = true))]
    pub adjust_every: Span,
    /// Minimum rate of all long flows together, as a part of the link. Without it a burst of short flows can
    /// starve them permanently.
    pub floor: Share,
    /// The floor is the minimum rate of each long flow. With many flows it then limits none of them.
    #[schemars(extend("x-hidden" = true))]
    pub floor_each: bool,
    /// Limit the fair share to the link's rate. Without it, it grows without bound while the link is
    /// idle.
    #[schemars(extend("x-hidden" = true))]
    pub cap: bool,
    /// Time between visits of the tables that forget flows. Zero: never.
    pub sweep: Span,
    /// Silence after which a visit no longer counts a long flow (T_n).
    pub idle: Span,
    /// Silence after which a visit of the edge forgets a flow; it then starts again as a
    /// short one.
    pub edge_idle: Span,
    /// Largest number of flows in each of the two tables.
    pub flows: u32,
}

/// Time at which the fair share is adjusted without congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Adjust {
    /// At every packet.
    Packet,
    /// At the first packet of every window.
    Window,
    /// Never.
    Never,
}

impl Default for Config {
    fn default() -> Config {
        let pip = crate::pip::Config::default();
        Config {
            limit: Limit::Bytes(300_000),
            edge: true,
            threshold: Limit::Bytes(10_000),
            adaptive: false,
            window: Span::ms(100),
            short_window: Span::ms(100),
            accepted_window: Span::ms(100),
            same_instant: SameInstant::Limit,
            target: pip.target,
            avpkt: pip.avpkt,
            t: pip.t,
            tau: pip.tau,
            kh: pip.kh,
            max_dt: pip.max_dt,
            clamp: pip.clamp,
            adjust: Adjust::Packet,
            adjust_every: Span::ms(100),
            floor: Share::new(0.001).expect("a thousandth is a share"),
            floor_each: false,
            cap: true,
            sweep: MEMORY.sweep,
            idle: MEMORY.idle,
            edge_idle: MEMORY.idle,
            flows: MEMORY.flows as u32,
        }
    }
}

/// Accepted rate that equation (9) uses instead of 0, as a part of the link.
const MIN_ACCEPTED: f64 = 0.001;

impl Config {
    /// The detector of congestion.
    fn pip(&self) -> crate::pip::Config {
        let Config { limit, target, avpkt, t, tau, kh, max_dt, clamp, .. } = *self;
        crate::pip::Config { limit, target, avpkt, t, tau, kh, max_dt, clamp, ecn: false }
    }

    fn core(&self, context: &LinkContext, pip: Pip) -> Result<Core, Invalid> {
        let capacity = context.rate.as_bit() as f64;
        let memory = Memory::checked(self.sweep, self.idle, self.flows)?;
        let short = Averaging::new("short_window", self.short_window, self.same_instant)?;
        let accepted = Averaging::new("accepted_window", self.accepted_window, self.same_instant)?;
        Ok(Core {
            capacity,
            short,
            accepted: (self.short_window != self.accepted_window).then_some(accepted),
            adjust: self.adjust,
            adjust_every: self.adjust_every,
            floor: self.floor.get() * capacity,
            floor_each: self.floor_each,
            // Without a cap the bound is a rate that can be scaled without overflow.
            most: if self.cap { capacity } else { 1e18 },
            flows: RecentFlows::new(memory, |()| false),
            fresh: pip,
            state: State::new(pip, capacity),
        })
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "FPIP: short flows first, equal shares of the rest for long ones, by labels from an edge";
    const NEEDS: Needs = Needs::Labels;
    type Qdisc<P: 'static> = Fpip<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Fpip<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        let (pip, length) = self.pip().controller()?;
        let core = self.core(context, pip)?;
        let memory = Memory::checked(self.sweep, self.edge_idle, self.flows)?;
        let averaging = Averaging::new("window", self.window, self.same_instant)?;
        let most = threshold(self.threshold, context.mtu);
        let least = if self.adaptive { most.min(threshold(Limit::Packets(3), context.mtu)) } else { most };
        Ok(Fpip {
            edge: self.edge.then(|| Edge::new(averaging, memory)),
            threshold: Threshold { least: f64::from(least), most: f64::from(most) },
            core,
            length,
            rng: context.streams.rng(),
            queue: Buffer::new(self.limit),
        })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let quick = Config {
            threshold: Limit::Bytes(2000),
            target: Limit::Packets(2),
            t: 0.1,
            sweep: Span::ms(20),
            idle: Span::ms(30),
            ..Config::default()
        };
        vec![
            Config { limit: Limit::Packets(5), ..quick.clone() },
            Config {
                limit: Limit::Bytes(20_000),
                target: Limit::Bytes(3000),
                adaptive: true,
                adjust: Adjust::Window,
                accepted_window: Span::ms(10),
                flows: 3,
                ..quick.clone()
            },
            Config {
                limit: Limit::Packets(20),
                threshold: Limit::Packets(3),
                same_instant: SameInstant::Accumulate,
                floor: Share::default(),
                floor_each: true,
                cap: false,
                clamp: false,
                edge: false,
                ..quick
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = self.pip().warnings(context);
        if self.floor.get() == 0.0 {
            warnings
                .push("floor: with 0, a burst of short flows can starve long flows permanently".to_owned());
        }
        if self.floor_each && self.floor.get() > 0.0 {
            let flows = 1.0 / self.floor.get();
            warnings.push(format!(
                "floor_each: with more than {flows:.0} long flows the fair share limits none of them"
            ));
        }
        if !self.cap {
            warnings.push("nocap: the fair share of an idle link grows without bound".to_owned());
        }
        if self.adjust != Adjust::Packet {
            warnings.push(
                "adjust: unless the share is adjusted at every packet, slow long flows leave a part of the link idle"
                    .to_owned(),
            );
        }
        if self.adaptive && matches!(self.threshold, Limit::Packets(0..=3)) {
            warnings.push(format!(
                "adaptive: a threshold of {} cannot be lowered: the least threshold is three packets",
                self.threshold
            ));
        }
        warnings
    }
}

/// An edge, where it is one; a core; and the queue.
pub struct Fpip<P> {
    edge: Option<Edge>,
    threshold: Threshold,
    core: Core,
    length: Length,
    rng: Rng,
    queue: Buffer<P>,
}

/// bitThresh, in bytes: at full congestion, and without.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    least: f64,
    most: f64,
}

impl Threshold {
    /// The threshold at this probability of the controller.
    fn at(self, probability: f64) -> u32 {
        (self.most - probability.clamp(0.0, 1.0) * (self.most - self.least)) as u32
    }
}

/// The core: state for all flows together, and the long flows.
#[derive(Debug)]
struct Core {
    /// C, bit/s.
    capacity: f64,
    short: Averaging,
    /// Average of the accepted rate, if it differs from the average for the short flows' rate.
    accepted: Option<Averaging>,
    adjust: Adjust,
    adjust_every: Span,
    /// The minimum fair share, bit/s: of all long flows, or of each.
    floor: f64,
    floor_each: bool,
    /// The largest fair share, bit/s.
    most: f64,
    /// Long flows, and when each sent last (prevtime); as many as there are are active.
    flows: RecentFlows<()>,
    /// The controller in its initial state.
    fresh: Pip,
    state: State,
}

/// The variable state.
#[derive(Clone, Copy, Debug)]
struct State {
    pip: Pip,
    /// sRate.
    short: AveragedRate,
    /// cRate.
    accepted: AveragedRate,
    /// Time of the last update of both.
    last: Option<Time>,
    /// R, bit/s.
    fair_share: f64,
    /// Time of the last use of equation (9).
    adjusted: Option<Time>,
}

impl State {
    /// The initial state, without limits.
    fn new(pip: Pip, capacity: f64) -> State {
        let none = AveragedRate::default();
        State { pip, short: none, accepted: none, last: None, fair_share: capacity, adjusted: None }
    }
}

/// The decision on a packet before the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// The packet leaves with this label.
    Accept(Label),
    Drop,
}

impl<P> Qdisc<P> for Fpip<P> {
    #[inline]
    fn enqueue(&mut self, mut pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let (now, flow, bytes) = (cx.now(), pkt.meta.flow, pkt.bytes());
        if let Some(edge) = &mut self.edge
            && !pkt.meta.label.is_set()
        {
            let threshold = self.threshold.at(self.core.state.pip.probability());
            pkt.meta.label = edge.label(flow, bytes, threshold, now);
        }
        let length = self.length.of(self.queue.backlog());
        let rng = &mut self.rng;
        let steps = self.core.steps(now);
        let arrival = Arrival { flow, label: pkt.meta.label, bytes, length, now };
        let accepted = match self.core.judge(&arrival, &steps, &mut || rng.uniform()) {
            Verdict::Accept(label) => {
                pkt.meta.label = label;
                self.queue.push(pkt, cx)
            }
            Verdict::Drop => {
                cx.drop(pkt, DropReason::Early);
                false
            }
        };
        self.core.count(if accepted { bytes } else { 0 }, &steps);
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
        self.core.reset();
        self.edge.iter_mut().for_each(Edge::clear);
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        self.core.rate_changed(rate);
    }

    fn flow_table(&self) -> FlowTable {
        let core = self.core.flows.table();
        // A flow in both tables is one flow with two entries.
        self.edge.as_ref().map(Edge::table).map_or(core, |edge| FlowTable {
            flows: edge.flows.max(core.flows),
            most: edge.most.max(core.most),
            entry_bytes: edge.entry_bytes + core.entry_bytes,
            bytes: edge.bytes + core.bytes,
        })
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let state = &self.core.state;
        visit("fair_share_bps", state.fair_share);
        visit("short_bps", state.short.rate);
        visit("accepted_bps", state.accepted.rate);
        visit("long_flows", self.core.flows.len() as f64);
        visit("congestion", state.pip.probability());
    }
}

/// A packet as the core sees it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    flow: FlowKey,
    label: Label,
    bytes: u32,
    /// The queue before it, packets.
    length: f64,
    now: Time,
}

/// Decay of the two rates since the last arrival.
#[derive(Clone, Copy, Debug)]
struct Steps {
    short: Step,
    accepted: Step,
}

impl Core {
    /// Advances to the time of an arrival.
    #[inline]
    fn steps(&mut self, now: Time) -> Steps {
        self.flows.sweep(now);
        let last = self.state.last.replace(now);
        let short = self.short.step(last, now);
        Steps { short, accepted: self.accepted.map_or(short, |other| other.step(last, now)) }
    }

    /// Sections 2.2.2 to 2.2.4, in the order of the paper; `count` comes after.
    #[inline]
    fn judge(&mut self, arrival: &Arrival, steps: &Steps, draw: &mut impl FnMut() -> f64) -> Verdict {
        let rate = arrival.label.rate();
        let is_short = rate == Rate::bit(0);
        let state = &mut self.state;

        // Equations (2) and (3).
        steps.short.apply(&mut state.short, if is_short { arrival.bytes } else { 0 });
        if !is_short {
            self.flows.record(arrival.flow, arrival.now, || ());
        }
        let congestion = state.pip.arrival(arrival.length, arrival.now);
        if congestion > draw() {
            self.divide();
        } else if state.accepted.rate < self.capacity {
            self.grow(arrival.now);
        }
        if is_short {
            return Verdict::Accept(arrival.label);
        }
        // Equation (11).
        let fair_share = self.state.fair_share;
        let probability = 1.0 - fair_share / rate.as_bit() as f64;
        if probability > 0.0 && draw() < probability {
            return Verdict::Drop;
        }
        Verdict::Accept(arrival.label.lowered(Rate::bit(fair_share as u64)))
    }

    /// Equation (4): long flows share the capacity that short flows leave.
    #[inline]
    fn divide(&mut self) {
        let flows = self.flows.len();
        if flows > 0 {
            let left = (self.capacity - self.state.short.rate).max(0.0);
            self.state.fair_share = self.bounded(left / flows as f64);
        }
    }

    /// Equation (9): the link has room.
    #[inline]
    fn grow(&mut self, now: Time) {
        let state = &mut self.state;
        let due = match self.adjust {
            Adjust::Packet => true,
            Adjust::Window => state.adjusted.is_none_or(|last| now >= last + self.adjust_every),
            Adjust::Never => false,
        };
        if due {
            let accepted = state.accepted.rate.max(MIN_ACCEPTED * self.capacity);
            let grown = state.fair_share * (self.capacity / accepted);
            state.adjusted = Some(now);
            self.state.fair_share = self.bounded(grown);
        }
    }

    /// A fair share between the floor and the cap.
    #[inline]
    fn bounded(&self, fair_share: f64) -> f64 {
        let sharing = if self.floor_each { 1 } else { self.flows.len().max(1) };
        fair_share.max(self.floor / sharing as f64).min(self.most)
    }

    /// Equation (10): so many bytes of the packet were accepted.
    #[inline]
    fn count(&mut self, accepted: u32, steps: &Steps) {
        steps.accepted.apply(&mut self.state.accepted, accepted);
    }

    /// The link has another rate. The fair share follows by its own equations.
    fn rate_changed(&mut self, rate: Rate) {
        let capacity = rate.as_bit() as f64;
        self.floor *= capacity / self.capacity;
        if self.most == self.capacity {
            self.most = capacity;
        }
        self.capacity = capacity;
    }

    fn reset(&mut self) {
        self.flows.clear();
        self.state = State::new(self.fresh, self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::events::{any_flows, events};
    use crate::testing::rates::{Flow, Outcome, offer};
    use giveway_qdisc::{Outbox, Streams};
    use proptest::prelude::*;

    const LINK: Rate = Rate::mbit(10);

    fn context() -> LinkContext {
        LinkContext::new(LINK, Streams::new(1))
    }
    fn built(spec: &str) -> Fpip<u64> {
        let Spec::fpip(config) = spec.parse().unwrap() else { panic!("{spec} is fpip") };
        config.build(&context()).unwrap()
    }
    fn with(spec: &str, flows: &[Flow]) -> Outcome {
        offer(spec, LINK, flows, 22)
    }

    /// A row of the worked example: an arrival, the random draws, and the resulting state of the core.
    struct Example {
        /// The flow, its label in Mbit/s, bytes, and the packets that it finds queued.
        comes: (u64, u64, u32, f64),
        draws: [f64; 2],
        short: f64,
        flows: usize,
        congestion: f64,
        fair_share: f64,
        /// The label with which the packet leaves; none if it is dropped.
        leaves: Option<u64>,
        accepted: f64,
    }

    /// Eight packets, one every millisecond, at a core with state, computed by hand. S is short, V is new,
    /// and W was silent for so long that the sweep just before removes it.
    #[test]
    fn the_worked_example_row_by_row() {
        const S: u64 = 0;
        const V: u64 = 1;
        const W: u64 = 2;
        const X: u64 = 3;
        const Y: u64 = 4;
        const Z: u64 = 5;
        #[rustfmt::skip]
        let rows = [
            Example { comes: (S, 0, 1000, 72.0), draws: [0.50, 9.0], short: 2_059_701.0, flows: 3, congestion: 0.301_310, fair_share: 1_041_667.0, leaves: Some(0), accepted: 9_584_080.0 },
            Example { comes: (X, 4, 500, 74.0), draws: [0.10, 0.60], short: 2_039_207.0, flows: 3, congestion: 0.302_630, fair_share: 2_653_598.0, leaves: Some(2_653_598), accepted: 9_528_517.0 },
            Example { comes: (Y, 2, 500, 75.0), draws: [0.90, 0.30], short: 2_018_916.0, flows: 3, congestion: 0.303_355, fair_share: 2_784_901.0, leaves: Some(2_000_000), accepted: 9_473_508.0 },
            Example { comes: (V, 8, 500, 76.0), draws: [0.20, 0.50], short: 1_998_828.0, flows: 4, congestion: 0.304_085, fair_share: 2_000_293.0, leaves: None, accepted: 9_379_245.0 },
            Example { comes: (S, 0, 1000, 76.0), draws: [0.80, 9.0], short: 2_058_540.0, flows: 4, congestion: 0.304_215, fair_share: 2_132_680.0, leaves: Some(0), accepted: 9_365_521.0 },
            Example { comes: (X, 4, 500, 75.0), draws: [0.95, 0.55], short: 2_038_057.0, flows: 4, congestion: 0.303_740, fair_share: 2_277_162.0, leaves: Some(2_277_162), accepted: 9_312_133.0 },
            Example { comes: (Z, 1, 500, 74.0), draws: [0.15, 0.01], short: 2_017_778.0, flows: 4, congestion: 0.303_260, fair_share: 1_995_555.0, leaves: Some(1_000_000), accepted: 9_259_276.0 },
            Example { comes: (Y, 2, 500, 73.0), draws: [0.40, 0.20], short: 1_997_701.0, flows: 4, congestion: 0.302_775, fair_share: 2_155_196.0, leaves: Some(2_000_000), accepted: 9_206_946.0 },
        ];
        let mut core = built("fpip").core;
        core.flows.sweep(Time::s(4));
        for (flow, ms) in [(W, 4_000), (X, 9_000), (Y, 9_500), (Z, 9_800)] {
            core.flows.record(FlowKey(flow), Time::ms(ms), || ());
        }
        core.state = State {
            pip: core.state.pip.resumed(0.3, 70.0, Time::s(10)),
            short: AveragedRate { rate: 2e6, pending: 0 },
            accepted: AveragedRate { rate: 9.6e6, pending: 0 },
            last: Some(Time::s(10)),
            fair_share: 1e6,
            adjusted: None,
        };
        for (ms, row) in (10_001..).zip(rows) {
            let (flow, mbit, bytes, length) = row.comes;
            let label = if mbit == 0 { Label::SHORT } else { Label::of(Rate::mbit(mbit)) };
            let now = Time::ms(ms);
            let mut draws = row.draws.into_iter();
            let steps = core.steps(now);
            let arrival = Arrival { flow: FlowKey(flow), label, bytes, length, now };
            let verdict = core.judge(&arrival, &steps, &mut || draws.next().unwrap());
            let accepted = if verdict == Verdict::Drop { 0 } else { bytes };
            core.count(accepted, &steps);
            let near = |what: &str, is: f64, wanted: f64, by: f64| {
                assert!((is - wanted).abs() <= by, "{what} is {is} instead of {wanted} at {ms} ms");
            };
            near("sRate", core.state.short.rate, row.short, 0.6);
            near("p", core.state.pip.probability(), row.congestion, 5e-7);
            near("R", core.state.fair_share, row.fair_share, 0.6);
            near("cRate", core.state.accepted.rate, row.accepted, 0.6);
            assert_eq!(core.flows.len(), row.flows, "N at {ms} ms");
            match (verdict, row.leaves) {
                (Verdict::Accept(label), Some(leaves)) => {
                    near("label", label.rate().as_bit() as f64, leaves as f64, 1.0)
                }
                (verdict, leaves) => assert!(verdict == Verdict::Drop && leaves.is_none(), "at {ms} ms"),
            }
        }
    }

    /// Once per window, only the first of the rows above would adjust.
    #[test]
    fn a_window_adjusts_once() {
        let mut core = built("fpip adjust window").core;
        core.state =
            State { accepted: AveragedRate { rate: 8e6, pending: 0 }, fair_share: 1e6, ..core.state };
        core.grow(Time::ms(10));
        core.grow(Time::ms(109));
        assert_eq!(core.state.fair_share, 1.25e6);
        core.grow(Time::ms(110));
        assert_eq!(core.state.fair_share, 1.5625e6);
    }

    /// Twenty senders of 0.5, 1, 1.5 ... 10 Mbit/s, figure 3(a): each sender of more than 0.5 Mbit/s gets
    /// 0.5 Mbit/s.
    #[test]
    fn unresponsive_senders_get_equal_shares() {
        let twenty: Vec<Flow> = (1..=20).map(|i| Flow { kbit: 500 * i, bytes: 500 }).collect();
        let outcome = with("fpip", &twenty);
        assert!(outcome.jain() > 0.99, "{outcome:?}");
        assert!((outcome.gauge("fair_share_bps") / 0.5e6 - 1.0).abs() < 0.05, "{outcome:?}");
        assert!(outcome.got.iter().all(|got| (got / 0.5 - 1.0).abs() < 0.1), "{outcome:?}");
        assert!(outcome.utilization > 0.99, "{outcome:?}");
    }

    /// F1: ten slow flows do not use most of their shares, and equation (9) gives the rest to the ten fast
    /// flows. The fair share is 0.8 Mbit/s.
    #[test]
    fn unused_shares_go_to_others_if_the_share_is_adjusted_at_every_packet() {
        let flows: Vec<Flow> =
            [200, 2000].iter().flat_map(|kbit| [Flow { kbit: *kbit, bytes: 500 }; 10]).collect();
        let packet = with("fpip", &flows);
        assert!(packet.utilization > 0.98, "{packet:?}");
        assert!((packet.queue_packets - 50.0).abs() < 10.0, "{packet:?}");
        assert!(packet.got[10..].iter().all(|got| (got / 0.8 - 1.0).abs() < 0.15), "{packet:?}");
        let window = with("fpip adjust window", &flows);
        let never = with("fpip adjust never", &flows);
        assert!((0.75..0.95).contains(&window.utilization), "{window:?}");
        assert!((0.65..0.75).contains(&never.utilization), "{never:?}");
    }

    /// Short flows of one packet each arrive at random times for two seconds, next to a long flow of 4
    /// Mbit/s. Returns the rate of the long flow in each half second, Mbit/s.
    fn beside_short_flows(spec: &str, short: Rate, seed: u64) -> Vec<f64> {
        let mut fpip = built(spec);
        let mut rng = Streams::new(seed).rng();
        let mut out = Outbox::default();
        let mut got = vec![0.0; 12];
        let (mut next_short, mut next_long, mut free) = (Time::s(2), Time::ZERO, Time::ZERO);
        let mut serial = 1000;
        while next_long < Time::s(6) {
            let now = next_short.min(next_long);
            while free <= now {
                let leaves = fpip.dequeue(&mut Cx::new(free, &mut out)).packet();
                if leaves.is_some_and(|pkt| pkt.meta.flow == FlowKey(1)) {
                    got[(free.as_ps() / Time::ms(500).as_ps()) as usize] += 500.0 * 8e-6 / 0.5;
                }
                free += LINK.time_for(500);
            }
            let flow = if now == next_long { 1 } else { serial };
            fpip.enqueue(Packet::new(FlowKey(flow), 500, 0), &mut Cx::new(now, &mut out));
            out.dropped.clear();
            serial += 1;
            if now == next_long {
                next_long += Rate::mbit(4).time_for(500);
            } else {
                next_short += Span::from_s_f64(rng.exponential(short.time_for(500).as_s()));
                if next_short >= Time::s(4) {
                    next_short = Time::NEVER;
                }
            }
        }
        got
    }

    /// A flood of short flows at 120 % of the link gets the whole link. One second after its end a long flow
    /// has its share again.
    #[test]
    fn a_flood_of_short_flows_does_not_starve_long_ones_permanently() {
        let got = beside_short_flows("fpip", Rate::mbit(12), 1);
        assert!(got[1..4].iter().all(|got| *got > 3.8), "before: {got:?}");
        assert!(got[5..8].iter().all(|got| *got < 1.0), "short flows go first: {got:?}");
        assert!(got[10..].iter().all(|got| *got > 3.8), "a second after: {got:?}");
    }

    /// A long flow of 80 kbit/s, and once a hundred packets of short flows in one instant: sRate exceeds the
    /// link, and if PIP's draw then detects congestion, equation (4) gives 0. Returns the number of packets
    /// that pass of the flow's next fifty, which are sent in five seconds.
    fn after_a_burst(spec: &str, seed: u64) -> usize {
        let Spec::fpip(config) = spec.parse().unwrap() else { panic!("{spec} is fpip") };
        let mut fpip = config.build::<u64>(&LinkContext::new(LINK, Streams::new(seed))).unwrap();
        let mut out = Outbox::default();
        let mut got = 0;
        for n in 0..100 {
            let now = Time::ms(100 * n);
            fpip.enqueue(Packet::new(FlowKey(1), 1000, 0), &mut Cx::new(now, &mut out));
            let burst = if n == 49 { 2..102 } else { 0..0 };
            for stranger in burst {
                fpip.enqueue(
                    Packet::new(FlowKey(stranger), 1500, 0),
                    &mut Cx::new(now + Span::ms(1), &mut out),
                );
            }
            // The link sends 125,000 bytes until the next packet.
            for _ in 0..80 {
                let left = fpip.dequeue(&mut Cx::new(now + Span::ms(99), &mut out)).packet();
                got += usize::from(n >= 50 && left.is_some_and(|pkt| pkt.meta.flow == FlowKey(1)));
            }
        }
        got
    }

    /// F3: without a floor, a burst of short flows can starve a slow long flow permanently: R is 0, equation
    /// (9) multiplies it, the queue is empty, so PIP never applies equation (4) again.
    #[test]
    fn without_a_floor_a_burst_can_starve_a_long_flow_permanently() {
        let got = |spec: &str| (1..=40).map(|seed| after_a_burst(spec, seed)).collect::<Vec<_>>();
        let starved = got("fpip floor 0%").into_iter().filter(|got| *got == 0).count();
        assert!(starved >= 4, "{starved} of 40");
        assert!(got("fpip").into_iter().all(|got| got >= 48), "{:?}", got("fpip"));
    }

    /// Three thousand senders of 40 or 100 kbit/s, a fair share of 33 kbit/s, and a floor of 100 kbit/s: for
    /// all of them together, or for each.
    #[test]
    fn a_floor_for_each_flow_limits_none_of_many() {
        let mut flows = [Flow { kbit: 40, bytes: 500 }; 3000];
        flows[..1500].fill(Flow { kbit: 100, bytes: 500 });
        let offer = |spec: &str| offer(spec, Rate::mbit(100), &flows, 6);
        let (together, each) = (offer("fpip"), offer("fpip floor_each"));
        let ratio = |outcome: &Outcome| {
            let [fast, slow] =
                [&outcome.got[..1500], &outcome.got[1500..]].map(|got| got.iter().sum::<f64>());
            fast / slow
        };
        assert!((0.9..1.15).contains(&ratio(&together)), "{}", ratio(&together));
        assert!(ratio(&each) > 1.5, "{}", ratio(&each));
    }

    /// The weakness: all long flows send twice their share, and the queue keeps the length that it had at the
    /// start instead of the reference.
    #[test]
    fn the_queue_does_not_drain_when_every_flow_exceeds_its_share() {
        let outcome = with("fpip", &[Flow { kbit: 1000, bytes: 500 }; 20]);
        assert!(outcome.gauge("congestion") > 0.95, "{outcome:?}");
        assert!(outcome.queue_packets > 70.0, "{outcome:?}");
        assert!((outcome.gauge("fair_share_bps") / 0.5e6 - 1.0).abs() < 0.02, "{outcome:?}");
    }

    /// Section 4.1: the more congestion, the less a flow may send before it is long.
    #[test]
    fn the_threshold_moves_between_its_size_and_three_packets() {
        let fixed = built("fpip").threshold;
        assert_eq!([0.0, 0.5, 1.0].map(|probability| fixed.at(probability)), [10_000; 3]);
        let moves = built("fpip adaptive").threshold;
        assert_eq!([0.0, 0.5, 1.0].map(|probability| moves.at(probability)), [10_000, 7_250, 4_500]);
        // Values outside 0 to 1, with `noclamp`.
        assert_eq!([-3.0, 7.0].map(|probability| moves.at(probability)), [10_000, 4_500]);
    }

    /// Section 2.2.3: a long flow counts until it was silent for T_n at a visit.
    #[test]
    fn a_long_flow_counts_until_it_was_silent_for_long() {
        let mut fpip = built("fpip threshold 0b");
        let mut out = Outbox::default();
        let mut long_flows = |second: u64, flow: u64| {
            let mut cx = Cx::new(Time::s(second), &mut out);
            fpip.enqueue(Packet::new(FlowKey(flow), 500, 0), &mut cx);
            let _ = fpip.dequeue(&mut cx);
            fpip.core.flows.len()
        };
        let steps = [(1, 1), (2, 2), (3, 3), (6, 3), (7, 3), (8, 3), (9, 2)];
        let counts = steps.map(|(second, flow)| long_flows(second, flow));
        // Flow 1 last sent at 1 s: it is removed by the sweep at 6 s, after five seconds. Flow 2 is removed
        // at 7 s and returns at 9 s.
        assert_eq!(counts, [1, 2, 3, 2, 1, 1, 2]);
    }

    proptest! {
        /// If no flow becomes long, departures and drops are the same as with `fifo`.
        #[test]
        fn with_an_endless_threshold_it_is_a_fifo(ops in any_flows()) {
            let run = |spec: &str| events(&spec.parse().unwrap(), &ops);
            prop_assert_eq!(run("fpip threshold 4gb limit 20p target 5p"), run("fifo limit 20p"));
        }

        /// For any arrivals the share stays within its bounds, probabilities are between 0 and 1, labels
        /// never increase, and a packet without a rate is dropped only by a full buffer.
        #[test]
        fn shares_stay_within_their_bounds(
            packets in prop::collection::vec((0..6u64, 40..1500u32, 0..3u8, 0..40_000_000u64, 0..20_000u64), 1..300),
            edge in any::<bool>(),
        ) {
            let mut fpip = built(if edge { "fpip limit 30kb" } else { "fpip noedge limit 30kb" });
            let mut out = Outbox::default();
            let mut now = Time::ms(1);
            for (serial, (flow, bytes, kind, bits, us)) in packets.into_iter().enumerate() {
                now += Span::us(us);
                let mut pkt = Packet::new(FlowKey(flow), bytes, serial as u64);
                pkt.meta.label = [Label::NONE, Label::SHORT, Label::of(Rate::bit(bits))][usize::from(kind)];
                let before = pkt.meta.label;
                fpip.enqueue(pkt, &mut Cx::new(now, &mut out));
                for (pkt, why) in out.dropped.drain(..) {
                    prop_assert!(why != DropReason::Early || pkt.meta.label.rate() > Rate::bit(0));
                }
                if us % 3 == 0
                    && let Some(pkt) = fpip.dequeue(&mut Cx::new(now, &mut out)).packet()
                    && pkt.payload == serial as u64
                    && before.is_set()
                {
                    prop_assert!(pkt.meta.label.rate() <= before.rate());
                }
                let state = &fpip.core.state;
                let least = LINK.as_bit() as f64 * 0.001 / fpip.core.flows.len().max(1) as f64;
                // A flow that starts with this packet lowers the bound at the next packet.
                prop_assert!((least..=LINK.as_bit() as f64).contains(&state.fair_share));
                prop_assert!((0.0..=1.0).contains(&state.pip.probability()));
                prop_assert!(state.short.rate >= 0.0 && state.accepted.rate >= 0.0);
            }
        }
    }

    #[test]
    fn mistakes_are_reported() {
        let wrong =
            |text: &str| text.parse::<Spec>().unwrap().build_numbered(&context()).err().unwrap().to_string();
        assert!(wrong("fpip window 0ms").starts_with("window: a rate needs some time"));
        assert!(wrong("fpip accepted_window 0ms").starts_with("accepted_window: a rate needs some time"));
        assert_eq!(
            wrong("fpip t 0"),
            "t: 0 is not an integral time: write for example 200 (packet-seconds), as in the paper"
        );
        assert!(wrong("fpip flows 0").starts_with("flows: 0 is not between"));
        let warned = |text: &str| text.parse::<Spec>().unwrap().warnings(&context()).join("; ");
        assert_eq!(warned("fpip"), "");
        assert!(warned("fpip floor 0%").contains("starve long flows permanently"));
        assert!(warned("fpip floor_each").contains("with more than 1000 long flows"));
        assert!(warned("fpip nocap").contains("without bound"));
        assert!(warned("fpip adjust window").contains("leave a part of the link idle"));
        assert!(warned("fpip adaptive threshold 3p").contains("cannot be lowered"));
        assert!(warned("fpip limit 2kb").contains("the queue never is as long as 50p"));
    }
}
