//! A second, simple implementation of CAKE, which can follow each rule of Linux that differs from the Rust
//! discipline.
//!
//! Flows have a queue each, without a hash: the mixes have too few flows for queues that are shared. Times
//! are in picoseconds.

use std::collections::VecDeque;

use giveway_disciplines::cake::{Class, Config, Isolation, classes, tins};
use giveway_qdisc::{Backlog, Cx, DropReason, LinkContext, Next, Packet, Qdisc, Rate, Rng, Time};

use super::super::calls::Call;

/// A rule of Linux that differs from the Rust discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Each quantum is drawn, with (quantum * (65535 / load) + a draw of 16 bits) / 65536; the Rust
    /// discipline draws only what is less than a byte, and nothing for a load of 1.
    Quantum,
    /// The quantum is divided by the load also if all flows have a host in common.
    Divided,
    /// Times are whole nanoseconds, rounded down.
    Nanoseconds,
    /// 1/sqrt(n) has 32 bits, and above 15 it is computed by one Newton step for each change of n.
    Root,
    /// With `ingress` a dropped packet may end the turn of its flow; in the Rust discipline the flow may send
    /// the next packet in any case.
    Ends,
    /// The limit of the memory counts the buffers of packets.
    Buffers,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 6] =
        [Rule::Quantum, Rule::Divided, Rule::Nanoseconds, Rule::Root, Rule::Ends, Rule::Buffers];

    /// Short name of the rule of Linux.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Quantum => "every quantum drawn",
            Rule::Divided => "quantum divided among flows of a common host",
            Rule::Nanoseconds => "whole nanoseconds",
            Rule::Root => "root by Newton steps",
            Rule::Ends => "drops end a turn",
            Rule::Buffers => "memory of buffers",
        }
    }
}

/// A Newton step towards 1/sqrt(n): x (3 - n x^2) / 2, with 32 fractional bits.
fn newton(root: u64, n: u64) -> u64 {
    let step = (3u64 << 32).wrapping_sub(n.wrapping_mul((root * root) >> 32)) >> 2;
    (step.wrapping_mul(root) >> 31) & 0xffff_ffff
}

/// Roots of the first counts, exact; a count of 0 has the root of 1.
fn roots() -> [u64; 16] {
    let root = |n: usize| ((1u128 << 64) / n.max(1) as u128).isqrt().min(u128::from(u32::MAX)) as u64;
    std::array::from_fn(root)
}

/// Random numbers.
pub enum Draws {
    /// The decisions of the Rust discipline.
    Own(Rng),
    /// The decisions of Linux, for each call from the last one to the first.
    Recorded(Vec<Vec<u64>>),
}

impl Draws {
    /// Those that Linux drew in these calls.
    pub fn of(calls: &[Call]) -> Draws {
        let backwards = |call: &Call| call.drawn.iter().rev().copied().collect();
        Draws::Recorded(calls.iter().rev().map(backwards).collect())
    }

    /// A number of this many bits. If the recorded ones of the call are used up it is 0.
    fn bits(&mut self, bits: u32) -> u64 {
        match self {
            Draws::Own(rng) => rng.word() >> (64 - bits),
            Draws::Recorded(calls) => calls.last_mut().and_then(Vec::pop).unwrap_or(0),
        }
    }

    /// The current call ends.
    fn next_call(&mut self) {
        if let Draws::Recorded(calls) = self {
            calls.pop();
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    #[default]
    Free,
    Sparse,
    SparseWaiting,
    Bulk,
    Decaying,
}

/// A flow's queue, with its CoDel and BLUE.
#[derive(Debug, Default)]
struct Flow {
    packets: VecDeque<Packet<u64>>,
    bytes: u64,
    deficit: i64,
    set: Set,
    hosts: (u16, u16),
    count: u64,
    /// 1/sqrt(count) with 32 fractional bits.
    root: u64,
    next: u64,
    dropping: bool,
    /// BLUE's probability, with 32 fractional bits.
    blue: u64,
    blue_at: u64,
}

struct Tin {
    class: Class,
    target: u64,
    interval: u64,
    above: u64,
    packet: u64,
    quantum: u64,
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    decaying: VecDeque<usize>,
    /// Bulk flows of each source and destination.
    bulk: [[u16; 128]; 2],
    next: u64,
    credit: i64,
    packets: u64,
}

/// Result of a turn.
enum Sent {
    Packet(Packet<u64>),
    Empty,
    /// A dropped packet used up the deficit.
    TurnOver,
}

/// CAKE with some rules of Linux.
pub struct Model {
    config: Config,
    rules: Vec<Rule>,
    draws: Draws,
    tins: Vec<Tin>,
    tin_of: [u8; 64],
    rate: Option<Rate>,
    packet: u64,
    memory: u64,
    memory_used: u64,
    /// Memory of the buffer of each packet in Linux, and the place of its queue.
    facts: Vec<(u64, usize)>,
    roots: [u64; 16],
    next: u64,
    failsafe: u64,
    current: usize,
    backlog: Backlog,
}

const NS: u64 = 1000;
/// Queues of a tin.
const PLACES: usize = 1024;

impl Model {
    /// Creates an empty model with these rules of Linux; the others come from the Rust discipline. `calls`
    /// contains the memory of each packet.
    pub fn new(
        config: &Config,
        context: &LinkContext,
        rules: &[Rule],
        mut draws: Draws,
        calls: &[Call],
    ) -> Model {
        if let Draws::Own(rng) = &mut draws {
            // The key of the hash of flows.
            rng.word();
        }
        let arrivals = calls.iter().filter(|call| call.arrival.is_some());
        let packet = context.mtu.0 + 14;
        let mut model = Model {
            config: config.clone(),
            rules: rules.to_vec(),
            draws,
            tins: Vec::new(),
            tin_of: tins(config.tins),
            rate: config.bandwidth,
            packet,
            memory: config.memlimit.map_or_else(
                || {
                    config
                        .bandwidth
                        .map_or(10_240 * packet, |rate| rate.bytes_in(config.rtt * 4).max(4 << 20))
                },
                |bytes| bytes.0,
            ),
            memory_used: 0,
            roots: roots(),
            facts: arrivals
                .map(|call| (call.state & 0xffff_ffff, (call.state >> 32) as usize % PLACES))
                .collect(),
            next: 0,
            failsafe: 0,
            current: 0,
            backlog: Backlog::ZERO,
        };
        model.tins = classes(config.tins).into_iter().map(|class| model.tin(class)).collect();
        model
    }

    fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// A time in the resolution of the clock.
    fn rounded(&self, ps: u64) -> u64 {
        if self.has(Rule::Nanoseconds) { ps / NS * NS } else { ps }
    }

    /// Time of some bytes at a share of the rate.
    fn lasts(&self, bytes: u64, (part, whole): (u64, u64)) -> u64 {
        let Some(rate) = self.rate else { return 0 };
        if self.has(Rule::Nanoseconds) {
            let own = u128::from(rate.as_bit() / 8) * u128::from(part) / u128::from(whole);
            return (u128::from(bytes) * 1_000_000_000 / own.max(1)) as u64 * NS;
        }
        let lasts = rate.time_for(bytes);
        if part == whole { lasts.as_ps() } else { lasts.scale(whole, part).as_ps() }
    }

    fn tin(&self, class: Class) -> Tin {
        let (part, whole) = class.share;
        let own = self.rate.map(|rate| rate.as_bit() * part / whole);
        let packet = own.map_or(0, |own| self.rounded(Rate::bit(own).time_for(self.packet).as_ps()));
        let usual = self.config.rtt.as_ps() / 20;
        let target = usual.max(packet * 3 / 2);
        let interval = (self.config.rtt.as_ps().saturating_sub(usual) + target).max(target * 2);
        let quantum = own.map_or(self.packet, |own| ((own / 8) >> 12).clamp(300, self.packet));
        Tin {
            class,
            target: self.rounded(target),
            interval: self.rounded(interval),
            above: target.max(packet * 4),
            packet,
            quantum,
            flows: (0..PLACES).map(|_| Flow::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            bulk: [[0; 128]; 2],
            next: 0,
            credit: 0,
            packets: 0,
        }
    }

    /// The directions whose hosts get equal shares: sources, destinations.
    fn counts(&self) -> [bool; 2] {
        let sources = matches!(self.config.isolation, Isolation::DualSrchost | Isolation::TripleIsolate);
        let destinations = matches!(self.config.isolation, Isolation::DualDsthost | Isolation::TripleIsolate);
        [sources, destinations]
    }

    fn flow_of(&self, pkt: &Packet<u64>) -> usize {
        // The journal of Linux has the place that its hash selects.
        if matches!(self.draws, Draws::Recorded(_)) {
            return self.fact(pkt).1;
        }
        let meta = &pkt.meta;
        match self.config.isolation {
            Isolation::Flowblind => 0,
            Isolation::Srchost => usize::from(meta.from),
            Isolation::Dsthost => usize::from(meta.to),
            Isolation::Hosts => usize::from(meta.from) * 8 + usize::from(meta.to - 64),
            _ => meta.flow.0 as usize % PLACES,
        }
    }

    /// Bytes on the link.
    fn on_wire(&self, bytes: u32) -> u64 {
        use giveway_disciplines::cake::{Framing, LinkLayer};
        let (overhead, least, framing) = self.config.link.map_or((0, 0, Framing::Noatm), LinkLayer::parts);
        let overhead = i64::from(self.config.overhead.unwrap_or(overhead));
        let length = (i64::from(bytes) + overhead).max(i64::from(self.config.mpu.unwrap_or(least))) as u64;
        match self.config.framing.unwrap_or(framing) {
            Framing::Noatm => length,
            Framing::Atm => length.div_ceil(48) * 53,
            Framing::Ptm => length + length.div_ceil(64),
        }
    }

    /// The facts of a packet in the journal.
    fn fact(&self, pkt: &Packet<u64>) -> (u64, usize) {
        self.facts.get(pkt.payload as usize).copied().unwrap_or_default()
    }

    fn memory_of(&self, pkt: &Packet<u64>) -> u64 {
        if self.has(Rule::Buffers) { self.fact(pkt).0 } else { u64::from(pkt.bytes()) }
    }

    fn is_full(&self) -> bool {
        let small = !self.has(Rule::Buffers) && self.backlog.packets * 256 > self.memory.max(256);
        self.memory_used > self.memory || small
    }

    /// The quantum of a flow, divided by the number of flows of its hosts.
    fn quantum(&mut self, tin: usize, flow: usize, divides: bool) -> i64 {
        let counts = self.counts();
        let of = &self.tins[tin];
        let (from, to) = of.flows[flow].hosts;
        let mut load = 1;
        for (counts, (bulk, host)) in counts.into_iter().zip(of.bulk.iter().zip([from, to])) {
            if !counts || !divides {
                continue;
            }
            if !self.has(Rule::Divided) && bulk.iter().filter(|flows| **flows > 0).count() <= 1 {
                load = 1;
                break;
            }
            load = load.max(bulk[usize::from(host)]);
        }
        let (quantum, load) = (of.quantum, u64::from(load));
        if self.has(Rule::Quantum) {
            return ((quantum * (65_535 / load) + self.draws.bits(16)) >> 16) as i64;
        }
        if load == 1 { quantum as i64 } else { (((quantum << 16) / load + self.draws.bits(16)) >> 16) as i64 }
    }

    fn becomes_bulk(&mut self, tin: usize, flow: usize) {
        let counts = self.counts();
        let Tin { flows, bulk, .. } = &mut self.tins[tin];
        flows[flow].set = Set::Bulk;
        let (from, to) = flows[flow].hosts;
        for (direction, host) in [from, to].into_iter().enumerate() {
            bulk[direction][usize::from(host)] += u16::from(counts[direction]);
        }
    }

    /// CoDel's interval / sqrt(count).
    fn pace(&self, tin: usize, flow: usize) -> u64 {
        let of = &self.tins[tin];
        let interval = u128::from(of.interval);
        let count = of.flows[flow].count.max(1);
        // The root of a queue without a signal so far is 0.
        if of.flows[flow].root == 0 {
            return 0;
        }
        if self.has(Rule::Root) {
            return ((interval * u128::from(of.flows[flow].root)) >> 32) as u64 / NS * NS;
        }
        (interval * interval / u128::from(count)).isqrt() as u64
    }

    /// Changes the count, and 1/sqrt(count).
    fn set_count(&mut self, tin: usize, flow: usize, count: u64) {
        let of = &mut self.tins[tin].flows[flow];
        of.count = count;
        of.root = match self.roots.get(count as usize) {
            Some(root) => *root,
            None => newton(of.root, count),
        };
    }

    /// Decides on a head: true if it is dropped.
    fn drops(&mut self, tin: usize, flow: usize, pkt: &mut Packet<u64>, cx: &mut Cx<'_, u64>) -> bool {
        let now = cx.now().as_ps();
        let Tin { mut above, interval, packet, ref flows, .. } = self.tins[tin];
        if self.config.ingress {
            let bulk = flows.iter().filter(|flow| flow.set == Set::Bulk).count() as u64;
            above = above.max(packet * 2 * bulk);
        }
        let of = &self.tins[tin].flows[flow];
        let late = now - pkt.meta.arrived.as_ps() > above;
        let due = of.count > 0 && now >= of.next;
        let mut overdue = of.next < now;
        let mut dropped = false;
        if late {
            if !self.tins[tin].flows[flow].dropping {
                let pace = self.pace(tin, flow);
                let of = &mut self.tins[tin].flows[flow];
                (of.dropping, of.next) = (true, now + pace);
            }
            if self.tins[tin].flows[flow].count == 0 {
                self.set_count(tin, flow, 1);
            }
            if due {
                dropped = !cx.mark(pkt);
                self.set_count(tin, flow, self.tins[tin].flows[flow].count + 1);
                self.tins[tin].flows[flow].next += self.pace(tin, flow);
                overdue = self.tins[tin].flows[flow].next < now;
            }
        } else {
            self.tins[tin].flows[flow].dropping = false;
            while self.tins[tin].flows[flow].count > 0 && now >= self.tins[tin].flows[flow].next {
                self.step_down(tin, flow);
                overdue = self.tins[tin].flows[flow].next < now;
            }
        }
        let blue = self.tins[tin].flows[flow].blue;
        if blue > 0 {
            // The Rust discipline has 16 bits.
            dropped |= match &mut self.draws {
                Draws::Own(rng) => rng.word() >> 48 < blue >> 16,
                // Linux draws only if CoDel keeps the packet.
                recorded @ Draws::Recorded(_) => !dropped && recorded.bits(32) < blue,
            };
        }
        let of = &mut self.tins[tin].flows[flow];
        if of.count == 0 {
            of.next = now + interval;
        } else if overdue && !dropped {
            of.next = now;
        }
        dropped
    }

    fn step_down(&mut self, tin: usize, flow: usize) {
        self.set_count(tin, flow, self.tins[tin].flows[flow].count - 1);
        self.tins[tin].flows[flow].next += self.pace(tin, flow);
    }

    /// An empty queue steps down, and decays until its state equals a new one's.
    fn rests(&mut self, tin: usize, flow: usize, now: u64) {
        let target = self.tins[tin].target;
        let of = &mut self.tins[tin].flows[flow];
        if of.blue > 0 && now - of.blue_at > target {
            of.blue = of.blue.saturating_sub(1 << 20);
            of.blue_at = now;
        }
        of.dropping = false;
        if of.count > 0 && now >= of.next {
            self.step_down(tin, flow);
        }
        let of = &mut self.tins[tin].flows[flow];
        if of.count == 0 && of.blue == 0 && now >= of.next {
            of.set = Set::Free;
        } else {
            of.set = Set::Decaying;
            self.tins[tin].decaying.push_back(flow);
        }
    }

    fn choose(&mut self, now: u64) -> usize {
        if self.rate.is_some() {
            let (mut best, mut soonest) = (0, u64::MAX);
            for (number, tin) in self.tins.iter().enumerate() {
                let waits = !tin.new.is_empty() || !tin.old.is_empty();
                if waits && (tin.next <= now || tin.next <= soonest) {
                    (best, soonest) = (number, tin.next);
                }
            }
            return best;
        }
        loop {
            let tin = &mut self.tins[self.current];
            let waits = !tin.new.is_empty() || !tin.old.is_empty();
            if waits && tin.credit >= 0 {
                return self.current;
            }
            if tin.credit <= 0 {
                let (part, whole) = tin.class.share;
                tin.credit += (1024 * part / whole) as i64;
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }

    /// Advances the clocks of the shaper and of a tin.
    fn advance(&mut self, tin: usize, bytes: u64, dropped: bool, now: u64) {
        let lasts = self.lasts(bytes, (1, 1));
        let own = self.lasts(bytes, self.tins[tin].class.share);
        let of = &mut self.tins[tin];
        if self.rate.is_some() {
            of.next = if of.next < now { of.next + own } else { of.next.max(now + own) };
            self.next += lasts;
            if !dropped {
                self.failsafe += lasts + lasts / 2;
            }
        }
    }

    fn remove(&mut self, tin: usize, flow: usize) -> Option<Packet<u64>> {
        let of = &mut self.tins[tin];
        let pkt = of.flows[flow].packets.pop_front()?;
        of.flows[flow].bytes -= u64::from(pkt.bytes());
        of.packets -= 1;
        self.backlog.sub(pkt.bytes());
        self.memory_used -= self.memory_of(&pkt);
        Some(pkt)
    }

    /// Dequeues a packet of a queue.
    fn send(&mut self, tin: usize, flow: usize, cx: &mut Cx<'_, u64>) -> Sent {
        loop {
            let Some(mut pkt) = self.remove(tin, flow) else { return Sent::Empty };
            let drops = self.drops(tin, flow, &mut pkt, cx);
            let dropped = drops && !self.tins[tin].flows[flow].packets.is_empty();
            if !dropped || self.config.ingress {
                let bytes = self.on_wire(pkt.bytes());
                self.tins[tin].flows[flow].deficit -= bytes as i64;
                self.tins[tin].credit -= bytes as i64;
                self.advance(tin, bytes, dropped, cx.now().as_ps());
            }
            if !dropped {
                return Sent::Packet(pkt);
            }
            cx.drop(pkt, DropReason::Congested);
            if self.has(Rule::Ends) && self.tins[tin].flows[flow].deficit <= 0 {
                return Sent::TurnOver;
            }
        }
    }

    fn drop_from_the_fattest(&mut self, cx: &mut Cx<'_, u64>) {
        let places = (0..self.tins.len()).flat_map(|tin| (0..PLACES).map(move |flow| (tin, flow)));
        let (tin, flow) = places
            .reduce(|best, other| {
                let bytes = |(tin, flow): (usize, usize)| self.tins[tin].flows[flow].bytes;
                if bytes(other) > bytes(best) { other } else { best }
            })
            .expect("there is a tin");
        let pkt = self.remove(tin, flow).expect("the fattest queue of a full buffer has a packet");
        let now = cx.now().as_ps();
        let target = self.tins[tin].target;
        let of = &mut self.tins[tin].flows[flow];
        if now - of.blue_at > target {
            of.blue = (of.blue + (1 << 24)).min(u64::from(u32::MAX));
            of.blue_at = now;
        }
        (of.dropping, of.next) = (true, now);
        if of.count == 0 {
            self.set_count(tin, flow, 1);
        }
        if self.config.ingress {
            self.advance(tin, self.on_wire(pkt.bytes()), true, now);
        }
        cx.drop(pkt, DropReason::Pushout);
    }

    fn next_packet(&mut self, cx: &mut Cx<'_, u64>) -> Next<u64> {
        if self.backlog.packets == 0 {
            return Next::Empty;
        }
        let now = cx.now().as_ps();
        let at = self.next.min(self.failsafe);
        if self.rate.is_some() && at > now {
            return Next::At(Time::from_ps(at));
        }
        let mut tin = self.choose(now);
        if let Some(flow) = self.tins[tin].decaying.pop_front() {
            self.rests(tin, flow, now);
        }
        loop {
            let of = &mut self.tins[tin];
            let flow = *of.new.front().or(of.old.front()).expect("a chosen tin has queues in turns");
            let lane = if of.new.is_empty() { &mut of.old } else { &mut of.new };
            if of.flows[flow].deficit <= 0 {
                lane.pop_front();
                of.old.push_back(flow);
                if of.flows[flow].set == Set::Sparse {
                    if of.flows[flow].packets.is_empty() {
                        of.flows[flow].set = Set::SparseWaiting;
                    } else {
                        self.becomes_bulk(tin, flow);
                    }
                }
                let divides = self.tins[tin].flows[flow].set == Set::Bulk || self.has(Rule::Divided);
                self.tins[tin].flows[flow].deficit += self.quantum(tin, flow, divides);
                continue;
            }
            match self.send(tin, flow, cx) {
                Sent::Packet(pkt) => return Next::Packet(pkt),
                Sent::TurnOver => continue,
                Sent::Empty => {}
            }
            let counts = self.counts();
            let of = &mut self.tins[tin];
            if of.new.is_empty() {
                of.old.pop_front()
            } else {
                of.new.pop_front()
            };
            if of.flows[flow].set == Set::Bulk {
                let (from, to) = of.flows[flow].hosts;
                for (direction, host) in [from, to].into_iter().enumerate() {
                    of.bulk[direction][usize::from(host)] -= u16::from(counts[direction]);
                }
            }
            self.rests(tin, flow, now);
            tin = self.choose(now);
        }
    }
}

impl Qdisc<u64> for Model {
    fn enqueue(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        let now = cx.now().as_ps();
        let tin = usize::from(self.tin_of[usize::from(pkt.meta.header.dscp().number())]);
        let flow = self.flow_of(&pkt);
        if self.backlog.packets == 0 {
            self.next = self.next.max(now);
            self.failsafe = self.failsafe.max(now);
        }
        let of = &mut self.tins[tin];
        if of.packets == 0 {
            of.next = of.next.max(now);
        }
        of.packets += 1;
        of.flows[flow].bytes += u64::from(pkt.bytes());
        self.backlog.add(pkt.bytes());
        let meta = pkt.meta;
        self.memory_used += self.memory_of(&pkt);
        let of = &mut self.tins[tin];
        of.flows[flow].packets.push_back(pkt);
        match of.flows[flow].set {
            Set::Sparse | Set::Bulk => {}
            Set::SparseWaiting => self.becomes_bulk(tin, flow),
            Set::Free | Set::Decaying => {
                of.decaying.retain(|other| *other != flow);
                of.flows[flow].set = Set::Sparse;
                of.flows[flow].hosts = (meta.from, meta.to);
                of.new.push_back(flow);
                self.tins[tin].flows[flow].deficit = self.quantum(tin, flow, true);
            }
        }
        while self.is_full() {
            self.drop_from_the_fattest(cx);
        }
        self.draws.next_call();
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, u64>) -> Next<u64> {
        let next = self.next_packet(cx);
        self.draws.next_call();
        next
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, u64>) {
        for (tin, flow) in (0..self.tins.len()).flat_map(|tin| (0..PLACES).map(move |flow| (tin, flow))) {
            while let Some(pkt) = self.remove(tin, flow) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
    }
}
