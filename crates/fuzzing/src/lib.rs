//! Every input from outside, each as one function that takes any bytes: a *target*.
//!
//! A target passes when it returns. It fails when it panics, when it does not end, or when it takes memory without
//! bound. The same functions are called in three ways:
//!
//! - libFuzzer calls them with new inputs, for as long as somebody lets it: `cargo xtask fuzz`.
//! - A test calls them with every input that is kept in the repository: `tests/kept.rs`.
//! - The gate calls them with the kept inputs and a fixed number of changes to these: [`smoke`].
//!
//! A new input from outside is a file in `targets/` with a function `run`, and a line in the table below. Valid examples
//! go to `fuzz/seeds/NAME/`, words that the input is made of to `fuzz/dictionaries/NAME.dict`.

#![forbid(unsafe_code)]

pub mod kept;
mod memory;
mod moment;
pub mod scratch;
pub mod smoke;
pub mod targets;

pub use targets::{TARGETS, Target};
