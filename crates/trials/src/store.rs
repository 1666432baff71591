//! Stores of results by the key of their trial.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use giveway_record::FolderError;
use giveway_record::dataset::{Measured, Row};

use crate::key::Key;
use crate::reuse::Reuse;

/// Keeps results of trials.
pub trait Store<R> {
    /// The result of a trial, if the store has it.
    fn find(&self, trial: &Row<()>) -> Option<R>;

    /// Keeps the result of a trial. It may be written later.
    ///
    /// # Errors
    /// If it cannot be written.
    fn keep(&self, row: Row<R>) -> Result<(), FolderError>;

    /// Writes what was kept, as far as it is due.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&self) -> Result<(), FolderError> {
        Ok(())
    }
}

/// A store that also has the trials of other folders. It keeps what it takes from them.
pub struct Reusing<'a> {
    /// The store that keeps results.
    pub own: &'a dyn Store<Measured>,
    /// The trials of other folders.
    pub other: &'a Reuse,
    /// The number of trials that were taken from them.
    pub taken: AtomicUsize,
}

impl<'a> Reusing<'a> {
    /// A store in front of other folders.
    pub fn new(own: &'a dyn Store<Measured>, other: &'a Reuse) -> Reusing<'a> {
        Reusing { own, other, taken: AtomicUsize::new(0) }
    }
}

impl Store<Measured> for Reusing<'_> {
    fn find(&self, trial: &Row<()>) -> Option<Measured> {
        let known = self.own.find(trial);
        known.or_else(|| {
            // A part that was damaged since it was opened, or a row that cannot be kept: the trial runs.
            let found = self.other.take(trial.key).ok().flatten()?;
            self.own.keep(trial.clone().with(found.clone())).ok()?;
            self.taken.fetch_add(1, Ordering::Relaxed);
            Some(found)
        })
    }

    fn keep(&self, row: Row<Measured>) -> Result<(), FolderError> {
        self.own.keep(row)
    }

    fn flush(&self) -> Result<(), FolderError> {
        self.own.flush()
    }
}

/// A store in memory.
#[derive(Debug)]
pub struct Memory<R>(Mutex<BTreeMap<Key, R>>);

impl<R> Default for Memory<R> {
    fn default() -> Memory<R> {
        Memory(Mutex::default())
    }
}

impl<R> Memory<R> {
    /// A store with these results.
    pub fn of(known: BTreeMap<Key, R>) -> Memory<R> {
        Memory(Mutex::new(known))
    }
}

impl<R: Clone> Store<R> for Memory<R> {
    fn find(&self, trial: &Row<()>) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&trial.key).cloned()
    }

    fn keep(&self, row: Row<R>) -> Result<(), FolderError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(row.key, row.result);
        Ok(())
    }
}
