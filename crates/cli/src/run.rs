//! `giveway run`: runs scenarios and shows what came out.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::value_parser;
use papers::{layout, observe, observe_network};
use qdisc::PortId;
use rayon::prelude::*;
use record::report::Report;
use record::{Digest, Kept, Manifest, Record, RunFolder, Style, Summary, Table};
use scenario::{Cell, Crossbar, Direction, Host, Scenario};

use crate::export::Exports;
use crate::operations::{PortFile, Traces};
use crate::progress::{Part, Progress};
use crate::{Outcome, check, cpu, outputs, provenance, show, stop, terminal, trace};

/// Runs scenarios: every discipline, with every seed, on the same arrivals.
///
/// Prints a table with a row for each discipline: means over the seeds, with 95 % intervals. The same scenario with the
/// same seeds gives the same bits, whatever the machine and the number of jobs.
///
/// Ctrl-C stops the runs; those that are finished are kept and shown.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Keep everything in this folder, and resume what is there; several scenarios get a folder each inside. A folder that holds
    /// something else is refused
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run with seeds 1 to N
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(Scenario::MOST_SEEDS)))]
    seeds: Option<u32>,
    /// How many runs at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Change something, as in link.0.rate=5mbit or traffic.upload.flows=3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write what the queues did to a pcapng file, for Wireshark and its like; several disciplines get a file each,
    /// FILE-fifo.pcapng and so on. The first seed of each
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Write every operation of the discipline at the port PORT ("home->isp") to a file, for giveway replay-check; several
    /// disciplines get a file each, as with --export. The first seed of each; may be repeated for other ports
    #[arg(long, value_name = "PORT=FILE")]
    trace_port: Vec<PortFile>,
    /// On a switch, instead of running: print the first N slots step by step (arrivals, requests, grants, accepts,
    /// crossings, pointers) for each scheduler, with the first seed
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000),
        conflicts_with_all = ["out", "export", "trace_port", "json"])]
    trace_slots: Option<u32>,
    /// Replace what is at --out, --export or --trace-port although it is something else. Names each thing that it removes, and
    /// leaves what Giveway does not write
    #[arg(long)]
    force: bool,
    /// Print one JSON object per scenario instead of a table
    #[arg(long)]
    json: bool,
    /// No progress and no warnings
    #[arg(long, short)]
    quiet: bool,
    /// A quick check: as [short] in the scenario says, otherwise at most 5 s and one seed
    #[arg(long)]
    short: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway run scenarios/quickstart.toml
  giveway run scenarios/quickstart.toml --seeds 10 --out runs/quickstart
  giveway run scenarios/quickstart.toml --set link.0.rate=2mbit --set duration=20s
  giveway run scenarios/quickstart.toml --short --export home.pcapng
  giveway run scenarios/quickstart.toml --short --trace-port 'home->isp=home.trace'
  giveway run scenarios/switch/by-hand.toml --trace-slots 4
  giveway run scenarios/quickstart.toml --json | jq '.results[].metrics.sojourn_p99_s.mean'

Exit codes: 0 all is well, 1 a run failed, 2 wrong usage or a wrong scenario, 130 interrupted.";

/// What became of one run.
enum Ran {
    /// With what its sources had to say.
    Finished(Summary, Vec<String>),
    /// Somebody pressed Ctrl-C.
    Stopped,
    Failed(String),
}

/// What became of all runs of a scenario.
pub struct Done {
    /// Of those that finished.
    pub table: Table,
    /// What was found in it, if somebody looked.
    pub findings: Vec<String>,
    /// How many finished, and how many there should be.
    pub finished: usize,
    /// See `finished`.
    pub planned: usize,
    /// What their sources had to say.
    remarks: Vec<String>,
    /// What was written as captures, and whether all of it was.
    exported: Vec<String>,
    well: bool,
    /// Where the report is, if there is one.
    report: Option<PathBuf>,
    /// Processor time, seconds.
    pub cpu_s: f64,
    /// The worst that happened.
    pub outcome: Outcome,
}

/// Does a run and observes it: the cell, whether what changes over time is kept, and who is told how far it is and says
/// whether to go on. Answers with the record and what there is to say; with nothing when it was stopped.
pub type Observe<'a> = dyn Fn(&Cell, bool, &(dyn Fn(f64) -> bool + Sync)) -> Result<Option<(Record, Vec<String>)>, String>
    + Sync
    + 'a;

/// How scenarios are run and shown, whatever command they came from.
pub struct Session {
    pool: rayon::ThreadPool,
    json: bool,
    quiet: bool,
    /// What the program was asked, for the manifest.
    asked: String,
    /// Where the first seed of each discipline is written as a capture.
    export: Option<PathBuf>,
    /// Where the operations of ports are written, of the first seed of each discipline.
    traces: Vec<PortFile>,
    /// A file that is kept with the runs: its name there, and where it is now.
    beside: Option<(&'static str, PathBuf)>,
    /// What is at an output's place may be replaced.
    force: bool,
}

/// Threads for `jobs` runs at a time (0: as many as there are processors). Listens for Ctrl-C from now on.
///
/// # Errors
/// A sentence when they cannot be started.
pub fn pool(jobs: u16) -> Result<rayon::ThreadPool, String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(jobs)).build();
    let pool = pool.map_err(|error| format!("cannot start {jobs} jobs: {error}"))?;
    stop::listen();
    Ok(pool)
}

/// What a run said when it panicked.
pub fn said_in(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}

impl Session {
    /// A session with `jobs` runs at a time (0: as many as there are processors). Listens for Ctrl-C from now on.
    ///
    /// # Errors
    /// A sentence when the threads cannot be started.
    pub fn new(jobs: u16, json: bool, quiet: bool) -> Result<Session, String> {
        let pool = pool(jobs)?;
        let asked = provenance::command();
        Ok(Session { pool, json, quiet, asked, export: None, traces: Vec::new(), beside: None, force: false })
    }

    /// Makes this session replace files and folders at the places of its outputs, whatever they hold, if `force` is true.
    pub fn replacing(self, force: bool) -> Session {
        Session { force, ..self }
    }

    /// Makes this session copy `file` into each run folder, under the name `name`.
    pub fn keeping(self, name: &'static str, file: PathBuf) -> Session {
        Session { beside: Some((name, file)), ..self }
    }

    /// Makes this session write a capture of the first seed of each discipline to `export`, if that names a file.
    pub fn exporting(self, export: Option<PathBuf>) -> Session {
        Session { export, ..self }
    }

    /// Makes this session write the operations of these ports in the first seed of each discipline.
    pub fn tracing(self, traces: Vec<PortFile>) -> Session {
        Session { traces, ..self }
    }
}

/// Does it. Every scenario is checked before the first one runs.
pub fn run(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    if args.export.is_some() && args.files.len() > 1 {
        show::sentence("--export takes one scenario at a time");
        return Ok(Outcome::Wrong);
    }
    if !args.trace_port.is_empty() && args.files.len() > 1 {
        show::sentence("--trace-port takes one scenario at a time");
        return Ok(Outcome::Wrong);
    }
    let read = |file: &PathBuf| check::read_as(file, &args.set, args.short, args.seeds);
    let scenarios: Vec<Option<Scenario>> = args.files.iter().map(read).collect();
    if scenarios.iter().any(Option::is_none) {
        return Ok(Outcome::Wrong);
    }
    if let Some((file, _)) = args.files.iter().zip(&scenarios).find(|(_, one)| is_live(one.as_ref())) {
        let file = file.display();
        show::sentence(&format!(
            "{file} is not simulated: write giveway testbed {file}, or --set host=network"
        ));
        return Ok(Outcome::Wrong);
    }
    if let Some(count) = args.trace_slots {
        return trace::slots(&scenarios.into_iter().flatten().collect::<Vec<_>>(), count, out);
    }
    let session = match Session::new(args.jobs.unwrap_or(0), args.json, args.quiet) {
        Ok(session) => session.replacing(args.force),
        Err(sentence) => {
            show::sentence(&sentence);
            return Ok(Outcome::Failed);
        }
    };
    let session = session.exporting(args.export.clone()).tracing(args.trace_port.clone());
    let names: Vec<String> = args.files.iter().map(|file| name(file)).collect();
    let dirs: Vec<Option<PathBuf>> = names.iter().map(|name| place_of(args, name)).collect();
    let scenarios: Vec<Scenario> = scenarios.into_iter().flatten().collect();
    // All places are looked at before anything runs.
    if let Some(twice) = dirs.iter().enumerate().find_map(|(at, dir)| dirs[..at].contains(dir).then_some(dir))
        && let Some(dir) = twice
    {
        let dir = dir.display();
        show::sentence(&format!(
            "two scenarios have the same name, and would both be kept in {dir}: run them one by one"
        ));
        return Ok(Outcome::Wrong);
    }
    if scenarios.len() > 1 {
        for (scenario, dir) in scenarios.iter().zip(&dirs) {
            if let Some(outcome) = dir.as_ref().and_then(|dir| session.refused(&question(scenario), dir)) {
                return Ok(outcome);
            }
        }
    }
    let mut outcome = Outcome::Done;
    for ((scenario, name), dir) in scenarios.iter().zip(&names).zip(&dirs) {
        if !args.quiet {
            show::diagnostics(scenario.origin(), &scenario.warnings);
        }
        outcome = outcome.max(session.scenario(scenario, name, dir.as_deref(), out)?);
        if stop::asked() {
            break;
        }
    }
    Ok(outcome)
}

/// Where a scenario is kept, if it is. Several have a folder each.
fn place_of(args: &Args, name: &str) -> Option<PathBuf> {
    args.out.as_ref().map(|dir| if args.files.len() > 1 { dir.join(name) } else { dir.clone() })
}

fn is_live(scenario: Option<&Scenario>) -> bool {
    scenario.is_some_and(|scenario| scenario.live().is_some())
}

impl Session {
    /// Runs one scenario, keeps it in `dir` if there is one, and shows its table.
    pub fn scenario(
        &self,
        scenario: &Scenario,
        name: &str,
        dir: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<Outcome> {
        let done = match self.work(scenario, name, dir, &|_| None) {
            Ok(done) => done,
            Err(outcome) => return Ok(outcome),
        };
        if self.json {
            writeln!(out, "{}", done.table.to_json(name, done.cpu_s))?;
        } else {
            print(scenario, name, &done.table, (done.finished, done.planned), out)?;
        }
        self.remark(&done);
        Ok(done.outcome)
    }

    /// Runs one scenario and keeps it in `dir` if there is one, together with what `find` says about it.
    ///
    /// # Errors
    /// When there is no place for the results; the user was told.
    pub fn work(
        &self,
        scenario: &Scenario,
        name: &str,
        dir: Option<&Path>,
        find: &dyn Fn(&Table) -> Option<Vec<String>>,
    ) -> Result<Done, Outcome> {
        let simulate: &Observe<'_> =
            &|cell, keep_series, go_on| Ok(observe(scenario, cell, keep_series, &go_on));
        self.work_by(scenario, name, dir, find, simulate)
    }

    /// The same with whatever does a run and observes it.
    ///
    /// # Errors
    /// As [`work`](Session::work).
    pub fn work_by(
        &self,
        scenario: &Scenario,
        name: &str,
        dir: Option<&Path>,
        find: &dyn Fn(&Table) -> Option<Vec<String>>,
        by: &Observe<'_>,
    ) -> Result<Done, Outcome> {
        let told = |sentence: String| {
            show::sentence(&sentence);
            Outcome::Failed
        };
        // The files first: a folder that would be refused is known before, and one that is made stays.
        let asked = dir.map(|_| question(scenario)).unwrap_or_default();
        if let Some(outcome) = dir.and_then(|dir| self.refused(&asked, dir)) {
            return Err(outcome);
        }
        let exports = match &self.export {
            Some(file) => Exports::begin(file, scenario, self.force).map_err(|(outcome, sentence)| {
                show::sentence(&sentence);
                outcome
            })?,
            None => Exports::none(),
        };
        let traces = Traces::begin(&self.traces, scenario, self.force).map_err(|(outcome, sentence)| {
            show::sentence(&sentence);
            outcome
        })?;
        let folder = dir.map(|dir| self.folder(dir, name, scenario, &asked)).transpose();
        let folder = folder.map_err(|error| {
            show::sentence(&error.to_string());
            outputs::outcome(&error)
        })?;
        let cells = scenario.cells();
        let before = cpu::user_s();
        let kept = self.there(&cells, folder.as_ref());
        let progress = Progress::new(name, cells.len(), self.quiet);
        // With an order of their own the results do not depend on who was faster.
        let ran: Vec<Ran> = self.pool.install(|| {
            cells
                .par_iter()
                .zip(kept)
                .with_max_len(1)
                .map(|(cell, kept)| {
                    cell_run(by, cell, (folder.as_ref(), kept), (&exports, &traces), &progress.part())
                })
                .collect()
        });
        progress.finish();
        let cpu_s = cpu::user_s() - before;

        let mut runs = Vec::new();
        let mut remarks = Vec::new();
        let mut outcome = Outcome::Done;
        for (cell, ran) in cells.iter().zip(ran) {
            match ran {
                Ran::Finished(summary, said) => {
                    // The same arrivals for every discipline: what their sources say is said once for each seed.
                    if cell.discipline == 0 {
                        remarks
                            .extend(said.into_iter().map(|remark| format!("seed {}, {remark}", cell.seed)));
                    }
                    runs.push((recorded(cell), summary));
                }
                Ran::Stopped => outcome = outcome.max(Outcome::Interrupted),
                Ran::Failed(why) => {
                    outcome =
                        outcome.max(told(format!("{} with seed {} failed: {why}", cell.name, cell.seed)));
                }
            }
        }
        let table = Table::new(&runs);
        let findings = find(&table);
        let report = match folder.map(|folder| keep(folder, findings.clone(), &runs)) {
            Some(Ok(report)) => report,
            Some(Err(sentence)) => {
                outcome = outcome.max(told(sentence));
                None
            }
            None => None,
        };
        let (mut exported, mut well) = exports.told();
        for (sentence, kept) in traces.told() {
            exported.push(sentence);
            well &= kept;
        }
        if !well {
            outcome = outcome.max(Outcome::Failed);
        }
        let (finished, planned) = (runs.len(), cells.len());
        Ok(Done {
            table,
            findings: findings.unwrap_or_default(),
            finished,
            planned,
            remarks,
            exported,
            well,
            report,
            cpu_s,
            outcome,
        })
    }

    /// What there is to say about runs beside their table.
    pub fn remark(&self, done: &Done) {
        if !self.quiet {
            done.remarks.iter().for_each(|remark| show::sentence(remark));
        }
        if !self.quiet || !done.well {
            done.exported.iter().for_each(|sentence| show::sentence(sentence));
        }
        if let (Some(report), false) = (&done.report, self.quiet) {
            show::sentence(&format!("the report is {}", report.display()));
        }
        if !self.quiet && !self.json {
            show::sentence(&format!("{} events, {:.2} s of processor time", done.table.events, done.cpu_s));
        }
    }

    /// How the program ends if the folder would be refused for what is in it; that is told then. `asked` is everything that
    /// the results depend on: [`question`].
    pub fn refused(&self, asked: &str, dir: &Path) -> Option<Outcome> {
        let looked = RunFolder::inspect(dir, Some((asked, &self.asked)), outputs::existing(self.force));
        let error = looked.err()?;
        show::sentence(&error.to_string());
        Some(outputs::outcome(&error))
    }

    /// The results that are there already. What is damaged or outdated is told, and runs again.
    fn there(&self, cells: &[Cell], folder: Option<&RunFolder>) -> Vec<Option<Summary>> {
        let Some(folder) = folder else { return vec![None; cells.len()] };
        if let Some(damage) = folder.repaired() {
            show::sentence(&format!("{damage}: writing it again"));
        }
        let kept: Vec<Kept> =
            self.pool.install(|| cells.par_iter().map(|cell| folder.look(&recorded(cell))).collect());
        let mut outdated: Vec<(String, usize)> = Vec::new();
        let mut there = Vec::new();
        for (cell, kept) in cells.iter().zip(kept) {
            there.push(match kept {
                Kept::Finished(summary) => Some(summary),
                Kept::Missing => None,
                Kept::Damaged(damage) => {
                    let Cell { name, seed, .. } = cell;
                    show::sentence(&format!("{damage}. Running {name} with seed {seed} again"));
                    None
                }
                Kept::Outdated(version) => {
                    match outdated.iter_mut().find(|(known, _)| *known == version) {
                        Some((_, count)) => *count += 1,
                        None => outdated.push((version, 1)),
                    }
                    None
                }
            });
        }
        for (version, count) in outdated {
            let place = folder.path().display();
            let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
            show::sentence(&format!(
                "{runs} in {place} came from another build (Giveway {version}; this is {}): running again",
                folder.version()
            ));
        }
        there
    }

    /// The folder that keeps the runs.
    fn folder(
        &self,
        dir: &Path,
        name: &str,
        scenario: &Scenario,
        asked: &str,
    ) -> Result<RunFolder, record::FolderError> {
        let version = if scenario.live().is_some() { sources::TESTBED } else { sources::SIMULATION };
        let manifest = Manifest {
            scenario: name.to_owned(),
            version: version.to_owned(),
            disciplines: papers::disciplines(scenario),
            seeds: scenario.seeds.clone(),
            machine: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            created_by: self.asked.clone(),
            created: Some(provenance::now()),
            title: scenario.title.clone(),
            description: scenario.description.clone(),
            layout: layout(scenario, true),
        };
        let existing = outputs::existing(self.force);
        let commit = sources::COMMIT.map(str::to_owned);
        let mut folder = RunFolder::open(dir, asked, manifest, existing)?.with_commit(commit);
        if let Some((name, file)) = &self.beside {
            folder.keep_file(name, file)?;
        }
        Ok(folder)
    }
}

/// Completes the folder, and writes its report unless there is nothing to report.
fn keep(
    folder: RunFolder,
    findings: Option<Vec<String>>,
    runs: &[(record::Cell, Summary)],
) -> Result<Option<PathBuf>, String> {
    let folder = match findings {
        Some(findings) => folder.with_findings(findings),
        None => folder,
    };
    folder.finish(runs).map_err(|error| error.to_string())?;
    if runs.is_empty() {
        return Ok(None);
    }
    let place = folder.path().join(record::REPORT);
    let page = Report::of(&folder).and_then(|report| report.html()).map_err(|error| error.to_string())?;
    record::report::write(&place, &page).map_err(|error| error.to_string())?;
    Ok(Some(place))
}

/// What a scenario is called: its file, without the ending.
pub fn name(file: &Path) -> String {
    file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Everything that results depend on: the scenario, and what is in the files that it names. Where the files are does not
/// matter, so a folder that is moved together with them is still that of the same scenario.
pub fn question(scenario: &Scenario) -> String {
    let mut text = scenario.text();
    for file in scenario.files() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // It was read a moment ago; if it is gone, the runs will say so.
        let print = Digest::of_file(&file).map_or_else(|error| error.to_string(), |digest| digest.sha256);
        text.push_str(&format!("# {name} has the SHA-256 {print}\n"));
    }
    text
}

fn recorded(cell: &Cell) -> record::Cell {
    record::Cell { qdisc: cell.name.clone(), seed: cell.seed }
}

/// One run, or its result from an earlier time. A run that panics takes no other with it.
fn cell_run(
    by: &Observe<'_>,
    cell: &Cell,
    (folder, kept): (Option<&RunFolder>, Option<Summary>),
    (exports, traces): (&Exports<'_>, &Traces<'_>),
    part: &Part<'_>,
) -> Ran {
    if stop::asked() {
        return Ran::Stopped;
    }
    // What is to be exported or traced is run, although its result is there.
    let (export, trace) = (exports.of(cell), traces.of(cell));
    if export.is_none()
        && trace.is_none()
        && let Some(summary) = kept
    {
        part.done(1.0);
        return Ran::Finished(summary, Vec::new());
    }
    let running = AssertUnwindSafe(|| {
        let series = folder.is_some();
        let go_on = |share| {
            part.done(share);
            !stop::asked()
        };
        match (export, trace) {
            (None, None) => by(cell, series, &go_on),
            (Some((target, network)), None) => Ok(observe_network(network, series, |recorder| {
                target.run(network, cell, &|_, spec, site| spec.build(site), recorder, &go_on)
            })),
            (None, Some((trace, network))) => Ok(observe_network(network, series, |recorder| {
                trace.run(&mut |build| network.run_built(cell, build, recorder, &go_on))
            })),
            (Some((target, network)), Some((trace, _))) => Ok(observe_network(network, series, |recorder| {
                trace.run(&mut |build| target.run(network, cell, build, recorder, &go_on))
            })),
        }
    });
    let (record, remarks) = match catch_unwind(running) {
        Ok(Ok(Some(ran))) => ran,
        Ok(Ok(None)) => return Ran::Stopped,
        Ok(Err(why)) => return Ran::Failed(why),
        Err(panic) => return Ran::Failed(said_in(panic.as_ref())),
    };
    match folder.map(|folder| folder.write(&recorded(cell), &record)) {
        Some(Err(error)) => Ran::Failed(error.to_string()),
        Some(Ok(())) | None => Ran::Finished(record.summary, remarks),
    }
}

/// A time for people: seconds, to a tenth.
fn seconds(span: qdisc::Span) -> String {
    let text = format!("{:.1}", span.as_s());
    format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
}

/// A time of a scenario for people: in slots where it has slots.
fn length(scenario: &Scenario, span: qdisc::Span) -> String {
    match &scenario.host {
        Host::Network(_) | Host::Live(_) => seconds(span),
        Host::Switch(crossbar) => format!("{} slots", span.as_ps() / crossbar.slot.as_ps()),
    }
}

/// Where it is measured, for people.
fn place(host: &Host) -> String {
    match host {
        Host::Network(network) => {
            let port = |id: &PortId| &network.ports[id.0 as usize];
            let names: Vec<&str> = network.measured.iter().take(3).map(|id| port(id).name.as_str()).collect();
            let more = if network.measured.len() > names.len() { ", ..." } else { "" };
            format!("{}{more} at {}", names.join(", "), port(&network.measured[0]).rate)
        }
        Host::Switch(crossbar) => {
            let Crossbar { ports, rate, slot, .. } = crossbar;
            format!("switch of {ports} x {ports} ports at {rate}, slots of {slot}")
        }
        Host::Live(live) => {
            let port = |direction: &Direction| &live.network.ports[direction.port.0 as usize];
            format!("{} at {}, real hosts on this machine", port(&live.forth).name, live.forth.rate)
        }
    }
}

/// The table for people.
pub fn print(
    scenario: &Scenario,
    name: &str,
    table: &Table,
    (finished, planned): (usize, usize),
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = if scenario.title.is_empty() { name } else { &scenario.title };
    writeln!(out, "{}", terminal::bold(title))?;
    writeln!(
        out,
        "{}, {}, measured from {} on, {}",
        place(&scenario.host),
        length(scenario, scenario.duration),
        length(scenario, scenario.warmup),
        match scenario.seeds.len() {
            1 => format!("seed {}", scenario.seeds[0]),
            seeds => format!("{seeds} seeds"),
        }
    )?;
    if finished < planned {
        writeln!(out, "{finished} of {planned} runs")?;
    }
    writeln!(out)?;
    if finished > 0 {
        write!(out, "{}", table.render(Style { width: terminal::width(), ascii: false, detailed: false }))?;
        writeln!(out, "\nfingerprint {}", table.fingerprint)?;
    }
    Ok(())
}
