//! Disciplines in the Linux kernel, as BPF qdiscs: from their source in `kernel/` to a qdisc on an interface, and back.
//!
//! - [`journal`]: what a discipline in the kernel did, packet by packet, becomes a trace of operations ([`replay`]), so that the same
//!   checker that judges a discipline of a live host judges one in the kernel against the Rust discipline of the same spelling.

#![forbid(unsafe_code)]

pub mod journal;
