//! Tables of rows as Parquet. Times are in seconds, sizes in bytes; a missing value is null.
//!
//! ```text
//! columns/tables.rs   every table and column, with units and descriptions
//! columns/trial.rs    the tables of one trial
//! columns/runs.rs     the tables over all runs
//! columns/file.rs     Parquet files: writing and merging
//! columns/arrays.rs   columns of Arrow from rows
//! ```

mod arrays;
mod file;
mod runs;
pub(crate) mod tables;
mod trial;

pub(crate) use arrays::{real, text, whole};
pub(crate) use file::{merge, named, read, with_trial, without_panics, write};
pub(crate) use runs::{metrics, summary};
pub(crate) use trial::{
    bursts, delays, drops_in_interval, episodes, flows, gauges, links, queue, senders, shares, sojourn,
};
