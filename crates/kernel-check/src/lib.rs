//! Compares what a discipline did in the Linux kernel with the Rust discipline of the same name.
//!
//! - [`journal`]: what one of our BPF qdiscs did, packet by packet, becomes a trace of operations
//!   ([`giveway_replay`]), so that the checker of live recordings checks a recording of the kernel, too.
//! - [`oracle`]: whether a qdisc of the kernel's own does what the Rust discipline of the same name does.
//!
//! Only `cargo xtask test-kernel` and the fuzz targets use it; the program `giveway` does not contain it.

#![forbid(unsafe_code)]

pub mod journal;
pub mod oracle;
