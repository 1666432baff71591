//! Stores of results by the key of their trial.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use giveway_record::FolderError;
use giveway_record::dataset::Row;

use crate::key::Key;

/// The patience of a store that writes at once.
const IDLE: Duration = Duration::from_secs(60);

/// Keeps results of trials.
pub trait Store<R> {
    /// The result of a trial, if it is in the store.
    fn find(&self, trial: &Row<()>) -> Option<R>;

    /// Keeps the result of a trial. It may be written later.
    ///
    /// # Errors
    /// If it cannot be written.
    fn keep(&self, row: Row<R>) -> Result<(), FolderError>;

    /// The time until kept results are due to be written.
    fn patience(&self) -> Duration {
        IDLE
    }

    /// Writes what was kept.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&self) -> Result<(), FolderError> {
        Ok(())
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
