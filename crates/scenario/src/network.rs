//! A scenario on a network: links, traffic and what is measured there.
//!
//! ```text
//! keys.rs           what is written
//! topology.rs       links, made into nodes and ports
//! names.rs          names of nodes, and ranges of them
//! paths.rs          the ports between two nodes
//! traffic.rs        sources with their places
//! reservations.rs   what is reserved must fit
//! bounds.rs         what reservations are worth
//! traps.rs          what is legal but hardly meant
//! run.rs            a run of it, and what a recorder must know
//! ```

mod bounds;
mod keys;
mod names;
mod paths;
mod reservations;
mod run;
mod topology;
mod traffic;
mod traps;

use std::ops::Range;
use std::path::PathBuf;

use giveway_disciplines::Spec;
use giveway_qdisc::{Bytes, Invalid, LinkContext, PortId, Span, Streams};

pub use self::bounds::{Bound, LinkBounds, StreamBounds};
pub(crate) use self::keys::{Common, Ends, Parts, Record, Way};
pub(crate) use self::paths::Paths;
pub use self::run::{Build, Crossed, Finished, Measured, discipline};
pub use self::topology::{Port, Queue};
use self::topology::{Topology, onward};
pub use self::traffic::Stream;
use crate::diagnostic::Diagnostic;
use crate::draft::choices;
use crate::fields::{self, Reading};
use crate::scenario::{Around, Times};
use crate::tree::{Node, Table};

/// A network with its traffic, in which disciplines are compared.
#[derive(Clone, Debug)]
pub struct Network {
    /// What is compared. Never empty: a scenario that compares nothing has the discipline of its first measured port.
    pub disciplines: Vec<Spec>,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Both directions of all links; a port's place is its number.
    pub ports: Vec<Port>,
    /// Who sends what, and when.
    pub traffic: Vec<Stream>,
    /// The measured ports.
    pub measured: Vec<PortId>,
    /// How often ports are sampled.
    pub sample: Span,
    /// Upper ends of the classes of transfer sizes; none where the scenario leaves them to the record.
    pub size_classes: Option<Vec<Bytes>>,
    /// Packets up to this length are small; none where the scenario leaves it to the record.
    pub small_packet: Option<Bytes>,
    /// Whether senders are sampled too.
    pub senders: bool,
    /// Whether is counted how often each flow became backlogged.
    pub episodes: bool,
    /// Whether burstiness is measured.
    pub bursts: bool,
    /// Those of the scenario.
    times: Times,
    /// File names of the traffic are relative to it.
    folder: PathBuf,
}

impl Network {
    /// How long the links between two nodes take, one way, in a network that has a path between them.
    pub(crate) fn delay(&self, paths: &Paths, from: u16, to: u16) -> Span {
        let path = paths.path(from, to).unwrap_or_default();
        path.iter().fold(Span::ZERO, |sum, at| sum + self.ports[*at].delay)
    }

    /// The paths between its nodes.
    pub(crate) fn paths(&self) -> Paths {
        Paths::new(self.nodes.len(), &self.ports)
    }

    /// Every text of the traffic.
    pub(crate) fn visit_texts(&self, visit: &mut dyn FnMut(&str)) {
        for entry in self.traffic.iter().flat_map(|stream| &stream.table.entries) {
            entry.node.visit_texts(&mut |_, text| visit(text));
        }
    }
}

/// The keys of a file that are a network's own.
pub(crate) fn keys() -> Vec<String> {
    fields::keys::<Parts>()
}

/// Reads what is a network's own; `None` when anything in the whole file is wrong so far.
pub(crate) fn read(reading: &mut Reading, around: &Around<'_>) -> Option<Network> {
    let root = around.root;
    let topology = topology::read(reading, root);
    let paths = Paths::new(topology.nodes.len(), &topology.ports);
    let disciplines = disciplines(reading, root, &topology);
    let traffic = traffic::read(
        reading,
        root,
        &traffic::Around {
            paths: topology.whole.then_some(&paths),
            topology: &topology,
            duration: around.times.map(|times| times.duration),
            folder: around.folder,
        },
    );
    check_disciplines(reading, root, disciplines.as_deref().unwrap_or_default(), &topology);
    reservations::check(reading, &traffic, &topology, &paths);
    let record = record(reading, root);
    let measured = measured(reading, root, &topology);
    check_samples(reading, root, &record, around.times, measured.as_deref().unwrap_or_default().len());
    let times = around.times?;
    let measured = measured?;
    let mut compared = disciplines?;
    if reading.failed() {
        return None;
    }
    if compared.is_empty() {
        let first = &topology.ports[measured[0].0 as usize];
        let Queue::Fixed(spec) = &first.queue else {
            unreachable!("compared disciplines were checked to be there")
        };
        compared.push(spec.clone());
    }
    let network = Network {
        disciplines: compared,
        nodes: topology.nodes.clone(),
        ports: topology.ports.clone(),
        traffic,
        measured,
        sample: record.sample.unwrap_or_else(|| (times.duration / 1000).clamp(Span::ms(1), Span::s(1))),
        size_classes: record.size_classes,
        small_packet: record.small_packet,
        senders: record.senders,
        episodes: record.episodes,
        bursts: record.bursts,
        times,
        folder: around.folder.to_owned(),
    };
    traps::look(reading, &network, root, &topology, &paths);
    Some(network)
}

/// The compared disciplines; empty where nothing is compared.
fn disciplines(reading: &mut Reading, root: &Table, topology: &Topology) -> Option<Vec<Spec>> {
    let Some(node) = root.get("disciplines") else {
        if topology.compares() {
            let written = topology
                .ports
                .iter()
                .find_map(|port| (port.queue == Queue::Compare).then_some(&port.written));
            let place =
                written.and_then(Option::as_ref).map_or_else(|| reading.end(), |node| node.span.clone());
            let wrong = Diagnostic::error(place, "there are no disciplines to compare");
            reading.tell(wrong.help("write for example disciplines = [\"fifo limit 100p\"] above the links"));
            return None;
        }
        return Some(Vec::new());
    };
    if !node.items().is_empty() && topology.whole && !topology.compares() {
        let wrong = Diagnostic::error(node.span.clone(), "no link compares these disciplines");
        reading.tell(wrong.help("write qdisc = \"compare\" in the [[link]] where they take their turns"));
    }
    reading.compared(node)
}

/// Builds every discipline once for every site where it will stand.
fn check_disciplines(reading: &mut Reading, root: &Table, compared: &[Spec], topology: &Topology) {
    let nodes = root.get("disciplines").map(Node::items).unwrap_or_default();
    let streams = Streams::new(0);
    let onward = onward(&topology.ports);
    for (i, spec) in compared.iter().enumerate() {
        for port in
            topology.ports.iter().filter(|port| port.queue == Queue::Compare && port.rate.as_bit() > 0)
        {
            let at = root.place("disciplines");
            if !reading.check_built(spec, nodes.get(i), &port.context(&streams, &onward), &port.name, &at) {
                break;
            }
        }
    }
    let end = reading.end();
    for port in topology.ports.iter().filter(|port| port.rate.as_bit() > 0) {
        if let Queue::Fixed(spec) = &port.queue {
            reading.check_built(
                spec,
                port.written.as_ref(),
                &port.context(&streams, &onward),
                &port.name,
                &end,
            );
        }
    }
}

impl Reading {
    /// Tells when a discipline cannot be built for a site; `place` names the site.
    pub fn check_built(
        &mut self,
        spec: &Spec,
        written: Option<&Node>,
        context: &LinkContext,
        place: &str,
        at: &Range<usize>,
    ) -> bool {
        let Err(Invalid { parameter, message }) = run::discipline(spec, context) else { return true };
        let span = written.map_or_else(|| at.clone(), |node| self.parameter(node, parameter));
        self.tell(Diagnostic::error(span, format!("{parameter}: {message}")).label(format!("at {place}")));
        false
    }
}

/// Refuses to sample so often that the samples fill the memory.
fn check_samples(
    reading: &mut Reading,
    root: &Table,
    record: &Record,
    times: Option<Times>,
    measured: usize,
) {
    /// All measured ports together; each sample is a row of the record.
    const MOST_SAMPLES: u64 = 20_000_000;
    let (Some(times), Some(sample)) = (times, record.sample.filter(|sample| !sample.is_zero())) else {
        return;
    };
    let (samples, ports) = (times.duration.as_ps() / sample.as_ps(), measured.max(1) as u64);
    if samples.saturating_mul(ports) <= MOST_SAMPLES {
        return;
    }
    let place =
        root.get("record").and_then(Node::table).map_or_else(|| reading.end(), |table| table.place("sample"));
    let message = format!("sample: {sample} over {} are {samples} samples of each port", times.duration);
    // Rounded up to a whole microsecond, which is easy to write.
    let least = (times.duration.as_ps() / (MOST_SAMPLES / ports).max(1)).div_ceil(1_000_000);
    let wrong = Diagnostic::error(place, message);
    reading.tell(wrong.help(format!("write at least \"{}\"", Span::us(least.max(1)))));
}

fn record(reading: &mut Reading, root: &Table) -> Record {
    let Some(node) = root.get("record") else { return Record::default() };
    let Some(table) = reading.table(node, "[record]", "[record] with port = \"home->isp\"") else {
        return Record::default();
    };
    reading.unknown_keys(table, "[record]", &fields::keys::<Record>());
    let record: Record = reading.fields(table, "[record]").unwrap_or_default();
    if record.sample.is_some_and(Span::is_zero) {
        let wrong = Diagnostic::error(table.place("sample"), "sample: an interval of 0 would never end");
        reading.tell(wrong.help("write for example \"100 ms\""));
    }
    if record.size_classes.as_ref().is_some_and(|classes| !classes.is_sorted_by(|a, b| a < b)) {
        reading.tell(Diagnostic::error(
            table.place("size_classes"),
            "size_classes: each must be larger than the one before",
        ));
    }
    record
}

/// The measured ports: those that are named, otherwise those that compare, otherwise all.
fn measured(reading: &mut Reading, root: &Table, topology: &Topology) -> Option<Vec<PortId>> {
    let id = |at: usize| PortId(at as u32);
    let Some(node) = root.get("record").and_then(Node::table).and_then(|table| table.get("port")) else {
        let comparing = (0..topology.ports.len()).filter(|at| topology.ports[*at].queue == Queue::Compare);
        let comparing: Vec<PortId> = comparing.map(id).collect();
        return match comparing.is_empty() {
            true if topology.ports.is_empty() => None,
            true => Some((0..topology.ports.len()).map(id).collect()),
            false => Some(comparing),
        };
    };
    let names: Vec<&str> = topology.ports.iter().map(|port| port.name.as_str()).collect();
    let mut measured = Vec::new();
    for item in node.items() {
        let Some(name) = item.text() else {
            let wrong = Diagnostic::error(
                item.span.clone(),
                "port: expected the name of a port, such as \"home->isp\"",
            );
            reading.tell(wrong.label(format!("this is {}", item.what())));
            return None;
        };
        match topology.port(name) {
            Some(at) => measured.push(id(at)),
            None if !topology.whole => return None,
            None => {
                let wrong = Diagnostic::error(item.span.clone(), format!("no link has a port \"{name}\""));
                reading.tell(wrong.help(choices(name, &names)));
                return None;
            }
        }
    }
    if measured.is_empty() {
        reading.tell(Diagnostic::error(node.span.clone(), "port: with none there is nothing to measure"));
        return None;
    }
    Some(measured)
}
