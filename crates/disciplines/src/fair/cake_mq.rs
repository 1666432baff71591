//! Several `cake` side by side, one for each hardware queue of an interface, that share one rate.
//!
//! # Principles
//! - A single `cake` is served by one processor at a time. Here each hardware queue has its own, so several
//!   processors send at once. A hash of the flow selects the queue of a packet.
//! - The rate is divided among the queues that are active. Each queue counts them every 200 us while it
//!   sends: itself, and the others that have a backlog or have sent since the last count. Its shaper uses the
//!   rate, divided by this number; target and quantum still follow from the whole rate.
//! - No queue waits for a lock. So a count may be 200 us old, and a queue that becomes active sends at the
//!   rate of its last count until then. Then the sum of the rates is above the limit.
//!
//! The division is equal, and not by need: a queue whose traffic is slower than its part leaves the rest
//! unused. Shares, also the shares of hosts, are fair within a queue only. With few flows the hash decides
//! what each gets: two flows in one of two queues have a quarter of the rate each, and one in the other
//! a half.
//!
//! # Deviations
//! - The parameters of `cake` are in parentheses: `cake_mq queues 4 cake (bandwidth 1gbit)`. tc writes them
//!   without, and takes the number of queues from the interface.
//! - The link takes turns among the queues, a packet each. Hardware queues take turns too, in their
//!   own order.
//! - A packet has no queue of its own processor: the hash of its flow selects it.
//! - `memlimit` applies to each queue.
//!
//! # Cost
//! - O(1) per packet as in `cake`, and O(queues) for each look for a queue that may send, and each 200 us for
//!   the count of each queue.
//! - The memory of `cake` for each queue.
//!
//! # References
//! - cake_mq in Linux 7.0, by Høiland-Jørgensen and Köppeler, presented at Netdev 0x19 in 2025: the messages
//!   of its patches. tc-cake(8).

use giveway_qdisc::hash::bucket;
use giveway_qdisc::{
    Backlog, Cx, FlowKey, FlowTable, Invalid, LinkContext, Next, Packet, Properties, Qdisc, Rate, Span, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cake::{self, Cake};
use crate::Discipline;

/// Parameters of `cake_mq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Number of hardware queues, 1 to 64.
    pub queues: u32,
    /// The parameters of `cake`, in parentheses. `bandwidth` is the rate of all queues together.
    pub cake: cake::Config,
}

impl Default for Config {
    fn default() -> Config {
        Config { queues: 4, cake: cake::Config::default() }
    }
}

/// Largest number of queues.
const MAX: u32 = 64;
/// Time between two counts of the active queues.
const SYNC: Span = Span::us(200);

impl Discipline for Config {
    const SUMMARY: &'static str = "several cake, one for each hardware queue, that share one rate";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = CakeMq<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<CakeMq<P>, Invalid> {
        if !(1..=MAX).contains(&self.queues) {
            let message = format!("{} is not between 1 and {MAX}: write for example 4", self.queues);
            return Err(Invalid::new("queues", message));
        }
        if self.cake.autorate_ingress {
            let message = "autorate-ingress is for one queue: leave it out and write bandwidth, or use cake";
            return Err(Invalid::new("cake", message));
        }
        let queue = |number: u32| {
            let streams = context.streams.within(&format!("queue{number}"));
            let context = LinkContext { streams, ..context.clone() };
            self.cake.build(&context).map(|cake| Queue { cake, sent: None, counted: None })
        };
        Ok(CakeMq {
            rate: self.cake.bandwidth,
            perturbation: context.streams.rng().word(),
            queues: (0..self.queues).map(queue).collect::<Result<_, _>>()?,
            turn: 0,
            backlog: Backlog::ZERO,
        })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        Properties { limit: None, ..self.cake.properties(context) }
    }

    fn variants() -> Vec<Config> {
        let shaped = cake::Config { bandwidth: Some(Rate::mbit(3)), ..cake::Config::default() };
        vec![
            Config { queues: 2, cake: shaped.clone() },
            Config { queues: 1, cake: shaped.clone() },
            Config { queues: 16, cake: cake::Config { ingress: true, ..shaped } },
        ]
    }

    fn shaped_rate(&self, context: &LinkContext) -> Option<Rate> {
        self.cake.shaped_rate(context)
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        self.cake.warnings(context)
    }
}

/// The discipline `cake_mq`.
pub struct CakeMq<P> {
    /// The rate of all queues together; `None` without shaping.
    rate: Option<Rate>,
    /// Key of the hash that selects a queue.
    perturbation: u64,
    queues: Box<[Queue<P>]>,
    /// The queue that may send next.
    turn: usize,
    backlog: Backlog,
}

/// A hardware queue.
struct Queue<P> {
    cake: Cake<P>,
    /// Time of the last packet that left; `None` before the first.
    sent: Option<Time>,
    /// Time of the last count; `None` before the first.
    counted: Option<Time>,
}

impl<P> Qdisc<P> for CakeMq<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let number = self.queue_of(pkt.meta.flow);
        self.on(number, |cake| cake.enqueue(pkt, cx));
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        if self.backlog.packets == 0 {
            return Next::Empty;
        }
        let now = cx.now();
        let mut soonest = None;
        for _ in 0..self.queues.len() {
            let number = self.turn;
            self.turn = if number + 1 == self.queues.len() { 0 } else { number + 1 };
            if self.queues[number].cake.backlog().packets == 0 {
                continue;
            }
            self.count(number, now);
            match self.on(number, |cake| cake.dequeue(cx)) {
                Next::Packet(pkt) => {
                    self.queues[number].sent = Some(now);
                    return Next::Packet(pkt);
                }
                Next::At(at) => soonest = Some(soonest.map_or(at, |other: Time| other.min(at))),
                Next::Empty => {}
            }
        }
        soonest.map_or(Next::Empty, Next::At)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for queue in &mut self.queues {
            queue.cake.reset(cx);
            (queue.sent, queue.counted) = (None, None);
        }
        self.turn = 0;
        self.backlog = Backlog::ZERO;
    }

    fn flow_table(&self) -> FlowTable {
        let tables = || self.queues.iter().map(|queue| queue.cake.flow_table());
        FlowTable {
            flows: tables().map(|table| table.flows).sum(),
            most: tables().map(|table| table.most).sum(),
            entry_bytes: tables().map(|table| table.entry_bytes).max().unwrap_or(0),
            bytes: tables().map(|table| table.bytes).sum(),
        }
    }

    /// The number of queues with a backlog, and the lowest and highest rate of a queue.
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let backlogged = self.queues.iter().filter(|queue| queue.cake.backlog().packets > 0);
        visit("backlogged_queues", backlogged.count() as f64);
        let rates = || self.queues.iter().filter_map(|queue| queue.cake.rate()).map(Rate::as_bit);
        visit("least_bandwidth_bps", rates().min().unwrap_or(0) as f64);
        visit("most_bandwidth_bps", rates().max().unwrap_or(0) as f64);
    }
}

impl<P> CakeMq<P> {
    /// The queue of a flow.
    #[inline]
    fn queue_of(&self, flow: FlowKey) -> usize {
        bucket(flow.0, self.perturbation, self.queues.len())
    }

    /// Calls a queue, and updates the backlog.
    #[inline]
    fn on<T>(&mut self, number: usize, call: impl FnOnce(&mut Cake<P>) -> T) -> T {
        let cake = &mut self.queues[number].cake;
        let before = cake.backlog();
        let result = call(cake);
        let after = cake.backlog();
        self.backlog.packets = self.backlog.packets - before.packets + after.packets;
        self.backlog.bytes = self.backlog.bytes - before.bytes + after.bytes;
        result
    }

    /// Divides the rate among the active queues, if the last count of this queue is old enough.
    #[inline]
    fn count(&mut self, number: usize, now: Time) {
        let Some(rate) = self.rate else { return };
        let counted = self.queues[number].counted;
        if counted.is_some_and(|counted| now.since(counted) < SYNC) {
            return;
        }
        let is_active = |queue: &Queue<P>| {
            queue.cake.backlog().packets > 0 || queue.sent.is_some_and(|sent| Some(sent) > counted)
        };
        let active = self.queues.iter().filter(|queue| is_active(queue)).count();
        let queue = &mut self.queues[number];
        queue.cake.set_rate(Rate::bit((rate.as_bit() / active.max(1) as u64).max(1)));
        queue.counted = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use giveway_qdisc::Outbox;
    use proptest::prelude::*;

    use super::*;
    use crate::Spec;
    use crate::testing::events::{build_error, context};

    const RATE: u64 = 80_000_000;

    fn built(text: &str) -> CakeMq<u64> {
        let Spec::cake_mq(config) = text.parse::<Spec>().unwrap() else { panic!("{text} is not cake_mq") };
        config.build(&context()).unwrap()
    }

    /// Flows that are always backlogged. Returns the bytes of each in the second of two seconds.
    fn sent(q: &mut CakeMq<u64>, flows: u64) -> Vec<u64> {
        let (mut now, mut out) = (Time::ms(1), Outbox::default());
        let mut sent = vec![0; flows as usize];
        let offer = |q: &mut CakeMq<u64>, flow: u64, now: Time, out: &mut Outbox<u64>| {
            let mut pkt = Packet::new(FlowKey(flow), 1000, flow);
            pkt.meta.arrived = now;
            q.enqueue(pkt, &mut Cx::new(now, out));
        };
        for flow in 0..flows {
            (0..20).for_each(|_| offer(q, flow, now, &mut out));
        }
        while now < Time::s(2) {
            match q.dequeue(&mut Cx::new(now, &mut out)) {
                Next::Packet(pkt) => {
                    sent[pkt.payload as usize] += if now < Time::s(1) { 0 } else { 1000 };
                    offer(q, pkt.payload, now, &mut out);
                }
                Next::At(at) => now = at,
                Next::Empty => panic!("there is a backlog"),
            }
            for (pkt, _) in std::mem::take(&mut out.dropped) {
                offer(q, pkt.payload, now, &mut out);
            }
        }
        sent
    }

    /// The sum is the rate, whatever the number of queues and flows: those without packets get nothing.
    #[test]
    fn the_active_queues_share_the_rate() {
        for (queues, flows) in [(1, 1), (4, 1), (4, 2), (4, 40), (16, 3), (16, 200)] {
            let mut q = built(&format!("cake_mq queues {queues} cake (bandwidth 80mbit interplanetary)"));
            let total: u64 = sent(&mut q, flows).iter().sum();
            let share = (total * 8) as f64 / RATE as f64;
            assert!((share - 1.0).abs() < 0.0025, "{queues} queues, {flows} flows: {share}");
        }
    }

    /// Shares are equal among queues, then among the flows of a queue. With eleven flows in two queues, the
    /// flows of the fuller queue get less.
    #[test]
    fn flows_of_one_queue_share_its_part() {
        let mut q = built("cake_mq queues 2 cake (bandwidth 80mbit interplanetary)");
        let places: Vec<usize> = (0..11).map(|flow| q.queue_of(FlowKey(flow))).collect();
        let together = |place: usize| places.iter().filter(|other| **other == place).count() as f64;
        assert!(together(0) != together(1) && together(0) * together(1) > 0.0, "{places:?}");
        for (bytes, place) in sent(&mut q, 11).iter().zip(&places) {
            let share = (bytes * 8) as f64 / RATE as f64;
            assert!((share - 0.5 / together(*place)).abs() < 0.005, "{share}, {places:?}");
        }
    }

    #[test]
    fn mistakes_have_their_remedy() {
        assert_eq!(build_error("cake_mq queues 0").parameter, "queues");
        assert_eq!(build_error("cake_mq queues 65").parameter, "queues");
        assert_eq!(build_error("cake_mq cake (autorate-ingress)").parameter, "cake");
    }

    proptest! {
        /// The backlog is the sum over the queues, after any calls.
        #[test]
        fn the_backlog_is_the_sum(
            calls in prop::collection::vec((0..30u64, 40..1500u32, any::<bool>()), 1..300)
        ) {
            let mut q = built("cake_mq queues 3 cake (bandwidth 8mbit memlimit 20kb)");
            let (mut now, mut out) = (Time::ms(1), Outbox::default());
            for (flow, bytes, arrives) in calls {
                now += Span::us(300);
                if arrives {
                    let mut pkt = Packet::new(FlowKey(flow), bytes, flow);
                    pkt.meta.arrived = now;
                    q.enqueue(pkt, &mut Cx::new(now, &mut out));
                } else {
                    let _ = q.dequeue(&mut Cx::new(now, &mut out));
                }
                let mut sum = Backlog::ZERO;
                for queue in &q.queues {
                    sum.packets += queue.cake.backlog().packets;
                    sum.bytes += queue.cake.backlog().bytes;
                }
                prop_assert_eq!(sum, q.backlog);
            }
        }
    }
}
