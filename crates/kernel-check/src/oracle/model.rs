//! A second, simple implementation of CoDel and FQ-CoDel, which can follow each rule of Linux that differs
//! from the Rust disciplines.
//!
//! It tests the explanation of a difference. Without rules of Linux it must decide like the Rust discipline,
//! and with all of them like Linux. A rule that changes no decision is not part of the explanation. Times are
//! in steps of 1,024 ns, as in Linux.

use std::collections::VecDeque;

use giveway_qdisc::{Backlog, Cx, DropReason, Next, Packet, Qdisc};

/// Step of the clock of CoDel in Linux, in nanoseconds.
pub const STEP_NS: u64 = 1024;

/// A rule of Linux that differs from the Rust discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The interval before the n-th drop is interval/sqrt(n). Linux computes 1/sqrt(n) with 16 bits, by one
    /// Newton step for each change of n; the Rust discipline computes it exactly.
    Root,
    /// Dropping starts when the sojourn time has been above the target for more than an interval; in the Rust
    /// discipline and in RFC 8289, for at least an interval. With the steps of Linux both occur.
    Longer,
    /// No packet is dropped if the backlog is at most an MTU. Linux compares the backlog of all queues, the
    /// Rust discipline the backlog of the flow.
    Behind,
    /// A new flow that becomes empty is removed from the lists if there is no old flow; in the Rust
    /// discipline it becomes an old flow (RFC 8290, 4.2).
    Alone,
    /// A batch of drops ends after half the bytes of the largest queue; in the Rust discipline after half its
    /// packets (RFC 8290, 4.1).
    Half,
    /// A batch of drops increases the count of CoDel; in the Rust discipline it does not.
    Count,
    /// One call drops at most 256 packets. If more are due, as after a gap of the link, the next drop follows
    /// an interval/sqrt(n) after the call; in the Rust discipline and in RFC 8289 the call drops them all.
    Bound,
}

/// Largest number of packets that CoDel in Linux 7.2 drops in one call.
const BOUND: usize = 256;

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 7] =
        [Rule::Root, Rule::Longer, Rule::Behind, Rule::Alone, Rule::Half, Rule::Count, Rule::Bound];

    /// Short name of the rule of Linux.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Root => "root by one Newton step",
            Rule::Longer => "drops after more than an interval",
            Rule::Behind => "MTU compared with all queues",
            Rule::Alone => "empty new flow removed at once",
            Rule::Half => "batch of half the bytes",
            Rule::Count => "batch increases the count",
            Rule::Bound => "at most 256 drops in a call",
        }
    }
}

/// Parameters of the model.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Largest backlog, in packets.
    pub limit: u64,
    /// Number of queues. Zero is CoDel with one queue, which drops arrivals above the limit.
    pub flows: u32,
    /// Bytes per round and flow.
    pub quantum: i64,
    /// Largest number of packets of a batch of drops.
    pub batch: usize,
    /// Target of CoDel, in steps.
    pub target: u64,
    /// Interval of CoDel, in steps.
    pub interval: u64,
    /// Length of the largest packet, in bytes.
    pub mtu: u64,
}

/// One queue.
#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<(u64, Packet<u64>)>,
    bytes: u64,
    deficit: i64,
    listed: bool,
    /// Time at which dropping may start; 0 if the sojourn time is below the target.
    first_above: u64,
    /// Time of the next drop, in steps with [`FINE`] fractional bits.
    drop_next: u128,
    count: u64,
    last_count: u64,
    /// 1/sqrt(count), with 16 fractional bits.
    root: u64,
    dropping: bool,
}

/// Number of fractional bits of `drop_next`.
const FINE: u32 = 20;

/// CoDel or FQ-CoDel with some rules of Linux.
pub struct Model {
    setup: Setup,
    rules: Vec<Rule>,
    queues: Vec<Queue>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    backlog: Backlog,
}

impl Model {
    /// Creates an empty model with these rules of Linux; the others come from the Rust discipline.
    pub fn new(setup: Setup, rules: &[Rule]) -> Model {
        let queues = (0..setup.flows.max(1)).map(|_| Queue::default()).collect();
        Model {
            setup,
            rules: rules.to_vec(),
            queues,
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::ZERO,
        }
    }

    fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    fn pop(&mut self, queue: usize) -> Option<(u64, Packet<u64>)> {
        let of = &mut self.queues[queue];
        let (arrived, pkt) = of.packets.pop_front()?;
        of.bytes -= u64::from(pkt.bytes());
        self.backlog.sub(pkt.bytes());
        Some((arrived, pkt))
    }

    /// Removes the head of a queue. The second result is true if CoDel may drop it.
    fn head(&mut self, queue: usize, now: u64) -> Option<(Packet<u64>, bool)> {
        let Some((arrived, pkt)) = self.pop(queue) else {
            self.queues[queue].first_above = 0;
            return None;
        };
        let longer = u64::from(self.has(Rule::Longer));
        let after = if self.has(Rule::Behind) { self.backlog.bytes } else { self.queues[queue].bytes };
        let Setup { target, mtu, interval, .. } = self.setup;
        let of = &mut self.queues[queue];
        let mut late = false;
        if now.saturating_sub(arrived) < target || after <= mtu {
            of.first_above = 0;
        } else if of.first_above == 0 {
            of.first_above = now + interval;
        } else {
            late = now >= of.first_above + longer;
        }
        Some((pkt, late))
    }

    /// Updates the root by one Newton step, x (3 - n x^2) / 2, with 16 fractional bits. After a jump of the
    /// count the difference is negative, which wraps to a large number in the unsigned arithmetic of Linux,
    /// so the root can have any value.
    fn update_root(&mut self, queue: usize) {
        let of = &mut self.queues[queue];
        let quarter = (3u64 << 32).wrapping_sub(of.count.wrapping_mul(of.root * of.root)) >> 2;
        of.root = quarter.wrapping_mul(of.root << 16) >> 47 & 0xffff;
    }

    /// Interval until the next drop.
    fn drop_interval(&self, queue: usize) -> u128 {
        let Queue { root, count, .. } = self.queues[queue];
        let interval = u128::from(self.setup.interval);
        if self.has(Rule::Root) {
            return ((interval * u128::from(root)) >> 16) << FINE;
        }
        ((interval << FINE) * (interval << FINE) / u128::from(count.max(1))).isqrt()
    }

    fn codel(&mut self, queue: usize, now: u64, cx: &mut Cx<'_, u64>) -> Option<Packet<u64>> {
        let fine = u128::from(now) << FINE;
        let Some((mut pkt, mut late)) = self.head(queue, now) else {
            self.queues[queue].dropping = false;
            return None;
        };
        if !late {
            self.queues[queue].dropping = false;
        } else if self.queues[queue].dropping {
            let mut drops = 0;
            while self.queues[queue].dropping && fine >= self.queues[queue].drop_next {
                if self.has(Rule::Bound) && drops == BOUND {
                    self.queues[queue].drop_next = fine + self.drop_interval(queue);
                    break;
                }
                drops += 1;
                self.queues[queue].count += 1;
                self.update_root(queue);
                cx.drop(pkt, DropReason::Congested);
                let Some(head) = self.head(queue, now) else {
                    self.queues[queue].dropping = false;
                    return None;
                };
                (pkt, late) = head;
                let interval = self.drop_interval(queue);
                let of = &mut self.queues[queue];
                of.dropping = late;
                if late {
                    of.drop_next += interval;
                }
            }
        } else {
            cx.drop(pkt, DropReason::Congested);
            // With the rule `Behind` this may have been the only packet of the queue, and the dropping state
            // still begins; without it the queue has more than an MTU left.
            let next = self.head(queue, now);
            let sixteen = u128::from(16 * self.setup.interval) << FINE;
            let of = &mut self.queues[queue];
            of.dropping = true;
            let lately = of.count - of.last_count;
            if lately > 1 && fine < of.drop_next + sixteen {
                of.count = lately;
                self.update_root(queue);
            } else {
                of.count = 1;
                of.root = 0xffff;
            }
            let interval = self.drop_interval(queue);
            let of = &mut self.queues[queue];
            of.last_count = of.count;
            of.drop_next = fine + interval;
            pkt = next?.0;
        }
        Some(pkt)
    }

    fn drop_from_the_largest(&mut self, cx: &mut Cx<'_, u64>) {
        let most = self.queues.iter().map(|queue| queue.bytes).max().unwrap_or(0);
        let largest =
            self.queues.iter().position(|queue| queue.bytes == most).expect("one queue has the maximum");
        let packets = self.queues[largest].packets.len();
        let (mut dropped, mut bytes) = (0, 0);
        loop {
            let Some((_, pkt)) = self.pop(largest) else { return };
            bytes += u64::from(pkt.bytes());
            dropped += 1;
            cx.drop(pkt, DropReason::Pushout);
            let half = if self.has(Rule::Half) { bytes >= most / 2 } else { dropped >= packets / 2 };
            if half || dropped >= self.setup.batch {
                break;
            }
        }
        if self.has(Rule::Count) {
            self.queues[largest].count += dropped as u64;
        }
    }
}

impl Qdisc<u64> for Model {
    fn enqueue(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        if self.setup.flows == 0 && self.backlog.packets >= self.setup.limit {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        let now = steps(cx);
        let queue = if self.setup.flows == 0 { 0 } else { pkt.meta.flow.0 as usize };
        self.backlog.add(pkt.bytes());
        let of = &mut self.queues[queue];
        of.bytes += u64::from(pkt.bytes());
        of.packets.push_back((now, pkt));
        if !of.listed {
            of.listed = true;
            of.deficit = self.setup.quantum;
            self.new.push_back(queue);
        }
        while self.backlog.packets > self.setup.limit {
            self.drop_from_the_largest(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, u64>) -> Next<u64> {
        let now = steps(cx);
        if self.setup.flows == 0 {
            return self.codel(0, now, cx).map_or(Next::Empty, Next::Packet);
        }
        loop {
            let is_new = !self.new.is_empty();
            let Some(queue) = self.new.front().or(self.old.front()).copied() else { return Next::Empty };
            if self.queues[queue].deficit <= 0 {
                self.queues[queue].deficit += self.setup.quantum;
                if is_new {
                    self.new.pop_front()
                } else {
                    self.old.pop_front()
                };
                self.old.push_back(queue);
                continue;
            }
            if let Some(pkt) = self.codel(queue, now, cx) {
                self.queues[queue].deficit -= i64::from(pkt.bytes());
                return Next::Packet(pkt);
            }
            if is_new {
                self.new.pop_front()
            } else {
                self.old.pop_front()
            };
            if is_new && !(self.has(Rule::Alone) && self.old.is_empty()) {
                self.old.push_back(queue);
            } else {
                self.queues[queue].listed = false;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, u64>) {
        for queue in 0..self.queues.len() {
            while let Some((_, pkt)) = self.pop(queue) {
                cx.drop(pkt, DropReason::Reset);
            }
        }
        *self = Model::new(self.setup, &self.rules);
    }
}

fn steps(cx: &Cx<'_, u64>) -> u64 {
    cx.now().as_ps() / 1000 / STEP_NS
}
