//! Disciplines for the Linux kernel: parses and checks their text, without a kernel.
//!
//! - [`plan`] parses a discipline and returns the parameters of its BPF program.
//! - [`route`] has the downstream hops that a packet mark stands for. Only `bsq` uses them.
//!
//! Nothing here runs a program or reads a file, so that a scenario that names such a discipline can be
//! checked on any machine.

#![forbid(unsafe_code)]

pub mod plan;
pub mod route;

/// The kernel's discipline lacks a parameter or a value. The sentence says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl PlanError {
    fn new(sentence: impl Into<String>) -> PlanError {
        PlanError(sentence.into())
    }
}
