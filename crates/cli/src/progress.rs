//! A progress bar over all runs of a scenario, with the time that is left.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal;

/// A bar, or nothing where nobody watches.
pub struct Progress {
    bar: ProgressBar,
}

/// Parts of a run that the bar can tell apart.
const PARTS: u64 = 1000;

impl Progress {
    /// A bar over `runs`.
    pub fn new(name: &str, runs: usize, quiet: bool) -> Progress {
        if quiet || !terminal::watched() {
            return Progress { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new(runs as u64 * PARTS);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {eta:>4} left");
        bar.set_style(style.expect("the template is right"));
        bar.set_message(name.to_owned());
        Progress { bar }
    }

    /// One run of it.
    pub fn part(&self) -> Part<'_> {
        self.parts(1)
    }

    /// One run that counts as many.
    pub fn parts(&self, runs: u64) -> Part<'_> {
        Part { bar: &self.bar, most: runs * PARTS, told: AtomicU64::new(0) }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// How far one run is.
pub struct Part<'a> {
    bar: &'a ProgressBar,
    most: u64,
    told: AtomicU64,
}

impl Part<'_> {
    /// It is done to this share, 0 to 1.
    pub fn done(&self, share: f64) {
        let now = ((share * self.most as f64) as u64).min(self.most);
        let new = now.saturating_sub(self.told.load(Ordering::Relaxed));
        if new > 0 {
            self.told.store(now, Ordering::Relaxed);
            self.bar.inc(new);
        }
    }
}
