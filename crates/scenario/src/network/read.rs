//! Reads the network of a scenario file.

use std::collections::BTreeSet;
use std::ops::Range;

use giveway_disciplines::Spec;
use giveway_qdisc::{Invalid, LinkContext, PortId, Span, Streams};
use giveway_sim::Routing;

use super::contest::{self, Contest};
use super::keys::{Parts, PlainKeys, RecordKeys, RoutesKey};
use super::lints;
use super::model::Network;
use super::paths::Paths;
use super::reservations;
use super::run;
use super::timing;
use super::topology::{self, Queue, Topology, downstream};
use super::traffic;
use crate::diagnostic::Diagnostic;
use crate::fields::{self, Reading, wrong_type};
use crate::file::{ScenarioFile, Top};
use crate::hints::choices;
use crate::schedule::{self, Schedule, Times};
use crate::tree::{Node, Table};

/// Reads a scenario on a network. Returns `None` if anything in the file is wrong.
pub(crate) fn read(reading: &mut Reading, file: &ScenarioFile<'_>) -> Option<(Network, Schedule)> {
    read_as(reading, file, "a scenario")
}

/// Like [`read`], with another noun for the scenario in messages about unknown keys.
pub(crate) fn read_as(
    reading: &mut Reading,
    file: &ScenarioFile<'_>,
    noun: &str,
) -> Option<(Network, Schedule)> {
    let root = file.root;
    reading.unknown_keys(root, noun, &[fields::keys::<Top>(), fields::keys::<Parts>()].concat());
    let written_out = contest::write_out(reading, root);
    if root.has("contest") && written_out.is_none() {
        return None;
    }
    let (root, contest) = match &written_out {
        Some((with_pairs, contest)) => (with_pairs, Some(contest.clone())),
        None => (root, None),
    };
    let network = read_parts(reading, file, root, contest);
    if let Some(table) = root.get("contest").and_then(Node::table) {
        reading.keep_one_per_place(&table.span);
    }
    network
}

/// Reads the parts of a scenario whose contest is written out.
fn read_parts(
    reading: &mut Reading,
    file: &ScenarioFile<'_>,
    root: &Table,
    contest: Option<Contest>,
) -> Option<(Network, Schedule)> {
    let (times, short) = schedule::read(reading, file, None);
    let mut topology = topology::read(reading, root, file.folder, times.map(|times| times.duration));
    let plain: PlainKeys = reading.fields(root, "a scenario").unwrap_or_default();
    let phase = plain.phase.unwrap_or_default();
    let timing = timing::read(reading, root, file.folder, phase);
    timing.apply(&mut topology);
    let routing = routing(plain.routes, &topology);
    let paths = Paths::new(topology.nodes.len(), &topology.ports);
    let disciplines = disciplines(reading, root, &topology);
    let traffic = traffic::read(
        reading,
        root,
        &traffic::Context {
            paths: topology.whole.then_some(&paths),
            topology: &topology,
            duration: times.map(|times| times.duration),
            folder: file.folder,
            gso: timing.gso,
            phase,
        },
    );
    check_disciplines(reading, root, disciplines.as_deref().unwrap_or_default(), &topology);
    reservations::check(reading, &traffic, &topology, &paths);
    let record = record(reading, root);
    let measured = measured(reading, root, &topology);
    check_samples(reading, root, &record, times, measured.as_deref().unwrap_or_default().len());
    let times = times?;
    let measured = measured?;
    let mut compared = disciplines?;
    if reading.failed() {
        return None;
    }
    if compared.is_empty() {
        let first = &topology.ports[measured[0].0 as usize];
        let Queue::Fixed(spec) = &first.queue else {
            unreachable!("a port that compares has compared disciplines")
        };
        compared.push(spec.clone());
    }
    let network = Network {
        disciplines: compared,
        nodes: topology.nodes.clone(),
        ports: topology.ports.clone(),
        timing: timing.hosts,
        timing_files: timing.files,
        media: topology.media.plans.clone(),
        routing,
        traffic,
        contest,
        measured,
        sample: record.sample.unwrap_or_else(|| default_sample(times.duration)),
        size_classes: record.size_classes,
        small_packet: record.small_packet,
        senders: record.senders,
        episodes: record.episodes,
        bursts: record.bursts,
        times,
        folder: file.folder.to_owned(),
    };
    lints::check(reading, &network, root, &topology, &paths);
    Some((network, Schedule { times, short: short? }))
}

/// The choice among equally short paths.
fn routing(written: Option<RoutesKey>, topology: &Topology) -> Routing {
    match written {
        Some(RoutesKey::First) => Routing::First,
        Some(RoutesKey::Flow) => Routing::Flow,
        Some(RoutesKey::Packet) => Routing::Packet,
        None if topology.fabric => Routing::Flow,
        None => Routing::First,
    }
}

/// The default sampling interval: a thousandth of the run, within 1 ms and 1 s.
fn default_sample(duration: Span) -> Span {
    (duration / 1000).clamp(Span::ms(1), Span::s(1))
}

/// Reads the compared disciplines; empty if nothing is compared.
fn disciplines(reading: &mut Reading, root: &Table, topology: &Topology) -> Option<Vec<Spec>> {
    let Some(node) = root.get("disciplines") else {
        if topology.compares() {
            let written = topology
                .ports
                .iter()
                .find_map(|port| (port.queue == Queue::Compare).then_some(&port.written));
            let place =
                written.and_then(Option::as_ref).map_or_else(|| reading.end(), |node| node.span.clone());
            let wrong = Diagnostic::error(place, "a link compares disciplines, but there are none");
            reading
                .report(wrong.help("write for example disciplines = [\"fifo limit 100p\"] above the links"));
            return None;
        }
        return Some(Vec::new());
    };
    if !node.items().is_empty() && topology.whole && !topology.compares() {
        let wrong = Diagnostic::error(node.span.clone(), "no link compares these disciplines");
        reading.report(wrong.help("write qdisc = \"compare\" in the [[link]] at which they are compared"));
    }
    reading.compared(node)
}

/// Checks that every discipline can be built at every link where it runs.
fn check_disciplines(reading: &mut Reading, root: &Table, compared: &[Spec], topology: &Topology) {
    let nodes = root.get("disciplines").map(Node::items).unwrap_or_default();
    let streams = Streams::new(0);
    let downstream = downstream(&topology.ports);
    for (i, spec) in compared.iter().enumerate() {
        for port in
            topology.ports.iter().filter(|port| port.queue == Queue::Compare && port.rate.as_bit() > 0)
        {
            let at = root.place("disciplines");
            if !reading.check_built(
                port.spec(spec),
                nodes.get(i),
                &port.context(&streams, &downstream),
                &port.name,
                &at,
            ) {
                break;
            }
        }
    }
    for port in &topology.ports {
        for (of, _) in port.in_place_of.iter().filter(|(of, _)| !compared.contains(of)) {
            let message = format!("in_place_of: \"{of}\" is not compared");
            let known: Vec<String> = compared.iter().map(|spec| format!("\"{spec}\"")).collect();
            let wrong = Diagnostic::error(port.at.clone(), message);
            reading.report(wrong.help(format!("write one of the disciplines: {}", known.join(", "))));
        }
    }
    let end = reading.end();
    // A discipline of a topology is at many ports, and one message is enough.
    let mut refused = BTreeSet::new();
    for port in topology.ports.iter().filter(|port| port.rate.as_bit() > 0) {
        let written = port.written.as_ref().map(|node| node.span.start);
        if let Queue::Fixed(spec) = &port.queue
            && !refused.contains(&written)
            && !reading.check_built(
                spec,
                port.written.as_ref(),
                &port.context(&streams, &downstream),
                &port.name,
                &end,
            )
        {
            refused.insert(written);
        }
    }
}

impl Reading {
    /// Returns true if a discipline can be built at a link, and reports an error otherwise. `name` is the
    /// name of the port. The error is at `written`, or at `at` if the scenario does not write the discipline.
    pub fn check_built(
        &mut self,
        spec: &Spec,
        written: Option<&Node>,
        context: &LinkContext,
        name: &str,
        at: &Range<usize>,
    ) -> bool {
        let Err(Invalid { parameter, message }) = run::discipline(spec, context) else { return true };
        let span = written.map_or_else(|| at.clone(), |node| self.parameter(node, parameter));
        self.report(Diagnostic::error(span, format!("{parameter}: {message}")).label(format!("at {name}")));
        false
    }
}

/// Refuses a sampling interval with which the samples would fill the memory.
fn check_samples(
    reading: &mut Reading,
    root: &Table,
    record: &RecordKeys,
    times: Option<Times>,
    measured: usize,
) {
    /// Maximum number of samples of all measured ports together. Each is a row of the record.
    const MAX_SAMPLES: u64 = 20_000_000;
    let (Some(times), Some(sample)) = (times, record.sample.filter(|sample| !sample.is_zero())) else {
        return;
    };
    let (samples, ports) = (times.duration.as_ps() / sample.as_ps(), measured.max(1) as u64);
    if samples.saturating_mul(ports) <= MAX_SAMPLES {
        return;
    }
    let place =
        root.get("record").and_then(Node::table).map_or_else(|| reading.end(), |table| table.place("sample"));
    let message = format!(
        "sample: an interval of {sample} over {} gives {samples} samples of each port",
        times.duration
    );
    // Rounded up to a whole microsecond, which is easy to write.
    let least = (times.duration.as_ps() / (MAX_SAMPLES / ports).max(1)).div_ceil(1_000_000);
    let wrong = Diagnostic::error(place, message);
    reading.report(wrong.help(format!("write at least \"{}\"", Span::us(least.max(1)))));
}

/// Reads `[record]`.
fn record(reading: &mut Reading, root: &Table) -> RecordKeys {
    let example = "port = \"home->isp\"";
    let Some((table, record)) = reading.section::<RecordKeys>(root, "record", example) else {
        return RecordKeys::default();
    };
    if record.sample.is_some_and(Span::is_zero) {
        let wrong = Diagnostic::error(table.place("sample"), "sample: the interval must be longer than 0");
        reading.report(wrong.help("write for example \"100 ms\""));
    }
    if record.size_classes.as_ref().is_some_and(|classes| !classes.is_sorted_by(|a, b| a < b)) {
        reading.report(Diagnostic::error(
            table.place("size_classes"),
            "size_classes: each class must be larger than the one before",
        ));
    }
    record
}

/// The measured ports: the named ones; by default those that compare, or all if none compares.
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
            let message = "port: expected the name of a port, such as \"home->isp\"";
            reading.report(wrong_type(item, message));
            return None;
        };
        match topology.port(name) {
            Some(at) => measured.push(id(at)),
            None if !topology.whole => return None,
            None => {
                let wrong = Diagnostic::error(item.span.clone(), format!("no link has a port \"{name}\""));
                reading.report(wrong.help(choices(name, &names)));
                return None;
            }
        }
    }
    if measured.is_empty() {
        reading.report(Diagnostic::error(node.span.clone(), "port: at least one is needed"));
        return None;
    }
    Some(measured)
}
