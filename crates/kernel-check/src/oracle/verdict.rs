//! The result of a comparison with a qdisc of Linux.

use std::fmt;

use super::calls::Difference;

/// Result of the comparison of the decisions of a qdisc of Linux and of the Rust discipline.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// All departures and drops are equal.
    Equal,
    /// The discipline uses random numbers, and the comparison found no difference. The text describes the
    /// comparison.
    Alike(String),
    /// The first difference, and the rules of Linux that explain it: with all of them the decisions are
    /// equal, without any one of them they differ.
    Explained(Difference, Vec<&'static str>),
    /// A difference without an explanation, in words.
    Different(String),
}

impl Verdict {
    /// True if there is no difference without an explanation.
    pub fn holds(&self) -> bool {
        !matches!(self, Verdict::Different(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Equal => write!(f, "equal"),
            Verdict::Alike(what) => write!(f, "alike: {what}"),
            Verdict::Different(difference) => write!(f, "DIFFERENT: {difference}"),
            Verdict::Explained(difference, rules) => {
                write!(f, "equal with these rules of Linux: {}; without them, {difference}", rules.join(", "))
            }
        }
    }
}
