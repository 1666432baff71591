//! `cargo xtask lint`: clippy on everything, with warnings denied.

use crate::repository::{Done, Repository, cargo};

/// Runs clippy with low priority: the gate runs it beside tests that measure time.
///
/// # Errors
/// If there is a warning, or a crate does not compile.
pub fn check(repository: &Repository) -> Done {
    let cargo = cargo();
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    repository.run("nice", &[&["-n", "19", cargo.as_str()], &clippy[..]].concat())
}
