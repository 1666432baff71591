//! The program `giveway`: its builds and their paths.

use std::path::PathBuf;

use crate::repository::{Done, Repository};

/// Build profile of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Release,
    Debug,
}

/// Builds the program with a profile.
///
/// # Errors
/// If cargo fails.
pub fn build(repository: &Repository, profile: Profile) -> Done {
    match profile {
        Profile::Release => repository.cargo(&["build", "--locked", "--release", "--package", "giveway-cli"]),
        // The tests have built it. Built as a single package it would get dependencies with fewer features,
        // so all of them would be compiled again.
        Profile::Debug => repository.build_tests(),
    }
}

/// Path of the program that [`build`] writes.
///
/// # Errors
/// If cargo does not report its target folder.
pub fn program(repository: &Repository, profile: Profile) -> Result<PathBuf, String> {
    repository.built(if profile == Profile::Release { "release" } else { "debug" }, "giveway")
}
