//! The folder of a run: what was asked, what came out, and everything in between, so that a killed run resumes.
//!
//! ```text
//! manifest.json             version, format, scenario hash, what is measured, seeds, disciplines, machine, fingerprints,
//!                           findings, digests
//! scenario.toml             what was asked
//! report.html               the report, when somebody asked for it
//! flows.parquet             a row per flow: who, when, how many bytes, how long it took
//! queue.parquet             a row per sample of a port
//! gauges.parquet            a row per sample of a port and gauge of its discipline
//! sojourn.parquet           a row per measured port and point of its distribution of sojourn times
//! shares.parquet            a row per measured port, stretch of time and traffic source: bytes sent
//! links.parquet             a row per port: what came, left, was dropped and why
//! senders.parquet           a row per sample of a sender, where senders are sampled
//! episodes.parquet          a row per measured port and flow: how often it became backlogged, where that is counted
//! bursts.parquet            a row per measured port and link beyond it: how bursty what goes on is, where that is measured
//! summary.parquet           a row per run: parameters of its discipline, and its metrics
//! metrics.parquet           the same in the long form: a row per run and metric
//! trials/efd-limit-300p-HASH/seed-1/  the same tables of one run, and summary.json
//! .giveway.lock             who writes the folder just now, if anybody does
//! ```
//!
//! The tables at the top hold all runs, with the columns `qdisc` and `seed` in front. `columns/tables.rs` lists every column.
//!
//! A trial, one discipline under one seed, is written beside its place, handed to the disk, and then renamed: it is there
//! whole or not at all. Files at the top are replaced in the same way. The manifest is the first file of a folder, so that
//! a folder with anything else in it and no manifest is known to be somebody else's.
//!
//! One process writes a folder at a time, and holds its lock from [`RunFolder::open`] on until the [`RunFolder`] is dropped
//! (`folder/lock.rs`). Threads of that process may write different trials at the same time.
//!
//! Nothing in a folder is believed without a check (`seal.rs`). The summary of a trial has the length and the SHA-256 of
//! each table; the manifest has those of the files at the top and the SHA-256 of each summary; summaries and the manifest
//! have that of their own content. Parquet's own checksums of pages would not do: they leave out the footer, and the
//! library does not write them.
//!
//! ```text
//! folder/run_folder.rs  opening a folder, and its finished trials
//! folder/write.rs       writing trials, merged tables and the manifest
//! folder/place.rs       the content of a place before it becomes a run folder
//! folder/manifest.rs    the description of a comparison, and the number of the format
//! folder/finished.rs    finished trials
//! folder/files.rs       names of files
//! folder/lock.rs        one process at a time
//! folder/disk.rs        atomic replacement of files and folders
//! folder/error.rs       errors
//! seal.rs               digests
//! ```

mod disk;
mod error;
mod files;
mod finished;
mod lock;
mod manifest;
mod place;
mod run_folder;
mod write;

pub use disk::NewFile;
pub(crate) use disk::replace;
pub use error::FolderError;
pub use files::REPORT;
pub(crate) use files::{MANIFEST, SCENARIO, SUMMARY};
pub use finished::Kept;
pub(crate) use finished::{check_tables, read_summary};
pub use lock::{LOCK, Lock};
pub(crate) use manifest::FORMAT;
pub use manifest::Manifest;
pub use place::{Existing, RECORDED_BY};
pub use run_folder::RunFolder;
