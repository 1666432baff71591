//! Hierarchical token bucket: classes in a tree, each with a guaranteed rate and a largest rate, that lend
//! each other what they do not use.
//!
//! # Principles
//! - A leaf of the tree has a queue: any discipline. Filters choose the leaf of a packet; the first match
//!   decides.
//! - Each class has two buckets: `rate`, which is its own, and `ceil`, which it cannot exceed. A class with
//!   credit in both may send. Without credit in the first it borrows from the class above, if that may send
//!   or can borrow itself. Without credit in the second it waits.
//! - A packet is charged to the rate of the lender and of all classes above it, and to the ceil of every
//!   class on the way. So a class that lends keeps its own guarantee.
//! - Classes that use their own rate go before those that borrow, since lenders of lower levels go first. At
//!   one level the priorities decide (`prio`, 0 first), and within a priority classes take turns of `quantum`
//!   bytes.
//! - Buckets may go into debt: a class with any credit sends a whole packet. Over any interval of length t a
//!   class sends at most `ceil` t + `cburst` and one packet.
//! - A range of names, as in `name home[1-200]`, stands for as many classes. Below a range of classes, the
//!   names of a range are divided among them, and a filter with a range of hosts has one host for each class.
//!
//! # Deviations
//! - In Linux a class has a number such as 1:10, and filters are set up by separate commands. Here a class
//!   has a name and its filters. A tree is written as it is nested, so it has no cycles.
//! - In Linux a filter may be at any class. Here the filters of an inner class hold for all classes below, in
//!   addition to their own.
//! - `ceil` above the parent's is refused; in Linux it has no effect.
//! - A leaf that holds its packets back, as a shaper does, is passed over until they may leave.
//! - Default bursts are an MTU and 100 bytes, which is tc's default on a kernel with precise timers. Lengths
//!   are IP lengths.
//! - Classes with the same turn follow each other in the order in which they are written; in Linux by their
//!   numbers.
//!
//! # Cost
//! - Two multiplications for each class above the packet, the look-up of its class, and the cost of the leaf.
//!   Classes whose mode will change are in a heap. Neither depends on the number of other classes, except the
//!   heap by its logarithm.
//!
//! # References
//! - Linux: tc-htb(8).
//! - Devera, "Hierarchical token bucket theory", 2002: modes, levels, lenders.
//! - Floyd and Jacobson, "Link-sharing and Resource Management Models for Packet Networks", 1995:
//!   link-sharing goals.

mod bucket;
mod changes;
mod shapes;
#[cfg(test)]
mod tests;
mod tree;

use std::any::Any;

use giveway_qdisc::blocks::{FlowHeap, Queue};
use giveway_qdisc::{
    Backlog, Bytes, ClassState, Cx, DropReason, FlowTable, Guarantee, Invalid, LinkContext, Meta, Next,
    Packet, Packets, Properties, Qdisc, Rate, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::shapes::shapes;
use self::tree::Tree;
use crate::common::classes::nested::{self, leaf_specs};
use crate::common::classes::{ClassConfig, ClassService, Filter, Nested, Plan};
use crate::{Advice, Discipline, Spec};

/// Parameters of `htb`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-idle" = ["direct_packets_stat *"]))]
pub struct Config {
    /// The leaf of packets that match no filter, by its name or its path such as "all/bulk". Without it they
    /// leave before all others, at the rate of the link.
    pub default: Option<String>,
    /// By this number the rate of a class, in bytes per second, is divided for its quantum.
    pub r2q: u32,
    /// Capacity for packets without a class.
    pub direct_qlen: Packets,
    /// The classes directly at the link.
    pub classes: Vec<Class>,
}

impl Default for Config {
    fn default() -> Config {
        Config { default: None, r2q: 10, direct_qlen: Packets(1000), classes: Vec::new() }
    }
}

/// A class of `htb`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "HtbClass")]
pub struct Class {
    /// Its name, or a range of names, "home[1-200]", for as many classes.
    pub name: String,
    /// The guaranteed rate.
    pub rate: Option<Rate>,
    /// The rate that it cannot exceed. By default its rate.
    pub ceil: Option<Rate>,
    /// Bytes that it may send at once, beyond its rate. By default an MTU and 100 bytes.
    pub burst: Option<Bytes>,
    /// Bytes that it may send at once, beyond its ceil. By default an MTU and 100 bytes.
    pub cburst: Option<Bytes>,
    /// Priority among classes that may send, 0 to 7; 0 goes first.
    pub prio: u8,
    /// Bytes of its turn among classes that may send. By default its rate by r2q.
    pub quantum: Option<Bytes>,
    /// The filters: a packet of this class matches at least one.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// The discipline of a class without classes below. By default a fifo.
    pub leaf: Option<Box<Spec>>,
    /// The classes below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
}

impl Discipline for Config {
    const SUMMARY: &'static str = "hierarchical token bucket: a tree of classes that lend each other rate";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Htb<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Htb<P>, Invalid> {
        let plan = self.plan(context)?;
        let shapes = shapes(&plan, self, context)?;
        Ok(Htb {
            tree: Tree::new(&shapes),
            rates: shapes.iter().map(|shape| (shape.rate, shape.ceil)).collect(),
            classes: Nested::build(plan, |class| Some(shapes[class].ceil), context)?,
            asleep: FlowHeap::with_capacity(0),
            direct: Queue::growing(),
            direct_most: self.direct_qlen.0,
            direct_sent: 0,
        })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        let work_conserving = self.classes.is_empty();
        let guarantee = Guarantee::Classes;
        Properties { work_conserving, guarantee, ..nested::properties(&self.classes, context) }
    }

    fn lookahead(&self) -> usize {
        nested::lookahead(&self.classes)
    }

    fn variants() -> Vec<Config> {
        [
            "htb default b classes [(name a rate 2mbit ceil 6mbit prio 1 match [(class 1)]) (name b rate 3mbit)]",
            "htb default all/rest classes [(name all rate 4mbit burst 3kb classes [(name one rate 1mbit ceil 4mbit \
             match [(class 0) (class 5)] leaf (fq_codel limit 20p)) (name rest rate 3mbit ceil 4mbit quantum 1500b \
             leaf (tbf rate 2mbit burst 2kb))])]",
            "htb classes [(name site[1-2] rate 1mbit ceil 9mbit classes [(name dept[1-6] rate 150kbit ceil 5mbit \
             prio 3 match [(to [0-5])] leaf (drr limit 30p))])]",
        ]
        .map(|text| match text.parse() {
            Ok(Spec::htb(config)) => config,
            other => panic!("the constant is a tree: {other:?}"),
        })
        .into()
    }

    fn class_of(&self, like: &Meta, context: &LinkContext) -> Option<u32> {
        self.plan(context).ok()?.class_of(like)
    }

    fn class_service(&self, class: u32, context: &LinkContext) -> Result<ClassService, String> {
        let plan = self.plan(context).map_err(|invalid| invalid.message)?;
        let shapes = shapes(&plan, self, context).map_err(|invalid| invalid.message)?;
        shapes::service(&plan, &shapes, class as usize, context)
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Ok(plan) = self.plan(context)
            && let Ok(shapes) = shapes(&plan, self, context)
        {
            warnings.extend(plan.warnings.iter().cloned());
            if plan.default.is_none() && !shapes.is_empty() {
                warnings.push(
                    "packets that match no filter leave at the rate of the link, before all others: name a class in \
                     \"default\""
                        .to_owned(),
                );
            }
            warnings.extend(shapes::warnings(&plan, &shapes, context));
        }
        warnings.extend(leaf_specs(&self.classes).into_iter().flat_map(|spec| spec.warnings(context)));
        warnings
    }

    fn advice(&self, largest: Bytes, context: &LinkContext) -> Vec<Advice> {
        nested::advice(&self.classes, largest, context)
    }
}

impl Config {
    fn plan(&self, context: &LinkContext) -> Result<Plan<'_, Class>, Invalid> {
        Plan::new(&self.classes, self.default.as_deref(), &context.hosts)
    }
}

impl ClassConfig for Class {
    fn name(&self) -> &str {
        &self.name
    }
    fn filters(&self) -> &[Filter] {
        &self.filters
    }
    fn leaf(&self) -> Option<&Spec> {
        self.leaf.as_deref()
    }
    fn classes(&self) -> &[Class] {
        &self.classes
    }
}

/// Hierarchical token bucket.
pub struct Htb<P> {
    tree: Tree,
    classes: Nested<P>,
    /// Rate and ceil of each class.
    rates: Vec<(Rate, Rate)>,
    /// Classes whose leaves hold their packets back, by the time at which they release one.
    asleep: FlowHeap<Time>,
    /// Packets without a class.
    direct: Queue<P>,
    direct_most: u64,
    direct_sent: u64,
}

impl<P: 'static> Qdisc<P> for Htb<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let Some(class) = self.classes.of(&pkt.meta, cx) else {
            return self.enqueue_direct(pkt, cx);
        };
        if !self.classes.enqueue(class, pkt, cx) {
            self.rests(class);
        } else if !self.tree.is_active(class) {
            // An arrival may change the time at which a leaf releases a packet.
            self.asleep.remove(class);
            self.tree.activate(class, cx.now());
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let now = cx.now();
        if let Some(pkt) = self.direct.pop() {
            self.direct_sent += 1;
            return Next::Packet(pkt);
        }
        self.tree.advance(now);
        while let Some((at, class)) = self.asleep.first()
            && at <= now
        {
            self.asleep.pop();
            self.tree.activate(class, now);
        }
        while let Some(choice) = self.tree.choose() {
            let class = choice.class;
            match self.classes.dequeue(class, cx) {
                Next::Packet(pkt) => {
                    self.tree.charge(choice, pkt.bytes(), now);
                    if self.classes.is_empty(class) {
                        self.rests(class);
                    }
                    return Next::Packet(pkt);
                }
                Next::At(at) => {
                    self.rests(class);
                    self.asleep.set(class, at);
                }
                Next::Empty => self.rests(class),
            }
        }
        if self.classes.backlog().packets == 0 {
            return Next::Empty;
        }
        let wake = match (self.tree.next_change(), self.asleep.first()) {
            (Some(change), Some((release, _))) => Some(change.min(release)),
            (change, release) => change.or(release.map(|(at, _)| at)),
        };
        wake.map_or(Next::Empty, Next::At)
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog().plus(self.direct.backlog())
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.direct.reset(cx);
        self.direct_sent = 0;
        self.classes.reset(cx);
        self.tree.reset();
        self.asleep.clear();
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.classes.rate_changed(rate, now);
    }

    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let old = old.as_any_mut().and_then(|old| old.downcast_mut::<Htb<P>>());
        let Some(old) = old else { return };
        let mut homeless = |pkt, _: &mut Cx<'_, P>| old.direct.push(pkt);
        let both = self.classes.take_over(&mut old.classes, cx, &mut homeless);
        self.tree.take_over(&old.tree, &both, cx.now());
        for class in self.classes.busy() {
            self.tree.activate(class, cx.now());
        }
        self.direct_sent = old.direct_sent;
        while let Some(pkt) = old.direct.pop() {
            self.enqueue_direct(pkt, cx);
        }
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn flow_table(&self) -> FlowTable {
        self.classes.flow_table()
    }

    /// Packets that had no class, the number of classes, and the memory of the schedule in bytes.
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("direct_packets_sent", self.direct_sent as f64);
        visit("classes", self.classes.len() as f64);
        visit("tree_bytes", self.tree.bytes() as f64);
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        let complete = |class: u32, state: &mut ClassState| {
            let (rate, ceil) = self.rates[class as usize];
            (state.rate, state.ceil) = (Some(rate), Some(ceil));
            state.borrowed = self.tree.borrowed(class);
        };
        self.classes.visit(complete, visit);
    }
}

impl<P> Htb<P> {
    /// A packet without a class leaves before all others.
    fn enqueue_direct(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if self.direct.len() as u64 >= self.direct_most {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        self.direct.push(pkt);
    }

    /// A class has no packets to send.
    fn rests(&mut self, class: u32) {
        if self.tree.is_active(class) {
            self.tree.deactivate(class);
        }
        self.asleep.remove(class);
    }
}
