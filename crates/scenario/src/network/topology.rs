//! Reads the topologies and the links of a scenario file: nodes and ports. Each direction of a link is
//! a port.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use giveway_disciplines::Spec;
use giveway_links::{Impairments, Police, Profile};
use giveway_qdisc::{Bytes, Downstream, Hosts, LinkContext, Rate, Share, Span, Streams, Time};
use giveway_sim::Network;

use super::keys::{DirectionKeys, EndKeys, Outage, TopologyKeys};
use super::media::Media;
use super::names;
use super::topologies::{Edge, End, MAX_PORTS, TOPOLOGIES, TopologySpec};
use super::varying::{self, Variation};
use super::varying_keys::Varied;
use crate::diagnostic::Diagnostic;
use crate::fields::{self, Reading, head, wrong_type};
use crate::hints::{choices, grouped};
use crate::tree::{Entry, Node, Table, Value};

/// One direction of a link. Its index in the list of ports is its number.
#[derive(Clone, Debug)]
pub struct Port {
    /// The name of the port, such as "home->isp".
    pub name: String,
    /// The node that sends.
    pub from: u16,
    /// The node that receives.
    pub to: u16,
    /// The rate of the link; the mean if it varies.
    pub rate: Rate,
    /// The propagation delay; the mean if it varies.
    pub delay: Span,
    /// The largest extra delay; each packet has one drawn uniformly from zero.
    pub jitter: Span,
    /// The probability that a packet is lost on the wire.
    pub loss: Share,
    /// The varying quantities, and further impairments of the wire.
    pub impairments: Impairments,
    /// The policer in front of the queue.
    pub police: Option<Police>,
    /// Of so many acknowledgements in a row, one is sent.
    pub thin_acks: Option<u32>,
    /// The number of the medium that it shares.
    pub medium: Option<u16>,
    /// The files that it reads, as written.
    pub files: Vec<String>,
    /// The cost in routing.
    pub cost: u32,
    /// The largest packet, as its IP length.
    pub mtu: Bytes,
    /// The outages, each with its start and its end, in order.
    pub outages: Vec<(Time, Time)>,
    /// The queue of the link.
    pub queue: Queue,
    /// Disciplines that stand here in place of compared ones: the compared one, then the one of this port.
    pub in_place_of: Vec<(Spec, Spec)>,
    /// The names of all nodes, which filters of the discipline use.
    pub(crate) hosts: Hosts,
    /// The place of the discipline in the file; `None` for the default.
    pub(crate) written: Option<Node>,
    /// The place of the link in the file.
    pub(crate) at: Range<usize>,
}

/// The discipline of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Queue {
    /// The compared discipline of the trial.
    Compare,
    /// A fixed discipline.
    Fixed(Spec),
}

impl Queue {
    /// True for the default discipline.
    pub fn is_usual(&self) -> bool {
        *self == default_queue()
    }

    /// The discipline in a trial of `compared`, without the port's own words ([`Port::spec`]).
    pub fn spec<'a>(&'a self, compared: &'a Spec) -> &'a Spec {
        match self {
            Queue::Compare => compared,
            Queue::Fixed(spec) => spec,
        }
    }
}

impl Port {
    /// The discipline of the link in a trial of `compared`.
    pub fn spec<'a>(&'a self, compared: &'a Spec) -> &'a Spec {
        // Only a port that compares has others.
        let other = self.in_place_of.iter().find(|(of, _)| of == compared);
        other.map_or_else(|| self.queue.spec(compared), |(_, here)| here)
    }

    /// The context of the discipline at this link, in a run with these streams and a network with these
    /// links.
    pub fn context(&self, streams: &Streams, links: &Downstream) -> LinkContext {
        let streams = streams.within("link").within(&self.name).within("qdisc");
        LinkContext {
            rate: self.rate,
            mtu: self.mtu,
            streams,
            downstream: links.towards(self.to),
            hosts: self.hosts.clone(),
        }
    }
}

/// All links, as disciplines get them.
pub fn downstream(ports: &[Port]) -> Downstream {
    Downstream::new(0, ports.iter().map(|port| ((port.from, port.to), port.rate)))
}

/// The network of a scenario.
pub(crate) struct Topology {
    /// The names of the nodes, by number.
    pub nodes: Vec<String>,
    /// The ports, by number.
    pub ports: Vec<Port>,
    /// The media that links share.
    pub media: Media,
    /// True if every link was valid. Otherwise nodes may be missing, and messages about them would be
    /// misleading.
    pub whole: bool,
    /// True if a `[[topology]]` wrote some of the links.
    pub fabric: bool,
    /// The numbers of the nodes, by name.
    node_numbers: BTreeMap<String, u16>,
    /// The numbers of the ports, by name.
    port_numbers: BTreeMap<String, usize>,
}

impl Topology {
    /// The number of a node.
    pub fn node(&self, name: &str) -> Option<u16> {
        self.node_numbers.get(name).copied()
    }
    /// The number of a port, by its name such as "home->isp".
    pub fn port(&self, name: &str) -> Option<usize> {
        self.port_numbers.get(name).copied()
    }
    /// True if a link compares disciplines.
    pub fn compares(&self) -> bool {
        self.ports.iter().any(|port| port.queue == Queue::Compare)
    }
}

/// The default queue of a link, which is as long as in Linux.
fn default_queue() -> Queue {
    Queue::Fixed("fifo limit 1000p".parse().expect("the default discipline is valid"))
}

/// Reads all topologies, and all links. File names are relative to `folder`.
pub(crate) fn read(reading: &mut Reading, root: &Table, folder: &Path, duration: Option<Span>) -> Topology {
    let mut topology = read_links(reading, root, folder, duration);
    let names = topology.node_numbers.iter().map(|(name, number)| (name.as_str().into(), *number));
    let hosts = Hosts::new(names);
    for port in &mut topology.ports {
        port.hosts = hosts.clone();
    }
    topology
}

fn read_links(reading: &mut Reading, root: &Table, folder: &Path, duration: Option<Span>) -> Topology {
    let mut building = Building {
        topology: Topology {
            nodes: Vec::new(),
            ports: Vec::new(),
            media: Media::read(reading, root),
            whole: true,
            fabric: root.has("topology"),
            node_numbers: BTreeMap::new(),
            port_numbers: BTreeMap::new(),
        },
        full: false,
        usual: default_queue(),
        folder,
        duration,
    };
    if building.topology.fabric {
        let example = "kind = \"leaf_spine\"";
        let tables = reading.sections(root, "topology", "a list of topologies is not empty", example);
        building.topology.whole = tables.is_some();
        for table in tables.unwrap_or_default() {
            building.fabric(reading, table);
            if building.full {
                return building.topology;
            }
        }
        if !root.has("link") {
            return building.topology;
        }
    }
    let example = "from, to, rate and delay";
    let links = reading.sections(root, "link", "a network needs links", example);
    building.topology.whole &= links.is_some();
    for link in links.unwrap_or_default() {
        building.link(reading, link);
        if building.full {
            break;
        }
    }
    let Topology { media, ports, whole, .. } = &building.topology;
    if *whole {
        media.check_used(reading, root, ports.iter().filter_map(|port| port.medium));
    }
    building.topology
}

/// A network while its links are read.
struct Building<'a> {
    topology: Topology,
    /// True if there are more nodes or ports than a network can have. Later links are not read.
    full: bool,
    /// The default queue of a link.
    usual: Queue,
    /// The folder that file names are relative to.
    folder: &'a Path,
    /// The duration of a run, if it is known.
    duration: Option<Span>,
}

/// The keys of one direction of a link, without its nodes.
#[derive(Default)]
struct Direction<'a> {
    /// The keys with simple values.
    keys: DirectionKeys,
    /// The discipline as it is written.
    qdisc: Option<&'a Node>,
    /// The discipline; `None` if it is not written or wrong.
    queue: Option<Queue>,
    /// Disciplines in place of compared ones.
    in_place_of: Vec<(Spec, Spec)>,
    /// The varying quantities.
    variation: Variation,
    /// The rate, or the mean of one that varies; `None` if it is not written or wrong.
    rate: Option<Rate>,
    /// The delay, or the mean of one that varies.
    delay: Option<Span>,
    /// The number of the medium that it shares.
    medium: Option<u16>,
}

impl Building<'_> {
    /// Adds the ports of one `[[topology]]`, or reports its errors.
    fn fabric(&mut self, reading: &mut Reading, node: &Node) {
        const EXAMPLE: &str = "[[topology]] with kind = \"leaf_spine\"";
        if self.write(reading, node, EXAMPLE).is_none() {
            self.topology.whole = false;
        }
    }

    /// Adds the ports of one `[[topology]]`. `None` if anything is wrong, which is reported.
    fn write(&mut self, reading: &mut Reading, node: &Node, example: &str) -> Option<()> {
        let table = reading.table(node, "a topology", example)?;
        let errors = reading.diagnostics.len();
        let what = "a topology";
        let keys: Option<TopologyKeys> = reading.fields(table, what);
        let keys = keys.unwrap_or_default();
        check_mtu(reading, table, keys.mtu);
        let prefix = prefix(reading, table, keys.prefix.as_deref().unwrap_or_default());
        let switches = table.get("qdisc").and_then(|node| queue(reading, node));
        let hosts = table.get("host_qdisc").and_then(|node| queue(reading, node));
        let kind = reading.kind(table, (what, "topology"), TOPOLOGIES, |kind| kind.name)?;
        let what = format!("topology \"{}\"", kind.name);
        let of_kind = format!("a {} topology", kind.name);
        let shared = fields::keys::<TopologyKeys>();
        let spec = reading.keys_of_kind(table, (&of_kind, &what), shared, &(kind.keys)(), kind.from_json)?;
        if reading.diagnostics.len() > errors {
            return None;
        }
        let edges = edges(reading, table, &what, &spec, self.folder)?;
        let at = head(&reading.origin, table);
        let side = |end: &End| match end {
            End::Host(_) => (table.get("host_qdisc"), hosts.clone()),
            End::Switch(_) => (table.get("qdisc"), switches.clone()),
        };
        for edge in &edges {
            let name = |end: &End| format!("{prefix}{}", end.name());
            let (from, to) = (name(&edge.from), name(&edge.to));
            let (a, b) = self.ends(reading, &at, &from, &to)?;
            let ends = [((&*from, a), (&*to, b), &edge.from), ((&*to, b), (&*from, a), &edge.to)];
            for (from, to, sender) in ends.into_iter().take(if edge.back { 2 } else { 1 }) {
                let (qdisc, queue) = side(sender);
                let keys = keys_of(edge, keys.mtu);
                let direction = Direction { keys, qdisc, queue, ..Direction::default() };
                if !self.port(reading, &at, (from, to), &direction, (edge.rate, edge.delay)) {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Adds the ports of one `[[link]]`, or reports its errors.
    fn link(&mut self, reading: &mut Reading, node: &Node) {
        const EXAMPLE: &str = "[[link]] with from, to, rate and delay";
        let Some(table) = reading.table(node, "a link", EXAMPLE) else {
            self.topology.whole = false;
            return;
        };
        let known = [fields::keys::<EndKeys>(), fields::keys::<DirectionKeys>()].concat();
        reading.unknown_keys(table, "a link", &known);
        let errors = reading.diagnostics.len();
        // This checks only the types of the keys. The ranges of nodes are parsed below.
        let _: Option<EndKeys> = reading.fields(table, "a link");
        let forward = self.direction(reading, table, "a link");
        for key in ["from", "to", "rate", "delay"].into_iter().filter(|key| !table.has(key)) {
            reading.missing(table, "a link", key);
        }
        let reverse = self.reverse(reading, table, &forward);
        let pairs = self.pairs(reading, table);
        let (Some(pairs), Some(rate), Some(delay)) = (pairs, forward.rate, forward.delay) else {
            self.topology.whole = false;
            return;
        };
        if reading.diagnostics.len() > errors {
            self.topology.whole = false;
        }
        let at = head(&reading.origin, table);
        for (from, to) in pairs {
            let Some((a, b)) = self.ends(reading, &at, &from, &to) else { return };
            let (from, to) = ((&*from, a), (&*to, b));
            let new = self.port(reading, &at, (from, to), &forward, (rate, delay));
            if new && let Some(reverse) = &reverse {
                self.port(reading, &at, (to, from), reverse, (rate, delay));
            }
        }
    }

    /// The pairs of nodes of a link.
    fn pairs(&mut self, reading: &mut Reading, table: &Table) -> Option<Vec<(String, String)>> {
        let (from, to) = (reading.nodes(table, "from"), reading.nodes(table, "to"));
        let (from, to) = (from?, to?);
        let pairs = reading.pairs(table, &from, &to)?;
        if let Some((node, _)) = pairs.iter().find(|(one, other)| one == other) {
            let message = format!("a link leads from \"{node}\" to itself");
            reading.report(Diagnostic::error(table.place("to"), message).help("a link joins two nodes"));
            return None;
        }
        Some(pairs)
    }

    /// The number of a node, which is created if it is new; `None` if there are too many.
    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(known) = self.topology.node(name) {
            return Some(known);
        }
        let nodes = &mut self.topology.nodes;
        if nodes.len() == Network::MAX_NODES {
            return None;
        }
        let number = u16::try_from(nodes.len()).expect("the limit is below 16 bits");
        nodes.push(name.to_owned());
        self.topology.node_numbers.insert(name.to_owned(), number);
        Some(number)
    }

    /// The numbers of the nodes of a link, which are created if they are new. `None` if the network would
    /// have too many nodes or ports. Then the error is reported, and later links are not read.
    fn ends(&mut self, reading: &mut Reading, at: &Range<usize>, from: &str, to: &str) -> Option<(u16, u16)> {
        let ends = self.number(from).zip(self.number(to));
        let (what, most, help) = if ends.is_none() {
            ("nodes", Network::MAX_NODES, "this is the limit of a network: name fewer nodes")
        } else if self.topology.ports.len() + 2 > MAX_PORTS {
            ("ports", MAX_PORTS, "a link has a port at each end: write fewer links, or back = false")
        } else {
            return ends;
        };
        let message = format!("with this link there are more than {} {what}", grouped(most));
        reading.report(Diagnostic::error(at.clone(), message).help(help));
        self.full = true;
        self.topology.whole = false;
        None
    }

    /// Adds one direction, from one node to another, each given as its name and its number. `rate` and
    /// `delay` come from the link, as the defaults of the direction. Returns false if there is such a port
    /// already, and reports that.
    fn port(
        &mut self,
        reading: &mut Reading,
        at: &Range<usize>,
        (from, to): ((&str, u16), (&str, u16)),
        direction: &Direction<'_>,
        (rate, delay): (Rate, Span),
    ) -> bool {
        let name = format!("{}->{}", from.0, to.0);
        if let Some(first) = self.topology.port(&name) {
            let first = reading.origin.place(&self.topology.ports[first].at);
            let label = match first.flag {
                true => format!("the first is in {}", first.name),
                false => format!("the first is in line {}", first.line),
            };
            let wrong = Diagnostic::error(at.clone(), format!("there are two links \"{name}\""));
            let help = "a [[link]] has both directions; write back = false for one";
            reading.report(wrong.label(label).help(help));
            return false;
        }
        self.topology.port_numbers.insert(name.clone(), self.topology.ports.len());
        let keys = &direction.keys;
        let Variation { impairments, police, thin_acks, files } = direction.variation.clone();
        let port = Port {
            hosts: Hosts::default(),
            name,
            from: from.1,
            to: to.1,
            rate: direction.rate.unwrap_or(rate),
            delay: direction.delay.unwrap_or(delay),
            jitter: keys.jitter.unwrap_or_default(),
            loss: keys.loss.as_ref().and_then(Varied::constant).unwrap_or_default(),
            impairments,
            police,
            thin_acks,
            medium: direction.medium,
            files,
            cost: keys.cost.unwrap_or(1),
            mtu: keys.mtu.unwrap_or(Bytes(1500)),
            outages: outages(keys.outages.as_deref().unwrap_or_default()),
            queue: direction.queue.clone().unwrap_or_else(|| self.usual.clone()),
            in_place_of: direction.in_place_of.clone(),
            written: direction.qdisc.cloned(),
            at: at.clone(),
        };
        self.topology.ports.push(port);
        true
    }

    /// Reads `back`, the reverse direction of a link. Most keys have the values of the forward direction by
    /// default. `None` if the link has no reverse direction.
    fn reverse<'t>(
        &self,
        reading: &mut Reading,
        table: &'t Table,
        forward: &Direction<'_>,
    ) -> Option<Direction<'t>> {
        let mut reverse = match table.get("back").map(|node| (&node.value, node)) {
            None | Some((Value::Boolean(true), _)) => Direction::default(),
            Some((Value::Boolean(false), _)) => return None,
            Some((Value::Table(back), _)) => {
                let known = fields::keys::<DirectionKeys>();
                reading.unknown_keys(back, "the reverse direction of a link", known);
                self.direction(reading, back, "the reverse direction")
            }
            Some((_, node)) => {
                let message = "back: expected a table, or false for a link without a reverse direction";
                reading.report(wrong_type(node, message));
                return None;
            }
        };
        let keys = &mut reverse.keys;
        keys.cost = keys.cost.or(forward.keys.cost);
        keys.mtu = keys.mtu.or(forward.keys.mtu);
        if keys.outages.is_none() {
            keys.outages.clone_from(&forward.keys.outages);
        }
        let (own, link) = (&mut reverse.variation.impairments, &forward.variation.impairments);
        if keys.rate.is_none() {
            own.rate.clone_from(&link.rate);
        }
        if keys.delay.is_none() {
            own.delay.clone_from(&link.delay);
        }
        reverse.medium = reverse.medium.or(forward.medium);
        Some(reverse)
    }

    /// Reads the keys of one direction.
    fn direction<'t>(&self, reading: &mut Reading, table: &'t Table, what: &str) -> Direction<'t> {
        let keys: DirectionKeys = reading.fields(table, what).unwrap_or_default();
        let qdisc = table.get("qdisc");
        let queue = qdisc.and_then(|node| queue(reading, node));
        let in_place_of = in_place_of(reading, table, queue.as_ref());
        check_outages(reading, table, keys.outages.as_deref().unwrap_or_default());
        check_values(reading, table, &keys);
        let variation = varying::read(reading, table, &keys, self.folder);
        let mean = |profile: &Option<Profile>| {
            let of_run = |profile: &Profile| match self.duration {
                Some(duration) => profile.mean_until(Time::ZERO + duration),
                None => profile.mean(),
            };
            profile.as_ref().map(of_run)
        };
        let name = keys.medium.as_deref();
        let medium = name.and_then(|name| self.topology.media.of_link(reading, table, name));
        let Impairments { rate, delay, .. } = &variation.impairments;
        if medium.is_some() && rate.as_ref().is_some_and(Profile::bursts) {
            let message = "rate: a trace of packet opportunities has its own bursts, and so has a medium";
            let wrong = Diagnostic::error(table.place("rate"), message);
            reading.report(wrong.help("write the rate as csv, steps, ramp or a model, or leave medium out"));
        }
        if medium.is_some() && variation.impairments.dispatch_jitter.is_some() {
            let message = "dispatch_jitter: a link on a medium is served when it gets the medium";
            let wrong = Diagnostic::error(table.place("dispatch_jitter"), message);
            reading.report(wrong.help("leave it out, or leave medium out"));
        }
        Direction {
            rate: keys.rate.as_ref().and_then(Varied::constant).or_else(|| mean(rate).map(Rate::bit)),
            delay: keys.delay.as_ref().and_then(Varied::constant).or_else(|| mean(delay).map(Span::from_ps)),
            keys,
            qdisc,
            queue,
            in_place_of,
            variation,
            medium,
        }
    }
}

/// The outages of a link, as times from the start of the run.
fn outages(written: &[Outage]) -> Vec<(Time, Time)> {
    let times = written.iter().map(|outage| {
        let down = Time::ZERO + outage.at;
        (down, down + outage.lasts)
    });
    times.collect()
}

/// Reads a discipline, or "compare".
fn queue(reading: &mut Reading, node: &Node) -> Option<Queue> {
    match node.text() {
        Some("compare") => Some(Queue::Compare),
        // Otherwise the help for a misspelled "compare" would name a discipline.
        Some(word) if giveway_qdisc::units::nearest(word, ["compare"]).is_some() => {
            let wrong = Diagnostic::error(node.span.clone(), format!("unknown discipline \"{word}\""));
            reading.report(wrong.help(choices(word, &["compare"])));
            None
        }
        _ => reading.spec(node).map(Queue::Fixed),
    }
}

/// Reads the disciplines of a link in place of compared ones. It must compare disciplines.
fn in_place_of(reading: &mut Reading, table: &Table, queue: Option<&Queue>) -> Vec<(Spec, Spec)> {
    let Some(node) = table.get("in_place_of") else { return Vec::new() };
    let Value::Table(pairs) = &node.value else {
        let message = "in_place_of: expected a table of disciplines";
        let wrong = wrong_type(node, message);
        reading.report(wrong.help("write for example in_place_of = { \"cake\" = \"cake bandwidth 2mbit\" }"));
        return Vec::new();
    };
    if queue != Some(&Queue::Compare) {
        let wrong = Diagnostic::error(node.span.clone(), "in_place_of: the link compares no disciplines");
        reading.report(wrong.help("write qdisc = \"compare\" in it, too, or leave in_place_of out"));
        return Vec::new();
    }
    let pair = |entry: &Entry| {
        let of = Node { value: Value::Text(entry.key.clone()), span: entry.key_span.clone() };
        Some((reading.spec::<Spec>(&of)?, reading.spec::<Spec>(&entry.node)?))
    };
    pairs.entries.iter().filter_map(pair).collect()
}

/// The prefix of a topology's names; reports characters that the name of a node cannot have.
fn prefix<'a>(reading: &mut Reading, table: &Table, prefix: &'a str) -> &'a str {
    if let Some(wrong) = names::invalid_character(prefix) {
        let message = format!(
            "prefix: the name of a node has letters, digits, \"-\", \"_\" and \".\", not \"{wrong}\""
        );
        let wrong = Diagnostic::error(table.place("prefix"), message);
        reading.report(wrong.help("write for example prefix = \"a-\""));
    }
    prefix
}

/// The links of a topology. Reports an error if a parameter is invalid, or if the topology is too large: then
/// nothing is built.
fn edges(
    reading: &mut Reading,
    table: &Table,
    what: &str,
    spec: &TopologySpec,
    folder: &Path,
) -> Option<Vec<Edge>> {
    let refusal = match spec.refusal(folder) {
        Ok(None) => match spec.edges(folder) {
            Ok(edges) => return Some(edges),
            Err(invalid) => Err(invalid),
        },
        Ok(Some(refusal)) => Ok(refusal),
        Err(invalid) => Err(invalid),
    };
    match refusal {
        Ok((reason, help)) => {
            let message = format!("{what} is too large: {reason}");
            reading.report(Diagnostic::error(head(&reading.origin, table), message).help(help));
        }
        Err(invalid) => reading.invalid(table, what, &invalid),
    }
    None
}

/// The keys of both directions of a link of a topology whose packets have at most `mtu`.
fn keys_of(edge: &Edge, mtu: Option<Bytes>) -> DirectionKeys {
    DirectionKeys {
        loss: Some(Varied::Constant(edge.loss)),
        jitter: Some(edge.jitter),
        cost: Some(edge.cost),
        mtu: edge.mtu.or(mtu),
        ..DirectionKeys::default()
    }
}

/// Checks that outages are in order, and longer than zero.
fn check_outages(reading: &mut Reading, table: &Table, outages: &[Outage]) {
    let place = table.place("outages");
    if outages.iter().any(|outage| outage.lasts.is_zero()) {
        let wrong = Diagnostic::error(place.clone(), "outages: an outage must last longer than 0");
        reading.report(wrong.help("write for example outages = [{ at = \"10 s\", lasts = \"5 s\" }]"));
    }
    let late = outages.windows(2).find(|pair| pair[1].at <= pair[0].at + pair[0].lasts);
    if let Some([first, second]) = late {
        let message = format!(
            "outages: the outage at {} lasts until {}, and the next begins at {}",
            first.at,
            first.at + first.lasts,
            second.at
        );
        reading
            .report(Diagnostic::error(place, message).help("write outages in order, with time between them"));
    }
}

/// Checks values of the right type that are not valid for a link.
fn check_values(reading: &mut Reading, table: &Table, keys: &DirectionKeys) {
    if keys.rate.as_ref().and_then(Varied::constant).is_some_and(|rate| rate.as_bit() == 0) {
        let wrong = Diagnostic::error(table.place("rate"), "rate: must be above 0");
        reading.report(wrong.help("write for example \"10mbit\""));
    }
    // All paths through a cycle of cost 0 would have the same cost.
    if keys.cost == Some(0) {
        let message = "cost: must be above 0, otherwise packets could travel in a loop";
        let wrong = Diagnostic::error(table.place("cost"), message);
        reading.report(wrong.help("write at least 1, and more for the other links"));
    }
    check_mtu(reading, table, keys.mtu);
}

/// Checks that an MTU is the length of an IP packet.
fn check_mtu(reading: &mut Reading, table: &Table, mtu: Option<Bytes>) {
    if let Some(mtu) = mtu.filter(|mtu| !(68..=65_535).contains(&mtu.0)) {
        let message = format!("mtu: {mtu} is not between 68 and 65,535 bytes");
        reading.report(Diagnostic::error(table.place("mtu"), message).help("Ethernet has \"1500b\""));
    }
}
