//! Papers, reproduced: the claims of a paper, the measurements, and a verdict for each claim.
//!
//! A paper is a folder such as `papers/efd`: scenarios; `paper.toml` with experiments, figures and the decisions that the paper
//! leaves open; `claims.toml` with its claims and the band of each. Nothing of it is code, so a claim can be read, changed
//! and added without compiling. The modules:
//!
//! ```text
//! about.rs     paper.toml: decisions, variants, experiments, figures, sections
//! family.rs    experiments at several points along an axis
//! check.rs     checks of paper.toml
//! claim.rs     claims.toml: claims and their tests
//! paper.rs     a paper: reads and checks all its files
//! measure.rs   a number of one run, for tests, bars and lines over an axis
//! cost.rs      the time that a packet costs, measured here, without a scenario
//! fact.rs      numbers without a run, computed or measured elsewhere
//! formula.rs   closed forms beside measured curves
//! curve.rs     the data of a figure from one run, and their combination over seeds
//! observe.rs   a run with a recorder
//! study.rs     the runs of a study, and their results
//! verdict.rs   tests against results
//! drawing.rs   figures from curves
//! report.rs    the page; listing.rs JSON and the book
//! shipped.rs   the papers that are part of the program
//! ```
//!
//! This crate depends on scenarios and records, not on threads or terminals: a front end runs [`Study::jobs`] in any order,
//! and hands the results to [`Study::finish`].
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
mod fact;
mod family;
mod formula;
mod listing;
mod measure;
mod observe;
mod paper;
mod report;
mod shipped;
mod study;
mod verdict;

pub use listing::{json, markdown};
pub use observe::{disciplines, layout, observe, observe_network};
pub use paper::{Paper, PaperError};
pub use report::document;
pub use shipped::{SHIPPED, Shipped};
pub use study::{Job, Results, Scope, Study};
pub use verdict::{Judged, Verdict, counted, judge};
