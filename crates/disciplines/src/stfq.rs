//! Start-time fair queueing: packets leave in the order in which a perfectly fair link would start them.
//!
//! # Principles
//! - Every packet has a start and a finish in virtual time, counted in bytes per unit of weight. It starts where its flow's
//!   last packet finished, or now, whichever is later; it finishes its length over its weight later.
//! - Now, in virtual time, is the start of the packet that is being sent. So virtual time costs nothing to know, and is right
//!   however fast or slowly the link runs: nothing here knows its rate.
//! - The earliest start leaves next. A flow that was silent starts now: it gains nothing and loses nothing by having
//!   been silent.
//! - Over any time in which two flows have packets queued, what they sent per weight differs by at most one packet of each.
//! - When the queue is full, the latest start gives way, and its flow goes on from there.
//!
//! # Deviations
//! - The paper has no buffer limit. Pushing out the latest start takes from who is furthest ahead of its share.
//! - Weights are whole numbers by class, not rates by flow, so that virtual time is exact: lengths are counted in a unit
//!   that every weight divides.
//! - A flow is remembered until virtual time has passed its finish; later it makes no difference. Passed entries are
//!   looked for when the table has doubled. Flows that send one packet each can hold virtual time still and leave an
//!   entry each, without end: when more than `flows` are left, all that have no packet queued are forgotten. Each may then
//!   start earlier than it should, by what its last packet cost.
//!
//! # Cost
//! - Two table look-ups per packet, and O(log n) for n packets queued at either end of the queue.
//! - 64 bytes per flow that is queued or whose finish is ahead, in a table that is half full, which may hold as many that
//!   are passed; 24 more per packet than a fifo.
//!
//! # References
//! - P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queuing: A Scheduling Algorithm for Integrated Services Packet Switching
//!   Networks", SIGCOMM 1996: section 2 for the algorithm, theorem 1 for its fairness.
//! - A. Sivaraman et al., "Programmable Packet Scheduling at Line Rate", SIGCOMM 2016: figure 1, the same as a rank.

use qdisc::blocks::{FlowMap, Memory, Ranked, Weights};
use qdisc::{
    Backlog, Cx, DropReason, FlowKey, FlowTable, Invalid, Limit, Nature, Next, Packet, Place, Qdisc, Site,
    check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `stfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much it holds, in packets or in bytes.
    pub limit: Limit,
    /// The weight of a flow of class 0, 1, 2 and so on; classes beyond the list have weight 1.
    pub weights: Vec<u32>,
    /// How many flows are remembered, at most; more only while more have packets queued.
    pub flows: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(300), weights: Vec::new(), flows: Memory::default().flows as u32 }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "start-time fair queueing: the earliest virtual start first, flows weighted by class";
    type Qdisc<P: 'static> = Stfq<P>;

    fn build<P: 'static>(&self, site: &Site) -> Result<Stfq<P>, Invalid> {
        check_limit("limit", self.limit, site.mtu)?;
        if self.flows == 0 {
            return Err(Invalid::new("flows", "0 flows remember nothing: write for example 65536"));
        }
        let room = self.limit.most_packets(64).min(1 << 12);
        Ok(Stfq {
            limit: self.limit,
            weights: Weights::new("weights", &self.weights)?,
            remembered: self.flows as usize,
            flows: FlowMap::with_capacity(room),
            full: FEW.min(self.flows as usize),
            queue: Ranked::with_capacity(room),
            now: 0,
            finished: 0,
            held: Backlog::ZERO,
        })
    }

    fn nature(&self, _: &Site) -> Nature {
        Nature::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        let plain = Config::default();
        vec![
            Config { limit: Limit::Packets(5), flows: 2, ..plain.clone() },
            Config { limit: Limit::Bytes(6000), weights: vec![4, 1, 6], ..plain },
        ]
    }

    fn warnings(&self, _: &Site) -> Vec<String> {
        match self.limit {
            Limit::Packets(limit) if u64::from(self.flows) < limit => vec![format!(
                "{} flows are fewer than limit {} can hold: flows are forgotten that are ahead of their share",
                self.flows, self.limit
            )],
            _ => Vec::new(),
        }
    }
}

/// The queue and the table.
pub struct Stfq<P> {
    limit: Limit,
    weights: Weights,
    /// How many flows without packets are remembered, at most.
    remembered: usize,
    /// Flows that have packets queued, and flows whose finish is ahead; some whose finish is not.
    flows: FlowMap<Flow>,
    /// How many entries there are when passed ones are looked for.
    full: usize,
    /// By start.
    queue: Ranked<Packet<P>>,
    /// Virtual time: the start of the packet that left last.
    now: u64,
    /// The latest finish of a packet that left: virtual time when nothing is being sent.
    finished: u64,
    held: Backlog,
}

/// A flow that has sent.
#[derive(Debug)]
struct Flow {
    /// Where its last packet finishes, in virtual time.
    finish: u64,
    /// How many of its packets are queued.
    queued: u32,
}

/// Up to here nobody looks for passed entries.
const FEW: usize = 64;
/// Virtual time starts again from zero long before it would overflow.
const FAR: u64 = 1 << 62;

impl<P> Qdisc<P> for Stfq<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(Backlog::ZERO, pkt.bytes()) {
            return cx.drop(pkt, DropReason::TooLarge);
        }
        let start = self.count_in(&pkt);
        self.held.add(pkt.bytes());
        let place = self.queue.push(start, pkt);
        if !self.limit.allows(self.held) {
            self.push_out(place, cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        let Some((start, pkt)) = self.queue.pop() else {
            // The end of a busy period: all flows are even again.
            self.now = self.finished;
            return Next::Empty;
        };
        self.held.sub(pkt.bytes());
        self.now = start;
        self.finished = self.finished.max(start + self.weights.cost(&pkt.meta));
        self.count_out(pkt.meta.flow, None);
        if self.now > FAR {
            self.start_again();
        }
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
        (self.now, self.finished, self.held) = (0, 0, Backlog::ZERO);
    }

    fn flow_table(&self) -> FlowTable {
        self.flows.table()
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("virtual_time_bytes", self.weights.bytes(self.now));
    }
}

impl<P> Stfq<P> {
    /// Where a packet starts.
    #[inline]
    fn count_in(&mut self, pkt: &Packet<P>) -> u64 {
        if self.flows.len() >= self.full && self.flows.get(pkt.meta.flow).is_none() {
            self.make_room();
        }
        let flow = self.flows.entry(pkt.meta.flow, || Flow { finish: 0, queued: 0 });
        let start = flow.finish.max(self.now);
        flow.finish = start + self.weights.cost(&pkt.meta);
        flow.queued += 1;
        start
    }

    /// A packet of this flow is no longer queued. One that was pushed out was its last, and `unsent` is where it would have
    /// started: where the next one starts instead.
    #[inline]
    fn count_out(&mut self, flow: FlowKey, unsent: Option<u64>) {
        let entry = self.flows.get_mut(flow).expect("a flow with a packet queued is never forgotten");
        entry.finish = unsent.unwrap_or(entry.finish);
        entry.queued -= 1;
    }

    /// Gives up the latest start until the rest fits. `arrival` is where the packet is that just came.
    fn push_out(&mut self, arrival: Place, cx: &mut Cx<'_, P>) {
        while !self.limit.allows(self.held) {
            let (start, place) = self.queue.worst().expect("what exceeds the limit is queued");
            let (_, victim) = self.queue.remove(place);
            self.held.sub(victim.bytes());
            self.count_out(victim.meta.flow, Some(start));
            // Without the arrival everything fits, so it is the last to go if it goes.
            let why = if place == arrival { DropReason::Overlimit } else { DropReason::Pushout };
            cx.drop(victim, why);
        }
    }

    /// Forgets the flows that virtual time has passed; if too many are left, all that have no packet queued.
    #[cold]
    fn make_room(&mut self) {
        let now = self.now;
        self.flows.retain(|_, flow| flow.queued > 0 || flow.finish > now);
        if self.flows.len() >= self.remembered {
            self.flows.retain(|_, flow| flow.queued > 0);
        }
        // Twice as many as are left, so that each entry that comes pays for looking at one that stays.
        let left = self.flows.len();
        self.full = (2 * left).max(FEW).min(self.remembered).max(left + left.div_ceil(4));
    }

    /// Moves virtual time back to zero, and everything that is measured in it by as much.
    #[cold]
    fn start_again(&mut self) {
        let past = std::mem::take(&mut self.now);
        self.finished -= past;
        self.queue.lower(past);
        self.flows.retain(|_, flow| {
            flow.finish = flow.finish.saturating_sub(past);
            true
        });
    }
}
