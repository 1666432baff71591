//! The result of a comparison with one of the kernel's own qdiscs.

use std::fmt;

use super::calls::Difference;
use super::model::Rule;

/// Equality of the decisions of the kernel's qdisc and of the Rust discipline.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// All departures and drops are equal.
    Equal,
    /// The discipline draws random numbers; a sentence says what was compared.
    Alike(String),
    /// The first difference, and the rules of the kernel's that explain it: with all of them the decisions
    /// are equal, without any one of them they differ.
    Explained(Difference, Vec<Rule>),
    /// A difference without an explanation, as a sentence.
    Different(String),
}

impl Verdict {
    /// True unless a difference is left without an explanation.
    pub fn holds(&self) -> bool {
        !matches!(self, Verdict::Different(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Equal => write!(f, "equal"),
            Verdict::Alike(what) => write!(f, "alike: {what}"),
            Verdict::Different(why) => write!(f, "DIFFERENT: {why}"),
            Verdict::Explained(difference, rules) => {
                let rules: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
                write!(f, "equal with the kernel's {}; without: {difference}", rules.join(", "))
            }
        }
    }
}
