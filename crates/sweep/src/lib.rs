//! Sweeps: a scenario with many values of its keys.
//!
//! A sweep varies keys of a scenario ([`Axis`]) over a grid or over draws ([`Design`]), and runs every
//! compared discipline at each point with several seeds. Its trials are rows of one data set, which grows
//! while it runs. A trial is known by a hash of everything that its result depends on ([`Plan`]). So nothing
//! runs twice: a killed sweep goes on, a changed one runs what is new, and [`run`] takes trials from other
//! sweeps. A [`Shard`] is a part of a sweep for one process of many.
//!
//! ```text
//! axis.rs       a varied key with its values
//! value.rs      a value: its text and its number
//! design.rs     the points: a grid, or draws
//! order.rs      permutations and draws without memory
//! precision.rs  seeds until an interval is narrow enough
//! plan.rs       the points and their trials, with their keys
//! folder.rs     the folder: manifest and data set
//! merge.rs      merging the shards of a sweep
//! run.rs        running what is missing
//! error.rs      errors
//! ```

#![forbid(unsafe_code)]

mod axis;
mod design;
mod error;
mod folder;
mod merge;
mod order;
mod plan;
mod precision;
mod run;
mod value;

pub use axis::{Axis, AxisError, Spacing, Values};
pub use design::{Design, DesignError, Kind};
pub use error::SweepError;
pub use folder::{Manifest, SORTED_ROWS, Shard, SweepFolder};
pub use merge::{Merged, merge};
pub use plan::{MOST_TRIALS, Plan, Point, Request};
pub use precision::{FEWEST, Precision, PrecisionError};
pub use run::{Done, Rows, execute, parts_of, run};
pub use value::{Scale, Value};
