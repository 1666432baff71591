//! The typed scenario, and how it comes out of a draft.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use giveway_qdisc::{Quantity, Span};

use crate::crossbar;
use crate::diagnostic::{Diagnostic, Origin, Wrong};
use crate::draft::{Draft, choices};
use crate::fields::{Reading, keys, mistyped};
use crate::file::{Length, Short, Top};
use crate::host::Host;
use crate::live::{self, Live};
use crate::network::{self, Network};
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
    /// The last part, which is not measured.
    pub cooldown: Span,
    /// One run of each discipline for each of them.
    pub seeds: Vec<u64>,
    /// Where it runs, and what is there.
    pub host: Host,
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
    cooldown: Span,
    seeds: u32,
}

/// One run: one of those that are compared, and a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Which of the compared ones: its place among them.
    pub discipline: usize,
    /// How that one is written, defaults left out.
    pub name: String,
    /// The seed.
    pub seed: u64,
}

/// One of those that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// How it is written, defaults left out.
    pub name: String,
    /// How the scenario spells it.
    pub written: String,
    /// All its parameters, those with their defaults, too.
    pub parameters: Vec<(String, Quantity)>,
}

impl Scenario {
    /// Reads a scenario from its text; file names in it are relative to `folder`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, folder: impl Into<PathBuf>) -> Result<Scenario, Wrong> {
        Draft::parse(text, folder).finish()
    }

    /// What is compared: how it is named in results, how the scenario spells it, and its parameters.
    pub fn compared(&self) -> Vec<Compared> {
        let written = self.draft.root.get("disciplines").map(Node::items).unwrap_or_default();
        let names = self.host.compared();
        let each = names.into_iter().zip(self.host.parameters()).enumerate();
        let compared = |(place, (name, parameters)): (usize, (String, Vec<_>))| {
            let written = written.get(place).and_then(Node::text).unwrap_or(&name).to_owned();
            Compared { name, written, parameters }
        };
        each.map(compared).collect()
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
        self.host.visit_texts(&mut |text| {
            let file = self.draft.folder.join(text);
            if file.is_file() {
                files.push(file);
            }
        });
        files
    }

    /// The same scenario with seeds 1 to `count`, at least one and at most [`Scenario::MOST_SEEDS`]. Its text stays:
    /// seeds can be added later.
    pub fn with_seeds(self, count: u32) -> Scenario {
        Scenario { seeds: (1..=u64::from(count.clamp(1, MOST_SEEDS))).collect(), ..self }
    }

    /// The most seeds of a scenario.
    pub const MOST_SEEDS: u32 = MOST_SEEDS;

    /// The same scenario for a quick check: as its `[short]` says, otherwise at most five seconds and one seed.
    ///
    /// # Errors
    /// When it makes no sense in that time.
    pub fn short(&self) -> Result<Scenario, Wrong> {
        let Settled { duration, warmup, cooldown, seeds } = self.short;
        let flag = "--short";
        let mut draft = self.draft.clone();
        draft = draft.apply(flag, &format!("duration={duration}")).apply(flag, &format!("warmup={warmup}"));
        if self.cooldown != cooldown {
            draft = draft.apply(flag, &format!("cooldown={cooldown}"));
        }
        draft.apply(flag, &format!("seeds={seeds}")).finish()
    }

    /// The network, where it runs on one.
    pub fn network(&self) -> Option<&Network> {
        match &self.host {
            Host::Network(network) => Some(network),
            Host::Switch(_) | Host::Live(_) => None,
        }
    }

    /// The test bed, where it runs on one.
    pub fn live(&self) -> Option<&Live> {
        match &self.host {
            Host::Live(live) => Some(live),
            Host::Network(_) | Host::Switch(_) => None,
        }
    }

    /// The same scenario in the simulator, where it runs on a test bed; the kernel's disciplines do not come along.
    pub fn simulated(&self) -> Option<Scenario> {
        let network = self.live()?.network.clone();
        Some(Scenario { host: Host::Network(network), ..self.clone() })
    }

    /// All runs: what is compared in its order, the seeds of each in theirs.
    pub fn trials(&self) -> Vec<Trial> {
        let names = self.host.compared();
        let one = |(discipline, name): (usize, &String)| {
            let trials = self.seeds.iter().map(|seed| Trial { discipline, name: name.clone(), seed: *seed });
            trials.collect::<Vec<_>>()
        };
        names.iter().enumerate().flat_map(one).collect()
    }

    pub(crate) fn read(draft: Draft) -> Result<Scenario, Wrong> {
        let mut reading = Reading { origin: draft.origin.clone(), found: draft.found.clone() };
        // What is left of a broken document would only give messages about what is missing from it.
        let scenario = if reading.found.is_empty() { read(&mut reading, draft) } else { None };
        let wrong = reading.failed();
        let Reading { origin, mut found } = reading;
        found.sort_by(|a, b| (a.span.start, &a.message).cmp(&(b.span.start, &b.message)));
        // Links of a range have one place and would say the same ten times.
        found.dedup_by(|b, a| (&a.span, &a.message) == (&b.span, &b.message));
        match scenario {
            Some(scenario) if !wrong => Ok(Scenario { warnings: found, ..scenario }),
            _ => Err(Wrong { origin, diagnostics: found }),
        }
    }
}

/// What the top of a file says about every host.
pub(crate) struct Around<'a> {
    /// The whole file.
    pub root: &'a Table,
    /// None where they are wrong.
    pub times: Option<Times>,
    /// File names are relative to it.
    pub folder: &'a Path,
}

/// How long a run lasts, and which parts of it are not measured: the first and the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub duration: Span,
    pub warmup: Span,
    pub cooldown: Span,
}

/// The hosts that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Network,
    Switch,
    Live,
}

fn read(reading: &mut Reading, draft: Draft) -> Option<Scenario> {
    let root = &draft.root;
    let top: Top = reading.fields(root, "a scenario").unwrap_or_default();
    let kind = kind(reading, root);
    let seeds = seeds(reading, root);
    let slot = match kind {
        Kind::Network | Kind::Live => None,
        Kind::Switch => crossbar::slot(reading, root),
    };
    let times = times(reading, root, &top, slot);
    check_cooldown(reading, root, kind, times);
    let short = short(reading, root, times, slot);
    let around = Around { root, times, folder: &draft.folder };
    let known = |parts: Vec<String>| [keys::<Top>(), parts].concat();
    let host = match kind {
        Kind::Network => {
            reading.unknown_keys(root, "a scenario", &known(network::keys()));
            network::read(reading, &around).map(Host::Network)
        }
        Kind::Switch => {
            reading.unknown_keys(root, "a scenario on a switch", &known(crossbar::keys()));
            crossbar::read(reading, &around).map(Host::Switch)
        }
        Kind::Live => {
            reading.unknown_keys(root, "a scenario on a test bed", &known(network::keys()));
            live::read(reading, &around).map(|live| Host::Live(Box::new(live)))
        }
    }?;
    let Times { duration, warmup, cooldown } = times?;
    traps::bytes_for_bits(reading, root);
    Some(Scenario {
        title: top.title.unwrap_or_default(),
        description: top.description.unwrap_or_default(),
        duration,
        warmup,
        cooldown,
        seeds: seeds?,
        host,
        warnings: Vec::new(),
        short: short?,
        draft,
    })
}

/// Which host it runs on. What nobody knows is read as a network, so that the rest of the file is looked through, too.
fn kind(reading: &mut Reading, root: &Table) -> Kind {
    let Some(node) = root.get("host") else {
        let Some(switch) = root.get("switch") else { return Kind::Network };
        let wrong = Diagnostic::error(switch.span.clone(), "a scenario with a [switch] runs on a switch");
        reading.tell(wrong.help("write host = \"switch\" at the top"));
        return Kind::Switch;
    };
    let wrong = |message: String| Diagnostic::error(node.span.clone(), message);
    match node.text() {
        Some("network") => {}
        Some("switch") => return Kind::Switch,
        Some("live") => return Kind::Live,
        Some(name) => reading.tell(
            wrong(format!("unknown host \"{name}\"")).help(choices(name, &["network", "switch", "live"])),
        ),
        None => reading.tell(wrong("host: expected a name".into()).label(format!("this is {}", node.what()))),
    }
    Kind::Network
}

/// The most seeds of a scenario.
const MOST_SEEDS: u32 = 100_000;

fn seeds(reading: &mut Reading, root: &Table) -> Option<Vec<u64>> {
    const MOST: i64 = MOST_SEEDS as i64;
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
        Value::List(items) if items.len() > MOST_SEEDS as usize => {
            wrong(node, "seeds: expected at most 100000 of them")
        }
        Value::List(items) => {
            let mut seeds = Vec::with_capacity(items.len());
            let mut known = BTreeSet::new();
            for item in items {
                match item.value {
                    Value::Integer(seed) if seed >= 0 && !known.insert(seed) => {
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

/// Duration and warm-up.
fn times(reading: &mut Reading, root: &Table, top: &Top, slot: Option<Span>) -> Option<Times> {
    if !root.has("duration") {
        if mistyped(root, "duration") {
            return None;
        }
        let wrong = Diagnostic::error(reading.top(), "a scenario needs \"duration\"");
        reading.tell(wrong.help("write for example duration = \"60 s\" at the top"));
        return None;
    }
    let duration = length(reading, root, "duration", top.duration?, slot)?;
    if duration.is_zero() {
        reading.tell(Diagnostic::error(root.place("duration"), "duration: a run of 0 shows nothing"));
        return None;
    }
    if duration > LONGEST {
        let message = format!("duration: {duration} is longer than the clock of a run can count");
        let wrong = Diagnostic::error(root.place("duration"), message);
        reading.tell(wrong.help("write \"4800h\" at most"));
        return None;
    }
    let warmup = match top.warmup {
        None if root.has("warmup") => return None,
        None => Span::ZERO,
        Some(warmup) => length(reading, root, "warmup", warmup, slot)?,
    };
    if warmup >= duration {
        let message = format!("warmup: {warmup} leaves nothing of the duration of {duration} to measure");
        reading.tell(Diagnostic::error(root.place("warmup"), message));
        return None;
    }
    let cooldown = match top.cooldown {
        None if root.has("cooldown") => return None,
        None => Span::ZERO,
        Some(cooldown) => length(reading, root, "cooldown", cooldown, slot)?,
    };
    if cooldown >= duration - warmup {
        let message = format!(
            "cooldown: {cooldown} leaves nothing of the duration of {duration} to measure, after {warmup} of warm-up"
        );
        reading.tell(Diagnostic::error(root.place("cooldown"), message));
        return None;
    }
    Some(Times { duration, warmup, cooldown })
}

/// Refuses a cool-down where nothing waits for what is on its way.
fn check_cooldown(reading: &mut Reading, root: &Table, kind: Kind, times: Option<Times>) {
    if kind == Kind::Network || times.is_none_or(|times| times.cooldown.is_zero()) {
        return;
    }
    let place = if kind == Kind::Switch { "a switch" } else { "a test bed" };
    let wrong =
        Diagnostic::error(root.place("cooldown"), format!("cooldown: {place} is measured to its end"));
    reading.tell(wrong.help("leave it out"));
}

/// A length as a time.
fn length(
    reading: &mut Reading,
    table: &Table,
    key: &str,
    length: Length,
    slot: Option<Span>,
) -> Option<Span> {
    let span = length.span(slot);
    // On a switch it may be the length of a slot that is wrong, which was told.
    if span.is_none() && !reading.failed() {
        let wrong =
            Diagnostic::error(table.place(key), format!("{key}: there are no slots here, or too many"));
        reading.tell(wrong.help("write a time such as \"60 s\"; slots are of a switch: host = \"switch\""));
    }
    span
}

/// The longest run. The clock counts 213 days; what is on its way at the end of a run must fit, too.
const LONGEST: Span = Span::s(4800 * 3600);

/// The default of a short run.
const SHORT: Span = Span::s(5);
/// The same on a switch, in slots.
const SHORT_SLOTS: u64 = 50_000;

fn short(reading: &mut Reading, root: &Table, times: Option<Times>, slot: Option<Span>) -> Option<Settled> {
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
    let full = times?;
    let usual = slot.map_or(Length::Time(SHORT), |_| Length::Slots(SHORT_SLOTS));
    let place = table.unwrap_or(root);
    let duration =
        length(reading, place, "duration", short.duration.unwrap_or(usual), slot)?.min(full.duration);
    let warmup = match short.warmup {
        Some(warmup) => length(reading, place, "warmup", warmup, slot)?,
        None => full.warmup.scale(duration.as_ps(), full.duration.as_ps()),
    };
    let cooldown = match short.cooldown {
        Some(cooldown) => length(reading, place, "cooldown", cooldown, slot)?,
        None => full.cooldown.scale(duration.as_ps(), full.duration.as_ps()),
    };
    if duration.is_zero() || warmup + cooldown >= duration {
        let place = table.map_or_else(|| reading.end(), |table| table.place("warmup"));
        let parts = if cooldown.is_zero() {
            format!("a warm-up of {warmup} leaves")
        } else {
            format!("a warm-up of {warmup} and a cool-down of {cooldown} leave")
        };
        let message = format!("[short]: {parts} nothing of {duration} to measure");
        reading.tell(Diagnostic::error(place, message));
        return None;
    }
    let seeds = short.seeds.unwrap_or(1).max(1);
    if seeds > MOST_SEEDS {
        let place = table.map_or_else(|| reading.end(), |table| table.place("seeds"));
        let wrong = Diagnostic::error(place, format!("seeds: {seeds} are too many"));
        reading.tell(wrong.help(format!("write {MOST_SEEDS} at most")));
        return None;
    }
    Some(Settled { duration, warmup, cooldown, seeds })
}
