//! Disciplines in the Linux kernel, as BPF qdiscs: from their source in `kernel/` to a qdisc on an interface,
//! and back.
//!
//! The input is a [`giveway_kernel_plan::plan::Plan`].
//!
//! - [`object`] compiles the program against the types of the running kernel.
//! - [`attach`] loads it, sets it on an interface, reads its counters and removes it, which restores the
//!   replaced qdisc.
//! - [`state`] contains the files that record what is loaded, on which interface of which network namespace.
//! - `bpf` and `tc` run `bpftool` and `tc` for [`attach`]; [`printed`] parses the output of `bpftool`, `tc`
//!   and `ip`.
//! - [`route`] leads traffic through the disciplines of both directions: `redirect` between two interfaces,
//!   so that a discipline on each of them shapes the traffic between them, and `ingress` through one
//!   interface of a router.
//!
//! Everything that changes the kernel is a program of the distribution, run as a child process: `clang`,
//! `bpftool`, `tc`, `ip` ([`process`]). Giveway therefore links no libbpf and needs no `unsafe` here, and a
//! user who loads no qdisc installs none of them. If a child fails, its error output is part of the error.

#![forbid(unsafe_code)]

pub mod attach;
mod bpf;
mod error;
mod ingress;
pub mod object;
pub mod printed;
pub mod process;
mod redirect;
pub mod route;
pub mod state;
mod tc;
pub mod tools;

pub use self::error::KernelError;
