//! Disciplines in the Linux kernel, as BPF qdiscs: from their source in `kernel/` to a qdisc on an interface, and back.
//!
//! What is to be loaded is a [`giveway_kernel_plan::plan::Plan`].
//!
//! - [`object`]: the program is compiled against the types of the running kernel.
//! - [`attach`]: it is loaded and put on an interface, shown, and taken away again; what was there before comes back.
//! - [`printed`]: what `bpftool`, `tc` and `ip` print is read.
//! - [`redirect`]: what comes in at one interface leaves at another, so that a discipline on each is a shaped wire.
//!
//! All that speaks to the kernel are programs of the distribution, run as children: `clang`, `bpftool`, `tc`. So nothing here links
//! libbpf, nothing is unsafe, and whoever does not load a qdisc pays nothing for it. What a child says is passed on when it fails.

#![forbid(unsafe_code)]

pub mod attach;
pub mod object;
pub mod printed;
pub mod redirect;
mod tools;

pub use tools::KernelError;
