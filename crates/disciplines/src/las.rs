//! Least Attained Service: the flow that has been served least goes first, for as long as its memory lasts.
//!
//! # Principles
//! - Nobody tells how long a flow will be, but how much it has had is known. Where most flows are short and most bytes
//!   are in long ones, what has had little will probably end soon.
//! - A packet's rank is what its flow had sent before it, in bytes. The lowest rank leaves next; of equal ranks the
//!   earliest arrival. So a new flow starts at rank 0, before everything.
//! - What counts is attained *service*. A packet that is pushed out is taken off again.
//! - The worst in line gives way: the arrival is put into the line first, then the last one goes.
//! - Ranks of a flow rise from packet to packet, so its packets stay in order.
//! - The memory is the weakness. A flow that has sent much is locked out by every newer one until that has caught up,
//!   however little it sends now; LARS forgets gradually for that reason.
//!
//! # Deviations
//! - Ranks are fixed on arrival. Choosing, at each departure, the flow that was served least is the same: what a flow has
//!   sent when a packet of it comes to its head is all that it sent before that packet. Only flows that are
//!   equal differ, by nothing but the order of arrival, and that is kept here. A test holds both against each other.
//! - The packet itself is not in its rank, so that a new flow is first whatever the size of its packet. `include_self` puts
//!   it in: some public implementations do.
//! - Entries are forgotten as in the EFD paper (every 5 s, after 30 s of silence), but never while a packet of the flow is
//!   queued: the next one would overtake it. And there is a most of them: when it is reached, the quarter that has been
//!   silent longest is forgotten. The papers have no bound.
//! - The source paper was read in abstract only; what it leaves open is decided as written here.
//!
//! # Cost
//! - Two table look-ups per packet, and O(log n) for n packets queued at either end of the queue.
//! - 64 bytes per flow of the last half minute, in a table that is half full; 24 more per packet than a fifo.
//!
//! # References
//! - I. Rai, G. Urvoy-Keller, M. Vernon, E. Biersack, "Performance Analysis of LAS-based Scheduling Disciplines in a Packet
//!   Switched Network", SIGMETRICS 2004.
//! - J. Chen, M. Heusse, G. Urvoy-Keller, "EFD: An Efficient Low-Overhead Scheduler", NETWORKING 2011: section 5.1 for the
//!   times of the table, section 5.4 for the lock-out.

use std::num::NonZeroU32;

use qdisc::blocks::{Memory, Ranked, RecentFlows};
use qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, Nature, Next, Packet, Place, Qdisc, Site,
    Span,
};
use qdisc::{Time, check_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `las`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much it holds, in packets or in bytes.
    pub limit: Limit,
    /// Whether a packet counts toward its own rank.
    pub include_self: bool,
    /// How often the table is visited to forget flows. Zero: never.
    pub sweep: Span,
    /// How long a flow must have been silent at a visit to be forgotten.
    pub idle: Span,
    /// How many flows are remembered, at most; more only while more have packets queued.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        let memory = Memory::default();
        Config {
            limit: Limit::Packets(300),
            include_self: false,
            sweep: memory.sweep,
            idle: memory.idle,
            flows: memory.flows as u32,
        }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "least attained service: the flow that has sent least goes first";
    type Qdisc<P: 'static> = Las<P>;

    fn build<P: 'static>(&self, site: &Site) -> Result<Las<P>, Invalid> {
        check_limit("limit", self.limit, site.mtu)?;
        if self.flows == 0 {
            return Err(Invalid::new("flows", "0 flows remember nothing: write for example 65536"));
        }
        let memory = Memory { sweep: self.sweep, idle: self.idle, flows: self.flows as usize };
        Ok(Las {
            limit: self.limit,
            include_self: self.include_self,
            flows: RecentFlows::new(memory, Flow::is_queued),
            queue: Ranked::with_capacity(self.limit.most_packets(64).min(1 << 12)),
            held: Backlog::ZERO,
        })
    }

    fn nature(&self, _: &Site) -> Nature {
        Nature::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Limit::Packets(5), include_self: true, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), sweep: Span::ms(20), idle: Span::ms(30), ..plain.clone() },
            Config { limit: Limit::Packets(20), sweep: Span::ZERO, flows: 3, ..plain },
        ]
    }

    fn warnings(&self, _: &Site) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.sweep.is_zero() && self.idle < self.sweep {
            warnings.push(format!(
                "idle {} is shorter than sweep {}: how long a flow is remembered depends on when the table is visited",
                self.idle, self.sweep
            ));
        }
        if let Limit::Packets(limit) = self.limit
            && u64::from(self.flows) < limit
        {
            warnings.push(format!(
                "{} flows are fewer than limit {} can hold: flows are forgotten that sent a moment ago",
                self.flows, self.limit
            ));
        }
        warnings
    }
}

/// The queue and the table.
pub struct Las<P> {
    limit: Limit,
    include_self: bool,
    flows: RecentFlows<Flow>,
    queue: Ranked<Packet<P>>,
    held: Backlog,
}

/// A flow that was seen lately.
#[derive(Debug)]
struct Flow {
    /// What it has sent and has queued, in bytes.
    attained: u64,
    /// How many of its packets are queued, plus one.
    queued: NonZeroU32,
}

/// Two flows share a cache line.
const _: () = assert!(RecentFlows::<Flow>::bytes_per_slot() == 32);

impl Flow {
    const NEW: Flow = Flow { attained: 0, queued: NonZeroU32::MIN };

    fn is_queued(&self) -> bool {
        self.queued > NonZeroU32::MIN
    }
}

impl<P> Qdisc<P> for Las<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.flows.sweep(cx.now());
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let rank = self.count_in(&pkt, cx.now());
        self.held.add(pkt.bytes());
        let place = self.queue.push(rank, pkt);
        if !self.limit.allows(self.held) {
            self.push_out(place, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        self.flows.sweep(cx.now());
        let Some((_, pkt)) = self.queue.pop() else { return Next::Empty };
        self.held.sub(pkt.bytes());
        self.count_out(pkt.meta.flow, 0);
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        while let Some((_, pkt)) = self.queue.pop() {
            cx.drop(pkt, DropReason::Reset);
        }
        self.flows.clear();
        self.held = Backlog::ZERO;
    }

    fn flow_table(&self) -> FlowTable {
        self.flows.table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let bytes = |end: Option<(u64, Place)>| end.map_or(0.0, |(rank, _)| rank as f64);
        visit("best_rank_bytes", bytes(self.queue.best()));
        visit("worst_rank_bytes", bytes(self.queue.worst()));
    }
}

impl<P> Las<P> {
    /// Counts a packet as sent by its flow, and ranks it.
    #[inline]
    fn count_in(&mut self, pkt: &Packet<P>, now: Time) -> u64 {
        let flow = self.flows.seen(pkt.meta.flow, now, || Flow::NEW);
        let before = flow.attained;
        flow.attained += u64::from(pkt.bytes());
        flow.queued = flow.queued.saturating_add(1);
        if self.include_self { flow.attained } else { before }
    }

    /// A packet of this flow is no longer queued, and `unserved` bytes of it were never sent.
    #[inline]
    fn count_out(&mut self, flow: FlowKey, unserved: u32) {
        let entry = self.flows.get_mut(flow).expect("a flow with a packet queued is never forgotten");
        entry.attained -= u64::from(unserved);
        entry.queued = NonZeroU32::new(entry.queued.get() - 1).expect("a packet that leaves was queued");
    }

    /// Gives up the worst in line until the rest fits. `arrival` is where the packet is that just came.
    fn push_out(&mut self, arrival: Place, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.held) {
            let (_, place) = self.queue.worst().expect("what exceeds the limit is queued");
            let (_, victim) = self.queue.remove(place);
            self.held.sub(victim.bytes());
            self.count_out(victim.meta.flow, victim.bytes());
            // Without the arrival everything fits, so it is the last to go if it goes.
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }
}
