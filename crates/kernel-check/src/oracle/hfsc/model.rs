//! A second, simple implementation of HFSC, which can follow each rule of Linux that differs from the Rust
//! discipline. Classes are searched one by one, and their leaves are queues without a limit.

use std::collections::VecDeque;

use giveway_disciplines::hfsc::{Class, Config, ServiceCurve};
use giveway_qdisc::{Backlog, Bytes, Cx, DropReason, Next, Packet, Qdisc};

use super::super::calls::Call;
use super::curve::{Clock, Curve, Running};

/// A rule of Linux that differs from the Rust discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Times are ticks of 64 ns, and slopes have fractional bits.
    Ticks,
    /// A class that starts to share gets the mean of two virtual times: of the class that was chosen last,
    /// and the latest one. The Rust discipline takes the smallest one and the latest one so far. After its
    /// parent was idle, its own virtual time does not count.
    Begin,
    /// A class that was held back by an upper limit has at least the virtual time of the class that was
    /// chosen last by link sharing. In the Rust discipline it has at least the smallest of the others.
    Chosen,
    /// The time by which a class was held back is forgotten when it becomes idle. In the Rust discipline its
    /// curve keeps it.
    Forgotten,
    /// A class that starts reads the clock twice: for its real-time curve, and then for the upper limits. The
    /// Rust discipline has one time for each call.
    Twice,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 5] = [Rule::Ticks, Rule::Begin, Rule::Chosen, Rule::Forgotten, Rule::Twice];

    /// Short name of the rule of Linux.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Ticks => "ticks of 64 ns and scaled slopes",
            Rule::Begin => "begin between the last choice and the latest virtual time",
            Rule::Chosen => "no catching up before the last choice",
            Rule::Forgotten => "delay by upper limits forgotten",
            Rule::Twice => "the clock read twice at the beginning",
        }
    }
}

/// A curve and its running form.
#[derive(Clone, Copy, Debug)]
struct Run {
    curve: Curve,
    running: Option<Running>,
}

impl Run {
    /// The minimum of the curve so far and the curve from this point on.
    fn begin(&mut self, clock: Clock, x: u64, y: u64) -> Running {
        let running = match self.running {
            Some(running) => running.least_from(x, y),
            None => Running::new(clock, self.curve, x, y),
        };
        self.running = Some(running);
        running
    }

    fn time_of(&self, y: u64) -> u64 {
        self.running.map_or(0, |running| running.time_of(y))
    }
}

/// A class; the first one is the link.
#[derive(Default)]
struct Node {
    parent: usize,
    children: usize,
    /// Position among the classes of its parent.
    position: usize,
    mark: Option<u64>,
    real_time: Option<Run>,
    share: Option<Run>,
    limit: Option<Run>,
    packets: VecDeque<Packet<u64>>,
    /// Bytes sent by deadlines, and in total.
    served: u64,
    total: u64,
    eligible: u64,
    deadline: u64,
    /// Virtual time, and the part of it that upper limits caused.
    at: u64,
    adjusted: u64,
    /// Time from which its own upper limit permits a packet.
    own_limit: u64,
    /// Time until which it is held back, as it was seen last.
    held_until: Option<u64>,
    active: u32,
    period: u64,
    parent_period: u64,
    /// Active classes below, by virtual time.
    order: Vec<usize>,
    /// The latest virtual time of a class below that became idle.
    latest: u64,
    /// The latest virtual time of an active class below so far.
    newest: u64,
    /// The largest virtual time of a class below that was chosen by link sharing in this period.
    chosen: u64,
}

/// HFSC with some rules of Linux.
pub struct Model {
    rules: Vec<Rule>,
    clock: Clock,
    nodes: Vec<Node>,
    /// Leaves with a real-time curve and packets, by eligible time.
    coming: Vec<usize>,
    backlog: Backlog,
    /// The last time that each call read, in nanoseconds, from the last call to the first; 0 if it read none.
    readings: Vec<u64>,
}

/// The curve of a class, from one of its three forms.
fn curve(written: ServiceCurve, mtu: Bytes) -> Curve {
    let bit = |rate: Option<giveway_qdisc::Rate>| rate.map_or(0, |rate| rate.as_bit());
    let ServiceCurve { rate, m1, d, m2, umax, dmax } = written;
    if let Some(dmax) = dmax {
        let (bytes, rate) = (umax.unwrap_or(mtu).0, bit(rate));
        let steep = (u128::from(bytes) * 8_000_000_000_000 / u128::from(dmax.as_ps())) as u64;
        if steep > rate {
            return Curve { m1: steep, d: dmax.as_ps(), m2: rate };
        }
        let lasts = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(rate)) as u64;
        return Curve { m1: 0, d: dmax.as_ps().saturating_sub(lasts), m2: rate };
    }
    let second = bit(m2.or(rate));
    Curve { m1: m1.map_or(second, |rate| rate.as_bit()), d: d.map_or(0, |d| d.as_ps()), m2: second }
}

impl Model {
    /// Creates an empty model with these rules of Linux; the others come from the Rust discipline. `calls`
    /// contains the last time that each call read.
    pub fn new(config: &Config, mtu: Bytes, rules: &[Rule], calls: &[Call]) -> Model {
        let clock = if rules.contains(&Rule::Ticks) { Clock::Ticks } else { Clock::Exact };
        let mut nodes = vec![Node::default()];
        // Level by level, as the Rust discipline numbers classes.
        let mut level: Vec<(usize, &Class)> = config.classes.iter().map(|class| (0, class)).collect();
        while !level.is_empty() {
            let mut below = Vec::new();
            for (parent, class) in level {
                let run = |written: Option<ServiceCurve>| {
                    written.map(|written| Run { curve: curve(written, mtu), running: None })
                };
                let number = nodes.len();
                let position = nodes[parent].children;
                nodes[parent].children += 1;
                let is_leaf = class.classes.is_empty();
                nodes.push(Node {
                    parent,
                    position,
                    mark: class.filters.first().and_then(|filter| filter.class).map(u64::from),
                    real_time: run(class.rt.or(class.sc)).filter(|_| is_leaf),
                    share: run(class.ls.or(class.sc)),
                    limit: run(class.ul),
                    ..Node::default()
                });
                below.extend(class.classes.iter().map(|class| (number, class)));
            }
            level = below;
        }
        let readings = calls.iter().rev().map(|call| call.state).collect();
        Model { rules: rules.to_vec(), clock, nodes, coming: Vec::new(), backlog: Backlog::ZERO, readings }
    }

    fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Places a class among the classes of its parent, by virtual time. With equal ones the later comes last
    /// in Linux.
    fn place(&mut self, node: usize) {
        let Node { parent, at, position, .. } = self.nodes[node];
        let ticks = self.has(Rule::Ticks);
        let mut order = std::mem::take(&mut self.nodes[parent].order);
        order.retain(|other| *other != node);
        let before = |other: &usize| {
            let of = &self.nodes[*other];
            of.at < at || (of.at == at && (ticks || of.position < position))
        };
        let place = order.partition_point(before);
        order.insert(place, node);
        self.nodes[parent].order = order;
    }

    /// The smallest virtual time of the classes of a parent that are not held back.
    fn least_free(&self, parent: usize) -> Option<u64> {
        let free = |child: &&usize| self.nodes[**child].held_until.is_none();
        self.nodes[parent].order.iter().find(free).map(|child| self.nodes[*child].at)
    }

    /// A leaf has a packet. `later` is the time for upper limits.
    fn activate(&mut self, leaf: usize, now: u64, later: u64) {
        let (clock, served) = (self.clock, self.nodes[leaf].served);
        if let Some(run) = &mut self.nodes[leaf].real_time {
            run.begin(clock, now, served);
            self.update_deadline(leaf);
        }
        let now = later;
        if self.nodes[leaf].share.is_none() {
            self.nodes[leaf].active = 1;
            return;
        }
        let (mut node, mut from) = (leaf, 0);
        while node != 0 {
            let parent = self.nodes[node].parent;
            self.nodes[node].active += 1;
            if self.nodes[node].active > 1 {
                return self.free_above(node, from, now);
            }
            let total = self.nodes[node].total;
            if let Some(run) = &mut self.nodes[node].limit {
                run.begin(clock, now, total);
                self.nodes[node].own_limit = run.time_of(total);
            }
            self.begin_to_share(node);
            self.nodes[parent].newest = self.nodes[parent].newest.max(self.nodes[node].at);
            let until = self.nodes[node].own_limit;
            from = from.max(until);
            self.nodes[node].held_until = (until > now).then_some(until);
            self.place(node);
            node = parent;
        }
        self.nodes[0].active += 1;
    }

    /// A class below may send from this time on, so classes that others below them hold back may, too.
    fn free_above(&mut self, node: usize, from: u64, now: u64) {
        let (mut node, mut from) = (node, from);
        while node != 0 {
            from = from.max(self.nodes[node].own_limit);
            if self.nodes[node].held_until.is_some_and(|until| until > from) {
                self.nodes[node].held_until = (from > now).then_some(from);
            }
            node = self.nodes[node].parent;
        }
    }

    /// Sets the virtual time of a class that starts to share.
    fn begin_to_share(&mut self, node: usize) {
        let (clock, parent) = (self.clock, self.nodes[node].parent);
        let latest_active = self.nodes[parent].order.last().map(|child| self.nodes[*child].at);
        if latest_active.is_none() {
            self.nodes[parent].chosen = 0;
        }
        let (own, total) = (self.nodes[node].at, self.nodes[node].total);
        let above = &self.nodes[parent];
        let from = if self.has(Rule::Begin) {
            match latest_active {
                None => above.latest,
                Some(latest) => {
                    let mean = if above.chosen == 0 { latest } else { (above.chosen + latest) / 2 };
                    if above.period == self.nodes[node].parent_period { mean.max(own) } else { mean }
                }
            }
        } else {
            let from = match (latest_active, self.least_free(parent)) {
                (None, _) => above.latest,
                (Some(_), Some(least)) => least.midpoint(above.newest.max(least)),
                (Some(_), None) => above.newest,
            };
            from.max(own)
        };
        // The link itself has no period.
        let (period, idle) = (above.period, above.active == 0 || parent == 0);
        let begin = self.has(Rule::Begin);
        let of = &mut self.nodes[node];
        of.period += 1;
        of.parent_period = period + u64::from(idle);
        of.adjusted = 0;
        let running = of.share.as_mut().map(|run| run.begin(clock, from, total));
        of.at = match running {
            Some(running) if !begin => running.time_of(total).max(from),
            _ => from,
        };
    }

    fn update_deadline(&mut self, leaf: usize) {
        let Node { served, real_time, ref packets, .. } = self.nodes[leaf];
        let Some(Run { running: Some(running), .. }) = real_time else { return };
        let next = u64::from(packets.front().map_or(0, Packet::bytes));
        let (eligible, deadline) = (running.eligible().time_of(served), running.time_of(served + next));
        self.nodes[leaf].deadline = deadline;
        let same = self.coming.contains(&leaf) && self.nodes[leaf].eligible == eligible;
        if same {
            return;
        }
        self.nodes[leaf].eligible = eligible;
        self.coming.retain(|other| *other != leaf);
        let place = self.coming.partition_point(|other| self.nodes[*other].eligible <= eligible);
        self.coming.insert(place, leaf);
    }

    /// The leaf that sends next, and true if its deadline decided.
    fn choose(&mut self, now: u64) -> Option<(usize, bool)> {
        let ticks = self.has(Rule::Ticks);
        let eligible = self.coming.iter().filter(|leaf| self.nodes[**leaf].eligible <= now);
        // The first of equal deadlines: by eligible time in Linux, by number in the Rust discipline.
        let urgent =
            eligible.min_by_key(|leaf| (self.nodes[**leaf].deadline, if ticks { 0 } else { **leaf }));
        if let Some(leaf) = urgent {
            return Some((*leaf, true));
        }
        if self.nodes[0].active == 0 {
            return None;
        }
        self.release(0, now).map(|leaf| (leaf, false))
    }

    fn choose_below(&mut self, parent: usize, child: usize) {
        self.nodes[parent].chosen = self.nodes[parent].chosen.max(self.nodes[child].at);
    }

    /// The leaf with the smallest virtual times. Classes whose limits permit a packet are free again, and
    /// those below which all are held back are held back, too.
    fn release(&mut self, node: usize, now: u64) -> Option<usize> {
        if self.nodes[node].children == 0 {
            return Some(node);
        }
        loop {
            for child in self.nodes[node].order.clone() {
                if self.nodes[child].held_until.is_some_and(|until| until <= now) {
                    self.nodes[child].held_until = None;
                }
            }
            let free = |child: &&usize| self.nodes[**child].held_until.is_none();
            let child = self.nodes[node].order.iter().find(free).copied()?;
            if let Some(leaf) = self.release(child, now) {
                self.choose_below(node, child);
                return Some(leaf);
            }
            let below = self.nodes[child].order.iter().filter_map(|below| self.nodes[*below].held_until);
            self.nodes[child].held_until = Some(below.min().unwrap_or(u64::MAX));
        }
    }

    /// Counts a packet of a class.
    fn serve(&mut self, node: usize, bytes: u32, now: u64) {
        let parent = self.nodes[node].parent;
        let least = if self.has(Rule::Chosen) {
            self.nodes[parent].chosen
        } else {
            self.least_free(parent).unwrap_or(0)
        };
        let forgotten = self.has(Rule::Forgotten);
        let of = &mut self.nodes[node];
        let Some(run) = &mut of.share else { return };
        of.total += u64::from(bytes);
        if of.active == 0 {
            return;
        }
        let at = run.time_of(of.total) + of.adjusted;
        of.at = if forgotten { at } else { of.at.max(at) };
        if at < least {
            match (forgotten, &mut run.running) {
                (false, Some(running)) => *running = running.delayed(least - at),
                _ => of.adjusted += least - at,
            }
            of.at = of.at.max(least);
        }
        if let Some(limit) = &of.limit {
            of.own_limit = limit.time_of(of.total);
        }
        of.held_until = (of.own_limit > now).then_some(of.own_limit);
        let at = of.at;
        self.nodes[parent].newest = self.nodes[parent].newest.max(at);
        self.place(node);
    }

    /// A leaf has no packet.
    fn deactivate(&mut self, leaf: usize) {
        self.coming.retain(|other| *other != leaf);
        if self.nodes[leaf].share.is_none() {
            self.nodes[leaf].active = 0;
            return;
        }
        let mut node = leaf;
        while node != 0 {
            let Node { parent, at, .. } = self.nodes[node];
            self.nodes[node].active -= 1;
            if self.nodes[node].active > 0 {
                return;
            }
            self.nodes[parent].latest = self.nodes[parent].latest.max(at);
            self.nodes[parent].order.retain(|other| *other != node);
            node = parent;
        }
        self.nodes[0].active -= 1;
    }
}

impl Qdisc<u64> for Model {
    fn enqueue(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        let reading = self.readings.pop();
        let mark = Some(u64::from(pkt.meta.class));
        let Some(leaf) = self.nodes.iter().position(|node| node.mark == mark) else {
            return cx.drop(pkt, DropReason::NoClass);
        };
        self.backlog.add(pkt.bytes());
        self.nodes[leaf].packets.push_back(pkt);
        if self.nodes[leaf].packets.len() == 1 {
            let now = self.clock.of(cx.now().as_ps());
            let later = reading.filter(|reading| self.has(Rule::Twice) && *reading > 0);
            let later = later.map_or(now, |ns| self.clock.of(ns.saturating_mul(1000)));
            self.activate(leaf, now, later);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, u64>) -> Next<u64> {
        self.readings.pop();
        let now = self.clock.of(cx.now().as_ps());
        let Some((leaf, by_deadline)) = self.choose(now) else { return Next::Empty };
        let pkt = self.nodes[leaf].packets.pop_front().expect("an active leaf has a packet");
        self.backlog.sub(pkt.bytes());
        if by_deadline {
            self.nodes[leaf].served += u64::from(pkt.bytes());
        }
        if !self.nodes[leaf].packets.is_empty() {
            self.update_deadline(leaf);
        }
        let mut node = leaf;
        while node != 0 {
            self.serve(node, pkt.bytes(), now);
            node = self.nodes[node].parent;
        }
        if self.nodes[leaf].packets.is_empty() {
            self.deactivate(leaf);
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, u64>) {
        for node in &mut self.nodes {
            node.packets.drain(..).for_each(|pkt| cx.drop(pkt, DropReason::Reset));
        }
        self.backlog = Backlog::ZERO;
    }
}
