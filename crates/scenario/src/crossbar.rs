//! A scenario on a switch: its ports, its traffic and the compared arbiters.

use std::path::{Path, PathBuf};

use giveway_qdisc::{Bytes, Invalid, Rate, Span, Streams};
use giveway_switch::options::Input;
use giveway_switch::speed::Speedup;
use giveway_switch::traffic::{SOURCES, TrafficContext, TrafficSpec};
use giveway_switch::{BuildOutside, Outcome, Plan, Sim, Spec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::diagnostic::Diagnostic;
use crate::fields::{self, Reading, head};
use crate::file::{Part, ScenarioFile, Top};
use crate::schedule::{self, Schedule};
use crate::tree::{Node, Table, Value};
use crate::trial::Trial;

/// A switch with its traffic and the arbiters to compare.
#[derive(Clone, Debug)]
pub struct Crossbar {
    /// The compared arbiters. Never empty.
    pub arbiters: Vec<Spec>,
    /// The number of inputs, and of outputs.
    pub ports: usize,
    /// The rate of each link.
    pub rate: Rate,
    /// The length of a slot: the time that a cell takes on a link.
    pub slot: Span,
    /// The length of a run, in slots.
    pub slots: u64,
    /// The length of the warm-up, in slots.
    pub warmup: u64,
    /// The traffic.
    pub traffic: TrafficSpec,
    /// The name of the traffic in tables.
    pub name: String,
    /// The table of the traffic in the file.
    table: Table,
    /// The folder that file names of the traffic are relative to.
    folder: PathBuf,
}

/// The tables of a scenario on a switch.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Parts {
    /// The size of the switch, its rate and its speedup.
    #[schemars(with = "Part")]
    pub switch: IgnoredAny,
    /// The traffic, which is one source for all inputs.
    #[schemars(with = "Part")]
    pub traffic: IgnoredAny,
    /// The times and the seeds of a quick check (--short).
    #[schemars(with = "Part")]
    pub short: IgnoredAny,
}

/// The switch.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SwitchKeys {
    /// The number of inputs, and of outputs: 2 to 1,024. Default: 16.
    pub ports: Option<u32>,
    /// The size of a cell. Default: 64b.
    pub cell: Option<Bytes>,
    /// The rate of each link. With the size of a cell it gives the length of a slot. Default: 10 Gbit/s.
    pub rate: Option<Rate>,
    /// The speedup, in slots of the fabric per slot of a link. An arbiter can have another. Default: 1.
    pub speedup: Option<Speedup>,
    /// The time at which a packet may start to cross the fabric. An arbiter can have another. Default:
    /// cut_through.
    pub input: Option<Input>,
}

/// The keys that all kinds of traffic share.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TrafficKeys {
    /// The kind of traffic; giveway list traffic shows all.
    #[schemars(with = "Option<String>")]
    pub kind: IgnoredAny,
    /// The name of the traffic in tables. Default: the kind.
    pub name: Option<String>,
}

/// The default number of ports.
const PORTS: u32 = 16;
/// The default size of a cell.
const CELL: Bytes = Bytes(64);
/// The default rate of a link.
const RATE: Rate = Rate::gbit(10);

/// Reads a scenario on a switch. Returns `None` if anything in the file is wrong.
pub(crate) fn read(reading: &mut Reading, file: &ScenarioFile<'_>) -> Option<(Crossbar, Schedule)> {
    let root = file.root;
    let known = [fields::keys::<Top>(), fields::keys::<Parts>()].concat();
    reading.unknown_keys(root, "a scenario on a switch", &known);
    schedule::refuse_cooldown(reading, file, "a switch");
    let (table, keys) = switch(reading, root);
    let rate = keys.rate.unwrap_or(RATE);
    let slot = slot(reading, table, rate, keys.cell.unwrap_or(CELL));
    let (times, short) = schedule::read(reading, file, slot);
    let ports = ports(reading, table, &keys);
    let mut arbiters = arbiters(reading, root, ports);
    for Spec { options, .. } in arbiters.iter_mut().flatten() {
        options.speedup = options.speedup.or(keys.speedup);
        options.input = options.input.or(keys.input);
    }
    let traffic = traffic(reading, root, ports, file.folder);
    let (name, traffic, table) = traffic?;
    let (times, arbiters, slot, ports) = (times?, arbiters?, slot?, ports?);
    if reading.failed() {
        return None;
    }
    let slots = |span: Span| span.as_ps() / slot.as_ps();
    let (all, warmup) = (slots(times.duration), slots(times.warmup));
    if warmup >= all {
        let message =
            format!("duration: {} is {all} slots of {slot}, and the warm-up has {warmup}", times.duration);
        reading.report(Diagnostic::error(root.place("duration"), message));
        return None;
    }
    let folder = file.folder.to_owned();
    let crossbar = Crossbar { arbiters, ports, rate, slot, slots: all, warmup, traffic, name, table, folder };
    Some((crossbar, Schedule { times, short: short? }))
}

/// The table `[switch]` of a file, if there is one, and its keys.
fn switch<'a>(reading: &mut Reading, root: &'a Table) -> (Option<&'a Table>, SwitchKeys) {
    match reading.section(root, "switch", "ports = 16") {
        Some((table, keys)) => (Some(table), keys),
        None => (None, SwitchKeys::default()),
    }
}

/// The length of a slot; `None` if a cell of this size has none at this rate.
fn slot(reading: &mut Reading, table: Option<&Table>, rate: Rate, cell: Bytes) -> Option<Span> {
    let slot = if rate.as_bit() == 0 { Span::ZERO } else { rate.time_for(cell.0) };
    if !slot.is_zero() {
        return Some(slot);
    }
    let place = table.map_or_else(|| reading.end(), |table| head(&reading.origin, table));
    let wrong = Diagnostic::error(place, "[switch]: cell and rate must both be above 0");
    reading.report(wrong.help("write for example cell = \"64b\" and rate = \"10 Gbit/s\""));
    None
}

/// The number of ports; `None` if it is out of range.
fn ports(reading: &mut Reading, table: Option<&Table>, keys: &SwitchKeys) -> Option<usize> {
    let ports = keys.ports.unwrap_or(PORTS) as usize;
    if giveway_switch::sim::PORTS.contains(&ports) {
        return Some(ports);
    }
    let place = table.map_or_else(|| reading.end(), |table| table.place("ports"));
    let (least, most) = (giveway_switch::sim::PORTS.start(), giveway_switch::sim::PORTS.end());
    reading.report(Diagnostic::error(place, format!("ports: {ports} is not between {least} and {most}")));
    None
}

/// Reads the compared arbiters, and checks that each can be built.
fn arbiters(reading: &mut Reading, root: &Table, ports: Option<usize>) -> Option<Vec<Spec>> {
    let Some(node) = root.get("disciplines") else {
        let wrong = Diagnostic::error(reading.top(), "a scenario on a switch needs \"disciplines\"");
        reading.report(wrong.help("write for example disciplines = [\"islip\", \"p_spf\"] at the top"));
        return None;
    };
    let specs = reading.compared::<Spec>(node)?;
    for (spec, written) in specs.iter().zip(node.items()) {
        if let Some(ports) = ports
            && let Err(Invalid { parameter, message }) = spec.check(ports)
        {
            let span = reading.parameter(written, parameter);
            reading.report(Diagnostic::error(span, format!("{parameter}: {message}")));
        }
    }
    Some(specs)
}

/// Reads the traffic: its name, its spec and its table.
fn traffic(
    reading: &mut Reading,
    root: &Table,
    ports: Option<usize>,
    folder: &Path,
) -> Option<(String, TrafficSpec, Table)> {
    let node = match root.get("traffic") {
        Some(Node { value: Value::List(items), .. }) if items.len() == 1 => &items[0],
        Some(Node { value: Value::List(items), .. }) if items.len() > 1 => {
            let wrong =
                Diagnostic::error(items[1].span.clone(), "a switch has one [[traffic]] for all inputs");
            reading.report(wrong.help("a matrix has the load of each input to each output"));
            return None;
        }
        Some(node @ Node { value: Value::Table(_), .. }) => node,
        _ => {
            let wrong = Diagnostic::error(reading.end(), "a scenario needs traffic");
            reading.report(wrong.help("write [[traffic]] with kind = \"onoff\" and load = 0.8"));
            return None;
        }
    };
    let table = reading.table(node, "traffic", "[[traffic]] with kind = \"onoff\" and load = 0.8")?;
    let common: TrafficKeys = reading.fields(table, "traffic")?;
    let words = ("traffic", "kind of switch traffic");
    let source = reading.kind(table, words, SOURCES, |source| source.name)?;
    let name = common.name.unwrap_or_else(|| source.name.to_owned());
    let what = format!("traffic \"{name}\"");
    let of_kind = format!("{} traffic", source.name);
    let shared = fields::keys::<TrafficKeys>();
    let spec = reading.keys_of_kind(table, (&of_kind, &what), shared, &(source.keys)(), source.from_json)?;
    reading.only_files(table, folder)?;
    if let Some(ports) = ports
        && let Err(invalid) =
            spec.build(&TrafficContext { ports, streams: Streams::new(0), folder: folder.to_owned() })
    {
        reading.invalid(table, &what, &invalid);
        return None;
    }
    Some((name, spec, table.clone()))
}

impl Crossbar {
    /// The plan of a trial.
    pub fn plan(&self, trial: &Trial) -> Plan {
        Plan {
            ports: self.ports,
            arbiter: self.arbiters[trial.discipline].clone(),
            traffic: self.traffic.clone(),
            slots: self.slots,
            warmup: self.warmup,
            streams: Streams::new(trial.seed),
            folder: self.folder.clone(),
        }
    }

    /// Runs a trial. `keep_running` gets the progress from time to time, 0 to 1; if it returns false, the run
    /// stops without a result.
    ///
    /// # Panics
    /// If the trial belongs to another scenario, or a file of the scenario has changed since the scenario was
    /// read.
    pub fn run(&self, trial: &Trial, keep_running: &dyn Fn(f64) -> bool) -> Option<Outcome> {
        let sim = Sim::new(&self.plan(trial)).unwrap_or_else(|invalid| panic!("{}: {invalid}", trial.name));
        self.finish(sim, keep_running).expect("the arbiters of the registry keep the contract")
    }

    /// Like [`run`](Crossbar::run), with arbiters that `build` builds. The arbiter of the trial only gives
    /// the mode of the switch and the other options.
    ///
    /// # Errors
    /// If the switch of the trial has no arbiter, as an output-queued one; if an arbiter matches a port
    /// twice, or ports without a request; or the arbiter's own error.
    ///
    /// # Panics
    /// As [`run`](Crossbar::run).
    pub fn run_built(
        &self,
        trial: &Trial,
        build: BuildOutside<'_>,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<Option<Outcome>, String> {
        let sim = Sim::with_arbiter(&self.plan(trial), build).map_err(|invalid| invalid.message)?;
        self.finish(sim, keep_running)
    }

    /// Runs a switch to its end.
    fn finish(&self, mut sim: Sim, keep_running: &dyn Fn(f64) -> bool) -> Result<Option<Outcome>, String> {
        /// Enough for a progress bar, and few enough to take no measurable time.
        const STEPS: u64 = 200;
        for step in 1..=STEPS {
            sim.step_to((u128::from(self.slots) * u128::from(step) / u128::from(STEPS)) as u64);
            if let Some(mistake) = sim.mistake() {
                return Err(mistake);
            }
            if !keep_running(step as f64 / STEPS as f64) {
                return Ok(None);
            }
        }
        Ok(Some(sim.outcome()))
    }

    /// Visits every string in the table of the traffic.
    pub(crate) fn visit_texts(&self, visit: &mut dyn FnMut(&str)) {
        self.table.visit_texts(&mut |_, text| visit(text));
    }

    /// The folder that file names of the traffic are relative to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
