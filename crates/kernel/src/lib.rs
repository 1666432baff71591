//! Disciplines in the Linux kernel, as BPF qdiscs: from their source in `kernel/` to a qdisc on an interface, and back.
//!
//! - [`plan`]: what is to be loaded: a discipline as it is written everywhere, and what that is in the kernel.
//! - [`way`]: what marks say to a discipline that looks ahead.
//! - [`object`]: the program is compiled against the types of the running kernel.
//! - [`attach`]: it is loaded and put on an interface, shown, and taken away again; what was there before comes back.
//! - [`printed`]: what `bpftool`, `tc` and `ip` print is read.
//! - [`redirect`]: what comes in at one interface leaves at another, so that a discipline on each is a shaped wire.
//! - [`journal`]: what a discipline in the kernel did, packet by packet, becomes a trace of operations ([`replay`]), so that the same
//!   checker that judges a discipline of a live host judges one in the kernel against the Rust discipline of the same spelling.
//! - [`oracle`]: what a qdisc of the kernel's own did, and whether the Rust discipline of the same name does the same.
//!
//! All that speaks to the kernel are programs of the distribution, run as children: `clang`, `bpftool`, `tc`. So nothing here links
//! libbpf, nothing is unsafe, and whoever does not load a qdisc pays nothing for it. What a child says is passed on when it fails.

#![forbid(unsafe_code)]

pub mod attach;
pub mod journal;
pub mod object;
pub mod oracle;
pub mod plan;
pub mod printed;
pub mod redirect;
mod tools;
pub mod way;

pub use tools::KernelError;
