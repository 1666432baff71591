//! The program that is published, and how it is compiled.

/// The package of the program.
pub const PACKAGE: &str = "giveway-cli";
/// The build profile.
pub const PROFILE: &str = "dist";
/// A program for this target needs no library of the system.
pub const TARGET: &str = "x86_64-unknown-linux-musl";
