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

/// Finds the rules of Linux that explain a difference. `own` is the first difference between the Rust
/// discipline and the model without these rules; `modelled` returns that between Linux and the model with
/// some of them. `all` are the rules of the model, and `name` gives the name of one.
pub(super) fn explained<R: Copy + PartialEq>(
    difference: Difference,
    own: Option<Difference>,
    (all, name): (&[R], fn(R) -> &'static str),
    modelled: impl Fn(&[R]) -> Option<Difference>,
) -> Verdict {
    // With no rules of Linux, the model must decide like the Rust discipline, also after the first
    // difference.
    if let Some(wrong) = own {
        return Verdict::Different(format!(
            "{difference}; the model differs from the Rust discipline: {wrong}"
        ));
    }
    if let Some(other) = modelled(all) {
        return Verdict::Different(format!("{difference}; with all rules of Linux: {other}"));
    }
    let without = |rule: &R| all.iter().copied().filter(|other| other != rule).collect::<Vec<_>>();
    let needed: Vec<R> = all.iter().copied().filter(|rule| modelled(&without(rule)).is_some()).collect();
    // Two rules may each explain the difference alone: then neither is needed, but one of them is.
    let needed = if modelled(&needed).is_none() { needed } else { all.to_vec() };
    Verdict::Explained(difference, needed.into_iter().map(name).collect())
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
