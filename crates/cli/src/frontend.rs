//! The terminal as the front end of runs: messages on the standard error, a progress bar, Ctrl-C.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use giveway_text::harmless;
use giveway_trials::{Bar, Frontend, NoBar, Unit};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::progress::{EVERY, Lines, words};
use crate::{show, stop, terminal};

/// The time of the last such message, or of the beginning.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);

/// Front end that prints on the standard error of this process.
pub struct Terminal {
    /// True to suppress progress and remarks.
    pub quiet: bool,
}

impl Frontend for Terminal {
    fn message(&self, text: &str) {
        show::message(text);
    }

    fn remark(&self, text: &str) {
        if !self.quiet {
            show::message(text);
        }
    }

    fn stopped(&self) -> bool {
        stop::requested()
    }

    #[expect(clippy::disallowed_methods, reason = "messages come every ten seconds of real time")]
    fn counted(&self, text: &dyn Fn() -> String) {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let since = now.duration_since(*last.get_or_insert(now));
        if !self.quiet && since >= EVERY {
            *last = Some(now);
            show::message(&text());
        }
    }

    fn carry_on(&self) {
        stop::forget();
    }

    fn bar(&self, name: &str, steps: u64, unit: Unit) -> Box<dyn Bar> {
        if self.quiet {
            return Box::new(NoBar);
        }
        if !terminal::watched() {
            return Box::new(Lines::new(name, steps, unit, clock(), show::message));
        }
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {left:>6} left");
        bar.set_style(style.expect("the template is valid").with_key("left", left));
        bar.set_message(harmless(name).into_owned());
        Box::new(Shown(bar))
    }
}

/// The time left, from the mean speed so far. Runs are in a random order, so the mean of the finished ones
/// estimates the mean of the others. The speed of the last seconds would not be.
fn left(bar: &ProgressState, out: &mut dyn std::fmt::Write) {
    let (done, all) = (bar.pos(), bar.len().unwrap_or_default());
    let left = match done {
        0 => "-".to_owned(),
        _ => words(bar.elapsed().mul_f64(all.saturating_sub(done) as f64 / done as f64)),
    };
    // A terminal that is gone shows nothing.
    let _ = out.write_str(&left);
}

/// A clock of real time, which counts from now.
#[expect(clippy::disallowed_methods, reason = "progress is for people, and changes no result")]
pub fn clock() -> impl Fn() -> Duration {
    let began = Instant::now();
    move || began.elapsed()
}

/// A progress bar on the terminal. It disappears when it is dropped.
struct Shown(ProgressBar);

impl Bar for Shown {
    fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
