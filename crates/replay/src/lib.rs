//! Operation traces of a discipline: every call and every answer, written while it runs in a host, and run again.
//!
//! A discipline knows no clock, no host and no payload. So what it does is decided by how it was built and by its calls alone,
//! and a trace of these is enough to do it again, packet by packet: [`check()`] builds the discipline from its spelling, makes
//! the same calls at the same times, and holds the answers, drops and marks against those that were written down. A difference
//! means that something else had a say: a clock, memory that was not set, the order of a hash map, another version.
//!
//! - Everything that a discipline is told is in the trace: all of [`giveway_qdisc::Meta`] and of [`giveway_qdisc::LinkContext`], and the calls that
//!   were answered with no packet, too, since they may change its state.
//! - The host's thread never waits and never allocates for a trace: [`Traced`] puts records of one size into a ring, a thread
//!   of the trace takes them out, encodes and writes them. When the ring is full the trace ends there and says so.
//! - Each discipline is a *section* of the trace, from the build to the end of its life, with a ring of its own. A host that
//!   replaces a discipline begins another section; sections may overlap.
//! - A file is good up to wherever it ends: a host that is killed leaves what was written, which is checked as far as it goes.
//!
//! ```
//! use std::io::Cursor;
//! use giveway_disciplines::Spec;
//! use giveway_qdisc::{FlowKey, Packet, Port, PortId, Rate, LinkContext, Streams, Time};
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
//! let recording = giveway_replay::Recording::start(file.clone(), "an example", giveway_replay::Options::default())?;
//! let spec: Spec = "fifo limit 2p".parse().unwrap();
//! let site = LinkContext::new(Rate::mbit(10), Streams::new(1));
//! let traced = recording.tracer().build("eth0->eth1", &spec, &site).unwrap();
//!
//! let mut port = Port::new(PortId(0), Box::new(traced), site.rate);
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
pub use record::{Options, Recording, Tracer, WhenFull, Written};
pub use traced::{Stamped, Traced};
