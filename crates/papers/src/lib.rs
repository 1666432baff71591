//! Papers, reproduced: the claims of a paper, the measurements, and a verdict for each claim.
//!
//! A paper is a folder such as `papers/efd`. It has scenarios, `paper.toml` with experiments, figures and the
//! decisions that the paper leaves open, and `claims.toml` with the claims and the band of each. A paper has
//! no code, so a claim can be read, changed and added without compiling. The modules:
//!
//! ```text
//! about.rs     paper.toml: decisions, variants, experiments, figures, sections
//! family.rs    experiments at several points along an axis
//! check.rs     checks of paper.toml
//! claim.rs     claims.toml: claims and their tests
//! paper.rs     a paper: reads and checks all its files; error.rs its errors
//! measure.rs   a number of one run, for tests, bars and lines; measure/ contains a file for each kind
//! cost.rs      the cost of a packet, measured on this machine, without a scenario
//! fact.rs      numbers without a run, computed or measured elsewhere
//! formula.rs   closed forms next to measured curves
//! curve.rs     the data of a figure from one run, and their combination over seeds
//! study.rs     the runs of a study, and their results
//! verdict.rs   tests against results
//! drawing.rs   figures from curves
//! figure.rs    the data of a figure, for other programs
//! report.rs    the page; listing.rs JSON and the book
//! shipped.rs   the papers that are part of the program
//! ```
//!
//! This crate depends on scenarios and records, not on threads or terminals: a front end runs [`Study::jobs`]
//! in any order, and passes the results to [`Study::finish`].
//!
//! ```
//! use giveway_papers::{Paper, Scope, Study};
//!
//! let paper = Paper::find("efd")?;
//! let study = Study::new(paper, Scope { quick: true, ..Scope::default() })?;
//! assert!(!study.jobs().is_empty());
//! # Ok::<(), giveway_papers::PaperError>(())
//! ```

#![forbid(unsafe_code)]

mod about;
mod check;
mod claim;
mod cost;
mod curve;
mod drawing;
mod error;
mod fact;
mod family;
mod figure;
mod forest;
mod formula;
mod kept;
mod listing;
mod measure;
mod paper;
mod report;
mod shipped;
mod study;
mod verdict;

pub use error::{ContentError, PaperError};
pub use figure::{AxisData, FigureData, PanelData, SeriesData, StatedData};
pub use kept::KeptRun;
pub use listing::{json, markdown};
pub use paper::Paper;
pub use report::{document, interrupted};
pub use shipped::{SHIPPED, Shipped};
pub use study::{Job, Observed, Results, Scope, Study};
pub use verdict::{Judged, JudgedTest, Verdict, counted, judge};
