//! Trials: one scenario with one discipline and one seed, run by the thousands.
//!
//! Every command that runs trials uses this crate for what they share: the [`key`] of a trial, the
//! loop over many of them ([`Runs`]: threads, order, progress, stop, panics), and the stores of their results
//! ([`Store`]). A command decides which trials run, and what their results mean.
//!
//! ```text
//! key.rs        what identifies a trial
//! frontend.rs   the caller: messages, progress, stop
//! runs.rs       the loop over many trials
//! store.rs      stores of results by key, and the one in memory
//! data_set.rs   the store in a folder, as a data set of metrics
//! lines.rs      the store in a file, a sealed line for each result
//! due.rs        the time at which finished trials are written
//! reuse.rs      the trials of other folders: sweeps, cards and runs
//! ```

#![forbid(unsafe_code)]

mod data_set;
mod due;
mod frontend;
pub mod key;
mod lines;
mod reuse;
mod runs;
mod store;

pub use data_set::{DataSet, Files};
pub use due::Due;
pub use frontend::{Bar, Frontend, NoBar, Part, Progress, Silent, Unit, panic_message};
pub use key::{Digests, Identity, Key, identity_text};
pub use lines::Lines;
pub use reuse::{Reuse, ReuseError, Reusing};
pub use runs::{Ended, Runs, Take, Turn, processors};
pub use store::{Memory, Store};
