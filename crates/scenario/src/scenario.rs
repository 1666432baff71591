//! The typed scenario, and how it comes out of a draft.

use std::path::{Path, PathBuf};

use disciplines::Spec;
use qdisc::{Bytes, PortId, Span, Streams};

use crate::diagnostic::{Diagnostic, Origin, Severity, Wrong};
use crate::draft::{Draft, choices};
use crate::fields::{Reading, keys, mistyped};
use crate::file::{Record, Short, Top};
use crate::topology::{self, Port, Queue, Topology, onward};
use crate::traffic::{self, Around, Stream};
use crate::traps;
use crate::tree::{Node, Table, Value};

/// A scenario in which everything is known and nothing is wrong.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// One line: what it is about.
    pub title: String,
    /// What it shows.
    pub description: String,
    /// How long it lasts.
    pub duration: Span,
    /// The first part, which is not measured.
    pub warmup: Span,
    /// One run of each discipline for each of them.
    pub seeds: Vec<u64>,
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
    /// What is legal but hardly meant.
    pub warnings: Vec<Diagnostic>,
    /// How a quick check runs.
    short: Settled,
    draft: Draft,
}

/// Duration, warm-up and number of seeds of a short run.
#[derive(Clone, Copy, Debug)]
struct Settled {
    duration: Span,
    warmup: Span,
    seeds: u32,
}

impl Scenario {
    /// Reads a scenario from its text; file names in it are relative to `folder`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, folder: impl Into<PathBuf>) -> Result<Scenario, Wrong> {
        Draft::parse(text, folder).finish()
    }

    /// Where its words come from, for showing its [`warnings`](Scenario::warnings).
    pub fn origin(&self) -> &Origin {
        &self.draft.origin
    }

    /// The scenario as TOML, flags included.
    pub fn text(&self) -> String {
        self.draft.text()
    }

    /// The files that its traffic names.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for entry in self.traffic.iter().flat_map(|stream| &stream.table.entries) {
            entry.node.visit_texts(&mut |_, text| {
                let file = self.folder().join(text);
                if file.is_file() {
                    files.push(file);
                }
            });
        }
        files
    }

    /// The same scenario with seeds 1 to `count`, at least one. Its text stays: seeds can be added later.
    pub fn with_seeds(self, count: u32) -> Scenario {
        Scenario { seeds: (1..=u64::from(count.max(1))).collect(), ..self }
    }

    /// The same scenario for a quick check: as its `[short]` says, otherwise at most five seconds and one seed.
    ///
    /// # Errors
    /// When it makes no sense in that time.
    pub fn short(&self) -> Result<Scenario, Wrong> {
        let Settled { duration, warmup, seeds } = self.short;
        let flag = "--short";
        self.draft
            .clone()
            .apply(flag, &format!("duration={duration}"))
            .apply(flag, &format!("warmup={warmup}"))
            .apply(flag, &format!("seeds={seeds}"))
            .finish()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.draft.folder
    }

    pub(crate) fn read(draft: Draft) -> Result<Scenario, Wrong> {
        let mut reading = Reading { origin: draft.origin.clone(), found: draft.found.clone() };
        // What is left of a broken document would only give messages about what is missing from it.
        let scenario = if reading.found.is_empty() { read(&mut reading, draft) } else { None };
        let Reading { origin, mut found } = reading;
        found.sort_by(|a, b| (a.span.start, &a.message).cmp(&(b.span.start, &b.message)));
        // Links of a range have one place and would say the same ten times.
        found.dedup_by(|b, a| (&a.span, &a.message) == (&b.span, &b.message));
        let wrong = found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        match scenario {
            Some(scenario) if !wrong => Ok(Scenario { warnings: found, ..scenario }),
            _ => Err(Wrong { origin, diagnostics: found }),
        }
    }
}

fn read(reading: &mut Reading, draft: Draft) -> Option<Scenario> {
    let root = &draft.root;
    reading.unknown_keys(root, "a scenario", &keys::<Top>());
    let top: Top = reading.fields(root, "a scenario").unwrap_or_default();
    host(reading, root);
    let seeds = seeds(reading, root);
    let topology = topology::read(reading, root);
    let disciplines = disciplines(reading, root, &topology);
    let times = times(reading, root, &top);
    let around = Around {
        routes: topology.whole.then(|| topology.routes()),
        topology: &topology,
        duration: times.map(|(duration, _)| duration),
        folder: &draft.folder,
    };
    let traffic = traffic::read(reading, root, &around);
    check_disciplines(reading, root, disciplines.as_deref().unwrap_or_default(), &topology);
    let record = record(reading, root);
    let measured = measured(reading, root, &topology);
    let short = short(reading, root, times);

    let errors = reading.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let (duration, warmup) = times?;
    let measured = measured?;
    let mut compared = disciplines?;
    if errors {
        return None;
    }
    if compared.is_empty() {
        let first = &topology.ports[measured[0].0 as usize];
        let Queue::Fixed(spec) = &first.queue else {
            unreachable!("compared disciplines were checked to be there")
        };
        compared.push(spec.clone());
    }
    let root = root.clone();
    let scenario = Scenario {
        title: top.title.unwrap_or_default(),
        description: top.description.unwrap_or_default(),
        duration,
        warmup,
        seeds: seeds?,
        disciplines: compared,
        nodes: topology.nodes.clone(),
        ports: topology.ports.clone(),
        traffic,
        measured,
        sample: record.sample.unwrap_or_else(|| (duration / 1000).clamp(Span::ms(1), Span::s(1))),
        size_classes: record.size_classes,
        small_packet: record.small_packet,
        senders: record.senders,
        episodes: record.episodes,
        bursts: record.bursts,
        warnings: Vec::new(),
        short: short?,
        draft,
    };
    traps::look(reading, &scenario, &root, &topology);
    Some(scenario)
}

/// The network is the only host so far; others are known by name.
fn host(reading: &mut Reading, root: &Table) {
    let Some(node) = root.get("host") else { return };
    let wrong = |message: String| Diagnostic::error(node.span.clone(), message);
    match node.text() {
        Some("network") => {}
        Some(known @ ("switch" | "live")) => {
            reading.tell(
                wrong(format!("the host \"{known}\" is not built yet"))
                    .help("leave host out, or write \"network\""),
            );
        }
        Some(name) => reading.tell(
            wrong(format!("unknown host \"{name}\"")).help(choices(name, &["network", "switch", "live"])),
        ),
        None => reading.tell(wrong("host: expected a name".into()).label(format!("this is {}", node.what()))),
    }
}

fn seeds(reading: &mut Reading, root: &Table) -> Option<Vec<u64>> {
    const MOST: i64 = 100_000;
    let Some(node) = root.get("seeds") else { return Some(vec![1]) };
    let mut wrong = |place: &Node, message: &str| {
        let wrong = Diagnostic::error(place.span.clone(), message);
        reading.tell(wrong.help("write how many, as in seeds = 3, or which, as in seeds = [1, 7, 42]"));
        None
    };
    match &node.value {
        Value::Integer(count @ 1..=MOST) => Some((1..=*count as u64).collect()),
        Value::Integer(0) => wrong(node, "seeds: with none there is nothing to run"),
        Value::Integer(_) => wrong(node, "seeds: expected a count from 1 to 100000"),
        Value::List(items) if items.is_empty() => wrong(node, "seeds: with none there is nothing to run"),
        Value::List(items) => {
            let mut seeds = Vec::with_capacity(items.len());
            for item in items {
                match item.value {
                    Value::Integer(seed) if seed >= 0 && seeds.contains(&(seed as u64)) => {
                        return wrong(item, "seeds: this one is there twice");
                    }
                    Value::Integer(seed) if seed >= 0 => seeds.push(seed as u64),
                    _ => return wrong(item, "seeds: expected whole numbers that are not negative"),
                }
            }
            Some(seeds)
        }
        _ => wrong(node, "seeds: expected a count or a list"),
    }
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
    let nodes = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if nodes.is_empty() {
        let wrong = Diagnostic::error(node.span.clone(), "there are no disciplines to compare");
        reading.tell(wrong.help("write for example disciplines = [\"fifo limit 100p\"]"));
        return None;
    }
    if topology.whole && !topology.compares() {
        let wrong = Diagnostic::error(node.span.clone(), "no link compares these disciplines");
        reading.tell(wrong.help("write qdisc = \"compare\" in the [[link]] where they take their turns"));
    }
    let mut specs: Vec<Spec> = Vec::with_capacity(nodes.len());
    let mut whole = true;
    for item in nodes {
        match reading.spec(item) {
            Some(spec) if specs.contains(&spec) => {
                whole = false;
                reading.tell(Diagnostic::error(
                    item.span.clone(),
                    format!("\"{spec}\" is compared with itself"),
                ));
            }
            Some(spec) => specs.push(spec),
            None => whole = false,
        }
    }
    whole.then_some(specs)
}

/// Builds every discipline once for every site where it will stand.
fn check_disciplines(reading: &mut Reading, root: &Table, compared: &[Spec], topology: &Topology) {
    let nodes: Vec<Node> = match root.get("disciplines") {
        Some(Node { value: Value::List(items), .. }) => items.clone(),
        Some(node) => vec![node.clone()],
        None => Vec::new(),
    };
    let streams = Streams::new(0);
    let onward = onward(&topology.ports);
    for (i, spec) in compared.iter().enumerate() {
        for port in
            topology.ports.iter().filter(|port| port.queue == Queue::Compare && port.rate.as_bit() > 0)
        {
            let at = root.place("disciplines");
            if !reading.check_built(spec, nodes.get(i), &port.site(&streams, &onward), &port.name, &at) {
                break;
            }
        }
    }
    let end = reading.end();
    for port in topology.ports.iter().filter(|port| port.rate.as_bit() > 0) {
        if let Queue::Fixed(spec) = &port.queue {
            reading.check_built(spec, port.written.as_ref(), &port.site(&streams, &onward), &port.name, &end);
        }
    }
}

/// Duration and warm-up.
fn times(reading: &mut Reading, root: &Table, top: &Top) -> Option<(Span, Span)> {
    if !root.has("duration") {
        if mistyped(root, "duration") {
            return None;
        }
        let wrong = Diagnostic::error(reading.top(), "a scenario needs \"duration\"");
        reading.tell(wrong.help("write for example duration = \"60 s\" at the top"));
        return None;
    }
    let duration = top.duration?;
    if duration.is_zero() {
        reading.tell(Diagnostic::error(root.place("duration"), "duration: a run of 0 shows nothing"));
        return None;
    }
    let warmup = match top.warmup {
        None if root.has("warmup") => return None,
        None => Span::ZERO,
        Some(warmup) => warmup,
    };
    if warmup >= duration {
        let message = format!("warmup: {warmup} leaves nothing of the duration of {duration} to measure");
        reading.tell(Diagnostic::error(root.place("warmup"), message));
        return None;
    }
    Some((duration, warmup))
}

fn record(reading: &mut Reading, root: &Table) -> Record {
    let Some(node) = root.get("record") else { return Record::default() };
    let Some(table) = reading.table(node, "[record]", "[record] with port = \"home->isp\"") else {
        return Record::default();
    };
    reading.unknown_keys(table, "[record]", &keys::<Record>());
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
    let nodes = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let names: Vec<&str> = topology.ports.iter().map(|port| port.name.as_str()).collect();
    let mut measured = Vec::new();
    for item in nodes {
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

fn short(reading: &mut Reading, root: &Table, times: Option<(Span, Span)>) -> Option<Settled> {
    let table = match root.get("short") {
        Some(node) => Some(reading.table(node, "[short]", "[short] with duration = \"5 s\"")?),
        None => None,
    };
    let short: Short = match table {
        Some(table) => {
            reading.unknown_keys(table, "[short]", &keys::<Short>());
            reading.fields(table, "[short]").unwrap_or_default()
        }
        None => Short::default(),
    };
    let (full, warmup) = times?;
    let duration = short.duration.unwrap_or(Span::s(5)).min(full);
    let warmup = short.warmup.unwrap_or_else(|| warmup.scale(duration.as_ps(), full.as_ps()));
    if duration.is_zero() || warmup >= duration {
        let place = table.map_or_else(|| reading.end(), |table| table.place("warmup"));
        let message = format!("[short]: a warm-up of {warmup} leaves nothing of {duration} to measure");
        reading.tell(Diagnostic::error(place, message));
        return None;
    }
    Some(Settled { duration, warmup, seeds: short.seeds.unwrap_or(1).max(1) })
}
