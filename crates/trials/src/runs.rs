//! Runs many tasks on threads. It is the only loop over trials. It owns the threads, the order of results,
//! the end after an error, the progress, the stop of the user, and the panics.
//!
//! A task is one trial, or several that belong together. Tasks start in order. Their results go to the
//! calling thread, which may write them, while other threads run the next tasks.
//!
//! # Decisions
//! - If a trial panics, only this trial fails: [`Turn::trial`] returns the message of the panic.
//! - After an error, only the tasks before it are wanted, and they still run. So the error of a command is
//!   the same with any number of threads.
//! - Stopped by the user, running trials end at their next step.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use giveway_record::FolderError;
use giveway_record::dataset::Row;

use crate::frontend::{Frontend, Progress, Silent, Unit, panic_message};
use crate::store::Store;

/// Results that may wait in the channel to the calling thread, for each thread.
const WAITING: usize = 4;

/// The time after which the calling thread looks after its store, if no result arrives.
const IDLE: Duration = Duration::from_secs(2);

/// The number of processors, which is the default number of threads.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Runs the tasks of a command.
pub struct Runs<'a> {
    frontend: &'a dyn Frontend,
    progress: Progress,
    jobs: usize,
}

/// The end of a trial.
#[derive(Debug, PartialEq)]
pub enum Ended<R> {
    /// It ended with a result.
    Finished(R),
    /// The user stopped it, or its result is not wanted any more.
    Stopped,
    /// It panicked, with this message.
    Failed(String),
}

/// Takes results on the calling thread.
pub trait Take<R> {
    /// Takes the result of the task with this number. After a break, only tasks before it are wanted.
    fn take(&mut self, number: u64, result: R) -> ControlFlow<()>;

    /// The time until [`idle`](Take::idle), if no result arrives.
    fn patience(&self) -> Duration {
        IDLE
    }

    /// No result arrived for a while, or no further one will, at the end. After a break, no task is wanted.
    fn idle(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The turn of a thread to run a task.
pub struct Turn<'a> {
    runs: &'a Runs<'a>,
    wanted: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Runs<'a> {
    /// Runs of this total length on `jobs` threads, with a progress bar.
    pub fn new(frontend: &'a dyn Frontend, title: &str, length: usize, unit: Unit, jobs: usize) -> Runs<'a> {
        Runs { frontend, progress: Progress::new(frontend, title, length, unit), jobs: jobs.max(1) }
    }

    /// Runs on `jobs` threads without a progress bar.
    pub fn hidden(frontend: &'a dyn Frontend, jobs: usize) -> Runs<'a> {
        Runs { frontend, progress: Progress::new(&Silent, "", 0, Unit::Runs), jobs: jobs.max(1) }
    }

    /// A turn on the calling thread.
    pub fn turn(&self) -> Turn<'_> {
        Turn { runs: self, wanted: &|| true }
    }

    /// Runs the tasks with the numbers 0 to `count`, and returns their results in order.
    ///
    /// # Errors
    /// The error of the first task that fails.
    pub fn all<R: Send, E: Send>(
        &self,
        count: usize,
        task: impl Fn(usize, &Turn<'_>) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let mut slots: Slots<R, E> = (0..count).map(|_| None).collect();
        self.each(count as u64, |number, turn| Some(task(number as usize, turn)), &mut slots);
        // A place without a result is behind an error.
        slots.into_iter().map_while(|slot| slot).collect()
    }

    /// The results of trials, in order. Trials in the store do not run again, and it keeps the results of the
    /// others. `run` gets the place of a trial.
    ///
    /// # Errors
    /// The first error of a trial, or of the store. The trials that finished before are kept.
    pub fn kept<R: Send + Clone, E: Send + From<FolderError>>(
        &self,
        trials: &[Row<()>],
        store: &dyn Store<R>,
        run: impl Fn(usize, &Turn<'_>) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let mut results: Vec<Option<R>> = trials.iter().map(|trial| store.find(trial)).collect();
        let missing: Vec<usize> = (0..trials.len()).filter(|place| results[*place].is_none()).collect();
        (missing.len()..trials.len()).for_each(|_| self.turn().skip());
        let mut keeping = Keeping { trials, missing: &missing, store, results: &mut results, error: None };
        self.each(
            missing.len() as u64,
            |number, turn| Some(run(missing[number as usize], turn)),
            &mut keeping,
        );
        match keeping.error {
            Some((_, error)) => Err(error),
            None => Ok(results.into_iter().flatten().collect()),
        }
    }

    /// Runs the tasks with the numbers 0 to `count`, and hands each result to `take` as it comes. A task may
    /// end without a result.
    pub fn each<R: Send>(
        &self,
        count: u64,
        task: impl Fn(u64, &Turn<'_>) -> Option<R> + Sync,
        take: &mut impl Take<R>,
    ) {
        let next = AtomicU64::new(0);
        let end = AtomicU64::new(count);
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(WAITING * self.jobs);
            for _ in 0..count.min(self.jobs as u64) {
                let (sender, next, end, task) = (sender.clone(), &next, &end, &task);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let wanted = || number < end.load(Ordering::Relaxed);
                        if !wanted() {
                            return;
                        }
                        let result = task(number, &Turn { runs: self, wanted: &wanted });
                        if result.is_some_and(|result| sender.send((number, result)).is_err()) {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            loop {
                let last = match receiver.recv_timeout(take.patience()) {
                    Ok((number, result)) => take.take(number, result).map_break(|()| number),
                    Err(RecvTimeoutError::Timeout) => take.idle().map_break(|()| 0),
                    Err(RecvTimeoutError::Disconnected) => {
                        let _ = take.idle();
                        return;
                    }
                };
                if let ControlFlow::Break(last) = last {
                    end.fetch_min(last, Ordering::Relaxed);
                }
            }
        });
    }
}

/// The results of tasks by number.
type Slots<R, E> = Vec<Option<Result<R, E>>>;

impl<R, E> Take<Result<R, E>> for Slots<R, E> {
    fn take(&mut self, number: u64, result: Result<R, E>) -> ControlFlow<()> {
        let failed = result.is_err();
        self[number as usize] = Some(result);
        if failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Hands results to a store.
struct Keeping<'a, R, E> {
    trials: &'a [Row<()>],
    /// The places of the trials that run.
    missing: &'a [usize],
    store: &'a dyn Store<R>,
    results: &'a mut Vec<Option<R>>,
    /// The first error, with its place.
    error: Option<(usize, E)>,
}

impl<R, E: From<FolderError>> Keeping<'_, R, E> {
    fn fail(&mut self, place: usize, error: E) -> ControlFlow<()> {
        if self.error.as_ref().is_none_or(|(first, _)| place < *first) {
            self.error = Some((place, error));
        }
        ControlFlow::Break(())
    }
}

impl<R: Clone, E: From<FolderError>> Take<Result<R, E>> for Keeping<'_, R, E> {
    fn take(&mut self, number: u64, result: Result<R, E>) -> ControlFlow<()> {
        let place = self.missing[number as usize];
        let kept = result.and_then(|result| {
            self.results[place] = Some(result.clone());
            Ok(self.store.keep(self.trials[place].clone().with(result))?)
        });
        match kept {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.fail(place, error),
        }
    }

    fn patience(&self) -> Duration {
        self.store.patience()
    }

    fn idle(&mut self) -> ControlFlow<()> {
        match self.store.flush() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.fail(0, error.into()),
        }
    }
}

impl Turn<'_> {
    /// True if the user stopped the runs, or the result of this task is not wanted any more.
    pub fn is_over(&self) -> bool {
        self.runs.frontend.stopped() || !(self.wanted)()
    }

    /// Moves the progress on by a trial of length 1 that does not run.
    pub fn skip(&self) {
        self.skip_length(1);
    }

    /// Moves the progress on by a trial of another length that does not run.
    pub fn skip_length(&self, length: u64) {
        self.runs.progress.part_of_length(length).done(1.0);
    }

    /// Runs a trial of length 1. `run` gets a function that takes the progress, 0 to 1, and returns false if
    /// the trial must stop; then it returns `None`.
    pub fn trial<R>(&self, run: impl FnOnce(&(dyn Fn(f64) -> bool + Sync)) -> Option<R>) -> Ended<R> {
        self.trial_of_length(1, run)
    }

    /// Runs a trial of another length, as [`trial`](Turn::trial).
    pub fn trial_of_length<R>(
        &self,
        length: u64,
        run: impl FnOnce(&(dyn Fn(f64) -> bool + Sync)) -> Option<R>,
    ) -> Ended<R> {
        if self.is_over() {
            return Ended::Stopped;
        }
        let part = self.runs.progress.part_of_length(length);
        let keep_running = |share: f64| {
            part.done(share);
            !self.is_over()
        };
        let ended = match catch_unwind(AssertUnwindSafe(|| run(&keep_running))) {
            Ok(Some(result)) => Ended::Finished(result),
            Ok(None) => return Ended::Stopped,
            Err(panic) => Ended::Failed(panic_message(panic.as_ref())),
        };
        part.done(1.0);
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use super::*;
    use crate::store::Memory;

    fn runs(jobs: usize) -> Runs<'static> {
        Runs::hidden(&Silent, jobs)
    }

    #[test]
    fn results_are_in_order_with_any_number_of_threads() {
        for jobs in [0, 1, 3, 50] {
            let found: Result<Vec<usize>, ()> = runs(jobs).all(20, |place, _| Ok(place * place));
            assert_eq!(found.unwrap(), (0..20).map(|place| place * place).collect::<Vec<_>>());
        }
        assert_eq!(runs(4).all(0, |_, _| Err::<(), ()>(())), Ok(Vec::new()));
    }

    #[test]
    fn the_first_error_in_order_is_returned_although_a_later_one_comes_first() {
        let (begun, over) = (Barrier::new(2), Barrier::new(2));
        let found: Result<Vec<()>, usize> = runs(3).all(3, |place, turn| match place {
            0 => {
                // The error of the second task ends the third one, and not this one.
                over.wait();
                assert!(!turn.is_over());
                Err(0)
            }
            1 => {
                begun.wait();
                Err(1)
            }
            _ => {
                begun.wait();
                while !turn.is_over() {
                    std::thread::yield_now();
                }
                over.wait();
                Ok(())
            }
        });
        assert_eq!(found, Err(0));
    }

    #[test]
    fn tasks_behind_an_error_are_not_wanted() {
        let (ran, begun) = (Mutex::new(Vec::new()), Barrier::new(2));
        // A task that is running when an earlier one fails learns that nobody wants its result.
        let found: Result<Vec<()>, &str> = runs(2).all(1000, |place, turn| {
            ran.lock().unwrap().push(place);
            match place {
                0 => {
                    begun.wait();
                    Err("first")
                }
                1 => {
                    begun.wait();
                    while !turn.is_over() {
                        std::thread::yield_now();
                    }
                    Err("second")
                }
                _ => Ok(()),
            }
        });
        assert_eq!(found, Err("first"));
        assert!(ran.into_inner().unwrap().len() < 1000);
    }

    #[test]
    fn a_panic_fails_its_trial_only() {
        let found: Result<Vec<Ended<usize>>, ()> = runs(2).all(3, |place, turn| {
            Ok(turn.trial(|_| {
                assert_ne!(place, 1, "the middle one");
                Some(place)
            }))
        });
        let [Ended::Finished(0), Ended::Failed(why), Ended::Finished(2)] = &found.unwrap()[..] else {
            panic!("only the middle one fails")
        };
        assert!(why.contains("the middle one"), "{why}");
    }

    #[test]
    fn a_store_keeps_what_finished_before_an_error_and_nothing_runs_twice() {
        let trials: Vec<Row<()>> = (0..5).map(|key| Row { key, ..Row::default() }).collect();
        let store = Memory::default();
        let ran = Mutex::new(Vec::new());
        let run = |fails: bool| {
            runs(1).kept(&trials, &store, |place, _| {
                ran.lock().unwrap().push(place);
                match place {
                    3 if fails => Err(FolderError::Busy { path: "x".into(), holder: "another".to_owned() }),
                    _ => Ok(place),
                }
            })
        };
        assert!(run(true).is_err());
        assert_eq!(run(false).unwrap(), [0, 1, 2, 3, 4]);
        // A task behind the failed one may have begun.
        let mut ran = ran.into_inner().unwrap();
        ran.dedup();
        assert_eq!(ran[..4], [0, 1, 2, 3]);
        assert_eq!(ran.iter().filter(|place| **place < 3).count(), 3, "{ran:?}");
    }
}
