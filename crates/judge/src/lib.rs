//! Judges disciplines that a program has searched for: language models, evolution, tuning.
//!
//! A search optimises what it is given. So a candidate is judged in public cells and in held-out ones,
//! which a secret draws, and it is rejected if it owes its gain to something that is not queueing: the
//! hour, the number of packets, names, the seed, the public cells themselves, packets that it keeps,
//! acknowledgements that it delays. No source fixes such a judgement; the rules and their limits are our
//! choice, and each is at its constant. The book says how often honest disciplines fail them.
//!
//! ```text
//! candidate.rs  what can be judged: disciplines of this program, and programs in WebAssembly
//! split.rs      public and held-out cells
//! process.rs    candidates in a process of their own
//! serve.rs      the other end of it, in that process
//! wire.rs       the messages between both
//! confine.rs    a process without files and network
//! perturbation.rs      hidden changes of what a candidate sees
//! names.rs      other numbers of flows and hosts
//! before.rs     packets before a test
//! watch.rs      an observer: packets that are kept, acknowledgements that are delayed
//! work.rs       the runs of a candidate
//! gain.rs       differences in units of what matters, and scores
//! judge.rs      the judgement
//! rejected.rs   the reasons for which a candidate is rejected
//! show.rs       a judgement as text and as JSON
//! ```

#![forbid(unsafe_code)]

mod before;
mod candidate;
mod confine;
mod gain;
mod judge;
mod names;
mod perturbation;
mod process;
mod rejected;
mod serve;
mod show;
mod split;
mod watch;
mod wire;
mod work;

pub use candidate::{Around, BuiltIn, Candidate, Failed, Program, Ran, STAND_IN, named, run_built};
pub use confine::confine;
pub use judge::{Judgement, Request, Sample, judge, judge_with, sample, sample_baseline};
pub use perturbation::{Part, Perturbation};
pub use process::{Connect, Process};
pub use rejected::{Code, Rejected};
pub use serve::Served;
pub use show::{json, text};
pub use split::public;
pub use watch::Seen;
pub use wire::Mistake;
pub use work::{Observed, Stores};
