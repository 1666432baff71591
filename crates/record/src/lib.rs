//! Run folders and reports: the results of runs on disk, as Parquet tables and as one page.
//!
//! A [`RunFolder`] keeps each finished run on disk, so that a comparison that was killed resumes where it
//! stopped. A [`report`] draws one page from one folder or from several. An [`Opened`] folder is read, and
//! [`frames`] has the tables of runs in memory. Recorders, metrics and tables over
//! seeds are in `giveway_measure`; only this crate uses the columnar libraries.
//!
//! ```
//! use giveway_measure::{Discipline, Layout, Recorder, Trial};
//! use giveway_qdisc::Time;
//! use giveway_record::report::Report;
//! use giveway_record::{Manifest, RunFolder};
//!
//! let dir = tempfile::tempdir()?;
//! let layout = Layout { until: Time::s(1), ..Layout::default() };
//! let manifest = Manifest {
//!     disciplines: vec![Discipline::named("fifo")],
//!     seeds: vec![1],
//!     layout: layout.clone(),
//!     ..Manifest::default()
//! };
//! let folder = RunFolder::create(dir.path(), "duration = \"1 s\"", manifest)?;
//! let trial = Trial { qdisc: "fifo".into(), seed: 1 };
//! let record = Recorder::<()>::new(layout).finish(); // a backend runs between these two calls
//! folder.write(&trial, &record)?;
//! assert_eq!(folder.finished(&trial), Some(record.summary.clone()));
//! folder.finish(&[(trial, record.summary)])?;
//! drop(folder); // releases the lock
//!
//! let page = Report::read(&[dir.path()])?.html()?;
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod columns;
pub mod dataset;
mod folder;
pub mod frames;
mod opened;
pub mod report;
mod seal;

pub use columns::tables::{Column, TABLES, Table as FolderTable, page as tables_page};
pub use folder::{
    Commands, Conclusion, Effects, Existing, FolderError, Kept, LOCK, Lock, Manifest, NewFile, RECORDED_BY,
    REPORT, Recommendation, RunFolder, refuse_links, replace_in, write_whole,
};
pub use giveway_text::chain;
pub use opened::Opened;
pub use seal::{Damage, Digest, open_line, open_sealed, seal, seal_line};
