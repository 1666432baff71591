//! A session runs scenarios trial by trial, and keeps their results.

use std::convert::Infallible;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use giveway_measure::{Contest, DelayPlot, DelayRow, Record, Summary, Table};
use giveway_observe::{contest, layout, observe, observe_network, run_built};
use giveway_record::report::{self, Report};
use giveway_record::{Conclusion, Existing, Kept, Manifest, RunFolder, chain};
use giveway_scenario::{Build, Scenario, Trial};
use giveway_trials::key::version;
use giveway_trials::{Digests, Ended, Frontend, Identity, Reuse, Runs, Turn, Unit, identity_text};

use crate::export::Exports;
use crate::traces::{PortFile, Traces};
use crate::{Outcome, RunnerError, cpu, outputs, threads};

/// The results of one trial.
struct Finished {
    summary: Summary,
    /// Remarks of its traffic sources.
    remarks: Vec<String>,
    /// Its delays over time, if they are plotted.
    delays: Option<Vec<DelayRow>>,
    /// Its record, if records are returned.
    record: Option<Box<Record>>,
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
    /// The number of trials that run at a time.
    jobs: usize,
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
    /// The trials of other folders, which are not run again.
    reuse: Reuse,
}

impl<'a> Session<'a> {
    /// A session that runs `jobs` trials at a time. `command` and `created` (RFC 3339) are recorded in the
    /// manifests of run folders.
    pub fn new(jobs: usize, frontend: &'a dyn Frontend, command: String, created: String) -> Session<'a> {
        Session {
            frontend,
            jobs,
            provenance: (command, created),
            export: None,
            traces: Vec::new(),
            beside: None,
            force: false,
            threads: 1,
            checks_divisions: false,
            plots: false,
            records: false,
            reuse: Reuse::default(),
        }
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

    /// Makes this session take the results of trials that other folders have. A trial whose samples over time
    /// are needed runs nevertheless: for a run folder, a plot, a capture or a trace.
    pub fn reusing(self, reuse: Reuse) -> Session<'a> {
        Session { reuse, ..self }
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
        let simulate: &Observe<'_> = &|trial, keep_series, keep_running| {
            let network = scenario.network();
            let ran = match network.zip(divisions.get(trial.discipline)) {
                Some((network, partition)) => {
                    threads::run(network, trial, keep_series, (partition, self.threads), &keep_running)
                }
                None => observe(scenario, trial, keep_series, &keep_running),
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
        let asked = dir.map(|_| identity_text(scenario)).unwrap_or_default();
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
        let mut kept = self.kept(&trials, folder.as_ref());
        if folder.is_none() && !self.plots && !self.records && !self.checks_divisions {
            let taken = self.take(scenario, &trials, &mut kept);
            if !self.reuse.is_empty() {
                let all = trials.len();
                self.frontend.remark(&format!("{taken} of {all} trials are taken from --reuse"));
            }
        }
        // No trial runs in vain once one could not be written.
        let is_full = AtomicBool::new(false);
        let ran = self.each(name, &trials, |place, turn| {
            let trial = &trials[place];
            if is_full.load(Ordering::Relaxed) {
                return Ended::Stopped;
            }
            let outputs = (&exports, &traces, self.plots && trial.seed == scenario.seeds[0]);
            self.trial(by, trial, (folder.as_ref(), kept[place].clone()), outputs, (turn, &is_full))
        });
        let cpu_s = cpu::user_s() - before;

        let mut runs = Vec::new();
        let mut remarks = Vec::new();
        let mut plotted = Vec::new();
        let mut records = Vec::new();
        let mut outcome = Outcome::Done;
        for (trial, ran) in trials.iter().zip(ran) {
            match ran {
                Ended::Finished(Finished { summary, remarks: own, delays, record }) => {
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
                Ended::Stopped => outcome = outcome.max(Outcome::Interrupted),
                Ended::Failed(why) => {
                    self.frontend.message(&format!("{} with seed {} failed: {why}", trial.name, trial.seed));
                    outcome = outcome.max(Outcome::Failed);
                }
            }
        }
        let is_full = is_full.into_inner();
        if let (true, Some(dir)) = (is_full, dir) {
            self.frontend.message(&format!(
                "the disk is full: {} has {} of {} trials. Make room, and the same command resumes",
                dir.display(),
                runs.len(),
                trials.len()
            ));
            outcome = Outcome::Failed;
        }
        let table = Table::new(&runs);
        let conclusion = find(&table);
        let findings = conclusion.as_ref().map(|conclusion| conclusion.findings.clone());
        let written_report = match folder.filter(|_| !is_full).map(|folder| keep(folder, conclusion, &runs)) {
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
    pub fn measure(&self, scenario: &Scenario, name: &str) -> Option<Table> {
        let trials = scenario.trials();
        let mut kept = vec![None; trials.len()];
        self.take(scenario, &trials, &mut kept);
        let ran = self.each(name, &trials, |place, turn| match &kept[place] {
            Some(summary) => {
                turn.skip();
                Ended::Finished(Summary::clone(summary))
            }
            None => turn.trial(|keep_running| {
                let observed = observe(scenario, &trials[place], false, keep_running);
                observed.map(|(record, _)| record.summary)
            }),
        });
        let mut runs = Vec::new();
        for (trial, ran) in trials.iter().zip(ran) {
            match ran {
                Ended::Finished(summary) => runs.push((recorded(trial), summary)),
                Ended::Stopped => return None,
                Ended::Failed(why) => {
                    self.frontend.message(&format!("{name} with seed {} failed: {why}", trial.seed));
                    return None;
                }
            }
        }
        Some(Table::new(&runs))
    }

    /// Takes the results of trials that other folders have. Returns their number.
    fn take(&self, scenario: &Scenario, trials: &[Trial], kept: &mut [Option<Summary>]) -> usize {
        if self.reuse.is_empty() {
            return 0;
        }
        let mut taken = 0;
        let identity = Identity::of(scenario, &Digests::default());
        for (trial, kept) in trials.iter().zip(kept) {
            // A part that was damaged since it was opened: the trial runs.
            let found = self.reuse.take(identity.key(&trial.name, trial.seed)).ok().flatten();
            if kept.is_none() {
                *kept = found.and_then(|found| found.summary());
                taken += usize::from(kept.is_some());
            }
        }
        taken
    }

    /// The ends of trials, in their order.
    fn each<R: Send>(
        &self,
        name: &str,
        trials: &[Trial],
        run: impl Fn(usize, &Turn<'_>) -> R + Sync,
    ) -> Vec<R> {
        let runs = Runs::new(self.frontend, name, trials.len(), Unit::Runs, self.jobs);
        let Ok(ran) = runs.all(trials.len(), |place, turn| Ok::<R, Infallible>(run(place, turn)));
        ran
    }

    /// Returns the outcome of the command if the folder at `dir` cannot be used for the results, after a
    /// message to the front end; `None` if it can. `asked` is everything that the results depend on:
    /// [`identity_text`].
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
        // Every byte is checked, so it is a task for all threads, too.
        let look =
            |place: usize, _: &Turn<'_>| Ok::<Kept, Infallible>(folder.look(&recorded(&trials[place])));
        let Ok(kept) = Runs::hidden(self.frontend, self.jobs).all(trials.len(), look);
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
        (turn, is_full): (&Turn<'_>, &AtomicBool),
    ) -> Ended<Finished> {
        // A trial that is exported or traced runs even if its result exists.
        let (export, trace) = (exports.of(trial), traces.of(trial));
        if export.is_none()
            && trace.is_none()
            && let Some(summary) = kept
        {
            turn.skip();
            let read = |folder| report::delays(folder, &recorded(trial));
            return match folder.filter(|_| plots).map(read).transpose() {
                Ok(delays) => {
                    Ended::Finished(Finished { summary, remarks: Vec::new(), delays, record: None })
                }
                Err(error) => Ended::Failed(chain(&error)),
            };
        }
        let series = folder.is_some() || plots || self.checks_divisions || self.records;
        let ended = turn.trial(|keep_running| match (export, trace) {
            (None, None) => by(trial, series, keep_running).transpose(),
            (Some((target, network)), None) => observe_network(network, series, |recorder| {
                let build: Build<'_> = &|_, spec, context| giveway_scenario::discipline(spec, context);
                target.run(network, trial, build, recorder, keep_running)
            })
            .map(Ok),
            (None, Some((trace, network))) => observe_network(network, series, |recorder| {
                trace.run(&mut |build| run_built(network, trial, build, recorder, keep_running))
            })
            .map(Ok),
            (Some((target, network)), Some((trace, _))) => observe_network(network, series, |recorder| {
                trace.run(&mut |build| target.run(network, trial, build, recorder, keep_running))
            })
            .map(Ok),
        });
        let (record, remarks) = match ended {
            Ended::Finished(Ok(ran)) => ran,
            Ended::Finished(Err(error)) => return Ended::Failed(chain(&*error)),
            Ended::Stopped => return Ended::Stopped,
            Ended::Failed(why) => return Ended::Failed(why),
        };
        if let Some(Err(error)) = folder.map(|folder| folder.write(&recorded(trial), &record)) {
            if error.is_full() {
                is_full.store(true, Ordering::Relaxed);
                return Ended::Stopped;
            }
            return Ended::Failed(chain(&error));
        }
        let delays = plots.then(|| record.delays.clone());
        let summary = record.summary.clone();
        let record = (self.records && folder.is_none()).then(|| Box::new(record));
        Ended::Finished(Finished { summary, remarks, delays, record })
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

/// The manifest of a run folder for a scenario. `command` and `created` (RFC 3339) say how it was made.
pub fn manifest(scenario: &Scenario, name: &str, (command, created): (String, String)) -> Manifest {
    Manifest {
        scenario: name.to_owned(),
        version: version(scenario).to_owned(),
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
/// results depend on ([`identity_text`]). With `force` the folder may replace anything at its place. Returns
/// the path of the report.
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
