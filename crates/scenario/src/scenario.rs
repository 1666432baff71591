//! The typed scenario, and its construction from a draft.

use std::path::PathBuf;

use giveway_qdisc::Span;

use crate::backend::Backend;
use crate::crossbar;
use crate::diagnostic::Diagnostic;
use crate::draft::Draft;
use crate::error::ScenarioError;
use crate::fields::{Reading, wrong_type};
use crate::file::{ScenarioFile, Top};
use crate::hints::choices;
use crate::lints;
use crate::live::{self, Live};
use crate::network::{self, Network};
use crate::origin::Origin;
use crate::schedule::{self, MAX_SEEDS, Schedule, ShortRun, Times};
use crate::sweep::{self, Sweep};
use crate::tree::{Node, Table};
use crate::trial::{Compared, Trial};

/// A valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The title, in one line.
    pub title: String,
    /// The description.
    pub description: String,
    /// The duration of a run.
    pub duration: Span,
    /// The first part of a run, which is not measured.
    pub warmup: Span,
    /// The last part of a run, which is not measured.
    pub cooldown: Span,
    /// The seeds. Each discipline runs once with each seed.
    pub seeds: Vec<u64>,
    /// The backend that runs the scenario, with its part of the file.
    pub backend: Backend,
    /// The keys that `giveway sweep` varies.
    pub sweep: Sweep,
    /// Warnings: valid parts of the scenario that are probably not intended.
    pub warnings: Vec<Diagnostic>,
    /// The times of a quick check.
    short: ShortRun,
    draft: Draft,
}

impl Scenario {
    /// Reads a scenario from its text; file names in it are relative to `folder`.
    ///
    /// # Errors
    /// All mistakes in the text.
    pub fn parse(text: &str, folder: impl Into<PathBuf>) -> Result<Scenario, ScenarioError> {
        Draft::parse(text, folder).finish()
    }

    /// The compared disciplines or arbiters.
    pub fn compared(&self) -> Vec<Compared> {
        let written = self.draft.root.get("disciplines").map(Node::items).unwrap_or_default();
        let names = self.backend.compared();
        let each = names.into_iter().zip(self.backend.parameters()).enumerate();
        let compared = |(place, (name, parameters)): (usize, (String, Vec<_>))| {
            let written = written.get(place).and_then(Node::text).unwrap_or(&name).to_owned();
            Compared { name, written, parameters }
        };
        each.map(compared).collect()
    }

    /// The texts of the scenario, for showing its [`warnings`](Scenario::warnings).
    pub fn origin(&self) -> &Origin {
        &self.draft.origin
    }

    /// The scenario as TOML, flags included.
    pub fn text(&self) -> String {
        self.draft.text()
    }

    /// The file and the flags from which the scenario was read, for further changes.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// The part of the scenario that decides the result of a trial, besides its discipline and its seed, as
    /// TOML. Two scenarios with the same identity and the same [`files`](Scenario::files) have the same
    /// results.
    pub fn identity(&self) -> String {
        self.draft.identity()
    }

    /// The existing files that the traffic names.
    pub fn files(&self) -> Vec<PathBuf> {
        self.named_files().into_iter().map(|(_, path)| path).collect()
    }

    /// The existing files that the traffic names, each with its name in the scenario.
    pub fn named_files(&self) -> Vec<(String, PathBuf)> {
        let mut files = Vec::new();
        self.backend.visit_texts(&mut |text| {
            let file = self.draft.folder.join(text);
            if file.is_file() {
                files.push((text.to_owned(), file));
            }
        });
        files
    }

    /// Replaces the seeds by 1 to `count`, limited to [`Scenario::MAX_SEEDS`]. The text is unchanged, so
    /// that seeds can be added later.
    pub fn with_seeds(self, count: u32) -> Scenario {
        Scenario { seeds: (1..=u64::from(count.clamp(1, MAX_SEEDS))).collect(), ..self }
    }

    /// Maximum number of seeds in a scenario.
    pub const MAX_SEEDS: u32 = MAX_SEEDS;

    /// The scenario of a quick check, with the times of `[short]`; by default at most five seconds and one
    /// seed.
    ///
    /// # Errors
    /// If the scenario is invalid with these times.
    pub fn short(&self) -> Result<Scenario, ScenarioError> {
        let ShortRun { times: Times { duration, warmup, cooldown }, seeds } = self.short;
        let flag = "--short";
        let mut draft = self.draft.clone();
        draft = draft.apply(flag, &format!("duration={duration}")).apply(flag, &format!("warmup={warmup}"));
        if self.cooldown != cooldown {
            draft = draft.apply(flag, &format!("cooldown={cooldown}"));
        }
        draft.apply(flag, &format!("seeds={seeds}")).finish()
    }

    /// The network, if that is the backend.
    pub fn network(&self) -> Option<&Network> {
        match &self.backend {
            Backend::Network(network) => Some(network),
            Backend::Switch(_) | Backend::Live(_) => None,
        }
    }

    /// The test bed, if that is the backend.
    pub fn live(&self) -> Option<&Live> {
        match &self.backend {
            Backend::Live(live) => Some(live),
            Backend::Network(_) | Backend::Switch(_) => None,
        }
    }

    /// The simulation of a scenario for a test bed, without kernel disciplines; `None` for other backends.
    pub fn simulated(&self) -> Option<Scenario> {
        let network = self.live()?.network.clone();
        Some(Scenario { backend: Backend::Network(network), ..self.clone() })
    }

    /// All runs, ordered by discipline, then by seed.
    pub fn trials(&self) -> Vec<Trial> {
        let names = self.backend.compared();
        let one = |(discipline, name): (usize, &String)| {
            let trials = self.seeds.iter().map(|seed| Trial { discipline, name: name.clone(), seed: *seed });
            trials.collect::<Vec<_>>()
        };
        names.iter().enumerate().flat_map(one).collect()
    }
}

impl Draft {
    /// Checks the file and its flags, and returns the scenario that they describe.
    ///
    /// # Errors
    /// All mistakes in the file and the flags.
    pub fn finish(self) -> Result<Scenario, ScenarioError> {
        let mut reading = Reading { origin: self.origin.clone(), diagnostics: self.diagnostics.clone() };
        // A document with syntax errors lacks keys, and messages about missing keys would be misleading.
        let scenario = if reading.diagnostics.is_empty() { read(&mut reading, self) } else { None };
        let wrong = reading.failed();
        let Reading { origin, mut diagnostics } = reading;
        diagnostics.sort_by(|a, b| (a.span.start, &a.message).cmp(&(b.span.start, &b.message)));
        // All links of a range have one place, so their messages are equal.
        diagnostics.dedup_by(|b, a| (&a.span, &a.message) == (&b.span, &b.message));
        match scenario {
            Some(scenario) if !wrong => Ok(Scenario { warnings: diagnostics, ..scenario }),
            _ => Err(ScenarioError { origin, diagnostics }),
        }
    }
}

/// The backends that a file can name.
#[derive(Clone, Copy)]
enum Kind {
    Network,
    Switch,
    Live,
}

/// Reads the shared keys, and the part of the backend. `None` if anything is wrong.
fn read(reading: &mut Reading, draft: Draft) -> Option<Scenario> {
    let root = &draft.root;
    let top: Top = reading.fields(root, "a scenario").unwrap_or_default();
    let seeds = schedule::seeds(reading, root);
    let sweep = sweep::read(reading, root);
    let file = ScenarioFile { root, top: &top, folder: &draft.folder };
    let (backend, Schedule { times, short }) = match kind(reading, root) {
        Kind::Network => {
            network::read(reading, &file).map(|(network, schedule)| (Backend::Network(network), schedule))
        }
        Kind::Switch => {
            crossbar::read(reading, &file).map(|(crossbar, schedule)| (Backend::Switch(crossbar), schedule))
        }
        Kind::Live => {
            live::read(reading, &file).map(|(live, schedule)| (Backend::Live(Box::new(live)), schedule))
        }
    }?;
    lints::bytes_for_bits(reading, root);
    Some(Scenario {
        title: top.title.unwrap_or_default(),
        description: top.description.unwrap_or_default(),
        duration: times.duration,
        warmup: times.warmup,
        cooldown: times.cooldown,
        seeds: seeds?,
        backend,
        sweep,
        warnings: Vec::new(),
        short,
        draft,
    })
}

/// The backend that a file names. A file with an unknown name is read as a network, so that the rest of it is
/// checked, too.
fn kind(reading: &mut Reading, root: &Table) -> Kind {
    let Some(node) = root.get("backend") else {
        let Some(switch) = root.get("switch") else { return Kind::Network };
        let wrong =
            Diagnostic::error(switch.span.clone(), "a scenario with a [switch] needs the backend \"switch\"");
        reading.report(wrong.help("write backend = \"switch\" at the top"));
        return Kind::Switch;
    };
    match node.text() {
        Some("network") => {}
        Some("switch") => return Kind::Switch,
        Some("live") => return Kind::Live,
        Some(name) => {
            let wrong = Diagnostic::error(node.span.clone(), format!("unknown backend \"{name}\""));
            reading.report(wrong.help(choices(name, &["network", "switch", "live"])));
        }
        None => reading.report(wrong_type(node, "backend: expected a name")),
    }
    Kind::Network
}
