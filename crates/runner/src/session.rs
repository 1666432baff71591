//! A session runs scenarios trial by trial, and keeps their results.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use giveway_measure::{Contest, DelayPlot, DelayRow, Record, Summary, Table};
use giveway_observe::{contest, layout, observe, observe_network, run_built};
use giveway_record::report::{self, Report};
use giveway_record::{Conclusion, Digest, Existing, Kept, Manifest, RunFolder};
use giveway_scenario::{Scenario, Trial};
use rayon::prelude::*;

use crate::export::Exports;
use crate::frontend::{Frontend, Part, Progress, Unit, panic_message};
use crate::traces::{PortFile, Traces};
use crate::{Outcome, RunnerError, chain, cpu, outputs, threads};

/// The outcome of one trial.
enum Ran {
    /// It finished, with its summary, the remarks of its traffic sources, its delays over time if they are
    /// plotted, and its record if records are returned.
    Finished(Summary, Vec<String>, Option<Vec<DelayRow>>, Option<Box<Record>>),
    /// The user stopped it.
    Stopped,
    /// It failed, with the reason.
    Failed(String),
}

/// The results of a scenario's trials.
pub struct Results {
    /// One row for each discipline, of the trials that finished.
    pub table: Table,
    /// Sentences about the table, from the caller's function.
    pub findings: Vec<String>,
    /// The number of trials that finished.
    pub finished: usize,
    /// The number of trials of the scenario.
    pub planned: usize,
    /// The senders that compete in pairs, if the scenario is a contest.
    pub contest: Option<Contest>,
    /// Delays over time of the first seed, if the session plots them.
    pub plot: Option<DelayPlot>,
    /// The records of the trials that finished, in the order of the table, if the session returns them.
    pub records: Vec<(giveway_measure::Trial, Record)>,
    /// Remarks of the traffic sources, once for each seed.
    pub remarks: Vec<String>,
    /// A sentence for each file that was exported.
    pub exported: Vec<String>,
    /// True if every file of `exported` was written completely.
    pub all_exported: bool,
    /// The place of the report, if one was written.
    pub report: Option<PathBuf>,
    /// Processor time of the runs, seconds.
    pub cpu_s: f64,
    /// The worst outcome of any trial or file.
    pub outcome: Outcome,
}

/// A function that runs and records one trial. Its arguments are the trial, true if samples over time are
/// kept, and a function that takes the progress (0 to 1) and returns false if the run must stop. It returns
/// the record and remarks, `None` if it was stopped, or the error of its backend.
pub type Observe<'a> = dyn Fn(&Trial, bool, &(dyn Fn(f64) -> bool + Sync)) -> Result<Option<(Record, Vec<String>)>, TrialError>
    + Sync
    + 'a;

/// The error of a trial, of any backend. The session prints it with its causes.
pub type TrialError = Box<dyn Error + Send + Sync>;

/// Runs scenarios on a pool of threads, and keeps their results.
pub struct Session<'a> {
    frontend: &'a dyn Frontend,
    pool: rayon::ThreadPool,
    /// The command line and the time, for the manifest of a run folder.
    provenance: (String, String),
    /// The capture file of the first seed of each discipline.
    export: Option<PathBuf>,
    /// The ports whose operations are written, of the first seed of each discipline.
    traces: Vec<PortFile>,
    /// A file that is copied into each run folder: its name there, and its place.
    beside: Option<(&'static str, PathBuf)>,
    /// True if outputs may replace any files at their places.
    force: bool,
    /// The number of threads of each simulation of a network.
    threads: usize,
    /// True if each trial is also run with other divisions of its network, and the results compared.
    checks_divisions: bool,
    /// True if delays over time are returned for a plot.
    plots: bool,
    /// True if the record of each trial is returned.
    records: bool,
}

/// A pool of `jobs` threads; 0 stands for one for each processor.
///
/// # Errors
/// When the threads cannot be started.
pub fn pool(jobs: u16) -> Result<rayon::ThreadPool, RunnerError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(jobs)).build();
    pool.map_err(|source| RunnerError::Threads { jobs, source })
}

impl<'a> Session<'a> {
    /// A session that runs `jobs` trials at a time; 0 stands for one for each processor. `command` and
    /// `created` (RFC 3339) are recorded in the manifests of run folders.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn new(
        jobs: u16,
        frontend: &'a dyn Frontend,
        command: String,
        created: String,
    ) -> Result<Session<'a>, RunnerError> {
        let pool = pool(jobs)?;
        let provenance = (command, created);
        Ok(Session {
            frontend,
            pool,
            provenance,
            export: None,
            traces: Vec::new(),
            beside: None,
            force: false,
            threads: 1,
            checks_divisions: false,
            plots: false,
            records: false,
        })
    }

    /// The front end, which receives the messages and the progress of this session.
    pub fn frontend(&self) -> &'a dyn Frontend {
        self.frontend
    }

    /// Makes outputs replace any files and folders at their places if `force` is true.
    pub fn replacing(self, force: bool) -> Session<'a> {
        Session { force, ..self }
    }

    /// Makes this session simulate each network on up to this many threads, with the same results. A trial
    /// that is exported or traced has one thread, because its packets are written in one order.
    pub fn dividing(self, threads: usize) -> Session<'a> {
        Session { threads, ..self }
    }

    /// Makes this session run each trial of a network also in divisions that a user would not get. A trial
    /// fails if any result differs. For tests.
    pub fn checking_divisions(self, checks: bool) -> Session<'a> {
        Session { checks_divisions: checks, ..self }
    }

    /// Makes this session return the delays over time of the first seed of each discipline.
    pub fn plotting(self, plots: bool) -> Session<'a> {
        Session { plots, ..self }
    }

    /// Makes this session return the record of each trial, with its samples over time. A session with a run
    /// folder returns none, because trials of the folder are not run again.
    pub fn recording(self, records: bool) -> Session<'a> {
        Session { records, ..self }
    }

    /// Makes this session copy `file` into each run folder, under the name `name`.
    pub fn keeping(self, name: &'static str, file: PathBuf) -> Session<'a> {
        Session { beside: Some((name, file)), ..self }
    }

    /// Makes this session write a capture of the first seed of each discipline to `export`; `None` writes
    /// none.
    pub fn exporting(self, export: Option<PathBuf>) -> Session<'a> {
        Session { export, ..self }
    }

    /// Makes this session write the operations of these ports in the first seed of each discipline.
    pub fn tracing(self, traces: Vec<PortFile>) -> Session<'a> {
        Session { traces, ..self }
    }

    /// Simulates one scenario. With `dir`, its results are kept in this folder, together with the conclusion
    /// that `find` draws from the table.
    ///
    /// # Errors
    /// When an output cannot be created. The front end has shown the message.
    pub fn run(
        &self,
        scenario: &Scenario,
        name: &str,
        dir: Option<&Path>,
        find: &dyn Fn(&Table) -> Option<Conclusion>,
    ) -> Result<Results, Outcome> {
        let divisions = threads::divisions(scenario, self.threads, self.frontend);
        let simulate: &Observe<'_> = &|trial, keep_series, go_on| {
            let network = scenario.network();
            let ran = match network.zip(divisions.get(trial.discipline)) {
                Some((network, partition)) => {
                    threads::run(network, trial, keep_series, (partition, self.threads), &go_on)
                }
                None => observe(scenario, trial, keep_series, &go_on),
            };
            if let (Some(network), Some((record, _)), true) = (network, &ran, self.checks_divisions) {
                let equal = threads::compare(network, trial, record, keep_series)?;
                let Trial { name, seed, .. } = trial;
                self.frontend.message(&format!("{name}, seed {seed}: equal results of {equal} divisions"));
            }
            Ok(ran)
        };
        self.run_by(scenario, name, dir, find, simulate)
    }

    /// Runs one scenario like [`run`](Session::run), but calls `by` for each trial, for example to run it on
    /// a test bed.
    ///
    /// # Errors
    /// As [`run`](Session::run).
    pub fn run_by(
        &self,
        scenario: &Scenario,
        name: &str,
        dir: Option<&Path>,
        find: &dyn Fn(&Table) -> Option<Conclusion>,
        by: &Observe<'_>,
    ) -> Result<Results, Outcome> {
        let failed = |error: RunnerError| {
            self.frontend.message(&chain(&error));
            error.outcome()
        };
        // The folder is checked before files are created, but created after them: a failure removes new
        // files, not folders.
        let asked = dir.map(|_| question(scenario)).unwrap_or_default();
        if let Some(outcome) = dir.and_then(|dir| self.refused(&asked, dir)) {
            return Err(outcome);
        }
        let exports = match &self.export {
            Some(file) => Exports::begin(file, scenario, self.force, self.frontend).map_err(failed)?,
            None => Exports::none(),
        };
        let traces = Traces::begin(&self.traces, scenario, self.force, self.frontend).map_err(failed)?;
        let folder = dir.map(|dir| self.folder(dir, name, scenario, &asked)).transpose();
        let folder = folder.map_err(|error| failed(error.into()))?;
        let trials = scenario.trials();
        let before = cpu::user_s();
        let kept = self.kept(&trials, folder.as_ref());
        let progress = Progress::new(self.frontend, name, trials.len(), Unit::Runs);
        // `collect` keeps the order of the trials, so results do not depend on the threads.
        let ran: Vec<Ran> = self.pool.install(|| {
            trials
                .par_iter()
                .zip(kept)
                .with_max_len(1)
                .map(|(trial, kept)| {
                    let plots = self.plots && trial.seed == scenario.seeds[0];
                    let outputs = (&exports, &traces, plots);
                    self.trial(by, trial, (folder.as_ref(), kept), outputs, &progress.part())
                })
                .collect()
        });
        drop(progress);
        let cpu_s = cpu::user_s() - before;

        let mut runs = Vec::new();
        let mut remarks = Vec::new();
        let mut plotted = Vec::new();
        let mut records = Vec::new();
        let mut outcome = Outcome::Done;
        for (trial, ran) in trials.iter().zip(ran) {
            match ran {
                Ran::Finished(summary, own, delays, record) => {
                    records.extend(record.map(|record| (recorded(trial), *record)));
                    plotted.extend(delays.map(|delays| (trial.name.clone(), delays)));
                    // Every discipline has the same arrivals, so remarks of sources appear once for each
                    // seed.
                    if trial.discipline == 0 {
                        remarks
                            .extend(own.into_iter().map(|remark| format!("seed {}, {remark}", trial.seed)));
                    }
                    runs.push((recorded(trial), summary));
                }
                Ran::Stopped => outcome = outcome.max(Outcome::Interrupted),
                Ran::Failed(why) => {
                    self.frontend.message(&format!("{} with seed {} failed: {why}", trial.name, trial.seed));
                    outcome = outcome.max(Outcome::Failed);
                }
            }
        }
        let table = Table::new(&runs);
        let conclusion = find(&table);
        let findings = conclusion.as_ref().map(|conclusion| conclusion.findings.clone());
        let written_report = match folder.map(|folder| keep(folder, conclusion, &runs)) {
            Some(Ok(report)) => report,
            Some(Err(error)) => {
                self.frontend.message(&chain(&error));
                outcome = outcome.max(Outcome::Failed);
                None
            }
            None => None,
        };
        let written: Vec<(String, bool)> = exports.ended().into_iter().chain(traces.ended()).collect();
        let all_exported = written.iter().all(|(_, whole)| *whole);
        if !all_exported {
            outcome = outcome.max(Outcome::Failed);
        }
        let (finished, planned) = (runs.len(), trials.len());
        Ok(Results {
            table,
            findings: findings.unwrap_or_default(),
            finished,
            planned,
            contest: contest(scenario),
            plot: self.plots.then(|| DelayPlot { seed: scenario.seeds[0], runs: plotted }),
            records,
            remarks,
            exported: written.into_iter().map(|(sentence, _)| sentence).collect(),
            all_exported,
            report: written_report,
            cpu_s,
            outcome,
        })
    }

    /// Simulates one scenario without any output, and returns its table; `None` if a trial did not finish.
    /// The front end has shown the message of a trial that failed.
    pub(crate) fn measure(&self, scenario: &Scenario, name: &str) -> Option<Table> {
        let trials = scenario.trials();
        let progress = Progress::new(self.frontend, name, trials.len(), Unit::Runs);
        let simulate: &Observe<'_> =
            &|trial, keep_series, go_on| Ok(observe(scenario, trial, keep_series, &go_on));
        let (exports, traces) = (Exports::none(), Traces::default());
        let ran: Vec<Ran> = self.pool.install(|| {
            let outputs = (&exports, &traces, false);
            let one = |trial| self.trial(simulate, trial, (None, None), outputs, &progress.part());
            trials.par_iter().with_max_len(1).map(one).collect()
        });
        let mut runs = Vec::new();
        for (trial, ran) in trials.iter().zip(ran) {
            match ran {
                Ran::Finished(summary, ..) => runs.push((recorded(trial), summary)),
                Ran::Stopped => return None,
                Ran::Failed(why) => {
                    self.frontend.message(&format!("{name} with seed {} failed: {why}", trial.seed));
                    return None;
                }
            }
        }
        Some(Table::new(&runs))
    }

    /// Returns the outcome of the command if the folder at `dir` cannot be used for the results, after a
    /// message to the front end; `None` if it can. `asked` is everything that the results depend on:
    /// [`question`].
    pub fn refused(&self, asked: &str, dir: &Path) -> Option<Outcome> {
        let command = self.provenance.0.as_str();
        let removing = outputs::removing(self.frontend);
        let existing = outputs::existing(self.force, &removing);
        let inspected = RunFolder::inspect(dir, Some((asked, command)), existing);
        let error = inspected.err()?;
        self.frontend.message(&chain(&error));
        Some(outputs::outcome(&error))
    }

    /// The results that the folder already has. Damaged results, and results of another build, are reported
    /// and run again.
    fn kept(&self, trials: &[Trial], folder: Option<&RunFolder>) -> Vec<Option<Summary>> {
        let Some(folder) = folder else { return vec![None; trials.len()] };
        if let Some(damage) = folder.repaired() {
            self.frontend.message(&format!("{damage}: writing it again"));
        }
        let kept: Vec<Kept> =
            self.pool.install(|| trials.par_iter().map(|trial| folder.look(&recorded(trial))).collect());
        let mut outdated: Vec<(String, usize)> = Vec::new();
        let mut results = Vec::new();
        for (trial, kept) in trials.iter().zip(kept) {
            results.push(match kept {
                Kept::Finished(summary) => Some(summary),
                Kept::Missing => None,
                Kept::Damaged(damage) => {
                    let Trial { name, seed, .. } = trial;
                    self.frontend.message(&format!("{damage}. Running {name} with seed {seed} again"));
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
            self.frontend.message(&format!(
                "{runs} in {place} came from another build (Giveway {version}; this is {}): running again",
                folder.version()
            ));
        }
        results
    }

    /// Opens or creates the folder that keeps the runs.
    fn folder(
        &self,
        dir: &Path,
        name: &str,
        scenario: &Scenario,
        asked: &str,
    ) -> Result<RunFolder, giveway_record::FolderError> {
        let manifest = manifest(scenario, name, self.provenance.clone());
        let removing = outputs::removing(self.frontend);
        let existing = outputs::existing(self.force, &removing);
        let commit = giveway_sources::COMMIT.map(str::to_owned);
        let mut folder = RunFolder::open(dir, asked, manifest, existing)?.with_commit(commit);
        if let Some((name, file)) = &self.beside {
            folder.keep_file(name, file)?;
        }
        Ok(folder)
    }

    /// Runs one trial, or takes its result from an earlier session. A panic fails only this trial.
    fn trial(
        &self,
        by: &Observe<'_>,
        trial: &Trial,
        (folder, kept): (Option<&RunFolder>, Option<Summary>),
        (exports, traces, plots): (&Exports<'_>, &Traces<'_>, bool),
        part: &Part<'_>,
    ) -> Ran {
        if self.frontend.stopped() {
            return Ran::Stopped;
        }
        // A trial that is exported or traced runs even if its result exists.
        let (export, trace) = (exports.of(trial), traces.of(trial));
        if export.is_none()
            && trace.is_none()
            && let Some(summary) = kept
        {
            part.done(1.0);
            let read = |folder| report::delays(folder, &recorded(trial));
            return match folder.filter(|_| plots).map(read).transpose() {
                Ok(delays) => Ran::Finished(summary, Vec::new(), delays, None),
                Err(error) => Ran::Failed(chain(&error)),
            };
        }
        let running = AssertUnwindSafe(|| {
            let series = folder.is_some() || plots || self.checks_divisions || self.records;
            let go_on = |share| {
                part.done(share);
                !self.frontend.stopped()
            };
            match (export, trace) {
                (None, None) => by(trial, series, &go_on),
                (Some((target, network)), None) => Ok(observe_network(network, series, |recorder| {
                    target.run(
                        network,
                        trial,
                        &|_, spec, context| giveway_scenario::discipline(spec, context),
                        recorder,
                        &go_on,
                    )
                })),
                (None, Some((trace, network))) => Ok(observe_network(network, series, |recorder| {
                    trace.run(&mut |build| run_built(network, trial, build, recorder, &go_on))
                })),
                (Some((target, network)), Some((trace, _))) => {
                    Ok(observe_network(network, series, |recorder| {
                        trace.run(&mut |build| target.run(network, trial, build, recorder, &go_on))
                    }))
                }
            }
        });
        let (record, remarks) = match catch_unwind(running) {
            Ok(Ok(Some(ran))) => ran,
            Ok(Ok(None)) => return Ran::Stopped,
            Ok(Err(error)) => return Ran::Failed(chain(&*error)),
            Err(panic) => return Ran::Failed(panic_message(panic.as_ref())),
        };
        match folder.map(|folder| folder.write(&recorded(trial), &record)) {
            Some(Err(error)) => Ran::Failed(chain(&error)),
            Some(Ok(())) | None => {
                let delays = plots.then(|| record.delays.clone());
                let summary = record.summary.clone();
                let kept = (self.records && folder.is_none()).then(|| Box::new(record));
                Ran::Finished(summary, remarks, delays, kept)
            }
        }
    }
}

/// Completes the folder, and writes its report if any run finished. Returns the path of the report.
fn keep(
    folder: RunFolder,
    conclusion: Option<Conclusion>,
    runs: &[(giveway_measure::Trial, Summary)],
) -> Result<Option<PathBuf>, RunnerError> {
    let folder = match conclusion {
        Some(conclusion) => folder.with_conclusion(conclusion),
        None => folder,
    };
    folder.finish(runs)?;
    if runs.is_empty() {
        return Ok(None);
    }
    let page = Report::of(&folder).and_then(|report| report.html())?;
    Ok(Some(folder.write_report(&page)?))
}

/// The name of a scenario: the name of its file without the extension.
pub fn scenario_name(file: &Path) -> String {
    file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Everything that results depend on: the text of the scenario, and the digests of the files that it names.
/// It does not contain the paths of these files, so a folder that is moved together with them still belongs
/// to the same scenario.
pub fn question(scenario: &Scenario) -> String {
    let mut text = scenario.text();
    for file in scenario.files() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // The file was read a moment ago. If it no longer exists, the runs report that.
        let print = Digest::of_file(&file).map_or_else(|error| error.to_string(), |digest| digest.sha256);
        text.push_str(&format!("# {name} has the SHA-256 {print}\n"));
    }
    text
}

/// The manifest of a run folder for a scenario. `command` and `created` (RFC 3339) say how it was made.
pub fn manifest(scenario: &Scenario, name: &str, (command, created): (String, String)) -> Manifest {
    let version =
        if scenario.live().is_some() { giveway_sources::TESTBED } else { giveway_sources::SIMULATION };
    Manifest {
        scenario: name.to_owned(),
        version: version.to_owned(),
        disciplines: giveway_observe::disciplines(scenario),
        seeds: scenario.seeds.clone(),
        machine: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        created_by: command,
        created: Some(created),
        title: scenario.title.clone(),
        description: scenario.description.clone(),
        layout: layout(scenario, true),
    }
}

/// Writes runs that are in memory into a run folder at `dir`, with a report. `asked` is everything that the
/// results depend on ([`question`]). With `force` the folder may replace anything at its place. Returns the
/// path of the report.
///
/// # Errors
/// When the folder cannot be created or written.
pub fn save(
    dir: &Path,
    asked: &str,
    manifest: Manifest,
    runs: &[(giveway_measure::Trial, Record)],
    (conclusion, force): (Option<Conclusion>, bool),
) -> Result<Option<PathBuf>, RunnerError> {
    let existing = if force { Existing::Replace(&|_| ()) } else { Existing::Keep };
    let commit = giveway_sources::COMMIT.map(str::to_owned);
    let folder = RunFolder::open(dir, asked, manifest, existing)?.with_commit(commit);
    for (trial, record) in runs {
        folder.write(trial, record)?;
    }
    let summaries: Vec<_> =
        runs.iter().map(|(trial, record)| (trial.clone(), record.summary.clone())).collect();
    keep(folder, conclusion, &summaries)
}

/// The trial as run folders identify it.
fn recorded(trial: &Trial) -> giveway_measure::Trial {
    giveway_measure::Trial { qdisc: trial.name.clone(), seed: trial.seed }
}
