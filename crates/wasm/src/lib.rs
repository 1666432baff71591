//! Disciplines as WebAssembly modules.
//!
//! A module is a program that somebody else wrote, perhaps a machine. It has no file, no clock and no
//! network: it can call only what is listed below, so the same packets give the same decisions on every
//! machine. Fuel bounds its time, and a limit its memory.
//!
//! A module exports functions, and imports others from the module `giveway`. Packets are numbers, each of
//! which is valid from the arrival of the packet until it is sent or dropped.
//!
//! | export | |
//! | --- | --- |
//! | `enqueue(packet: i64)` | keeps the packet that arrives, or drops it or others |
//! | `dequeue() -> i64` | the packet that leaves; or -1 if no packet is queued, or after `wait_until` |
//! | `rate_changed(rate: i64)` | optional: the link has this rate from now on, bit/s |
//! | `start()` | optional: called once, before all others |
//!
//! | import | |
//! | --- | --- |
//! | `now() -> i64` | the time of the call, ns |
//! | `wait_until(time: i64)` | `dequeue` holds packets back until this time, ns |
//! | `drop(packet: i64)` | drops a packet |
//! | `mark(packet: i64) -> i32` | marks a packet: 1 if its transport supports ECN |
//! | `rate() -> i64`, `mtu() -> i32` | of the link: bit/s, bytes |
//! | `random() -> i64` | a random word, from the seed of the run |
//! | `bytes(packet: i64) -> i32` | IP length |
//! | `arrived(packet: i64) -> i64` | time of arrival, ns |
//! | `flow(packet: i64) -> i64` | key of the flow |
//! | `source(packet: i64) -> i32`, `destination(packet: i64) -> i32` | numbers of the hosts |
//! | `traffic_class(packet: i64) -> i32`, `dscp(packet: i64) -> i32` | |
//! | `ecn(packet: i64) -> i32` | the ECN field: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE |
//! | `is_short(packet: i64) -> i32` | 1 for UDP or TCP without data, of at most 64 bytes |
//! | `offset(packet: i64) -> i64` | bytes that the flow sent before |
//! | `remaining(packet: i64) -> i64` | bytes that the flow has still to send; 0 if unknown |
//! | `reserved(packet: i64) -> i64` | reserved rate of the flow, bit/s; 0 for none |
//!
//! The contract is the same as in [`Qdisc`](giveway_qdisc::Qdisc). It leaves open what fuel is: each
//! instruction of WebAssembly takes one, and copying memory one for each 64 bytes (`wasmi`). We chose the
//! limits of [`Limits`], and that a call earns fuel which later calls may spend, because a discipline may
//! look at its whole queue now and then.
//!
//! ```text
//! limits.rs    the limits of a module
//! module.rs    a module that was checked
//! host.rs      the imports
//! queue.rs     a queue that runs a module
//! mistake.rs   what a module can do wrong
//! ```

#![forbid(unsafe_code)]

mod host;
mod limits;
mod mistake;
mod module;
mod queue;

pub use limits::Limits;
pub use mistake::{Mistake, ModuleError};
pub use module::Module;
pub use queue::{Failure, Queue};
