//! The choice of a [`Partition`]: the parts of a network, and whether a division gains anything.
//!
//! # Choice
//! Groups of nodes follow from a window by the rules of [`crate::partition`]. The weight of a node is its
//! work in a pilot: the beginning of the run, simulated on one thread ([`Load`]). Groups are put into parts
//! in two ways: neighbours into one part, so that few packets cross (a breadth-first order, cut into pieces
//! of equal weight), and the heaviest first, each into the lightest part. Both are tried with every delay of
//! a link as the window. The division with the shortest estimated time is taken ([`Estimate`]), if it gains
//! enough; otherwise the network is not divided ([`Whole`]).
//!
//! The pilot has no effect on results, because these do not depend on the division.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use giveway_qdisc::{Interest, Meta, PortId, Probe, Span, Time};

use crate::engine::Sim;
use crate::network::LinkPlan;
use crate::partition::{Partition, Whole};
use crate::plan::Plan;
use crate::segment::Segment;

/// The gain that a division must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// It must make a run faster, by the estimate.
    Faster,
    /// Any division will do, for tests.
    Any,
}

/// The work of a packet at a hop with a plain queue, the unit of work.
const PLAIN_HOP: u64 = 1;
/// The work of a packet at a hop with another discipline.
const OTHER_HOP: u64 = 4;
/// The work of a packet at the end of its connection that sends or receives it.
const END: u64 = 3;
/// The work of each of two parts for a packet that goes from one to the other.
const CROSSING: u64 = 1;
/// The work that takes as long as the exchange of packets at the end of a window.
const EXCHANGE: f64 = 10.0;
/// Number of events of the pilot: a tenth of a second.
const PILOT_EVENTS: u64 = 300_000;
/// Number of events of the pilot that do not count, because connections have just started.
const WARM_EVENTS: u64 = 150_000;
/// The minimum gain: one thread must take this many times as long.
const MIN_GAIN: f64 = 1.2;

/// The work of the beginning of a run, which stands for all of it.
struct Load {
    /// Packets that each port sent, by its number.
    sent: Vec<u64>,
    /// Packets that hosts at each node sent or received.
    at_hosts: Vec<u64>,
    /// True for a port with a plain queue.
    plain: Vec<bool>,
    /// The simulated time.
    time: Span,
}

impl Probe<Segment> for Load {
    fn interest(&self, _: PortId) -> Interest {
        Interest::Port
    }
    fn on_transmission(&mut self, at: PortId, _: &Meta, _: &Segment, _: Time) {
        self.sent[at.0 as usize] += 1;
    }
    fn on_emission(&mut self, node: u16, _: &Meta, _: &Segment, _: Time) {
        self.at_hosts[usize::from(node)] += 1;
    }
    fn on_delivery(&mut self, node: u16, _: &Meta, _: &Segment, _: Time) {
        self.at_hosts[usize::from(node)] += 1;
    }
}

impl Load {
    /// The work of a pilot of this plan.
    fn of(plan: Plan) -> Load {
        let links = &plan.network.links;
        let mut load = Load {
            sent: vec![0; links.len()],
            at_hosts: vec![0; plan.network.nodes],
            plain: links.iter().map(|link| link.qdisc.plain().is_some()).collect(),
            time: Span::ZERO,
        };
        let until = plan.until;
        let mut sim = Sim::new(plan);
        let mut from = Time::ZERO;
        while sim.events() < PILOT_EVENTS && sim.now() < until {
            if from == Time::ZERO && sim.events() >= WARM_EVENTS {
                from = sim.now();
                load.sent.fill(0);
                load.at_hosts.fill(0);
            }
            let next = sim.next_event();
            sim.step_to(next.min(until), &mut load);
        }
        load.time = sim.now().since(from);
        load
    }

    /// The work of each node.
    fn weights(&self, plan: &Plan) -> Vec<u64> {
        let mut weights: Vec<u64> = self.at_hosts.iter().map(|packets| packets * END).collect();
        for ((link, sent), plain) in plan.network.links.iter().zip(&self.sent).zip(&self.plain) {
            weights[usize::from(link.from)] += sent * if *plain { PLAIN_HOP } else { OTHER_HOP };
        }
        weights
    }
}

/// The estimated time of a divided run.
#[derive(Clone, Copy)]
struct Estimate {
    /// The work of the heaviest part in the pilot.
    heaviest: u64,
    /// Its work in a window.
    per_window: f64,
}

impl Estimate {
    /// The time of the pilot in units of work. In each window all parts wait for the one with the most work
    /// there. The work of a part in a window varies by the square root of its mean if its packets come
    /// independently of each other.
    fn time(self) -> f64 {
        let per_window = self.per_window.max(1.0);
        self.heaviest as f64 * (1.0 + 1.0 / per_window.sqrt() + EXCHANGE / per_window)
    }
}

impl Partition {
    /// A division of the network of a plan into at most `most` parts, and at most [`Partition::MAX`].
    /// `build` builds the plan.
    pub fn of(build: &dyn Fn() -> Plan, most: usize, gain: Gain) -> Partition {
        let plan = build();
        let nodes = plan.network.nodes;
        if most < 2 {
            return Partition::whole(nodes, Whole::OneThread);
        }
        let mut windows: Vec<Span> = plan.network.links.iter().map(LinkPlan::least_delay).collect();
        windows.sort_unstable();
        windows.dedup();
        windows.retain(|delay| !delay.is_zero());
        let finest = windows.first().map(|window| groups(&plan, *window));
        if finest.is_none_or(|groups| groups.iter().all(|group| *group == groups[0])) {
            return Partition::whole(nodes, Whole::Tied);
        }
        let load = Load::of(build());
        let weights = load.weights(&plan);
        let most = most.min(Partition::MAX);
        let divided = windows.iter().flat_map(|window| {
            let of = groups(&plan, *window);
            let groups = Weighted::new(&plan, &of, &weights);
            [groups.neighbours(most), groups.heaviest_first(most)]
                .map(|parts| divide(&plan, &parts, (&load, &weights)))
        });
        let divided = divided.flatten();
        let best = divided.min_by(|(one, _), (other, _)| one.time().total_cmp(&other.time()));
        let Some((estimate, partition)) = best else { return Partition::whole(nodes, Whole::Tied) };
        let total = weights.iter().sum::<u64>() as f64;
        if gain == Gain::Any || total >= MIN_GAIN * estimate.time() {
            return partition;
        }
        let why = if total < MIN_GAIN * estimate.heaviest as f64 {
            Whole::Uneven((100.0 * estimate.heaviest as f64 / total.max(1.0)).round().min(100.0) as u64)
        } else {
            Whole::Short(partition.window, estimate.per_window as u64)
        };
        Partition::whole(nodes, why)
    }
}

/// The group of each node, by its lowest node, for parts that a window separates.
fn groups(plan: &Plan, window: Span) -> Vec<u16> {
    let mut groups = Groups((0..plan.network.nodes as u16).collect());
    for link in plan.network.links.iter().filter(|link| link.least_delay() < window) {
        groups.join(link.from, link.to);
    }
    // Links on a medium know of each other at once.
    let mut first_on = vec![None; plan.network.media.len()];
    for link in &plan.network.links {
        if let Some((medium, _)) = link.medium {
            let first = *first_on[usize::from(medium)].get_or_insert(link.from);
            groups.join(first, link.from);
            groups.join(first, link.to);
        }
    }
    for source in &plan.sources {
        match &source.pairs {
            Some(pairs) => {
                let first = pairs.first().map_or(0, |(from, _)| *from);
                pairs.iter().flat_map(|(from, to)| [*from, *to]).for_each(|node| groups.join(first, node));
            }
            None => (0..plan.network.nodes as u16).for_each(|node| groups.join(0, node)),
        }
    }
    (0..plan.network.nodes as u16).map(|node| groups.first(node)).collect()
}

/// Sets of nodes, as a forest (Tarjan 1975): each node has another one of its set, or itself if it is the
/// lowest.
struct Groups(Vec<u16>);

impl Groups {
    /// The lowest node of a set.
    fn first(&mut self, node: u16) -> u16 {
        let mut node = node;
        while self.0[usize::from(node)] != node {
            let next = self.0[usize::from(node)];
            self.0[usize::from(node)] = self.0[usize::from(next)];
            node = next;
        }
        node
    }

    fn join(&mut self, a: u16, b: u16) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[usize::from(a.max(b))] = a.min(b);
    }
}

/// The groups of a network, with their weights and neighbours.
struct Weighted<'a> {
    /// The group of each node.
    of: &'a [u16],
    weights: BTreeMap<u16, u64>,
    /// The groups that each group has links to.
    links: BTreeMap<u16, BTreeSet<u16>>,
}

impl<'a> Weighted<'a> {
    fn new(plan: &Plan, of: &'a [u16], weights: &[u64]) -> Weighted<'a> {
        let mut groups = Weighted { of, weights: BTreeMap::new(), links: BTreeMap::new() };
        for (group, weight) in of.iter().zip(weights) {
            *groups.weights.entry(*group).or_default() += weight;
            groups.links.entry(*group).or_default();
        }
        for link in &plan.network.links {
            let [from, to] = [link.from, link.to].map(|node| of[usize::from(node)]);
            groups.links.entry(from).or_default().insert(to);
            groups.links.entry(to).or_default().insert(from);
        }
        groups
    }

    /// The part of each node if neighbours are put into one part, as far as that balances the parts.
    fn neighbours(&self, most: usize) -> Vec<u16> {
        // A search that begins where another one ended begins at the edge of the network.
        let first = *self.of.first().expect("there are nodes");
        let edge = *self.breadth_first(first).last().expect("it has the first group");
        let total = self.weights.values().sum::<u64>().max(1);
        let mut before = 0;
        let mut parts = BTreeMap::new();
        for group in self.breadth_first(edge) {
            let weight = self.weights[&group];
            // By the middle of the group, so that a heavy group does not drag the next ones along.
            let part = u128::from(2 * before + weight) * most as u128 / u128::from(2 * total);
            parts.insert(group, (part as usize).min(most - 1));
            before += weight;
        }
        self.numbered(&parts)
    }

    /// All groups, in the order of their distance from one of them.
    fn breadth_first(&self, from: u16) -> Vec<u16> {
        let mut order: Vec<u16> = Vec::new();
        let mut found: BTreeSet<u16> = BTreeSet::new();
        for start in std::iter::once(&from).chain(self.weights.keys()) {
            let mut pending = VecDeque::new();
            if found.insert(*start) {
                pending.push_back(*start);
            }
            while let Some(group) = pending.pop_front() {
                order.push(group);
                pending.extend(self.links[&group].iter().filter(|next| found.insert(**next)));
            }
        }
        order
    }

    /// The part of each node if the heaviest groups are put into parts first, each into the lightest part.
    fn heaviest_first(&self, most: usize) -> Vec<u16> {
        let mut order: Vec<(u64, u16)> =
            self.weights.iter().map(|(group, weight)| (*weight, *group)).collect();
        order.sort_by_key(|(weight, group)| (Reverse(*weight), *group));
        let mut loads = vec![0; most];
        let mut parts = BTreeMap::new();
        for (weight, group) in order {
            let part = (0..most).min_by_key(|part| (loads[*part], *part)).expect("there are parts");
            loads[part] += weight;
            parts.insert(group, part);
        }
        self.numbered(&parts)
    }

    /// The part of each node, where only parts with nodes have numbers.
    fn numbered(&self, parts: &BTreeMap<u16, usize>) -> Vec<u16> {
        let mut numbers: BTreeMap<usize, u16> = BTreeMap::new();
        for part in parts.values() {
            let next = numbers.len() as u16;
            numbers.entry(*part).or_insert(next);
        }
        self.of.iter().map(|group| numbers[&parts[group]]).collect()
    }
}

/// The division of the network with this part of each node, and its estimated time. `None` if there is one
/// part.
fn divide(plan: &Plan, part_of: &[u16], (load, weights): (&Load, &[u64])) -> Option<(Estimate, Partition)> {
    let parts = part_of.iter().max().map_or(0, |last| usize::from(*last) + 1);
    if parts == 1 {
        return None;
    }
    let links = || plan.network.links.iter().zip(&load.sent);
    let ends = |link: &LinkPlan| [link.from, link.to].map(|node| part_of[usize::from(node)]);
    let mut window = None;
    let mut work = vec![0; parts];
    for (node, weight) in weights.iter().enumerate() {
        work[usize::from(part_of[node])] += weight;
    }
    for (link, sent) in links() {
        let [from, to] = ends(link);
        if from != to {
            window = Some(window.map_or(link.least_delay(), |least: Span| least.min(link.least_delay())));
            work[usize::from(from)] += sent * CROSSING;
            work[usize::from(to)] += sent * CROSSING;
        }
    }
    // Parts without a link between them never wait for each other.
    let window = window.unwrap_or(Span::s(1));
    let heaviest = work.into_iter().max().unwrap_or(0);
    let per_window = heaviest as f64 * window.as_s() / load.time.as_s().max(f64::MIN_POSITIVE);
    let ports = links().map(|(link, _)| part_of[usize::from(link.from)]).collect();
    let partition = Partition { part_of: part_of.to_vec(), ports, parts, window, whole: None };
    Some((Estimate { heaviest, per_window }, partition))
}
