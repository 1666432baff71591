//! Compares the decisions of a discipline in the Linux kernel with the decisions of the Rust discipline of
//! the same name.
//!
//! - [`journal`] converts the journal of a BPF qdisc of Giveway to an operation trace ([`giveway_replay`]),
//!   which `giveway replay-check` can check like any other trace.
//! - [`oracle`] compares a qdisc of Linux with the Rust discipline of the same name.
//!
//! Only `cargo xtask test-kernel` and the fuzz targets use this crate; it is not part of the program
//! `giveway`.

#![forbid(unsafe_code)]

pub mod journal;
pub mod oracle;
