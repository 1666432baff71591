//! Hierarchical fair service curve: classes in a tree, whose delay and rate are chosen apart from each other.
//!
//! # Principles
//! - A service curve says how many bytes a class must have been served so long after it became busy. It has
//!   two pieces: the slope `m1` for the time `d`, then `m2`. A steep first piece gives short delays to a
//!   class with a low rate.
//! - *Real-time criterion*: each packet of a leaf with a curve `rt` has a deadline, by which the curve has
//!   its bytes, and an eligible time, from which it must be served lest deadlines be missed later. Of the
//!   eligible packets the one with the earliest deadline leaves first.
//! - *Link-share criterion*: while no packet is eligible, classes below one parent share its service in
//!   proportion to their curves `ls`, by virtual times, from the top of the tree down to a leaf. This service
//!   does not count for deadlines, so a class is not punished for what others left.
//! - *Upper limit*: a class with a curve `ul` gets no more than this by link sharing.
//! - Curves of a running class are the minimum of the curves that started with its busy periods, so that an
//!   idle class accumulates no credit.
//!
//! # Deviations
//! - In Linux a class has a number such as 1:10, and filters are set up by separate commands. Here a class
//!   has a name and its filters.
//! - Linux schedules by the length of the packet that it finds at the head of a leaf. Here that packet has
//!   left the leaf's discipline, so packets that arrive in the meantime come after it.
//! - A class that starts to share gets the mean of the smallest and of the latest virtual time of the others,
//!   as in the paper; where it has been ahead of both, it keeps its own.
//! - Real-time curves of inner classes have no effect and are refused.
//!
//! # Cost
//! - A heap of the leaves, by eligible times and deadlines, and one for each class with classes below, by
//!   virtual times: logarithmic in their numbers. One or two divisions for each class above the packet.
//!
//! # References
//! - Stoica, Zhang and Ng, "A Hierarchical Fair Service Curve Algorithm for Link-Sharing, Real-Time and
//!   Priority Services", SIGCOMM 1997; section numbers refer to the journal version, 2000.
//! - Linux: tc-hfsc(7) and tc-hfsc(8), for the words of a curve.

mod curve;
mod schedule;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::LazyLock;

use giveway_qdisc::blocks::{FlowHeap, Head};
use giveway_qdisc::{
    Backlog, Bytes, ClassState, Cx, DropReason, FlowTable, Guarantee, Invalid, LinkContext, Meta, Next,
    Packet, Properties, Qdisc, Rate, Span, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::curve::Curve;
use self::schedule::{Schedule, Shape};
use crate::common::classes::nested::{self, leaf_specs};
use crate::common::classes::plan::{Planned, wrong};
use crate::common::classes::service::{in_order, on_link};
use crate::common::classes::{ClassConfig, ClassService, Filter, Nested, Plan};
use crate::{Advice, Discipline, Spec};

/// Parameters of `hfsc`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The leaf of packets that match no filter, by its name or its path such as "all/bulk". Without it they
    /// are dropped.
    pub default: Option<String>,
    /// The classes directly at the link. Without any there is one, "all".
    pub classes: Vec<Class>,
}

/// A class of `hfsc`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "HfscClass")]
pub struct Class {
    /// Its name, or a range of names, "home[1-200]", for as many classes.
    pub name: String,
    /// Real-time and link-share curve in one.
    pub sc: Option<ServiceCurve>,
    /// Real-time curve of a class without classes below: its guarantee.
    pub rt: Option<ServiceCurve>,
    /// Link-share curve: its part of what its parent has.
    pub ls: Option<ServiceCurve>,
    /// Upper limit of what it gets by link sharing.
    pub ul: Option<ServiceCurve>,
    /// The filters: a packet of this class matches at least one.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// The discipline of a class without classes below. By default a fifo.
    pub leaf: Option<Box<Spec>>,
    /// The classes below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
}

/// A service curve, in one of three forms: `rate`; `m1`, `d` and `m2`; or `umax`, `dmax` and `rate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceCurve {
    /// The rate of a line, or in the long run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The rate of the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub m1: Option<Rate>,
    /// The length of the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub d: Option<Span>,
    /// The rate of the second piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub m2: Option<Rate>,
    /// Bytes with the delay dmax: the largest packet, or a frame of video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umax: Option<Bytes>,
    /// The largest delay of umax bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dmax: Option<Span>,
}

impl ServiceCurve {
    fn curve(self, mtu: Bytes) -> Result<Curve, String> {
        let bit = |rate: Option<Rate>| rate.unwrap_or_default().as_bit();
        let curve = match self {
            ServiceCurve { m1: None, d: None, m2: None, umax: None, dmax: None, rate: Some(rate) } => {
                Curve::line(rate)
            }
            ServiceCurve { rate: None, umax: None, dmax: None, m1, d, m2: Some(m2) } => {
                if m1.is_some() != d.is_some() {
                    return Err("\"m1\" and \"d\" belong together".to_owned());
                }
                Curve {
                    m1: m1.map_or(m2.as_bit(), Rate::as_bit),
                    d: d.unwrap_or_default().as_ps(),
                    m2: m2.as_bit(),
                }
            }
            ServiceCurve { m1: None, d: None, m2: None, umax, dmax: Some(dmax), rate: Some(rate) } => {
                let bytes = umax.unwrap_or(mtu).0;
                if dmax == Span::ZERO {
                    return Err("dmax 0s is not possible: write at least 1us".to_owned());
                }
                let steep = u128::from(bytes) * 8_000_000_000_000 / u128::from(dmax.as_ps());
                match u64::try_from(steep).unwrap_or(u64::MAX) {
                    steep if steep > rate.as_bit() => Curve { m1: steep, d: dmax.as_ps(), m2: rate.as_bit() },
                    // The rate alone serves the bytes in less time, so service may begin later.
                    _ => {
                        let begins = dmax.as_ps().saturating_sub(rate.time_for(bytes).as_ps());
                        Curve { m1: 0, d: begins, m2: rate.as_bit() }
                    }
                }
            }
            _ => {
                return Err("a curve is (rate 1mbit), (m1 5mbit d 10ms m2 1mbit) or (umax 1500b dmax 10ms rate 1mbit)"
                    .to_owned());
            }
        };
        if curve.m2 == 0 && bit(self.rate) == 0 && bit(self.m2) == 0 {
            return Err("a curve with the rate 0 serves nothing in the end: write at least 1kbit".to_owned());
        }
        Ok(curve)
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str =
        "hierarchical fair service curve: delay and rate of each class chosen apart";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Hfsc<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Hfsc<P>, Invalid> {
        let plan = self.plan(context)?;
        let shapes = shapes(&plan, context)?;
        let rate = |curve: Option<Curve>| curve.map(|curve| Rate::bit(curve.m2));
        Ok(Hfsc {
            schedule: Schedule::new(&shapes),
            rates: shapes
                .iter()
                .map(|shape| (rate(shape.real_time.or(shape.link_share)), rate(shape.upper_limit)))
                .collect(),
            classes: Nested::build(plan, |class| rate(shapes[class].upper_limit), context)?,
            asleep: FlowHeap::with_capacity(0),
        })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        let shapes = self.plan(context).and_then(|plan| shapes(&plan, context)).unwrap_or_default();
        // A class that shares nothing, or that is limited, may leave the link idle.
        let shares = |shape: &Shape| shape.link_share.is_some() && shape.upper_limit.is_none();
        let leaves = nested::properties(&self.classes, context);
        Properties {
            work_conserving: leaves.work_conserving && shapes.iter().all(shares),
            guarantee: Guarantee::Classes,
            ..leaves
        }
    }

    fn lookahead(&self) -> usize {
        nested::lookahead(&self.classes)
    }

    fn variants() -> Vec<Config> {
        [
            "hfsc default b classes [(name a sc (umax 1500b dmax 5ms rate 1mbit) match [(class 1)]) (name b ls (rate \
             3mbit))]",
            "hfsc default all/rest classes [(name all ls (rate 4mbit) ul (rate 6mbit) classes [(name one rt (m1 3mbit d \
             10ms m2 1mbit) ls (rate 1mbit) match [(class 0) (class 5)] leaf (fq_codel limit 20p)) (name rest ls (rate \
             3mbit) leaf (tbf rate 2mbit burst 2kb))])]",
            "hfsc classes [(name site[1-2] ls (rate 1mbit) classes [(name dept[1-6] sc (m1 0bit d 20ms m2 150kbit) match \
             [(to [0-5])] leaf (drr limit 30p))])]",
        ]
        .map(|text| match text.parse() {
            Ok(Spec::hfsc(config)) => config,
            other => panic!("the constant is a tree: {other:?}"),
        })
        .into()
    }

    fn class_of(&self, like: &Meta, context: &LinkContext) -> Option<u32> {
        self.plan(context).ok()?.class_of(like)
    }

    /// The real-time curve, after the transmission of one packet (Stoica, Zhang and Ng, theorem 2).
    fn class_service(&self, class: u32, context: &LinkContext) -> Result<ClassService, String> {
        let plan = self.plan(context).map_err(|invalid| invalid.message)?;
        let shapes = shapes(&plan, context).map_err(|invalid| invalid.message)?;
        if let Some(overbooked) = overbooked(&shapes, context) {
            return Err(overbooked);
        }
        let path = plan.path(class as usize);
        in_order(&path, plan.classes[class as usize].written.leaf())?;
        let none = || format!("class \"{path}\" has no real-time curve: write rt or sc");
        let Curve { m1, d, m2 } = shapes[class as usize].real_time.ok_or_else(none)?;
        let latency = on_link(context.mtu, context);
        Ok(ClassService { class: path, m1: Rate::bit(m1), d: Span::from_ps(d), m2: Rate::bit(m2), latency })
    }

    fn warnings(&self, context: &LinkContext) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Ok(plan) = self.plan(context)
            && let Ok(shapes) = shapes(&plan, context)
        {
            warnings.extend(plan.warnings.iter().cloned());
            if plan.default.is_none() && !shapes.is_empty() {
                warnings
                    .push("packets that match no filter are dropped: name a class in \"default\"".to_owned());
            }
            warnings.extend(overbooked(&shapes, context));
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
        /// The class of a configuration without classes.
        static ALL: LazyLock<[Class; 1]> = LazyLock::new(|| {
            let line = ServiceCurve { rate: Some(Rate::mbit(1)), ..ServiceCurve::default() };
            [Class { name: "all".to_owned(), ls: Some(line), ..Class::default() }]
        });
        match &self.classes[..] {
            [] => Plan::new(&*ALL, self.default.as_deref().or(Some("all")), &context.hosts),
            classes => Plan::new(classes, self.default.as_deref(), &context.hosts),
        }
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

/// The curves of the classes of a plan.
fn shapes(plan: &Plan<'_, Class>, context: &LinkContext) -> Result<Vec<Shape>, Invalid> {
    let shape = |planned: &Planned<'_, Class>| {
        let read = |name: &str, curve: Option<ServiceCurve>| {
            let read = curve.map(|curve| curve.curve(context.mtu)).transpose();
            read.map_err(|message| wrong(&planned.name, format!("{name}: {message}")))
        };
        let Class { sc, rt, ls, ul, classes, .. } = planned.written;
        if sc.is_some() && (rt.is_some() || ls.is_some()) {
            return Err(wrong(&planned.name, "\"sc\" is \"rt\" and \"ls\" in one: remove it or them"));
        }
        if rt.is_some() && !classes.is_empty() {
            let message = "a real-time curve has no effect on a class with classes below: give it to those";
            return Err(wrong(&planned.name, message));
        }
        if ls.is_none() && sc.is_none() && (rt.is_none() || !classes.is_empty()) {
            return Err(wrong(&planned.name, "it needs a curve, such as sc (rate 1mbit)"));
        }
        if ul.is_some() && ls.is_none() && sc.is_none() {
            return Err(wrong(&planned.name, "an upper limit bounds link sharing, so it needs \"ls\""));
        }
        let both = read("sc", *sc)?;
        Ok(Shape {
            parent: planned.parent,
            real_time: if classes.is_empty() { read("rt", *rt)?.or(both) } else { None },
            link_share: read("ls", *ls)?.or(both),
            upper_limit: read("ul", *ul)?,
        })
    };
    plan.classes.iter().map(shape).collect()
}

/// A warning if the real-time curves together exceed the link: then deadlines are missed (section III.B).
fn overbooked(shapes: &[Shape], context: &LinkContext) -> Option<String> {
    let curves = || shapes.iter().filter_map(|shape| shape.real_time);
    // The sum of curves of two pieces is largest, against a line, where a piece ends or in the long run.
    let sum = |at: u64| -> u128 {
        let served = |curve: Curve| {
            u128::from(curve.m1) * u128::from(at.min(curve.d))
                + u128::from(curve.m2) * u128::from(at.saturating_sub(curve.d))
        };
        curves().map(served).sum()
    };
    let later = curves().map(|curve| curve.d).filter(|d| *d > 0);
    let exceeded = later
        .filter(|at| sum(*at) > u128::from(context.rate.as_bit()) * u128::from(*at))
        .map(Span::from_ps)
        .min();
    if let Some(at) = exceeded {
        return Some(format!(
            "the real-time curves together need more than the link after {at}: deadlines will be missed"
        ));
    }
    let total: u64 = curves().map(|curve| curve.m2).fold(0, u64::saturating_add);
    (total > context.rate.as_bit()).then(|| {
        format!("the real-time curves need {} together, and the link has {}", Rate::bit(total), context.rate)
    })
}

/// Hierarchical fair service curve.
pub struct Hfsc<P> {
    schedule: Schedule,
    classes: Nested<P>,
    /// Guaranteed and largest rate of each class in the long run.
    rates: Vec<(Option<Rate>, Option<Rate>)>,
    /// Classes whose leaves hold their packets back, by the time at which they release one.
    asleep: FlowHeap<Time>,
}

impl<P: 'static> Qdisc<P> for Hfsc<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let Some(class) = self.classes.of(&pkt.meta, cx) else {
            return cx.drop(pkt, DropReason::NoClass);
        };
        self.classes.enqueue(class, pkt, cx);
        if !self.schedule.is_active(class) {
            // An arrival may change the time at which a leaf releases a packet.
            self.looks(class, cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let now = cx.now();
        while let Some((at, class)) = self.asleep.first()
            && at <= now
        {
            self.asleep.pop();
            self.looks(class, cx);
        }
        let Some(choice) = self.schedule.choose(now) else {
            let wake = [self.schedule.next_change(), self.asleep.first().map(|(at, _)| at)];
            return match wake.into_iter().flatten().min() {
                Some(at) if self.classes.backlog().packets > 0 => Next::At(at),
                _ => Next::Empty,
            };
        };
        let class = choice.class;
        let next = self.classes.dequeue(class, cx);
        let Next::Packet(pkt) = next else { unreachable!("an active class has released a packet") };
        let head = self.classes.head(class, cx);
        let following = if let Head::Bytes(bytes) = head { Some(bytes) } else { None };
        self.schedule.charge(choice, pkt.bytes(), following, now);
        if let Head::At(at) = head {
            self.asleep.set(class, at);
        }
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.classes.reset(cx);
        self.schedule.reset();
        self.asleep.clear();
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.classes.rate_changed(rate, now);
    }

    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let old = old.as_any_mut().and_then(|old| old.downcast_mut::<Hfsc<P>>());
        let Some(old) = old else { return };
        let mut homeless = |pkt, inner: &mut Cx<'_, P>| inner.drop(pkt, DropReason::NoClass);
        self.classes.take_over(&mut old.classes, cx, &mut homeless);
        for class in self.classes.busy() {
            self.looks(class, cx);
        }
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn flow_table(&self) -> FlowTable {
        self.classes.flow_table()
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        let complete = |class: u32, state: &mut ClassState| {
            (state.rate, state.ceil) = self.rates[class as usize];
        };
        self.classes.visit(complete, visit);
    }
}

impl<P> Hfsc<P> {
    /// Looks whether a class has a packet to send, and when.
    fn looks(&mut self, class: u32, cx: &mut Cx<'_, P>) {
        self.asleep.remove(class);
        match self.classes.head(class, cx) {
            Head::Bytes(bytes) => self.schedule.activate(class, bytes, cx.now()),
            Head::At(at) => self.asleep.set(class, at),
            Head::Empty => {}
        }
    }
}
