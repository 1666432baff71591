//! Sweeps: a scenario with many values of its keys.
//!
//! A sweep varies keys of a scenario ([`Axis`]) over a grid or over draws ([`Design`]), and runs every
//! compared discipline at each point with several seeds. Its trials are rows of one data set, which grows
//! while it runs. A trial is identified by a hash of everything that its result depends on ([`Plan`]). So
//! no trial runs twice: a killed sweep resumes, a changed one runs only new trials, and [`run`] takes trials
//! from other sweeps. A [`Shard`] is a part of a sweep for one process of many.
//!
//! ```text
//! axis.rs       a varied key with its values
//! value.rs      a value: its text and its number
//! design.rs     the points: a grid, or draws
//! order.rs      permutations and draws without memory
//! precision.rs  seeds until an interval is narrow enough
//! plan.rs       the points and their trials, with their keys
//! folder.rs     the folder: manifest and data set
//! rescue.rs     trials that the folder cannot take: its disk is full, or its share is lost
//! remote.rs     trials that run elsewhere, on the workers of a cluster
//! merge.rs      merging the shards of a sweep
//! state.rs      the finished trials
//! trial.rs      running the trials of a point with a seed
//! writer.rs     parts
//! reuse.rs      trials of other data sets
//! round.rs      some seeds of some points, on threads
//! run.rs        running what is missing
//! data.rs       one metric of a data set
//! effects.rs    the effect of each key: means by its values, Sobol indices
//! ranks.rs      the best of several candidates, and those that do not differ measurably
//! answers.rs    which key matters, and where the best changes, as sentences
//! points.rs     the points as a table
//! page.rs       the report
//! labels.rs     values and numbers in words
//! error.rs      errors
//! ```

#![forbid(unsafe_code)]

mod answers;
mod axis;
mod data;
mod design;
mod effects;
mod error;
mod folder;
mod labels;
mod merge;
mod order;
mod page;
mod plan;
mod points;
mod precision;
mod ranks;
mod remote;
mod rescue;
mod reuse;
mod round;
mod run;
mod state;
mod trial;
mod value;
mod writer;

pub use answers::answers;
pub use axis::{Axis, AxisError, Spacing, Values};
pub use data::{At, Contender, Data, Varied, check_metric, metric_names, usual_metric};
pub use design::{Design, DesignError, Kind};
pub use effects::{Effect, Index, RESAMPLES, Response, effects, responses};
pub use error::{Rescued, SweepError};
pub use folder::{Files, Manifest, PART, SORTED_ROWS, Shard, SweepFolder};
pub use labels::higher_is_better;
pub use merge::{Merged, merge};
pub use page::page;
pub use plan::{MAX_TRIALS, Outside, OutsideTrial, Plan, Point, Request};
pub use points::PointTable;
pub use precision::{FEWEST, Precision, PrecisionError};
pub use remote::{Remote, Task, work, work_with};
pub use run::{failed_parts_of, parts_of, run};
pub use state::Done;
pub use trial::{Rows, RunOutside, execute, execute_with};
pub use value::{Scale, Value};
