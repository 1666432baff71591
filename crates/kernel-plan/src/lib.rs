//! Disciplines for the Linux kernel: parses and checks their text, without a kernel.
//!
//! - [`plan`] parses a discipline and returns the parameters of its BPF program.
//! - [`route`] defines routes, the downstream hops of packets with a mark. Only `bsq` uses them.
//!
//! This crate runs no program and reads no file, so that a scenario with such a discipline can be checked on
//! any machine.

#![forbid(unsafe_code)]

pub mod plan;
pub mod route;

/// The kernel's discipline lacks a parameter or a value. The message states the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl PlanError {
    fn new(sentence: impl Into<String>) -> PlanError {
        PlanError(sentence.into())
    }
}
