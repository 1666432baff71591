//! FQ: a queue per flow in turns, each paced to its rate, and packets held until their departure times.
//!
//! # Principles
//! - It is the discipline of a sending host: it spreads over time what the senders of the host hand over in
//!   bursts. A router gets fair shares from it, but no AQM.
//! - A sender may write the earliest departure time of a packet on it (`SO_TXTIME`, EDT). The packet waits
//!   until then, and packets of a flow leave in the order of their times. A time beyond the `horizon` is an
//!   error of the sender: the packet is dropped (`horizon_drop`), or leaves at the horizon (`horizon_cap`).
//! - A flow may have a rate: the one that it has reserved, as `SO_MAX_PACING_RATE` does, and `maxrate` is an
//!   upper bound for all flows. A flow sends its credit back to back and then pauses, so that its mean rate
//!   is exact; at or below `low_rate_threshold` it pauses after each packet. A departure time takes the place
//!   of the flow's own rate.
//! - Turns are counted in bytes, and new flows go first, as in `fq_codel`. A new flow starts with the credit
//!   `initial_quantum`, so that an initial window of ten packets leaves without a pause. A flow that was idle
//!   for `refill_delay` has a `quantum` again.
//! - Three bands by the DSCP, as in `pfifo_fast`, but none starves: they share the link by turns in
//!   proportion to `weights` while all have packets.
//! - A flow that has reached `flow_limit` loses its arriving packets; so do all flows of a band that has
//!   reached `limit`.
//!
//! # Deviations
//! - A packet with a departure time or a reserved rate comes from a socket, whose flow has its own queue. All
//!   other packets are treated as a router's: their flows are hashed into `orphan_mask` + 1 queues. The
//!   kernel knows sockets, of which a packet here has no trace.
//! - `buckets` has no effect: flows are found exactly, whatever the size of a table.
//! - No packet has the priority that Linux gives to control packets, so there is no queue for them.
//! - The pause covers the whole quanta that the flow needs for its next packet. By lateness of the link it is
//!   shortened to half at most.
//! - `timer_slack`: the discipline is called again this time after the first packet may leave, unless another
//!   call comes before.
//! - `nopacing` ignores rates, not departure times. A departure time stays on the packet, so a second `fq` on
//!   its route obeys it, too. The clock of all hosts is the same.
//! - A flow is forgotten when it was idle for 3 s, and the longest idle one if 65,536 are.
//!
//! # Cost
//! - One table look-up per arrival, and O(log flows) when a flow starts and ends a pause. A packet that
//!   leaves before others of its flow passes them one by one, at most `flow_limit`.
//! - 72 bytes per flow, idle ones included, and 32 in the table.
//!
//! # References
//! - Linux: tc-fq(8) for names and defaults, and the usage text of tc. The descriptions of its changes
//!   "net_sched: sch_fq: add 3 bands and WRR scheduling" (2023) for bands, "add horizon attribute" (2020),
//!   "do not assume EDT packets are ordered" (2019), "add low_rate_threshold parameter" (2016).
//! - Saeed et al., "Carousel: Scalable Traffic Shaping at End Hosts", SIGCOMM 2017, for departure times.

mod bands;
mod flows;
#[cfg(test)]
mod tests;

use giveway_qdisc::blocks::FlowHeap;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, FlowTable, Guarantee, Invalid, Limit, LinkContext, Next, Packet, Packets,
    Place, Properties, Qdisc, Rate, Slots, Span, Time, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;
use crate::common::priority;
use bands::{Bands, MIN_WEIGHT};
use flows::{Flows, Standing};

/// Parameters of `fq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Capacity of each band, in packets.
    pub limit: Packets,
    /// Capacity for one flow, in packets.
    pub flow_limit: Packets,
    /// Bytes that a flow sends per turn; by default twice the MTU with an Ethernet header.
    pub quantum: Option<Bytes>,
    /// Bytes that a new flow may send at first; by default ten times the MTU with an Ethernet header.
    pub initial_quantum: Option<Bytes>,
    /// Largest rate of a flow. By default none.
    pub maxrate: Option<Rate>,
    /// Size of the hash table; without effect here.
    pub buckets: u32,
    /// Bits of the hash that distinguish flows without a socket; the default distinguishes 1,024.
    pub orphan_mask: u32,
    /// Obey rates. Without it only departure times delay a packet.
    pub pacing: bool,
    /// Idle time after which a flow gets a quantum of credit.
    pub refill_delay: Span,
    /// Rate up to which a flow pauses after each packet.
    pub low_rate_threshold: Rate,
    /// Time by which the end of a pause may be late, so that more flows are served at once.
    pub timer_slack: Span,
    /// Delay above which packets are marked if their sender supports ECN. It counts from the departure time.
    pub ce_threshold: Option<Span>,
    /// Latest departure time, from now on.
    pub horizon: Span,
    /// Drop packets that depart later; with `horizon_cap` they depart then.
    #[schemars(extend("x-opposite" = "horizon_cap"))]
    pub horizon_drop: bool,
    /// Number of bands: 3, as in tc.
    pub bands: u32,
    /// The band of each of the 16 priorities of Linux, which follow from the DSCP.
    pub priomap: Vec<u8>,
    /// Bytes that band 0, 1 and 2 send per turn.
    pub weights: Vec<u32>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: Packets(10_000),
            flow_limit: Packets(100),
            quantum: None,
            initial_quantum: None,
            maxrate: None,
            buckets: 1024,
            orphan_mask: 1023,
            pacing: true,
            refill_delay: Span::ms(40),
            low_rate_threshold: Rate::kbit(550),
            timer_slack: Span::us(10),
            ce_threshold: None,
            horizon: Span::s(10),
            horizon_drop: true,
            bands: priority::BANDS as u32,
            priomap: priority::PRIOMAP.to_vec(),
            weights: vec![589_824, 196_608, 65_536],
        }
    }
}

/// Ethernet's header, which Linux counts into the MTU.
const HEADER: u64 = 14;
/// Bounds of the quantum. With a smaller one a packet needs so many turns that a call takes long.
const QUANTA: std::ops::RangeInclusive<u64> = 256..=1 << 20;
/// The largest initial quantum.
const MAX_INITIAL: u64 = 1 << 30;

impl Config {
    fn quantum(&self, context: &LinkContext) -> u64 {
        self.quantum.map_or(2 * (context.mtu.0 + HEADER), |quantum| quantum.0)
    }

    fn initial_quantum(&self, context: &LinkContext) -> u64 {
        self.initial_quantum.map_or(10 * (context.mtu.0 + HEADER), |quantum| quantum.0)
    }

    fn check(&self, context: &LinkContext) -> Result<(), Invalid> {
        check_limit("limit", Limit::Packets(self.limit.0), context.mtu)?;
        check_limit("flow_limit", Limit::Packets(self.flow_limit.0), context.mtu)?;
        let quantum = self.quantum(context);
        if !QUANTA.contains(&quantum) {
            let (least, most) = QUANTA.into_inner();
            let message = format!("{quantum} bytes are not between {least} and {most}; 3028 is usual");
            return Err(Invalid::new("quantum", message));
        }
        let initial = self.initial_quantum(context);
        if initial > MAX_INITIAL {
            let message = format!("{initial} bytes are more than {MAX_INITIAL}; 15140 is usual");
            return Err(Invalid::new("initial_quantum", message));
        }
        if self.maxrate.is_some_and(|rate| rate.as_bit() == 0) {
            return Err(Invalid::new("maxrate", "must be above 0 bit/s; leave it out for no bound"));
        }
        if self.bands as usize != priority::BANDS {
            let message = format!("{} is not 3, the only number that tc accepts, too", self.bands);
            return Err(Invalid::new("bands", message));
        }
        if self.weights.len() != priority::BANDS || self.weights.iter().any(|each| *each < MIN_WEIGHT) {
            let message = format!(
                "{:?} are not three weights of at least {MIN_WEIGHT}: write for example \
                 \"weights [589824 196608 65536]\"",
                self.weights
            );
            return Err(Invalid::new("weights", message));
        }
        Ok(())
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "FQ: a queue per flow, paced to its rate, packets held until their departure times";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Fq<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Fq<P>, Invalid> {
        self.check(context)?;
        Ok(Fq {
            limit: self.limit.0,
            flow_limit: self.flow_limit.0 as usize,
            pacing: self.pacing,
            maxrate: self.maxrate,
            low_rate: self.low_rate_threshold,
            refill_delay: self.refill_delay,
            timer_slack: self.timer_slack,
            ce_threshold: self.ce_threshold,
            horizon: self.horizon,
            horizon_drop: self.horizon_drop,
            quantum: self.quantum(context) as i64,
            flows: Flows::new(self.orphan_mask, self.initial_quantum(context) as i64, context),
            waiting: FlowHeap::with_capacity(0),
            bands: Bands::new(priority::bands(&self.priomap)?, &self.weights),
            packets: Slots::with_capacity((self.limit.0 as usize).saturating_add(1)),
            backlog: Backlog::ZERO,
        })
    }

    fn filled(&self, context: &LinkContext) -> Config {
        Config {
            quantum: Some(Bytes(self.quantum(context))),
            initial_quantum: Some(Bytes(self.initial_quantum(context))),
            ..self.clone()
        }
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties {
            // Packets of a flow leave in the order of their departure times.
            keeps_flow_order: false,
            work_conserving: false,
            // Each band and each flow has one.
            limit: None,
            marks: self.ce_threshold.is_some(),
            guarantee: Guarantee::Nothing,
        }
    }

    fn variants() -> Vec<Config> {
        let short = Config { limit: Packets(5), flow_limit: Packets(3), ..Config::default() };
        vec![
            short.clone(),
            Config { maxrate: Some(Rate::mbit(1)), low_rate_threshold: Rate::mbit(2), ..short },
            Config {
                quantum: Some(Bytes(300)),
                initial_quantum: Some(Bytes(0)),
                maxrate: Some(Rate::mbit(3)),
                ce_threshold: Some(Span::us(100)),
                horizon: Span::ms(10),
                orphan_mask: 3,
                ..Config::default()
            },
            Config {
                pacing: false,
                horizon: Span::ms(5),
                horizon_drop: false,
                timer_slack: Span::ZERO,
                weights: vec![20_000; 3],
                ..Config::default()
            },
        ]
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(rate) = self.maxrate.filter(|rate| *rate >= context.rate) {
            warnings
                .push(format!("maxrate: {rate} is not below the rate of the link, so it delays no packet"));
        }
        if !self.pacing && self.maxrate.is_some() {
            warnings.push("maxrate: has no effect with nopacing".into());
        }
        warnings
    }
}

/// The discipline `fq`: flows in bands, those that pause, and their packets.
pub struct Fq<P> {
    /// Packets that a band holds at most.
    limit: u64,
    flow_limit: usize,
    pacing: bool,
    maxrate: Option<Rate>,
    low_rate: Rate,
    refill_delay: Span,
    timer_slack: Span,
    ce_threshold: Option<Span>,
    horizon: Span,
    horizon_drop: bool,
    /// Bytes per turn.
    quantum: i64,
    flows: Flows,
    /// Flows that may not send yet, by the time at which they may.
    waiting: FlowHeap<Time>,
    bands: Bands,
    packets: Slots<Timed<P>>,
    backlog: Backlog,
}

/// A packet and the time from which on it may leave.
#[derive(Debug)]
struct Timed<P> {
    at: Time,
    /// The band that counts it.
    band: u8,
    pkt: Packet<P>,
}

impl<P> Qdisc<P> for Fq<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let now = cx.now();
        let band = self.bands.of(&pkt.meta);
        if self.bands.packets(band) >= self.limit {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        let mut at = pkt.meta.label.departure().map_or(now, |departure| departure.max(now));
        let latest = now + self.horizon;
        if at > latest {
            if self.horizon_drop {
                return cx.drop(pkt, DropReason::Policy);
            }
            at = latest;
        }
        let place = self.flows.of(&pkt.meta, now);
        let flow = &mut self.flows[place];
        if flow.queue.len() >= self.flow_limit {
            return cx.drop(pkt, DropReason::FlowLimit);
        }
        self.bands.on_arrival(band);
        self.backlog.add(pkt.bytes());
        // Nearly always it is the last: only departure times change the order.
        self.packets.insert_behind(&mut flow.queue, Timed { at, band, pkt }, |other| other.at <= at);
        match flow.standing {
            Standing::Idle => self.begin(place, band, now),
            // It may leave before the packet for which the flow waits.
            Standing::Waiting => {
                let first = self.packets.front(&flow.queue).map_or(at, |head| head.at);
                self.waiting.set(place.index(), flow.ready(first));
            }
            Standing::New | Standing::Old => {}
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let now = cx.now();
        self.release(now);
        while let Some((place, is_new)) = self.bands.turn(self.flows.slots()) {
            let flow = &mut self.flows[place];
            let band = flow.band;
            let Some(head) = self.packets.front(&flow.queue) else {
                // An emptied new flow waits for a turn as an old one, so that it cannot starve the others.
                match is_new {
                    true => self.bands.end_turn(place, self.flows.slots_mut()),
                    false => {
                        self.bands.leave(place, self.flows.slots_mut());
                        self.flows.rest(place, now);
                    }
                }
                continue;
            };
            let ready = flow.ready(head.at);
            if ready > now {
                self.bands.leave(place, self.flows.slots_mut());
                self.flows[place].standing = Standing::Waiting;
                self.waiting.set(place.index(), ready);
                continue;
            }
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.bands.end_turn(place, self.flows.slots_mut());
                continue;
            }
            let Timed { at, band: counted, mut pkt } =
                self.packets.pop_front(&mut flow.queue).expect("the flow has a head");
            self.bands.on_departure(band, counted, pkt.bytes());
            self.backlog.sub(pkt.bytes());
            if self.ce_threshold.is_some_and(|threshold| now.since(at) > threshold) {
                cx.mark(&mut pkt);
            }
            self.pay(place, &pkt, now);
            return Next::Packet(pkt);
        }
        match self.waiting.first() {
            Some((first, _)) => Next::At(first + self.timer_slack),
            None => Next::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for flow in self.flows.slots_mut().items_mut() {
            while let Some(timed) = self.packets.pop_front(&mut flow.queue) {
                cx.drop(timed.pkt, DropReason::Reset);
            }
        }
        self.flows.clear();
        while self.waiting.pop().is_some() {}
        self.bands.clear();
        self.backlog = Backlog::ZERO;
    }

    /// Idle flows, which are remembered for a while, count as flows.
    fn flow_table(&self) -> FlowTable {
        let table = self.flows.table();
        FlowTable { bytes: table.bytes + self.waiting.bytes(), ..table }
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("waiting_flows", self.waiting.len() as f64);
        visit("idle_flows", self.flows.idle() as f64);
    }
}

impl<P> Fq<P> {
    /// An idle flow joins the new flows of a band with its first packet.
    #[inline]
    fn begin(&mut self, place: Place, band: u8, now: Time) {
        let idle = self.flows.wake(place, now);
        let flow = &mut self.flows[place];
        if idle >= self.refill_delay {
            flow.credit = flow.credit.max(self.quantum);
        }
        flow.band = band;
        self.bands.begin(place, self.flows.slots_mut());
    }

    /// Flows whose time has come return to the old flows of their band.
    #[inline]
    fn release(&mut self, now: Time) {
        while let Some((_, index)) = self.waiting.first().filter(|(at, _)| *at <= now) {
            self.waiting.remove(index);
            let place = self.flows.slots().place(index).expect("a waiting flow is remembered");
            self.bands.come_back(place, self.flows.slots_mut());
        }
    }

    /// Takes the bytes of a departure from the credit of its flow, and sets the pause after it.
    #[inline]
    fn pay(&mut self, place: Place, pkt: &Packet<P>, now: Time) {
        let flow = &mut self.flows[place];
        flow.credit -= i64::from(pkt.bytes());
        if !self.pacing {
            return;
        }
        let own = pkt.meta.label.departure().is_none() && pkt.meta.reserved.as_bit() > 0;
        let own = own.then_some(pkt.meta.reserved);
        let Some(rate) = own.into_iter().chain(self.maxrate).min() else { return };
        let bytes = if rate <= self.low_rate {
            flow.credit = 0;
            u64::from(pkt.bytes())
        } else if flow.credit > 0 {
            0
        } else {
            // The quanta after which it has credit again, so that it sends no more than it pauses for.
            ((-flow.credit / self.quantum + 1) * self.quantum) as u64
        };
        if bytes > 0 {
            flow.pause(rate.time_for(bytes), now);
        }
    }
}
