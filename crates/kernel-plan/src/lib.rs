//! Disciplines for the Linux kernel as they are written, without a kernel.
//!
//! - [`plan`]: reads the spelling of a discipline and gives what the BPF program gets: its kind and its parameters.
//! - [`way`]: the downstream links that a mark stands for, for a discipline that looks ahead.
//!
//! Nothing here runs a program or reads a file, so that the reader of scenarios can check such a spelling anywhere.

#![forbid(unsafe_code)]

pub mod plan;
pub mod way;

/// The kernel cannot have a discipline so: a sentence that says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl PlanError {
    fn new(sentence: impl Into<String>) -> PlanError {
        PlanError(sentence.into())
    }
}
