//! Steps of a check, each with its time, and the table at the end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::repository::Done;

/// Runs steps and remembers how they went. A step that fails does not keep the next from running: one look at the table
/// shows all that is wrong.
#[derive(Default)]
pub struct Steps {
    taken: Vec<Step>,
}

struct Step {
    name: &'static str,
    took: Duration,
    ended: Ended,
}

enum Ended {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Steps {
    /// Does a step.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Done) {
        println!("\n== {name}");
        let begun = Instant::now();
        let ended = match work() {
            Ok(()) => Ended::Passed,
            Err(why) => {
                println!("{why}");
                Ended::Failed(why.lines().next().unwrap_or_default().to_owned())
            }
        };
        let step = Step { name, took: begun.elapsed(), ended };
        println!("-- {}", step.line());
        self.taken.push(step);
    }

    /// Says that a step was left out, and why.
    pub fn skip(&mut self, name: &'static str, why: &str) {
        println!("\n== {name}\n-- skipped: {why}");
        self.taken.push(Step { name, took: Duration::ZERO, ended: Ended::Skipped(why.to_owned()) });
    }

    /// Prints the table; the last line says how many passed and failed.
    pub fn close(self) -> ExitCode {
        println!();
        for step in &self.taken {
            println!("{}", step.line());
        }
        let count = |test: fn(&Ended) -> bool| self.taken.iter().filter(|step| test(&step.ended)).count();
        let failed = count(|ended| matches!(ended, Ended::Failed(_)));
        let passed = count(|ended| matches!(ended, Ended::Passed));
        println!("steps: {passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl Step {
    fn line(&self) -> String {
        let (word, why) = match &self.ended {
            Ended::Passed => ("passed", String::new()),
            Ended::Failed(why) => ("FAILED", format!(": {why}")),
            Ended::Skipped(why) => ("skipped", format!(": {why}")),
        };
        format!("{word:<8}{:>7.1} s  {}{why}", self.took.as_secs_f64(), self.name)
    }
}
