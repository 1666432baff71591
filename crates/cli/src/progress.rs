//! Progress in lines, for a standard error that is not a terminal, such as the log of a batch job.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use giveway_trials::{Bar, Unit};

/// Time between two lines.
pub const EVERY: Duration = Duration::from_secs(10);

/// Progress that prints a line every ten seconds: steps, time so far, and an estimate of the time left.
pub struct Lines<C, P> {
    name: String,
    steps: u64,
    unit: Unit,
    /// The time since some moment.
    clock: C,
    /// Prints a line.
    print: P,
    began: Duration,
    so_far: Mutex<SoFar>,
}

/// The steps that are done so far, and the time of the last line.
struct SoFar {
    done: u64,
    /// The time of the last line, or of the beginning.
    last: Duration,
}

impl<C: Fn() -> Duration, P: Fn(&str)> Lines<C, P> {
    /// Progress of `steps` that starts now.
    pub fn new(name: &str, steps: u64, unit: Unit, clock: C, print: P) -> Lines<C, P> {
        let began = clock();
        let so_far = Mutex::new(SoFar { done: 0, last: began });
        Lines { name: name.to_owned(), steps, unit, clock, print, began, so_far }
    }
}

impl<C, P> Bar for Lines<C, P>
where
    C: Fn() -> Duration + Send + Sync,
    P: Fn(&str) + Send + Sync,
{
    fn advance(&self, steps: u64) {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.done += steps;
        let now = (self.clock)();
        if now.saturating_sub(so_far.last) < EVERY || so_far.done == 0 {
            return;
        }
        so_far.last = now;
        let done = so_far.done.min(self.steps);
        let elapsed = now.saturating_sub(self.began);
        // The rest takes as long for each step as what is done.
        let left = elapsed.as_secs_f64() * (self.steps - done) as f64 / done as f64;
        (self.print)(&format!(
            "{}: {}, {} so far, about {} left",
            self.name,
            self.unit.of(done, self.steps),
            words(elapsed),
            words(Duration::from_secs_f64(left)),
        ));
    }
}

/// A length of time for people.
pub fn words(time: Duration) -> String {
    let seconds = (time.as_secs_f64() + 0.5) as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that the test sets, and the lines that were printed.
    fn watched(unit: Unit, steps: u64, moves: &[(u64, u64)]) -> Vec<String> {
        let time = Arc::new(AtomicU64::new(1_000_000));
        let lines: Arc<Mutex<RefCell<Vec<String>>>> = Arc::default();
        let (clock, printed) = (Arc::clone(&time), Arc::clone(&lines));
        let bar = Lines::new(
            "home",
            steps,
            unit,
            move || Duration::from_millis(clock.load(Ordering::Relaxed)),
            move |line: &str| printed.lock().unwrap().borrow_mut().push(line.to_owned()),
        );
        for (at_ms, steps) in moves {
            time.store(1_000_000 + at_ms, Ordering::Relaxed);
            bar.advance(*steps);
        }
        lines.lock().unwrap().take()
    }

    #[test]
    fn a_line_comes_every_ten_seconds_with_an_estimate() {
        // Half a run, 1.5 runs, then one run more; a run has a thousand steps.
        let moves = [(9_999, 500), (10_000, 1_000), (19_999, 0), (20_000, 0), (45_000, 1_000)];
        assert_eq!(
            watched(Unit::Runs, 6_000, &moves),
            [
                "home: 1 of 6 runs, 10 s so far, about 30 s left",
                "home: 1 of 6 runs, 20 s so far, about 60 s left",
                "home: 2 of 6 runs, 45 s so far, about 63 s left",
            ]
        );
    }

    #[test]
    fn a_short_run_has_no_lines_and_a_long_one_has_hours() {
        assert!(watched(Unit::Runs, 1_000, &[(0, 0), (5_000, 600), (9_900, 400)]).is_empty());
        let moves = [(3_600_000, 250_000_000)];
        assert_eq!(
            watched(Unit::Bytes, 1_000_000_000, &moves),
            ["home: 250 of 1000 MB, 60 min so far, about 3 h 0 min left"]
        );
        assert_eq!(
            watched(Unit::Seconds, 60_000, &[(12_000, 15_500)]),
            ["home: 15 of 60 simulated seconds, 12 s so far, about 34 s left"]
        );
    }
}
