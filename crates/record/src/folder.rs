//! The folder of a run: the scenario, the results, and finished trials, so that a killed run resumes.
//!
//! ```text
//! manifest.json             version, format, scenario hash, measured ports, seeds, disciplines, machine,
//!                           fingerprints, findings, digests
//! scenario.toml             the scenario
//! report.html               the report, if requested
//! flows.parquet             a row per flow: source, times, bytes, flow completion time
//! queue.parquet             a row per sample of a port
//! gauges.parquet            a row per sample of a port and gauge of its discipline
//! sojourn.parquet           a row per measured port and point of its distribution of sojourn times
//! shares.parquet            a row per measured port, stretch of time and traffic source: bytes sent
//! delays.parquet            a row per measured port, stretch of time and traffic source: its delays
//! links.parquet             a row per port: arrivals, departures, and drops by reason
//! senders.parquet           a row per sample of a sender, if senders are sampled
//! episodes.parquet          a row per measured port and flow: its episodes, if they are counted
//! bursts.parquet            a row per measured port and next hop: burstiness, if it is measured
//! summary.parquet           a row per run: parameters of its discipline, and its metrics
//! metrics.parquet           the metrics in the long form: a row per run and metric
//! trials/efd-limit-300p-HASH/seed-1/  the same tables of one run, and summary.json
//! .giveway.lock             the process that writes the folder at present
//! ```
//!
//! The tables at the top contain all runs, with the columns `qdisc` and `seed` in front. `columns/tables.rs`
//! lists every column.
//!
//! A trial, which is one discipline with one seed, is written next to its place, synced to the disk, and then
//! renamed, so that it is complete or absent. Files at the top are replaced in the same way. The manifest is
//! the first file of a folder: a folder with other files and without a manifest is not a run folder.
//!
//! One process writes a folder at a time, and has its lock from [`RunFolder::open`] until the [`RunFolder`]
//! is dropped (`folder/lock.rs`). Threads of that process may write different trials at the same time.
//!
//! No component of a path inside a folder may be a link, because a folder may come from another person, and a
//! link in it could lead anywhere. Entries are found by the descriptor of the folder (`giveway_files::Dir`).
//!
//! Every file of a folder is checked before it is used (`seal.rs`). The summary of a trial has the length and
//! the SHA-256 of each table; the manifest contains the lengths and SHA-256 of the files at the top, and the
//! SHA-256 of each summary; summaries and the manifest include the SHA-256 of their own content. Parquet's
//! checksums of pages are not enough: they exclude the footer, and the library does not write them.
//!
//! ```text
//! folder/run_folder.rs  opening a folder, and its finished trials
//! folder/write.rs       writing trials, merged tables and the manifest
//! folder/place.rs       the content of a place before it becomes a run folder
//! folder/conclusion.rs  findings and a recommendation of the caller
//! folder/manifest.rs    the description of a comparison, and the number of the format
//! folder/finished.rs    finished trials
//! folder/files.rs       names of files
//! folder/lock.rs        one process at a time
//! folder/disk.rs        atomic replacement of files and folders
//! folder/error.rs       errors
//! seal.rs               digests
//! ```

mod conclusion;
mod disk;
mod error;
mod files;
mod finished;
mod lock;
mod manifest;
mod place;
mod run_folder;
mod write;

pub use conclusion::{Commands, Conclusion, Effects, Recommendation};
pub use disk::replace_in;
pub(crate) use disk::{RIGHTS, beside, replace, write_error};
pub use error::FolderError;
pub use files::REPORT;
pub(crate) use files::{MANIFEST, SCENARIO, SUMMARY, TABLES, tables_of};
pub use finished::Kept;
pub(crate) use finished::{check_tables, read_summary};
pub use giveway_files::NewFile;
pub use lock::{LOCK, Lock};
pub(crate) use manifest::FORMAT;
pub use manifest::Manifest;
pub use place::{Existing, RECORDED_BY, refuse_links};
pub use run_folder::RunFolder;

/// Replaces a file, atomically: it has either the content that it had, or this one.
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(path: &std::path::Path, content: &[u8]) -> Result<(), FolderError> {
    replace(path, content).map(drop)
}
