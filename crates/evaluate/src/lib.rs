//! A report card for queue disciplines.
//!
//! A card runs a discipline and baselines in many cells: the tests of RFC 7928, the tests of flent, short
//! flows of size-based papers, L4S, links that vary, hostile traffic and lock-out. Each metric of each cell
//! gives a verdict with its uncertainty: better, worse, no difference that matters, or undecided. RFC 7928
//! asks for such tests and leaves numbers and verdicts open; what we chose is in each cell, in `cells.csv`,
//! and below.
//!
//! ```text
//! cells.rs        the cells, and the metrics that judge a discipline in them
//! question.rs     the questions that a card answers
//! matters.rs      the smallest difference that matters
//! run.rs          the runs of all cells, with ideal timing or real machines' timing
//! states.rs       disciplines with two states, which no mean describes
//! verdict.rs      the verdict on one difference
//! pooled.rs       the mean gain over all metrics of a question
//! cost.rs         counted instructions per packet
//! field.rs        disciplines that have run in all cells
//! parameters.rs   the numeric parameters of a discipline
//! search.rs       a search for a good setting of them
//! race.rs         settings that are far behind run with fewer seeds
//! best.rs         the disciplines at their own best
//! sensitivity.rs  the verdicts that change with a parameter
//! card.rs         a whole card
//! columns.rs      rows of text with aligned columns
//! matrix.rs       verdicts by baseline and question in colours
//! show.rs         a card as text, and as JSON
//! varied.rs       the own best and the sensitivity as text, JSON and parts of a page
//! page.rs         a card as a page
//! overview.rs     several cards in one table
//! error.rs        errors
//! ```

#![forbid(unsafe_code)]

mod best;
mod card;
mod cells;
mod columns;
mod cost;
mod error;
mod field;
mod matrix;
mod matters;
mod overview;
mod page;
mod parameters;
mod pooled;
mod question;
mod race;
mod run;
mod search;
mod sensitivity;
mod show;
mod states;
mod varied;
mod verdict;

pub use best::{Best, Kept, MARGIN, Setting};
pub use card::{Card, Counts, Line, MAX_FIRST_SEED, Request, evaluate, evaluate_with};
pub use cells::{Cell, JudgedMetric, MAX_GAIN, cells, chosen};
pub use error::EvaluateError;
pub use field::{Backend, OwnRuns, Unstable};
pub use matters::{Matters, MattersError};
pub use overview::{overview, overview_json, overview_page};
pub use page::page;
pub use pooled::Pooled;
pub use question::Question;
pub use run::{BedRuns, Outcome, Outcomes, Prepared, Timing, axes, emulated, prepare, run};
pub use sensitivity::{LeftOut, Moved, Sensitivity, Shift};
pub use show::{json, scenario_of, text};
pub use states::{GAP, LEAD, RUNS, SUSPICION, States, clusters, winners};
pub use verdict::{Changes, Compared, LEVEL, Pair, Verdict, compare};
