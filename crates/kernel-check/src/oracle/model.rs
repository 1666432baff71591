//! A second, simple implementation of CoDel and FQ-CoDel, with each rule in which the kernel's differs from
//! ours to be chosen.
//!
//! It is the experiment that explains a difference. With ours everywhere it must do what the Rust discipline
//! does, with the kernel's everywhere what the kernel did; and a rule whose choice changes nothing explains
//! nothing. Times are in the kernel's steps of 1,024 ns.

use std::collections::VecDeque;

use giveway_qdisc::{Backlog, Cx, DropReason, Next, Packet, Qdisc};

/// Nanoseconds of a step of the kernel's clock for CoDel.
pub const STEP_NS: u64 = 1024;

/// A rule in which the kernel's way is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The n-th drop follows after interval/sqrt(n), in the kernel with a root of 16 bits that makes one
    /// Newton step when n changes; ours is exact.
    Root,
    /// Late is who is late for longer than an interval; ours, and RFC 8289's, who is for as long as that. The
    /// kernel's steps make it happen.
    Longer,
    /// "No more than an MTU stays behind" looks at all queues together; ours at the flow's own.
    Behind,
    /// A new flow that is empty leaves the lists at once when no old one waits; ours becomes an old one (RFC
    /// 8290, 4.2).
    Alone,
    /// A batch ends with half the bytes of the fattest queue; ours with half its packets (RFC 8290, 4.1).
    Half,
    /// A batch raises CoDel's count; ours does not.
    Count,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 6] = [Rule::Root, Rule::Longer, Rule::Behind, Rule::Alone, Rule::Half, Rule::Count];

    /// In a few words, as the kernel has it.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Root => "root by one Newton step",
            Rule::Longer => "late for longer than an interval",
            Rule::Behind => "an MTU behind of all queues",
            Rule::Alone => "an empty new flow leaves at once",
            Rule::Half => "half the bytes",
            Rule::Count => "a batch counts for CoDel",
        }
    }
}

/// Parameters of the model.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Packets that it holds.
    pub limit: u64,
    /// Queues; with none it is CoDel alone, and refuses what is too much.
    pub flows: u32,
    /// Bytes per turn.
    pub quantum: i64,
    /// The most packets dropped at once.
    pub batch: usize,
    /// In steps.
    pub target: u64,
    /// In steps.
    pub interval: u64,
    /// Bytes.
    pub mtu: u64,
}

/// One queue.
#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<(u64, Packet<u64>)>,
    bytes: u64,
    deficit: i64,
    listed: bool,
    /// 0: not above.
    first_above: u64,
    /// In steps, with 20 more binary digits where the root is exact.
    drop_next: u128,
    count: u64,
    last_count: u64,
    /// 1/sqrt(count), 16 binary digits.
    root: u64,
    dropping: bool,
}

/// Digits of `drop_next` behind the point.
const FINE: u32 = 20;

/// The queues.
pub struct Model {
    setup: Setup,
    rules: Vec<Rule>,
    queues: Vec<Queue>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    held: Backlog,
}

impl Model {
    /// Empty queues under these rules of the kernel's, and ours for the rest.
    pub fn new(setup: Setup, rules: &[Rule]) -> Model {
        let queues = (0..setup.flows.max(1)).map(|_| Queue::default()).collect();
        Model {
            setup,
            rules: rules.to_vec(),
            queues,
            new: VecDeque::new(),
            old: VecDeque::new(),
            held: Backlog::ZERO,
        }
    }

    fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    fn pop(&mut self, queue: usize) -> Option<(u64, Packet<u64>)> {
        let of = &mut self.queues[queue];
        let (arrived, pkt) = of.packets.pop_front()?;
        of.bytes -= u64::from(pkt.bytes());
        self.held.sub(pkt.bytes());
        Some((arrived, pkt))
    }

    /// The head, and whether it may be dropped.
    fn head(&mut self, queue: usize, now: u64) -> Option<(Packet<u64>, bool)> {
        let Some((arrived, pkt)) = self.pop(queue) else {
            self.queues[queue].first_above = 0;
            return None;
        };
        let longer = u64::from(self.has(Rule::Longer));
        let behind = if self.has(Rule::Behind) { self.held.bytes } else { self.queues[queue].bytes };
        let Setup { target, mtu, interval, .. } = self.setup;
        let of = &mut self.queues[queue];
        let mut late = false;
        if now.saturating_sub(arrived) < target || behind <= mtu {
            of.first_above = 0;
        } else if of.first_above == 0 {
            of.first_above = now + interval;
        } else {
            late = now >= of.first_above + longer;
        }
        Some((pkt, late))
    }

    /// The count is what it is; the root follows by one step, x (3 - n x^2) / 2 with 16 digits. When the
    /// count has jumped the difference is below zero, which in the kernel's 64 bits without a sign is a large
    /// number: the root is anything then.
    fn follow(&mut self, queue: usize) {
        let of = &mut self.queues[queue];
        let quarter = (3u64 << 32).wrapping_sub(of.count.wrapping_mul(of.root * of.root)) >> 2;
        of.root = quarter.wrapping_mul(of.root << 16) >> 47 & 0xffff;
    }

    /// The wait until the next drop.
    fn wait(&self, queue: usize) -> u128 {
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
            while self.queues[queue].dropping && fine >= self.queues[queue].drop_next {
                self.queues[queue].count += 1;
                self.follow(queue);
                cx.drop(pkt, DropReason::Congested);
                let Some(head) = self.head(queue, now) else {
                    self.queues[queue].dropping = false;
                    return None;
                };
                (pkt, late) = head;
                let wait = self.wait(queue);
                let of = &mut self.queues[queue];
                of.dropping = late;
                if late {
                    of.drop_next += wait;
                }
            }
        } else {
            cx.drop(pkt, DropReason::Congested);
            // Under our rules more than an MTU stays behind; under the kernel's it may have been the only
            // one, and still begins the state.
            let next = self.head(queue, now);
            let sixteen = u128::from(16 * self.setup.interval) << FINE;
            let of = &mut self.queues[queue];
            of.dropping = true;
            let lately = of.count - of.last_count;
            if lately > 1 && fine < of.drop_next + sixteen {
                of.count = lately;
                self.follow(queue);
            } else {
                of.count = 1;
                of.root = 0xffff;
            }
            let wait = self.wait(queue);
            let of = &mut self.queues[queue];
            of.last_count = of.count;
            of.drop_next = fine + wait;
            pkt = next?.0;
        }
        Some(pkt)
    }

    fn drop_from_the_fattest(&mut self, cx: &mut Cx<'_, u64>) {
        let most = self.queues.iter().map(|queue| queue.bytes).max().unwrap_or(0);
        let fattest =
            self.queues.iter().position(|queue| queue.bytes == most).expect("the most is one of them");
        let packets = self.queues[fattest].packets.len();
        let (mut dropped, mut bytes) = (0, 0);
        loop {
            let Some((_, pkt)) = self.pop(fattest) else { return };
            bytes += u64::from(pkt.bytes());
            dropped += 1;
            cx.drop(pkt, DropReason::Pushout);
            let half = if self.has(Rule::Half) { bytes >= most / 2 } else { dropped >= packets / 2 };
            if half || dropped >= self.setup.batch {
                break;
            }
        }
        if self.has(Rule::Count) {
            self.queues[fattest].count += dropped as u64;
        }
    }
}

impl Qdisc<u64> for Model {
    fn enqueue(&mut self, pkt: Packet<u64>, cx: &mut Cx<'_, u64>) {
        if self.setup.flows == 0 && self.held.packets >= self.setup.limit {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        let now = steps(cx);
        let queue = if self.setup.flows == 0 { 0 } else { pkt.meta.flow.0 as usize };
        self.held.add(pkt.bytes());
        let of = &mut self.queues[queue];
        of.bytes += u64::from(pkt.bytes());
        of.packets.push_back((now, pkt));
        if !of.listed {
            of.listed = true;
            of.deficit = self.setup.quantum;
            self.new.push_back(queue);
        }
        while self.held.packets > self.setup.limit {
            self.drop_from_the_fattest(cx);
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
        self.held
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
