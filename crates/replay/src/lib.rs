//! Operation traces: record the calls of a discipline while it runs in a backend, and replay them.
//!
//! A discipline has no clock, no backend and no payload. Its behaviour depends only on its configuration and
//! on its calls, so a trace of these reproduces it packet by packet. [`check()`] builds the discipline from
//! its spec, makes the same calls at the same times, and compares answers, drops and marks with the trace. A
//! difference means that another factor had an influence: a clock, uninitialised memory, the order of a hash
//! map, or another version.
//!
//! - A trace contains every input of a discipline: all of [`giveway_qdisc::Meta`] and of
//!   [`giveway_qdisc::LinkContext`], and also dequeues without a packet, since they may change its state.
//! - The thread of the backend never blocks and never allocates for a trace: [`Traced`] writes records of one
//!   size into a ring, and a thread of the recording reads, encodes and writes them. When the ring is full,
//!   the trace of this discipline ends with a mark ([`Close::Overrun`]).
//! - Each discipline has a *section* of the trace, from its construction to its end, and a separate ring. A
//!   backend that replaces a discipline starts another section; sections may overlap.
//! - A truncated file is valid up to its end: the trace of a backend that was killed can be checked up to
//!   that point.
//!
//! ```
//! use std::io::Cursor;
//! use giveway_disciplines::Spec;
//! use giveway_qdisc::{FlowKey, LinkContext, Packet, Port, PortId, Rate, Streams, Time};
//! use giveway_replay::{Options, Recording};
//! # use std::io::{self, Write};
//! # use std::sync::{Arc, Mutex};
//! # #[derive(Clone, Default)]
//! # struct Memory(Arc<Mutex<Vec<u8>>>);
//! # impl Write for Memory {
//! #     fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
//! #         self.0.lock().unwrap().write(bytes)
//! #     }
//! #     fn flush(&mut self) -> io::Result<()> {
//! #         Ok(())
//! #     }
//! # }
//! # let file = Memory::default();
//! let recording = Recording::start(file.clone(), "an example", Options::default())?;
//! let spec: Spec = "fifo limit 2p".parse().unwrap();
//! let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
//! let traced = recording.tracer().build("eth0->eth1", &spec, &context).unwrap();
//!
//! let mut port = Port::new(PortId(0), Box::new(traced), context.rate);
//! for payload in ["A", "B", "C"] {
//!     port.offer(Packet::new(FlowKey(1), 1500, payload), Time::ms(1), &mut ());
//! }
//! assert_eq!(port.pull(Time::ms(1), &mut ()).packet().unwrap().payload, "A");
//! drop(port);
//! recording.finish()?;
//!
//! # let file = file.0.lock().unwrap().clone();
//! let outcome = giveway_replay::check(Cursor::new(file)).unwrap();
//! assert!(outcome.equal() && outcome.complete());
//! assert_eq!((outcome.sections[0].totals.arrived, outcome.sections[0].totals.dropped), (3, 1));
//! # Ok::<(), io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod check;
mod decode;
mod encode;
pub mod format;
mod record;
mod traced;

pub use check::{Difference, Outcome, Section, Verdict, check};
pub use decode::{Item, Reader, TraceError};
pub use format::{Answer, Build, Call, Close, Mark, Operation, Totals};
pub use record::{Options, Recording, Tracer, Written};
pub use traced::{Stamped, Traced, WhenFull};
