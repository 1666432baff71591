//! The runs of a scenario: one for each compared discipline and seed.

use giveway_qdisc::Quantity;

/// One run of a scenario: a compared discipline with a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The index of the discipline among the compared ones.
    pub discipline: usize,
    /// The name of the discipline: its spec without defaults.
    pub name: String,
    /// The seed of all random streams.
    pub seed: u64,
}

/// A compared discipline or arbiter.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The name in results: its spec without defaults.
    pub name: String,
    /// The spec as it is written in the scenario.
    pub written: String,
    /// All parameters, including those with defaults.
    pub parameters: Vec<(String, Quantity)>,
}
