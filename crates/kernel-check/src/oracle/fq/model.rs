//! A second, simple implementation of FQ, which can follow each rule of Linux that differs from the Rust
//! discipline. Times are in picoseconds.

use std::collections::{BTreeMap, VecDeque};

use giveway_disciplines::fq::Config;
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Backlog, Cx, DropReason, LinkContext, Meta, Next, Packet, Qdisc, Rate, Time};

use super::super::calls::Call;

/// A rule of Linux that differs from the Rust discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A packet that may leave at once and finds no flow that may send joins a separate queue, which goes
    /// before all flows, costs no credit and holds at most eight packets, in the order of their departure
    /// times. Flows with a rate do not use it, and with `maxrate` no flow does.
    Fast,
    /// A flow whose credit is spent gets a quantum and waits for its next turn, also if it has no packet or
    /// may
    /// not send yet. In the Rust discipline this is looked at first.
    Owed,
    /// Idle time is measured in ticks of the kernel's timer, starts with an odd tick, and must exceed
    /// `refill_delay`.
    Ticks,
    /// With `maxrate`, the time for which a flow waits also holds for its later packets, even if they may
    /// leave
    /// earlier.
    Wait,
    /// With `maxrate` a packet with a departure time is followed by the pause of its bytes.
    Timed,
    /// Departure times in the past have an order, too. In the Rust discipline they mean now.
    Past,
    /// The delay for `ce_threshold` starts when the flow may send. In the Rust discipline it starts at the
    /// departure time of the packet.
    Marks,
    /// An idle flow is remembered. In the Rust discipline it is forgotten after three seconds.
    Kept,
    /// Pauses are whole nanoseconds, rounded down.
    Nanoseconds,
    /// A flow that starts joins the band of its packet before, and the first band with its first packet. It
    /// comes to the band of its last packet after its turn.
    Band,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 10] = [
        Rule::Fast,
        Rule::Owed,
        Rule::Ticks,
        Rule::Wait,
        Rule::Timed,
        Rule::Past,
        Rule::Marks,
        Rule::Kept,
        Rule::Nanoseconds,
        Rule::Band,
    ];

    /// Short name of the rule of Linux.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Fast => "queue of packets that need no turn",
            Rule::Owed => "spent credit counts before all else",
            Rule::Ticks => "idle time in ticks, from an odd one on",
            Rule::Wait => "wait holds for later packets",
            Rule::Timed => "pause after departure times",
            Rule::Past => "order of past departure times",
            Rule::Marks => "marking delay without the pause",
            Rule::Kept => "idle flows remembered",
            Rule::Nanoseconds => "whole nanoseconds",
            Rule::Band => "begin in the band before",
        }
    }
}

const NS: u64 = 1000;
const SECOND: u64 = 1_000_000_000_000;
/// A tick of Debian's kernels, 4 ms.
const TICK: u64 = SECOND / 250;
/// Packets of the queue before all flows.
const FAST: usize = 8;
/// Time after which the Rust discipline forgets an idle flow.
const AGE: u64 = 3 * SECOND;
const BANDS: usize = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Idle,
    Listed,
    Waiting,
}

/// A packet, the time from which on it may leave, and its band.
struct Timed {
    at: u64,
    band: usize,
    pkt: Packet<u64>,
}

#[derive(Default)]
struct Flow {
    packets: VecDeque<Timed>,
    credit: i64,
    band: usize,
    standing: Standing,
    paused_until: Option<u64>,
    /// Time since which it is idle, in picoseconds and in ticks.
    since: (u64, u32),
}

struct Band {
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    credit: i64,
    weight: i64,
    packets: u64,
}

/// FQ with some rules of Linux.
pub struct Model {
    config: Config,
    rules: Vec<Rule>,
    quantum: i64,
    initial_quantum: i64,
    perturbation: u64,
    /// Numbers of flows whose senders have a rate or departure times, and of the others.
    numbers: BTreeMap<(bool, u64), usize>,
    flows: Vec<Flow>,
    /// Idle flows, the longest idle one first.
    idle: VecDeque<usize>,
    /// Waiting flows with the time until which each waits, in order.
    waiting: Vec<(u64, usize)>,
    bands: [Band; BANDS],
    of_dscp: [usize; 64],
    current: usize,
    fast: VecDeque<Timed>,
    backlog: Backlog,
    /// The kernel's clock of ticks at each call, from the last one to the first.
    ticks: Vec<u32>,
}

impl Model {
    /// Creates an empty model with these rules of Linux; the others come from the Rust discipline. `calls`
    /// contains the clock of ticks.
    pub fn new(config: &Config, context: &LinkContext, rules: &[Rule], calls: &[Call]) -> Model {
        let band = |at: usize| {
            let weight = i64::from(config.weights[at]);
            Band { new: VecDeque::new(), old: VecDeque::new(), credit: weight, weight, packets: 0 }
        };
        // The priority of each DSCP of the traffic: best effort, bulk and interactive.
        let priority = |dscp: usize| match dscp {
            2 => 2,
            4 => 6,
            _ => 0,
        };
        let full = context.mtu.0 + 14;
        Model {
            config: config.clone(),
            rules: rules.to_vec(),
            quantum: config.quantum.map_or(2 * full, |quantum| quantum.0) as i64,
            initial_quantum: config.initial_quantum.map_or(10 * full, |quantum| quantum.0) as i64,
            perturbation: context.streams.rng().word(),
            numbers: BTreeMap::new(),
            flows: Vec::new(),
            idle: VecDeque::new(),
            waiting: Vec::new(),
            bands: std::array::from_fn(band),
            of_dscp: std::array::from_fn(|dscp| usize::from(config.priomap[priority(dscp)])),
            current: 0,
            fast: VecDeque::new(),
            backlog: Backlog::ZERO,
            ticks: calls.iter().rev().map(|call| (call.state >> 32) as u32).collect(),
        }
    }

    fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    fn waits_on(&self) -> bool {
        self.has(Rule::Wait) && self.config.maxrate.is_some()
    }

    fn tick(&self) -> u32 {
        self.ticks.last().copied().unwrap_or(0)
    }

    /// The number of the flow of a packet.
    fn flow_of(&mut self, meta: &Meta, now: u64) -> usize {
        self.forget(now);
        let own = meta.label.departure().is_some() || meta.reserved.as_bit() > 0;
        let key = match own {
            true => meta.flow.0,
            false => mix(meta.flow.0, self.perturbation) & u64::from(self.config.orphan_mask),
        };
        if let Some(number) = self.numbers.get(&(own, key)) {
            return *number;
        }
        let number = self.flows.len();
        let since = (now, self.tick());
        self.flows.push(Flow { credit: self.initial_quantum, since, ..Flow::default() });
        self.numbers.insert((own, key), number);
        self.idle.push_back(number);
        number
    }

    /// The Rust discipline forgets the flow that was idle longest, if its pause is over.
    fn forget(&mut self, now: u64) {
        let Some(number) = self.idle.front().copied().filter(|_| !self.has(Rule::Kept)) else { return };
        let flow = &self.flows[number];
        if now.saturating_sub(flow.since.0) < AGE {
            return;
        }
        self.idle.rotate_left(1);
        if flow.paused_until.is_none_or(|until| until <= now) {
            self.idle.pop_back();
            self.numbers.retain(|_, other| *other != number);
        }
    }

    /// True if a packet needs no turn.
    fn is_fast(&self, at: u64, now: u64, meta: &Meta) -> bool {
        let listed =
            self.flows.iter().any(|flow| flow.standing == Standing::Listed && !flow.packets.is_empty());
        let due = self.waiting.first().is_some_and(|(until, _)| *until <= now);
        at <= now
            && !listed
            && !due
            && self.fast.len() < FAST
            && self.config.maxrate.is_none()
            && meta.reserved.as_bit() == 0
    }

    /// Time from which on a flow may send a packet that may leave at `at`.
    fn ready(&self, flow: usize, at: u64) -> u64 {
        self.flows[flow].paused_until.map_or(at, |until| until.max(at))
    }

    fn wait(&mut self, flow: usize, until: u64) {
        self.waiting.retain(|(_, other)| *other != flow);
        // Linux takes flows with equal times in the order in which they began to wait; no mix has any.
        let place = self.waiting.partition_point(|waiting| *waiting < (until, flow));
        self.waiting.insert(place, (until, flow));
    }

    /// The band and the flow with the turn, and true if the flow is a new one.
    fn turn(&mut self) -> Option<(usize, usize, bool)> {
        if self.bands.iter().all(|band| band.new.is_empty() && band.old.is_empty()) {
            return None;
        }
        loop {
            let band = &mut self.bands[self.current];
            if band.credit > 0 {
                if let Some(flow) = band.new.front() {
                    return Some((self.current, *flow, true));
                }
                if let Some(flow) = band.old.front() {
                    return Some((self.current, *flow, false));
                }
            }
            band.credit = (band.credit + band.weight).min(band.weight);
            self.current = (self.current + 1) % BANDS;
        }
    }

    /// Removes the flow with the turn from its list.
    fn leave(&mut self, band: usize, is_new: bool) -> usize {
        let of = &mut self.bands[band];
        let list = if is_new { &mut of.new } else { &mut of.old };
        list.pop_front().expect("the flow with the turn is in its list")
    }

    /// Takes the bytes of a departure from the credit of its flow, and sets the pause after it.
    fn pay(&mut self, number: usize, pkt: &Packet<u64>, now: u64) {
        let (quantum, nanoseconds) = (self.quantum, self.has(Rule::Nanoseconds));
        let timed = pkt.meta.label.departure().is_some();
        let after_each = timed && self.has(Rule::Timed);
        let flow = &mut self.flows[number];
        flow.credit -= i64::from(pkt.bytes());
        if !self.config.pacing {
            return;
        }
        let own = (!timed && pkt.meta.reserved.as_bit() > 0).then_some(pkt.meta.reserved);
        let Some(rate) = own.into_iter().chain(self.config.maxrate).min() else { return };
        let length = i64::from(pkt.bytes());
        let bytes = if after_each {
            length
        } else if rate <= self.config.low_rate_threshold {
            flow.credit = 0;
            length
        } else if flow.credit > 0 {
            return;
        } else {
            (-flow.credit / quantum + 1) * quantum
        };
        let lasts = if nanoseconds {
            bytes as u64 * 1_000_000_000 / (rate.as_bit() / 8) * NS
        } else {
            Rate::time_for(rate, bytes as u64).as_ps()
        };
        let late = flow.paused_until.map_or(0, |until| now.saturating_sub(until));
        let half = if nanoseconds { lasts / NS / 2 * NS } else { lasts / 2 };
        flow.paused_until = Some(now + lasts - late.min(half));
    }

    fn arrives(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        let now = cx.now().as_ps();
        let band = self.of_dscp[usize::from(pkt.meta.header.dscp().number())];
        if self.bands[band].packets >= self.config.limit.0 {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        let wanted = pkt.meta.label.departure().map_or(now, |departure| departure.as_ps());
        let latest = now + self.config.horizon.as_ps();
        if wanted > latest && self.config.horizon_drop {
            return cx.drop(pkt, DropReason::Policy);
        }
        let at = if self.has(Rule::Past) { wanted } else { wanted.max(now) }.min(latest);
        if self.has(Rule::Fast) && self.is_fast(at, now, &pkt.meta) {
            self.backlog.add(pkt.bytes());
            let behind = self.fast.iter().rposition(|other| other.at <= at);
            return self.fast.insert(behind.map_or(0, |other| other + 1), Timed { at, band, pkt });
        }
        let number = self.flow_of(&pkt.meta, now);
        if self.flows[number].packets.len() as u64 >= self.config.flow_limit.0 {
            return cx.drop(pkt, DropReason::FlowLimit);
        }
        self.bands[band].packets += 1;
        self.backlog.add(pkt.bytes());
        let behind = self.flows[number].packets.iter().rposition(|other| other.at <= at);
        self.flows[number].packets.insert(behind.map_or(0, |other| other + 1), Timed { at, band, pkt });
        match self.flows[number].standing {
            Standing::Idle => self.begin(number, band, now),
            Standing::Waiting if !self.waits_on() => {
                let first = self.flows[number].packets.front().map_or(at, |head| head.at);
                self.wait(number, self.ready(number, first));
            }
            Standing::Waiting | Standing::Listed => {}
        }
        if self.has(Rule::Band) {
            self.flows[number].band = band;
        }
    }

    /// An idle flow joins the new flows of a band.
    fn begin(&mut self, number: usize, band: usize, now: u64) {
        let (since, ticks) = self.flows[number].since;
        let delay = self.config.refill_delay.as_ps();
        let rested = if self.has(Rule::Ticks) {
            i64::from(self.tick().wrapping_sub(ticks | 1) as i32) > (delay / TICK) as i64
        } else {
            now.saturating_sub(since) >= delay
        };
        let (before, quantum) = (self.has(Rule::Band), self.quantum);
        self.idle.retain(|other| *other != number);
        let flow = &mut self.flows[number];
        if rested {
            flow.credit = flow.credit.max(quantum);
        }
        flow.standing = Standing::Listed;
        if !before {
            flow.band = band;
        }
        self.bands[flow.band].new.push_back(number);
    }

    fn next_packet(&mut self, cx: &mut Cx<'_, u64>) -> Next<u64> {
        let now = cx.now().as_ps();
        if let Some(Timed { pkt, .. }) = self.fast.pop_front() {
            self.backlog.sub(pkt.bytes());
            return Next::Packet(pkt);
        }
        while let Some((_, number)) = self.waiting.first().copied().filter(|(until, _)| *until <= now) {
            self.waiting.remove(0);
            self.flows[number].standing = Standing::Listed;
            let band = self.flows[number].band;
            self.bands[band].old.push_back(number);
        }
        while let Some((band, number, is_new)) = self.turn() {
            let empty = self.flows[number].packets.is_empty();
            let spent = self.flows[number].credit <= 0;
            if spent && empty && self.has(Rule::Owed) {
                self.again(band, number, is_new);
                continue;
            }
            if empty {
                self.leave(band, is_new);
                if is_new {
                    let own = self.flows[number].band;
                    self.bands[own].old.push_back(number);
                } else {
                    let since = (now, self.tick());
                    let flow = &mut self.flows[number];
                    (flow.standing, flow.since) = (Standing::Idle, since);
                    self.idle.push_back(number);
                }
                continue;
            }
            if spent && self.has(Rule::Owed) {
                self.again(band, number, is_new);
                continue;
            }
            let ready = self.ready(number, self.flows[number].packets[0].at);
            if ready > now {
                self.leave(band, is_new);
                self.flows[number].standing = Standing::Waiting;
                if self.waits_on() {
                    self.flows[number].paused_until = Some(ready);
                }
                self.wait(number, ready);
                continue;
            }
            if spent {
                self.again(band, number, is_new);
                continue;
            }
            let Timed { at, band: counted, mut pkt } =
                self.flows[number].packets.pop_front().expect("the flow has a packet");
            self.bands[band].credit -= i64::from(pkt.bytes());
            self.bands[counted].packets -= 1;
            self.backlog.sub(pkt.bytes());
            let from = if self.has(Rule::Marks) { ready } else { at };
            if self.config.ce_threshold.is_some_and(|threshold| now > from + threshold.as_ps()) {
                cx.mark(&mut pkt);
            }
            self.pay(number, &pkt, now);
            return Next::Packet(pkt);
        }
        match self.waiting.first() {
            Some((until, _)) => Next::At(Time::from_ps(*until)),
            None => Next::Empty,
        }
    }

    /// The flow with the turn gets a quantum and waits for its next turn.
    fn again(&mut self, band: usize, number: usize, is_new: bool) {
        self.flows[number].credit += self.quantum;
        self.leave(band, is_new);
        let own = self.flows[number].band;
        self.bands[own].old.push_back(number);
    }
}

impl Qdisc<u64> for Model {
    fn enqueue(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        self.arrives(pkt, cx);
        self.ticks.pop();
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, u64>) -> Next<u64> {
        let next = self.next_packet(cx);
        self.ticks.pop();
        next
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, u64>) {
        for flow in &mut self.flows {
            flow.packets.drain(..).for_each(|timed| cx.drop(timed.pkt, DropReason::Reset));
        }
        self.fast.drain(..).for_each(|timed| cx.drop(timed.pkt, DropReason::Reset));
        self.backlog = Backlog::ZERO;
    }
}
