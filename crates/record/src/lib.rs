//! Run folders and reports: the results of runs on disk, as Parquet tables and as one page.
//!
//! A [`RunFolder`] keeps each finished run on disk, so that a comparison that was killed resumes where it stopped. A
//! [`report`] draws one page from one folder or from several. Recorders, metrics and tables over seeds are in
//! `giveway_measure`; only this crate uses the columnar libraries.

#![forbid(unsafe_code)]

mod columns;
mod folder;
pub mod report;
mod seal;

pub use columns::tables::{Column, TABLES, Table as FolderTable, page as tables_page};
pub use folder::{
    Existing, FolderError, Kept, LOCK, Lock, Manifest, NewFile, RECORDED_BY, REPORT, RunFolder,
};
pub use seal::{Damage, Digest};
