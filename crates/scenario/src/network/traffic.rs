//! Traffic as it is written, made into sources with their places.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use giveway_qdisc::{Rate, Span, Streams, Time};
use giveway_sim::{Place, Placed, SOURCES, TcpConfig, TrafficEntry, TrafficSpec};
use serde_json::{Map, Value as Json};

use super::Paths;
use super::keys::Common;
use super::names::crossed;
use super::topology::Topology;
use crate::diagnostic::Diagnostic;
use crate::draft::choices;
use crate::fields::{Reading, grouped, head, keys, keys_by};
use crate::tree::{Node, Table, Value};

/// One entry of the traffic. Its place in the list is its number in reports.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What it is called in tables. Entries that share a name are measured together.
    pub name: String,
    /// What tells it apart from all others: its random numbers depend on it. Its name; where others share that, with its
    /// nodes as they are written, and where others share these, too, with a number in the order of the file.
    pub id: String,
    /// The source, with its parameters.
    pub spec: TrafficSpec,
    /// Pairs of nodes, sender first.
    pub pairs: Vec<(u16, u16)>,
    /// When it begins.
    pub start: Time,
    /// When it begins nothing new any more.
    pub stop: Time,
    /// The class of its packets.
    pub class: u16,
    /// The rate that is reserved for each of its flows.
    pub reserved: Rate,
    /// Its TCP.
    pub tcp: TcpConfig,
    /// Where it is written.
    pub(crate) table: Table,
}

impl Stream {
    /// Where it is put, in a run with these streams.
    pub(crate) fn place(&self, streams: &Streams, folder: &Path, nodes: &[String]) -> Place {
        Place {
            pairs: self.pairs.clone(),
            start: self.start,
            stop: self.stop,
            tcp: self.tcp.clone(),
            streams: streams.within("traffic").within(&self.id),
            folder: folder.to_owned(),
            // Only sources that read names from a file need them. Copies for thousands of sources would add up.
            nodes: if self.spec.placed() == Placed::Scenario { Vec::new() } else { nodes.to_vec() },
        }
    }
}

/// The most entries of traffic: sources are numbered with 16 bits.
const MOST_STREAMS: usize = 65_535;

/// What traffic is read against.
pub(crate) struct Around<'a> {
    pub topology: &'a Topology,
    /// None while the network has mistakes of its own.
    pub paths: Option<&'a Paths>,
    pub duration: Option<Span>,
    pub folder: &'a Path,
}

/// Reads all traffic.
pub(crate) fn read(reading: &mut Reading, root: &Table, around: &Around<'_>) -> Vec<Stream> {
    let defaults = match root.get("tcp") {
        Some(node) => tcp(reading, node, "[tcp]", &Map::new()),
        None => Some((Map::new(), TcpConfig::default())),
    };
    let entries = match root.get("traffic") {
        Some(Node { value: Value::List(entries), .. }) if !entries.is_empty() => entries,
        None | Some(Node { value: Value::List(_), .. }) => {
            let place = if root.has("traffic") { root.place("traffic") } else { reading.end() };
            let wrong = Diagnostic::error(place, "a scenario needs traffic");
            reading.tell(wrong.help("write [[traffic]] with kind, from and to"));
            return Vec::new();
        }
        Some(node) => {
            let wrong = Diagnostic::error(node.span.clone(), "traffic is a list of tables");
            reading.tell(
                wrong.label(format!("this is {}", node.what())).help("write [[traffic]], with two brackets"),
            );
            return Vec::new();
        }
    };
    if let Some(first) = entries.get(MOST_STREAMS) {
        let message = format!("there are more than {} entries of traffic", grouped(MOST_STREAMS));
        let wrong = Diagnostic::error(first.span.clone(), message).label("this is one too many");
        reading.tell(wrong.help("an entry can have many flows: write flows = 10, or ranges of nodes"));
        return Vec::new();
    }
    let mut names = Names::default();
    let mut streams: Vec<Stream> = entries
        .iter()
        .filter_map(|node| {
            let table = reading.table(node, "traffic", "[[traffic]] with kind, from and to")?;
            let name = names.of(reading, table);
            entry(reading, table, name, defaults.as_ref(), around)
        })
        .collect();
    tell_apart(&mut streams);
    streams
}

/// Names that are taken.
#[derive(Default)]
struct Names {
    /// All of them, as long as entries are read.
    taken: BTreeSet<String>,
    /// For each kind the number to try next: names are never given back, so smaller ones stay taken.
    next: BTreeMap<String, u64>,
}

impl Names {
    /// The name of an entry: its own, or its kind, with a number where that is taken.
    fn of(&mut self, reading: &mut Reading, table: &Table) -> String {
        if let Some(node) = table.get("name") {
            let name = node.text().unwrap_or_default().to_owned();
            if name.is_empty() && node.text().is_some() {
                reading.tell(Diagnostic::error(node.span.clone(), "name: it cannot be empty"));
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

/// Fills in what tells entries apart: [`Stream::id`].
fn tell_apart(streams: &mut [Stream]) {
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

fn entry(
    reading: &mut Reading,
    table: &Table,
    name: String,
    defaults: Option<&(Map<String, Json>, TcpConfig)>,
    around: &Around<'_>,
) -> Option<Stream> {
    let what = format!("traffic \"{name}\"");
    let common: Common = reading.fields(table, &what)?;
    let source = kind(reading, table, &what);
    let spec = source.and_then(|source| {
        let own = keys_by(source.schema);
        reading.unknown_keys(
            table,
            &format!("{} traffic", source.name),
            &[keys::<Common>(), own.clone()].concat(),
        );
        reading.read(table, &what, &own, &|json| (source.from_json)(json)).1
    });
    let tcp = match (table.get("tcp"), defaults) {
        (Some(node), Some((defaults, _))) => tcp(reading, node, "tcp", defaults),
        (Some(node), None) => tcp(reading, node, "tcp", &Map::new()),
        (None, defaults) => defaults.cloned(),
    };
    let pairs = pairs(reading, table, &what, source?, common.every_pair, around);
    let end = around.duration.map(|duration| Time::ZERO + duration);
    let start = Time::ZERO + common.start.unwrap_or_default();
    let told = common.stop.map(|stop| Time::ZERO + stop);
    if let Some(early) = told.filter(|stop| *stop <= start) {
        let message = format!("{what} stops at {early}, before it starts");
        reading.tell(Diagnostic::error(table.place("stop"), message).label(format!("it starts at {start}")));
        return None;
    }
    let mut stream = Stream {
        id: name.clone(),
        name,
        spec: spec?,
        pairs: pairs?,
        start,
        stop: told.or(end)?,
        class: common.class.unwrap_or_default(),
        reserved: common.reserved.unwrap_or_default(),
        tcp: tcp?.1,
        table: table.clone(),
    };
    let built = stream.spec.build(&stream.place(&Streams::new(0), around.folder, &around.topology.nodes));
    match built {
        Ok(built) => stream.pairs = settled(reading, &stream, &what, source?, built.named(), around)?,
        Err(invalid) => {
            let place = table
                .get(invalid.parameter)
                .map_or_else(|| head(&reading.origin, table), |node| node.span.clone());
            reading.tell(Diagnostic::error(place, format!("{what}: {invalid}")));
            return None;
        }
    }
    Some(stream)
}

/// The source that a `kind` names.
fn kind(reading: &mut Reading, table: &Table, what: &str) -> Option<&'static TrafficEntry> {
    let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
    let Some(node) = table.get("kind") else {
        reading.missing(table, what, "kind");
        return None;
    };
    let Some(name) = node.text() else {
        let wrong = Diagnostic::error(node.span.clone(), "kind: expected the name of a source of traffic");
        reading.tell(
            wrong.label(format!("this is {}", node.what())).help(format!("there are {}", names.join(", "))),
        );
        return None;
    };
    let found = SOURCES.iter().find(|source| source.name == name);
    if found.is_none() {
        let wrong = Diagnostic::error(node.span.clone(), format!("unknown kind of traffic \"{name}\""));
        reading.tell(wrong.help(choices(name, &names)));
    }
    found
}

/// The pairs of nodes that the scenario says it flows between, all of which have a way; none where a file says it.
fn pairs(
    reading: &mut Reading,
    table: &Table,
    what: &str,
    source: &TrafficEntry,
    every_pair: bool,
    around: &Around<'_>,
) -> Option<Vec<(u16, u16)>> {
    match source.placed {
        Placed::File => {
            refuse_ends(reading, table, what, source);
            // With links missing it would miss their nodes, too.
            return around.topology.whole.then(Vec::new);
        }
        // Whether the file names nodes is known when it was read.
        Placed::Either if !ENDS.iter().any(|key| table.has(key)) => {
            return around.topology.whole.then(Vec::new);
        }
        Placed::Either | Placed::Scenario => {}
    }
    for key in ENDS.into_iter().filter(|key| !table.has(key)) {
        reading.missing(table, what, key);
    }
    let (from, to) = (reading.nodes(table, "from"), reading.nodes(table, "to"));
    let (from, to) = (from?, to?);
    if every_pair && from.len() * to.len() > giveway_sim::traffic::MOST_FLOWS {
        let message = format!(
            "{what}: {} senders with {} receivers are {} pairs",
            grouped(from.len()),
            grouped(to.len()),
            grouped(from.len() * to.len())
        );
        let most = grouped(giveway_sim::traffic::MOST_FLOWS);
        let wrong = Diagnostic::error(table.place("every_pair"), message);
        reading.tell(wrong.help(format!("an entry has at most {most}: name fewer nodes")));
        return None;
    }
    let pairs = if every_pair { crossed(&from, &to) } else { reading.pairs(table, &from, &to)? };
    if let Some((node, _)) = pairs.iter().find(|(one, other)| one == other) {
        reading.tell(Diagnostic::error(table.place("to"), format!("{what} goes from \"{node}\" to itself")));
        return None;
    }
    around.paths?;
    let from_known = all_known(reading, table, "from", &from, around.topology);
    let to_known = all_known(reading, table, "to", &to, around.topology);
    if !from_known || !to_known {
        return None;
    }
    let number = |name: &str| around.topology.node(name).expect("it was just found");
    let numbers: Vec<(u16, u16)> = pairs.iter().map(|(here, there)| (number(here), number(there))).collect();
    all_lead(reading, table.place("to"), what, source, &numbers, around).then_some(numbers)
}

/// Where the scenario says between which nodes traffic flows.
const ENDS: [&str; 2] = ["from", "to"];

/// Refuses nodes that stand in the scenario where the file names them; whether there are any.
fn refuse_ends(reading: &mut Reading, table: &Table, what: &str, source: &TrafficEntry) -> bool {
    let written = || ENDS.into_iter().filter(|key| table.has(key));
    for key in written() {
        let message = format!("{what}: {} names its nodes in its file", source.name);
        reading.tell(Diagnostic::error(table.place(key), message).help(format!("leave {key} out")));
    }
    written().next().is_some()
}

/// The pairs of nodes between which it flows: those that its file names, or those of the scenario.
fn settled(
    reading: &mut Reading,
    stream: &Stream,
    what: &str,
    source: &TrafficEntry,
    named: Option<Vec<(u16, u16)>>,
    around: &Around<'_>,
) -> Option<Vec<(u16, u16)>> {
    let place = stream.table.place("file");
    let Some(mut named) = named else {
        if source.placed == Placed::Either && stream.pairs.is_empty() {
            let wrong = Diagnostic::error(place, format!("{what}: the file names no nodes"));
            reading.tell(wrong.help("write from and to, or give it the columns src and dst"));
            return None;
        }
        return Some(stream.pairs.clone());
    };
    if source.placed == Placed::Either && refuse_ends(reading, &stream.table, what, source) {
        return None;
    }
    named.sort_unstable();
    named.dedup();
    all_lead(reading, place, what, source, &named, around).then_some(named)
}

/// Returns true if there is a route between the nodes of each pair, and a route back for traffic with answers. Reports an error
/// for the first pair without a route.
fn all_lead(
    reading: &mut Reading,
    place: Range<usize>,
    what: &str,
    source: &TrafficEntry,
    pairs: &[(u16, u16)],
    around: &Around<'_>,
) -> bool {
    let Some(paths) = around.paths else { return false };
    let name = |node: u16| &around.topology.nodes[usize::from(node)];
    for (a, b) in pairs {
        let (here, there) = (name(*a), name(*b));
        if !paths.leads(*a, *b) {
            let message = format!("{what}: no link leads on from \"{here}\" towards \"{there}\"");
            reading.tell(Diagnostic::error(place, message).label("it cannot be reached"));
            return false;
        }
        if source.answered && !paths.leads(*b, *a) {
            let message = format!("{what}: acknowledgements have no way back from \"{there}\" to \"{here}\"");
            let wrong = Diagnostic::error(place, message);
            reading.tell(wrong.help("a [[link]] has both directions unless it says back = false"));
            return false;
        }
    }
    true
}

fn all_known(reading: &mut Reading, table: &Table, key: &str, names: &[String], topology: &Topology) -> bool {
    let Some(unknown) = names.iter().find(|name| topology.node(name).is_none()) else { return true };
    let wrong = Diagnostic::error(table.place(key), format!("no link has a node \"{unknown}\""));
    let help = reading.choices(unknown, &topology.nodes);
    reading.tell(wrong.help(help));
    false
}

/// Reads a TCP table over defaults: the keys that are right, and what they make.
fn tcp(
    reading: &mut Reading,
    node: &Node,
    what: &str,
    defaults: &Map<String, Json>,
) -> Option<(Map<String, Json>, TcpConfig)> {
    let table = reading.table(node, what, "[tcp] with congestion = \"cubic\"")?;
    let known = keys::<TcpConfig>();
    reading.unknown_keys(table, what, &known);
    let (own, _) = reading.read::<TcpConfig>(table, what, &known, &|json| serde_json::from_value(json));
    let mut all = defaults.clone();
    all.extend(own);
    let config: TcpConfig = serde_json::from_value(Json::Object(all.clone()))
        .expect("each key was read alone, and all have defaults");
    if let Err(invalid) = config.check() {
        reading.tell(Diagnostic::error(table.place(invalid.parameter), format!("{what}: {invalid}")));
        return None;
    }
    Some((all, config))
}
