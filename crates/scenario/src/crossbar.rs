//! A scenario on a switch: its ports, what arrives, and the schedulers that are compared.

use std::path::{Path, PathBuf};

use giveway_qdisc::{Bytes, Invalid, Rate, Span, Streams};
use giveway_switch::options::Input;
use giveway_switch::speed::Speedup;
use giveway_switch::traffic::{Place, SOURCES, TrafficEntry, TrafficSpec};
use giveway_switch::{Outcome, Plan, Sim, Spec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::diagnostic::Diagnostic;
use crate::draft::choices;
use crate::fields::{self, Reading, head, keys_by};
use crate::file::Part;
use crate::scenario::{Around, Trial};
use crate::tree::{Node, Table, Value};

/// A switch with its traffic, on which schedulers are compared.
#[derive(Clone, Debug)]
pub struct Crossbar {
    /// What is compared. Never empty.
    pub schedulers: Vec<Spec>,
    /// Inputs, and as many outputs.
    pub ports: usize,
    /// Rate of each link.
    pub rate: Rate,
    /// How long a cell takes on a link: a slot.
    pub slot: Span,
    /// How long a run is, in slots.
    pub slots: u64,
    /// How long its first part is that is not measured, in slots.
    pub warmup: u64,
    /// What arrives.
    pub traffic: TrafficSpec,
    /// What that is called in tables.
    pub name: String,
    /// Where it is written.
    table: Table,
    /// File names of the traffic are relative to it.
    folder: PathBuf,
}

/// The parts of the file, beside the keys at its top.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Parts {
    /// The switch.
    #[schemars(with = "Part")]
    pub switch: IgnoredAny,
    /// What arrives: one table, for all inputs.
    #[schemars(with = "Part")]
    pub traffic: IgnoredAny,
    /// How a quick check of this scenario runs.
    #[schemars(with = "Part")]
    pub short: IgnoredAny,
}

/// The switch.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Switch {
    /// Inputs, and as many outputs: 2 to 1,024. Default: 16.
    pub ports: Option<u32>,
    /// Size of a cell. Default: 64b.
    pub cell: Option<Bytes>,
    /// Rate of each link; it makes slots a time. Default: 10 Gbit/s.
    pub rate: Option<Rate>,
    /// Slots of the fabric per slot of a link, for schedulers that do not say it themselves. Default: 1.
    pub speedup: Option<Speedup>,
    /// When a packet may begin to cross, likewise. Default: cut_through.
    pub input: Option<Input>,
}

/// What every kind of traffic has; its own parameters stand beside.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Common {
    /// Which kind, see giveway list traffic.
    #[schemars(with = "Option<String>")]
    pub kind: IgnoredAny,
    /// What it is called in tables. Default: the kind.
    pub name: Option<String>,
}

const PORTS: u32 = 16;
const CELL: Bytes = Bytes(64);
const RATE: Rate = Rate::gbit(10);

/// The keys of a file that are a switch's own.
pub(crate) fn keys() -> Vec<String> {
    fields::keys::<Parts>()
}

/// How long a slot is; `None` when that is wrong.
pub(crate) fn slot(reading: &mut Reading, root: &Table) -> Option<Span> {
    let switch = match root.get("switch") {
        Some(node) => {
            let table = reading.table(node, "[switch]", "[switch] with ports = 16")?;
            reading.unknown_keys(table, "[switch]", &fields::keys::<Switch>());
            reading.fields::<Switch>(table, "[switch]")?
        }
        None => Switch::default(),
    };
    let slot = switch.rate.unwrap_or(RATE).as_bit();
    let cell = switch.cell.unwrap_or(CELL);
    let slot = if slot == 0 { Span::ZERO } else { switch.rate.unwrap_or(RATE).time_for(cell.0) };
    if slot.is_zero() {
        let table = root.get("switch").and_then(Node::table);
        let place = table.map_or_else(|| reading.end(), |table| head(&reading.origin, table));
        let wrong = Diagnostic::error(place, "[switch]: a cell takes no time, or for ever");
        reading.tell(wrong.help("write for example cell = \"64b\" and rate = \"10 Gbit/s\""));
        return None;
    }
    Some(slot)
}

/// Reads what is a switch's own; `None` when anything in the whole file is wrong so far.
pub(crate) fn read(reading: &mut Reading, around: &Around<'_>) -> Option<Crossbar> {
    let root = around.root;
    let table = root.get("switch").and_then(Node::table);
    // What is wrong with it was told when its slots were asked for.
    let switch: Switch = table
        .and_then(|table| {
            let known = fields::keys::<Switch>();
            let right = table.entries.iter().filter(|entry| known.contains(&entry.key));
            let json = right.map(|entry| (entry.key.clone(), entry.node.json())).collect();
            serde_json::from_value(serde_json::Value::Object(json)).ok()
        })
        .unwrap_or_default();
    let ports = switch.ports.unwrap_or(PORTS) as usize;
    let right = giveway_switch::sim::PORTS.contains(&ports);
    if !right {
        let place = table.map_or_else(|| reading.end(), |table| table.place("ports"));
        let (least, most) = (giveway_switch::sim::PORTS.start(), giveway_switch::sim::PORTS.end());
        reading.tell(Diagnostic::error(place, format!("ports: {ports}: a switch has {least} to {most}")));
    }
    let mut schedulers = schedulers(reading, root, right.then_some(ports));
    for Spec { options, .. } in schedulers.iter_mut().flatten() {
        options.speedup = options.speedup.or(switch.speedup);
        options.input = options.input.or(switch.input);
    }
    let traffic = traffic(reading, root, ports, right, around.folder);
    let (name, traffic, table) = traffic?;
    let (times, schedulers) = (around.times?, schedulers?);
    if reading.failed() {
        return None;
    }
    let rate = switch.rate.unwrap_or(RATE);
    let slot = rate.time_for(switch.cell.unwrap_or(CELL).0);
    let slots = |span: Span| span.as_ps() / slot.as_ps();
    let (all, warmup) = (slots(times.duration), slots(times.warmup));
    if warmup >= all {
        let message =
            format!("duration: {} are {all} slots of {slot}, {warmup} of them warm-up", times.duration);
        reading.tell(Diagnostic::error(root.place("duration"), message));
        return None;
    }
    let folder = around.folder.to_owned();
    Some(Crossbar { schedulers, ports, rate, slot, slots: all, warmup, traffic, name, table, folder })
}

/// The compared schedulers, each of which can be built.
fn schedulers(reading: &mut Reading, root: &Table, ports: Option<usize>) -> Option<Vec<Spec>> {
    let Some(node) = root.get("disciplines") else {
        let wrong = Diagnostic::error(reading.top(), "a scenario on a switch needs \"disciplines\"");
        reading.tell(wrong.help("write for example disciplines = [\"islip\", \"p_spf\"] at the top"));
        return None;
    };
    let specs = reading.compared::<Spec>(node)?;
    for (spec, written) in specs.iter().zip(node.items()).filter(|_| ports.is_some()) {
        if let Err(Invalid { parameter, message }) = spec.check(ports.unwrap_or(2)) {
            let span = reading.parameter(written, parameter);
            reading.tell(Diagnostic::error(span, format!("{parameter}: {message}")));
        }
    }
    Some(specs)
}

/// The traffic: its name, what it is, and where it is written.
fn traffic(
    reading: &mut Reading,
    root: &Table,
    ports: usize,
    ports_right: bool,
    folder: &Path,
) -> Option<(String, TrafficSpec, Table)> {
    let node = match root.get("traffic") {
        Some(Node { value: Value::List(items), .. }) if items.len() == 1 => &items[0],
        Some(Node { value: Value::List(items), .. }) if items.len() > 1 => {
            let wrong =
                Diagnostic::error(items[1].span.clone(), "a switch has one [[traffic]], for all inputs");
            reading.tell(wrong.help("a matrix of loads says which input sends how much to whom"));
            return None;
        }
        Some(node @ Node { value: Value::Table(_), .. }) => node,
        _ => {
            let wrong = Diagnostic::error(reading.end(), "a scenario needs traffic");
            reading.tell(wrong.help("write [[traffic]] with kind = \"onoff\" and load = 0.8"));
            return None;
        }
    };
    let table = reading.table(node, "traffic", "[[traffic]] with kind = \"onoff\" and load = 0.8")?;
    let common: Common = reading.fields(table, "traffic")?;
    let source = kind(reading, table)?;
    let name = common.name.unwrap_or_else(|| source.name.to_owned());
    let what = format!("traffic \"{name}\"");
    let own = keys_by(source.schema);
    let known = [fields::keys::<Common>(), own.clone()].concat();
    reading.unknown_keys(table, &format!("{} traffic", source.name), &known);
    let spec = reading.read(table, &what, &own, &|json| (source.from_json)(json)).1?;
    if ports_right
        && let Err(invalid) =
            spec.build(&Place { ports, streams: Streams::new(0), folder: folder.to_owned() })
    {
        let place = table
            .get(invalid.parameter)
            .map_or_else(|| head(&reading.origin, table), |node| node.span.clone());
        reading.tell(Diagnostic::error(place, format!("{what}: {invalid}")));
        return None;
    }
    Some((name, spec, table.clone()))
}

/// The traffic that a `kind` names.
fn kind(reading: &mut Reading, table: &Table) -> Option<&'static TrafficEntry> {
    let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
    let Some(node) = table.get("kind") else {
        reading.missing(table, "traffic", "kind");
        return None;
    };
    let name = node.text().unwrap_or_default();
    let found = SOURCES.iter().find(|source| source.name == name);
    if found.is_none() {
        let message = format!("unknown kind of traffic \"{name}\" on a switch");
        reading.tell(Diagnostic::error(node.span.clone(), message).help(choices(name, &names)));
    }
    found
}

impl Crossbar {
    /// The run of a trial.
    pub fn plan(&self, trial: &Trial) -> Plan {
        Plan {
            ports: self.ports,
            arbiter: self.schedulers[trial.discipline].clone(),
            traffic: self.traffic.clone(),
            slots: self.slots,
            warmup: self.warmup,
            streams: Streams::new(trial.seed),
            folder: self.folder.clone(),
        }
    }

    /// Runs a trial. Now and then `go_on` is told how much of it is done, 0 to 1; when it answers false the run stops and
    /// there is no result.
    ///
    /// # Panics
    /// When the trial is of another scenario, or a file that the scenario names has changed since the scenario was read.
    pub fn run(&self, trial: &Trial, go_on: &dyn Fn(f64) -> bool) -> Option<Outcome> {
        /// Often enough for a progress bar, seldom enough to cost nothing.
        const STEPS: u64 = 200;
        let mut sim =
            Sim::new(&self.plan(trial)).unwrap_or_else(|invalid| panic!("{}: {invalid}", trial.name));
        for step in 1..=STEPS {
            sim.step_to((u128::from(self.slots) * u128::from(step) / u128::from(STEPS)) as u64);
            if !go_on(step as f64 / STEPS as f64) {
                return None;
            }
        }
        Some(sim.outcome())
    }

    /// Every text of the traffic.
    pub(crate) fn visit_texts(&self, visit: &mut dyn FnMut(&str)) {
        for entry in &self.table.entries {
            entry.node.visit_texts(&mut |_, text| visit(text));
        }
    }

    /// What relative file names are relative to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
