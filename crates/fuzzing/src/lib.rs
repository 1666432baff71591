//! Fuzz targets: one function of arbitrary bytes for each kind of input from outside.
//!
//! A target passes if it returns. It fails if it panics, does not end, or uses unbounded memory. Its
//! functions are called in three ways:
//!
//! - `cargo xtask fuzz` runs libFuzzer, which searches for new inputs.
//! - `tests/kept.rs` tests every stored input of the repository.
//! - The gate tests the stored inputs, and a fixed number of mutations of them: [`smoke`].
//!
//! A new kind of input is a file in `targets/` with a function `run`, and a line in the table of
//! `targets.rs`. Valid examples are in `fuzz/seeds/NAME/`, and words of the input language in
//! `fuzz/dictionaries/NAME.dict`.

#![forbid(unsafe_code)]

mod changes;
pub mod kept;
mod memory;
mod moment;
pub mod scratch;
pub mod smoke;
pub mod targets;

pub use targets::{TARGETS, Target};
