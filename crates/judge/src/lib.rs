//! Judges disciplines that a program has searched for: language models, evolution, tuning.
//!
//! A search optimises what it is given. So a candidate is judged in public cells and in held-out ones, which
//! a secret draws, and it is rejected if it owes its gain to something that is not queueing: the hour, the
//! number of packets, names, the seed, the public cells themselves, packets that it keeps, acknowledgements
//! that it delays. No source fixes such a judgement; the rules and their limits are our choice, and each is
//! at its constant. All built-in disciplines without a shaper pass them, which a test shows.
//!
//! ```text
//! candidate.rs  what can be judged: disciplines of this program, and programs in WebAssembly
//! split.rs      public and held-out cells
//! perturbation.rs      hidden changes of what a candidate sees
//! watch.rs      an observer: packets that are kept, acknowledgements that are delayed
//! work.rs       the runs of a candidate
//! gain.rs       differences in units of what matters, and scores
//! judge.rs      the judgement
//! rejected.rs   the reasons for which a candidate is rejected
//! show.rs       a judgement as text and as JSON
//! ```

#![forbid(unsafe_code)]

mod candidate;
mod gain;
mod judge;
mod perturbation;
mod rejected;
mod show;
mod split;
mod watch;
mod work;

pub use candidate::{Around, BuiltIn, Candidate, Failed, Program, Ran, STAND_IN, named, run_built};
pub use judge::{Judgement, Request, judge, judge_with};
pub use perturbation::Perturbation;
pub use rejected::{Code, Rejected};
pub use show::{json, text};
pub use split::public;
pub use watch::Seen;
pub use work::{Observed, Stores};
