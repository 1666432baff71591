//! The workload of a capture: the behaviour of its applications, for a simulation over another link.
//!
//! The number and the times of the packets in a capture depend on the link that they crossed. The behaviour
//! of the *applications* does not: they connect, send a request, wait and respond. [`Extraction`] reads
//! packets and keeps that behaviour: for each TCP connection the sequence of its application data units, each
//! with its trigger and its think time ([`Connection`]), and for everything else the packets with their times
//! ([`Train`]). QUIC connections are encrypted; their data units are guessed from lengths, directions and
//! pauses. Together they are a [`Workload`]. Its file format is one line of JSON for each connection and
//! each train.
//!
//! # Principles
//! - The a-b-t model of Tmix: a connection is a sequence of epochs, each with a request (a bytes), a response
//!   (b bytes) and a think time (t). The model is used in a general form, with one list of application data
//!   units (ADUs) for both ends, so that it includes servers that send first, pushes and overlapping
//!   requests.
//! - A page is found by its structure: a document, and the connections and requests that start after it. What
//!   a page opens waits for the same progress of the page in a simulation, whenever that is ([`After`]).
//! - Think times exclude the path, its queues at that time, delayed acknowledgements and losses. Where these
//!   leave a think time open, the workload has its bounds and the likeliest value ([`Adu::between`]).
//! - The round-trip time of a connection is the sum of the smallest ones that were measured between the
//!   capture point and each of its hosts, on any connection, by handshakes or by acknowledgements: larger
//!   ones include queueing delay, which a simulation replaces with its own.
//!
//! # Limitations
//! - Connections that no page opens start at their captured times, even if their causes would come later or
//!   earlier in a simulation. So do clicks, unless they are requests on a connection that was open already.
//! - Pauses of less than a round trip within a stream of data are not detected: the sender may have waited
//!   for the application or for the network.
//! - Datagrams are replayed as captured: a sender that adapts its rate (video calls, and QUIC connections
//!   that were open before) is replayed as it adapted to the captured network.
//! - The data of a QUIC connection include what was retransmitted, and are one stream in each direction.
//! - Packets that the capture missed are filled in if later packets acknowledge them.
//!
//! # Example
//! A request of 300 bytes and, 10 ns after its arrival, a response of 5,000 bytes:
//!
//! ```
//! let connection = concat!(
//!     r#"{"tcp":{"start":0,"way":"up","rtt":30000000,"group":"web","writes":["#,
//!     r#"{"side":"client","bytes":300,"cue":{"peer":0}},"#,
//!     r#"{"side":"server","bytes":5000,"cue":{"peer":300},"pause":10}"#,
//!     r#"],"exchanges":[{"writes":2,"took":90000000}]}}"#,
//! );
//! let text = format!("{}\n{connection}\n", r#"{"giveway_workload":1,"span":100000000}"#);
//! let workload = giveway_workload::Workload::read(text.as_bytes())?;
//! assert_eq!(workload.connections[0].adus[1].bytes, 5000);
//! # Ok::<(), giveway_workload::WorkloadError>(())
//! ```
//!
//! # References
//! - M. Weigle, P. Adurthi, F. Hernández-Campos, K. Jeffay, F. D. Smith: "Tmix: a tool for generating
//!   realistic TCP application workloads in ns-2", ACM CCR 36(3), 2006.
//! - F. D. Smith, F. Hernández-Campos, K. Jeffay, D. Ott: "What TCP/IP protocol headers can tell us about the
//!   web", SIGMETRICS 2001: quiet times that separate pages.

#![forbid(unsafe_code)]

mod busiest;
mod datagrams;
mod error;
mod extract;
mod file;
mod holes;
mod local;
mod model;
mod names;
mod pace;
mod pages;
mod parts;
mod paths;
mod quic;
mod seen;
mod stretches;
mod tcp;
mod think;
mod timed;
mod uploads;

pub use datagrams::{Cursor, Datagrams};
pub use error::WorkloadError;
pub use extract::Extraction;
pub use local::{Local, Prefix};
pub use model::{Adu, After, Connection, Direction, Epoch, Side, Train, Trigger, Workload};
pub use seen::CaptureStatistics;
