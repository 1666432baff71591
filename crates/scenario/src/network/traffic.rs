//! Reads the traffic of a scenario file: sources with their nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use giveway_qdisc::{Bytes, Dscp, Rate, Span, Streams, Time};
use giveway_sim::{NodeOrigin, QuicConfig, SOURCES, SourceContext, TcpConfig, TrafficEntry, TrafficSpec};
use serde_json::{Map, Value as Json};

use super::keys::{PhaseKey, TrafficKeys};
use super::names::all_pairs;
use super::paths::Paths;
use super::quic;
use super::topology::Topology;
use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, keys};
use crate::hints::grouped;
use crate::tree::{Node, Table};

/// One entry of the traffic. Its index in the list is its number in reports.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The name in tables. Entries with the same name are measured together.
    pub name: String,
    /// A unique name, which selects the random streams. It is the name if that is unique, otherwise the name
    /// with the nodes as written, and if these are not unique, either, with a number in the order of the
    /// file.
    pub id: String,
    /// The source, with its parameters.
    pub spec: TrafficSpec,
    /// The pairs of nodes, sender first. Of traffic among hosts these are some of its pairs, which between
    /// them have every host as sender and as receiver.
    pub pairs: Vec<(u16, u16)>,
    /// The hosts among which the source draws its pairs; empty for other traffic.
    pub hosts: Vec<u16>,
    /// The sum of the rates of the links that leave these hosts.
    pub access: Rate,
    /// The mean size of transfers and their rate, if they follow from an empirical distribution: a sentence.
    pub offered: Option<String>,
    /// The start of the traffic.
    pub start: Time,
    /// The time after it within which the traffic starts, at a moment that each seed draws: a round trip
    /// without queues, unless phases are exact.
    pub within: Span,
    /// The time after which no new transfer or packet starts.
    pub stop: Time,
    /// The class of the packets.
    pub class: u16,
    /// The DSCP of the packets.
    pub dscp: Dscp,
    /// The reserved rate of each flow.
    pub reserved: Rate,
    /// The TCP of the flows.
    pub tcp: TcpConfig,
    /// The QUIC of the flows.
    pub quic: QuicConfig,
    /// The table of the entry in the file.
    pub(crate) table: Table,
}

impl Stream {
    /// The context of the source, in a run with these random streams.
    pub(crate) fn context(&self, streams: &Streams, folder: &Path, nodes: &[String]) -> SourceContext {
        let own = streams.within("traffic").within(&self.id);
        SourceContext {
            pairs: self.pairs.clone(),
            hosts: self.hosts.clone(),
            access: self.access,
            start: self.start + Span::from_ps(own.within("phase").rng().below(self.within.as_ps() + 1)),
            stop: self.stop,
            tcp: self.tcp.clone(),
            quic: self.quic.clone(),
            streams: own,
            folder: folder.to_owned(),
            // Only sources that read names from a file need them. Copies for thousands of sources would add
            // up.
            nodes: match self.spec.placed() {
                NodeOrigin::Scenario | NodeOrigin::Among => Vec::new(),
                NodeOrigin::File | NodeOrigin::Either => nodes.to_vec(),
            },
        }
    }
}

/// Maximum number of entries of traffic: the number of a source has 16 bits.
const MAX_STREAMS: usize = 65_535;

/// The network whose traffic is read.
pub(crate) struct Context<'a> {
    /// The nodes and the ports.
    pub topology: &'a Topology,
    /// The paths; `None` if the network is not valid.
    pub paths: Option<&'a Paths>,
    /// The duration of a run; `None` if it is not valid.
    pub duration: Option<Span>,
    /// The folder that file names are relative to.
    pub folder: &'a Path,
    /// The bursts of TCP senders by default; `None` for the default of TCP.
    pub gso: Option<Bytes>,
    /// The moments that are accidents.
    pub phase: PhaseKey,
}

impl Context<'_> {
    /// The time within which traffic between the first of these pairs of nodes starts.
    fn within(&self, pairs: &[(u16, u16)]) -> Span {
        match (self.phase, self.paths, pairs.first()) {
            (PhaseKey::Sampled, Some(paths), Some((from, to))) => {
                let ports = &self.topology.ports;
                paths.delay(*from, *to, ports) + paths.delay(*to, *from, ports)
            }
            _ => Span::ZERO,
        }
    }
}

/// Reads all traffic. Entries with errors are reported and left out.
pub(crate) fn read(reading: &mut Reading, root: &Table, context: &Context<'_>) -> Vec<Stream> {
    let usual = TcpConfig { gso: context.gso.unwrap_or_default(), ..TcpConfig::default() };
    let of_timing = context.gso.map(|gso| ("gso".to_owned(), Json::from(format!("{}b", gso.0))));
    let of_timing: Map<String, Json> = of_timing.into_iter().collect();
    let defaults = match root.get("tcp") {
        Some(node) => tcp(reading, node, "[tcp]", &of_timing),
        None => Some((of_timing, usual)),
    };
    let of_quic = quic::defaults(reading, root);
    let example = "kind, from and to";
    let Some(entries) = reading.sections(root, "traffic", "a scenario needs traffic", example) else {
        return Vec::new();
    };
    if let Some(first) = entries.get(MAX_STREAMS) {
        let message = format!("there are more than {} entries of traffic", grouped(MAX_STREAMS));
        let wrong = Diagnostic::error(first.span.clone(), message).label("this is one too many");
        reading.report(wrong.help("an entry can have many flows: write flows = 10, or ranges of nodes"));
        return Vec::new();
    }
    let mut names = Names::default();
    let mut streams: Vec<Stream> = entries
        .iter()
        .filter_map(|node| {
            let table = reading.table(node, "traffic", "[[traffic]] with kind, from and to")?;
            let name = names.of(reading, table);
            entry(reading, table, name, (defaults.as_ref(), of_quic.as_ref()), context)
        })
        .collect();
    set_ids(&mut streams);
    streams
}

/// The names of the entries so far.
#[derive(Default)]
struct Names {
    /// The names in use.
    taken: BTreeSet<String>,
    /// The next number to try, for each kind. All smaller ones are in use.
    next: BTreeMap<String, u64>,
}

impl Names {
    /// The name of an entry: the key `name`, or its kind, with a number if that name is in use.
    fn of(&mut self, reading: &mut Reading, table: &Table) -> String {
        if let Some(node) = table.get("name") {
            let name = node.text().unwrap_or_default().to_owned();
            if name.is_empty() && node.text().is_some() {
                reading.report(Diagnostic::error(node.span.clone(), "name: must not be empty"));
            }
            self.taken.insert(name.clone());
            return name;
        }
        let kind = table.get("kind").and_then(Node::text).unwrap_or("traffic");
        let next = self.next.entry(kind.to_owned()).or_insert(1);
        let name = loop {
            let name = if *next == 1 { kind.to_owned() } else { format!("{kind}-{next}") };
            *next += 1;
            if !self.taken.contains(&name) {
                break name;
            }
        };
        self.taken.insert(name.clone());
        name
    }
}

/// Sets [`Stream::id`] of all entries.
fn set_ids(streams: &mut [Stream]) {
    let mut sharing: BTreeMap<String, u32> = BTreeMap::new();
    streams.iter().for_each(|stream| *sharing.entry(stream.name.clone()).or_default() += 1);
    let mut taken: BTreeSet<String> = sharing.keys().cloned().collect();
    for stream in streams {
        if sharing[&stream.name] == 1 {
            stream.id = stream.name.clone();
            continue;
        }
        let text = |key: &str| stream.table.get(key).and_then(Node::text).unwrap_or_default();
        let placed = format!("{} {}->{}", stream.name, text("from"), text("to"));
        let numbered = (2..).map(|number: u64| format!("{placed} #{number}"));
        let id = std::iter::once(placed.clone()).chain(numbered).find(|id| !taken.contains(id));
        stream.id = id.expect("there are more numbers than entries");
        taken.insert(stream.id.clone());
    }
}

/// The valid keys of `[tcp]`, and the configuration that they make.
type Defaults = (Map<String, Json>, TcpConfig);

/// Reads one entry.
fn entry(
    reading: &mut Reading,
    table: &Table,
    name: String,
    (defaults, of_quic): (Option<&Defaults>, Option<&quic::Written>),
    context: &Context<'_>,
) -> Option<Stream> {
    let what = format!("traffic \"{name}\"");
    let common: TrafficKeys = reading.fields(table, &what)?;
    let source = reading.kind(table, (&what, "kind of traffic"), SOURCES, |source| source.entry.name);
    let spec = source.and_then(|source| {
        let of_kind = format!("{} traffic", source.entry.name);
        let shared = keys::<TrafficKeys>();
        reading.keys_of_kind(table, (&of_kind, &what), shared, &(source.entry.keys)(), source.entry.from_json)
    });
    let tcp = match (table.get("tcp"), defaults) {
        (Some(node), Some((defaults, _))) => tcp(reading, node, "tcp", defaults),
        (Some(node), None) => tcp(reading, node, "tcp", &Map::new()),
        (None, defaults) => defaults.cloned(),
    };
    let quic = quic::own(reading, table, of_quic);
    let (pairs, hosts) = match source? {
        source if source.placed == NodeOrigin::Among => among(reading, table, &what, source, context).unzip(),
        source => {
            refuse_hosts(reading, table, &what, source);
            (pairs(reading, table, &what, source, common.every_pair, context), Some(Vec::new()))
        }
    };
    let end = context.duration.map(|duration| Time::ZERO + duration);
    let start = Time::ZERO + common.start.unwrap_or_default();
    let stop = common.stop.map(|stop| Time::ZERO + stop);
    if let Some(early) = stop.filter(|stop| *stop <= start) {
        let message = format!("{what} stops at {early}, before it starts");
        reading
            .report(Diagnostic::error(table.place("stop"), message).label(format!("it starts at {start}")));
        return None;
    }
    let mut stream = Stream {
        id: name.clone(),
        name,
        spec: spec?,
        pairs: pairs?,
        access: access(hosts.as_deref().unwrap_or_default(), context.topology),
        hosts: hosts?,
        offered: None,
        start,
        within: Span::ZERO,
        stop: stop.or(end)?,
        class: common.class.unwrap_or_default(),
        dscp: common.dscp.unwrap_or_default(),
        reserved: common.reserved.unwrap_or_default(),
        tcp: tcp?.1,
        quic: quic?,
        table: table.clone(),
    };
    reading.only_files(table, context.folder)?;
    let built = stream.spec.build(&stream.context(&Streams::new(0), context.folder, &context.topology.nodes));
    match built {
        Ok(built) => {
            stream.offered = built.offered();
            stream.pairs = resolve_pairs(reading, &stream, &what, source?, built.named(), context)?;
            let open = stream.stop.since(stream.start).saturating_sub(Span::from_ps(1));
            stream.within = context.within(&stream.pairs).min(open);
        }
        Err(invalid) => {
            reading.invalid(table, &what, &invalid);
            return None;
        }
    }
    Some(stream)
}

/// The pairs of nodes of an entry, each with a path. Empty if a file names them.
fn pairs(
    reading: &mut Reading,
    table: &Table,
    what: &str,
    source: &TrafficEntry,
    every_pair: bool,
    context: &Context<'_>,
) -> Option<Vec<(u16, u16)>> {
    match source.placed {
        NodeOrigin::File => {
            refuse_ends(reading, table, what, source);
            // If a link is not valid, its nodes are missing.
            return context.topology.whole.then(Vec::new);
        }
        // The file may name nodes. That is known once the source is built.
        NodeOrigin::Either if !ENDS.iter().any(|key| table.has(key)) => {
            return context.topology.whole.then(Vec::new);
        }
        NodeOrigin::Either | NodeOrigin::Scenario | NodeOrigin::Among => {}
    }
    for key in ENDS.into_iter().filter(|key| !table.has(key)) {
        reading.missing(table, what, key);
    }
    let (from, to) = (reading.nodes(table, "from"), reading.nodes(table, "to"));
    let (from, to) = (from?, to?);
    if every_pair && from.len() * to.len() > giveway_sim::traffic::MAX_FLOWS {
        let message = format!(
            "{what}: {} senders and {} receivers make {} pairs",
            grouped(from.len()),
            grouped(to.len()),
            grouped(from.len() * to.len())
        );
        let most = grouped(giveway_sim::traffic::MAX_FLOWS);
        let wrong = Diagnostic::error(table.place("every_pair"), message);
        reading.report(wrong.help(format!("an entry has at most {most} pairs: name fewer nodes")));
        return None;
    }
    let pairs = if every_pair { all_pairs(&from, &to) } else { reading.pairs(table, &from, &to)? };
    if let Some((node, _)) = pairs.iter().find(|(one, other)| one == other) {
        reading
            .report(Diagnostic::error(table.place("to"), format!("{what} goes from \"{node}\" to itself")));
        return None;
    }
    context.paths?;
    let from_known = all_known(reading, table, "from", &from, context.topology);
    let to_known = all_known(reading, table, "to", &to, context.topology);
    if !from_known || !to_known {
        return None;
    }
    let number = |name: &str| context.topology.node(name).expect("all names were just found");
    let numbers: Vec<(u16, u16)> = pairs.iter().map(|(here, there)| (number(here), number(there))).collect();
    all_routed(reading, table.place("to"), what, source, &numbers, context).then_some(numbers)
}

/// Pairs of nodes, and the hosts among which a source draws its pairs.
type Among = (Vec<(u16, u16)>, Vec<u16>);

/// Some of the pairs of traffic among hosts, and the hosts. Each host sends to the next one, and to the one
/// half way around: a near one and a far one in every topology. If these have paths, all pairs have.
fn among(
    reading: &mut Reading,
    table: &Table,
    what: &str,
    source: &TrafficEntry,
    context: &Context<'_>,
) -> Option<Among> {
    for key in ENDS.into_iter().filter(|key| table.has(key)) {
        let message = format!("{what}: {} draws its pairs of nodes among the hosts", source.entry.name);
        let wrong = Diagnostic::error(table.place(key), message);
        reading.report(wrong.help(format!("leave {key} out, and write for example hosts = \"h[1-16]\"")));
    }
    if !table.has("hosts") && !ENDS.iter().any(|key| table.has(key)) {
        reading.missing(table, what, "hosts");
    }
    let names = reading.nodes(table, "hosts")?;
    context.paths?;
    if ENDS.into_iter().any(|key| table.has(key))
        || !all_known(reading, table, "hosts", &names, context.topology)
    {
        return None;
    }
    let number = |name: &String| context.topology.node(name).expect("all names were just found");
    let hosts: Vec<u16> = names.iter().map(number).collect();
    let count = hosts.len();
    let mut pairs: Vec<(u16, u16)> = Vec::new();
    // With a single host the source reports that it needs two.
    for step in [1, count / 2].into_iter().filter(|_| count > 1) {
        pairs.extend((0..count).map(|at| (hosts[at], hosts[(at + step) % count])));
    }
    pairs.sort_unstable();
    pairs.dedup();
    all_routed(reading, table.place("hosts"), what, source, &pairs, context).then_some((pairs, hosts))
}

/// Reports hosts in the scenario if the source does not draw its pairs among them.
fn refuse_hosts(reading: &mut Reading, table: &Table, what: &str, source: &TrafficEntry) {
    if table.has("hosts") {
        let message = format!("{what}: {} does not draw its pairs of nodes among hosts", source.entry.name);
        let help = match source.placed {
            NodeOrigin::File => "leave hosts out",
            _ => "write from and to",
        };
        reading.report(Diagnostic::error(table.place("hosts"), message).help(help));
    }
}

/// The sum of the rates of the links that leave some nodes.
fn access(hosts: &[u16], topology: &Topology) -> Rate {
    if hosts.is_empty() {
        return Rate::default();
    }
    let hosts: BTreeSet<u16> = hosts.iter().copied().collect();
    let rates =
        topology.ports.iter().filter(|port| hosts.contains(&port.from)).map(|port| port.rate.as_bit());
    Rate::bit(rates.fold(0, u64::saturating_add))
}

/// The keys that name the nodes of a traffic.
const ENDS: [&str; 2] = ["from", "to"];

/// Reports nodes in the scenario if the file of the source names them. Returns true if there are any.
fn refuse_ends(reading: &mut Reading, table: &Table, what: &str, source: &TrafficEntry) -> bool {
    let written = || ENDS.into_iter().filter(|key| table.has(key));
    for key in written() {
        let message = format!("{what}: {} names its nodes in its file", source.entry.name);
        reading.report(Diagnostic::error(table.place(key), message).help(format!("leave {key} out")));
    }
    written().next().is_some()
}

/// The pairs of nodes of a source: the pairs that its file names, or the pairs of the scenario.
fn resolve_pairs(
    reading: &mut Reading,
    stream: &Stream,
    what: &str,
    source: &TrafficEntry,
    named: Option<Vec<(u16, u16)>>,
    context: &Context<'_>,
) -> Option<Vec<(u16, u16)>> {
    let place = stream.table.place("file");
    let Some(mut named) = named else {
        if source.placed == NodeOrigin::Either && stream.pairs.is_empty() {
            let wrong = Diagnostic::error(place, format!("{what}: the file names no nodes"));
            reading.report(wrong.help("write from and to, or give it the columns src and dst"));
            return None;
        }
        return Some(stream.pairs.clone());
    };
    if source.placed == NodeOrigin::Either && refuse_ends(reading, &stream.table, what, source) {
        return None;
    }
    named.sort_unstable();
    named.dedup();
    all_routed(reading, place, what, source, &named, context).then_some(named)
}

/// Returns true if there is a route between the nodes of each pair, and a route back for traffic with
/// answers. Reports an error for the first pair without a route.
fn all_routed(
    reading: &mut Reading,
    place: Range<usize>,
    what: &str,
    source: &TrafficEntry,
    pairs: &[(u16, u16)],
    context: &Context<'_>,
) -> bool {
    let Some(paths) = context.paths else { return false };
    let name = |node: u16| &context.topology.nodes[usize::from(node)];
    for (a, b) in pairs {
        let (here, there) = (name(*a), name(*b));
        if !paths.connects(*a, *b) {
            let message = format!("{what}: there is no path from \"{here}\" to \"{there}\"");
            reading.report(Diagnostic::error(place, message).label("unreachable"));
            return false;
        }
        if source.answered && !paths.connects(*b, *a) {
            let message =
                format!("{what}: there is no path for acknowledgements from \"{there}\" to \"{here}\"");
            let wrong = Diagnostic::error(place, message);
            reading.report(wrong.help("a [[link]] has both directions unless it has back = false"));
            return false;
        }
    }
    true
}

/// Returns true if a link names each of these nodes. Reports an error for the first that no link names.
fn all_known(reading: &mut Reading, table: &Table, key: &str, names: &[String], topology: &Topology) -> bool {
    let Some(unknown) = names.iter().find(|name| topology.node(name).is_none()) else { return true };
    let wrong = Diagnostic::error(table.place(key), format!("no link has a node \"{unknown}\""));
    let help = reading.choices(unknown, &topology.nodes);
    reading.report(wrong.help(help));
    false
}

/// Reads a TCP table, with `defaults` for the keys that it does not have. Returns the valid keys of both, and
/// the configuration that they make. A key that neither has takes its value from the congestion control, if
/// it needs one, and otherwise from the preset.
fn tcp(
    reading: &mut Reading,
    node: &Node,
    what: &str,
    defaults: &Map<String, Json>,
) -> Option<(Map<String, Json>, TcpConfig)> {
    let example = "[tcp] with congestion = \"cubic\"";
    reading.layered(node, (what, example), defaults, TcpConfig::implied, TcpConfig::check)
}
