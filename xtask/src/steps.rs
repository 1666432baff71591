//! Runs the steps of a check, and prints a table with the time and result of each. The times are kept, so
//! that the next run shows them next to its own.

mod times;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use crate::repository::{Done, Repository};
use times::Times;

/// Runs steps and stores their results. After a failure the next steps still run, so that the table shows all
/// failures.
pub struct Steps {
    taken: Vec<Step>,
    /// The times of an earlier run.
    before: Times,
}

struct Step {
    name: &'static str,
    took: Duration,
    /// Processor time of the child processes that ended during the step, where the system tells it.
    processor: Option<Duration>,
    ended: Ended,
}

/// Result of a step.
pub enum Ended {
    Passed,
    Failed(String),
    Skipped(String),
}

impl From<Done> for Ended {
    fn from(done: Done) -> Ended {
        done.map_or_else(Ended::Failed, |()| Ended::Passed)
    }
}

impl Steps {
    /// No steps yet.
    pub fn new(repository: &Repository) -> Steps {
        Steps { taken: Vec::new(), before: Times::before(repository) }
    }

    /// Runs a step, and prints its result. Returns true if it passed.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Ended) -> bool {
        println!("\n== {name}");
        let begun = Instant::now();
        let before = processor_time();
        let ended = work();
        if let Ended::Failed(error) = &ended {
            println!("{error}");
        }
        let processor = before.zip(processor_time()).map(|(before, after)| after.saturating_sub(before));
        let passed = matches!(ended, Ended::Passed);
        let step = Step { name, took: begun.elapsed(), processor, ended };
        println!("-- {}", step.line(&self.before));
        self.taken.push(step);
        passed
    }

    /// Records that a step is skipped, with the reason.
    pub fn skip(&mut self, name: &'static str, why: impl Into<String>) {
        self.step(name, || Ended::Skipped(why.into()));
    }

    /// Prints the table, the reasons of all failures, and the numbers of passed and failed steps. Keeps the
    /// times, in the repository under a label if there is one.
    pub fn close(&self, repository: &Repository, label: Option<&str>) -> ExitCode {
        println!();
        for step in &self.taken {
            println!("{}", step.line(&self.before));
        }
        let total = |time: fn(&Step) -> Duration| self.taken.iter().map(time).sum::<Duration>().as_secs_f64();
        println!(
            "{:<8}{:>7.1} s {:>7.1} s of CPU",
            "sum",
            total(|step| step.took),
            total(|step| step.processor.unwrap_or_default())
        );
        // Some services keep only the last lines of a log, so the reasons stand at its end, too.
        for step in &self.taken {
            if let Ended::Failed(why) = &step.ended {
                println!("\n{} FAILED:\n{}", step.name, last_lines(why, 20));
            }
        }
        let passed_times = self.taken.iter().filter(|step| matches!(step.ended, Ended::Passed));
        let passed_times = passed_times.map(|step| (step.name, step.took, step.processor));
        if let Err(why) = times::keep(repository, label, passed_times) {
            println!("the times are not kept: {why}");
        }
        let count = |test: fn(&Ended) -> bool| self.taken.iter().filter(|step| test(&step.ended)).count();
        let failed = count(|ended| matches!(ended, Ended::Failed(_)));
        let passed = count(|ended| matches!(ended, Ended::Passed));
        println!("steps: {passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl Step {
    fn line(&self, before: &Times) -> String {
        let (word, why) = match &self.ended {
            Ended::Passed => ("passed", String::new()),
            Ended::Failed(why) => ("FAILED", format!(": {}", why.lines().next().unwrap_or_default())),
            Ended::Skipped(why) => ("skipped", format!(": {why}")),
        };
        let seconds = |time: Option<f64>| time.map_or_else(|| " ".repeat(9), |time| format!("{time:>7.1} s"));
        let processor = seconds(self.processor.map(|time| time.as_secs_f64()));
        let earlier = seconds(before.of(self.name));
        format!(
            "{word:<8}{:>7.1} s {processor} of CPU, before {earlier}  {}{why}",
            self.took.as_secs_f64(),
            self.name
        )
    }
}

/// Processor time of the child processes of this process that have ended, and of their children; from
/// `/proc/self/stat` (proc_pid_stat(5), fields 16 and 17, in hundredths of a second).
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, field 2, may contain spaces and parentheses.
    let fields = text.rsplit_once(')')?.1.split_whitespace();
    let ticks: Option<u64> = fields.skip(13).take(2).map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks? * 10))
}

/// A chore that runs in the background, as another process. Its output goes to a file, which [`Beside::wait`]
/// prints, so that it does not mix with the output of the steps.
pub struct Beside {
    child: Child,
    log: PathBuf,
}

impl Beside {
    /// Starts `cargo xtask CHORE`.
    ///
    /// # Errors
    /// If the log cannot be written or the program does not start.
    pub fn start(repository: &Repository, chore: &str, arguments: &[&str]) -> Result<Beside, String> {
        // The tests may have rebuilt this program, so the file of the current process may no longer exist.
        let this = repository.built("debug", "xtask")?;
        let log = repository.target()?.join("xtask").join(chore).with_extension("log");
        let failed = |error: std::io::Error| format!("{}: {error}", log.display());
        std::fs::create_dir_all(log.parent().expect("a file is in a folder")).map_err(failed)?;
        let file = File::create(&log).map_err(failed)?;
        let mut command = repository.command(&this.to_string_lossy());
        command.arg(chore).args(arguments).stdout(file.try_clone().map_err(failed)?).stderr(file);
        let child = command.spawn().map_err(|error| format!("{}: {error}", this.display()))?;
        Ok(Beside { child, log })
    }

    /// Waits for the end of the chore, and prints its output.
    ///
    /// # Errors
    /// If the chore failed: its exit status, and the last lines of its output.
    pub fn wait(mut self) -> Done {
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let output = std::fs::read(&self.log).map_err(|error| format!("{}: {error}", self.log.display()))?;
        let output = String::from_utf8_lossy(&output);
        print!("{output}");
        if status.success() {
            return Ok(());
        }
        Err(format!("{}: {status}\n{}", self.log.display(), last_lines(&output, 20)))
    }
}

/// The last lines of a text, at most `count`, without empty ones.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
