//! The interface of the caller: it receives messages and progress, and can stop the runs.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

/// Receives messages and progress, and can stop the runs. Several threads call it at the same time.
pub trait Frontend: Sync {
    /// Shows an error or a warning.
    fn message(&self, text: &str);

    /// Shows a remark. A quiet front end leaves it out.
    fn remark(&self, _text: &str) {}

    /// Returns true once the runs should stop. Each trial calls it many times.
    fn stopped(&self) -> bool {
        false
    }

    /// Tells how far a long reading is. It is called often; a front end shows few of the texts.
    fn counted(&self, _text: &dyn Fn() -> String) {}

    /// Forgets that the runs should stop: the user has ended only the capture.
    fn carry_on(&self) {}

    /// Starts a progress bar of `steps` of a unit, with a name.
    fn bar(&self, name: &str, steps: u64, unit: Unit) -> Box<dyn Bar>;
}

/// The unit of the steps of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Thousandths of a run.
    Runs,
    /// Thousandths of a simulated second.
    Seconds,
    /// Bytes of files.
    Bytes,
}

impl Unit {
    /// The steps that are done and all steps in words, such as "3 of 12 runs".
    pub fn of(self, done: u64, all: u64) -> String {
        let (size, name) = match self {
            Unit::Runs => (STEPS, "runs"),
            Unit::Seconds => (STEPS, "simulated seconds"),
            Unit::Bytes => (1_000_000, "MB"),
        };
        format!("{} of {} {name}", done / size, all / size)
    }
}

/// A progress bar. It ends when it is dropped.
pub trait Bar: Send + Sync {
    /// Moves the bar on by `steps`.
    fn advance(&self, steps: u64);
}

/// A silent front end that never stops.
pub struct Silent;

impl Frontend for Silent {
    fn message(&self, _: &str) {}
    fn bar(&self, _: &str, _: u64, _: Unit) -> Box<dyn Bar> {
        Box::new(NoBar)
    }
}

/// A progress bar without output.
pub struct NoBar;

impl Bar for NoBar {
    fn advance(&self, _: u64) {}
}

/// The steps of a bar for one run of length 1, or for one simulated second.
const STEPS: u64 = 1000;

/// The progress of runs of different lengths, on one bar.
pub struct Progress {
    bar: Box<dyn Bar>,
}

impl Progress {
    /// A bar over `runs` of length 1. With [`Unit::Seconds`] a run of length 1 is a simulated second.
    pub fn new(frontend: &dyn Frontend, name: &str, runs: usize, unit: Unit) -> Progress {
        Progress { bar: frontend.bar(name, runs as u64 * STEPS, unit) }
    }

    /// The part of one run of length 1.
    pub fn part(&self) -> Part<'_> {
        self.part_of_length(1)
    }

    /// The part of one run of this length.
    pub fn part_of_length(&self, runs: u64) -> Part<'_> {
        Part { bar: &*self.bar, most: runs * STEPS, shown: AtomicU64::new(0) }
    }
}

/// The progress of one run.
pub struct Part<'a> {
    bar: &'a dyn Bar,
    most: u64,
    shown: AtomicU64,
}

impl Part<'_> {
    /// Moves the bar to this share of the run, 0 to 1. A share that is smaller than before has no effect.
    pub fn done(&self, share: f64) {
        let now = ((share * self.most as f64) as u64).min(self.most);
        let new = now.saturating_sub(self.shown.load(Ordering::Relaxed));
        if new > 0 {
            self.shown.store(now, Ordering::Relaxed);
            self.bar.advance(new);
        }
    }
}

/// The message of a caught panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Counter(Arc<AtomicU64>);

    impl Bar for Counter {
        fn advance(&self, steps: u64) {
            self.0.fetch_add(steps, Ordering::Relaxed);
        }
    }

    impl Frontend for Counter {
        fn message(&self, _: &str) {}
        fn bar(&self, _: &str, _: u64, _: Unit) -> Box<dyn Bar> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn parts_add_up_to_the_whole_whatever_the_steps() {
        let counter = Counter::default();
        let progress = Progress::new(&counter, "runs", 4, Unit::Runs);
        let (short, long) = (progress.part(), progress.part_of_length(3));
        for share in [0.1, 0.1, 0.05, 0.7, 1.0, 1.0] {
            short.done(share);
            long.done(share);
        }
        assert_eq!(counter.0.load(Ordering::Relaxed), 4 * STEPS);
    }
}
