//! What the applications in a capture did, so that they can do it again over another link.
//!
//! A capture shows packets; how many there were and when depends on the link that they crossed. What the *applications*
//! wanted does not: to connect, to ask for something, to wait, to answer. [`Extraction`] reads packets and keeps only
//! that: for each TCP connection the sequence of its writes, each with what it waited for and how long it thought
//! ([`Connection`]), for everything else the packets with their times ([`Train`]). Together they are a [`Workload`],
//! which has a file format of its own: one line of JSON for each.
//!
//! # Principles
//! - The a-b-t model: a connection is a sequence of requests (a bytes), responses (b bytes) and think times (t). Here in
//!   its general form, with one list of writes for both ends, so that servers that speak first, pushes and overlapping
//!   requests fit in.
//! - Think times are free of the path: what a question takes from the capture point to the host and back is taken off,
//!   as it was measured last.
//! - The round trip of a connection is the smallest that was seen between its two hosts, by handshakes or by
//!   acknowledgements: larger ones met queues, and queues are what is simulated.
//!
//! # What it cannot know
//! - Connections begin when they began in the capture, even if what caused them would now come later or earlier.
//! - Pauses of less than a round trip within a stream of data are not seen: the sender may have waited for the
//!   application or for the network.
//! - Datagrams are what they were: who adapts its rate to the network (QUIC, calls with video) is replayed as it adapted
//!   to the network that was captured.
//! - Packets that the capture missed are filled in where later packets acknowledge them.
//!
//! # References
//! - M. Weigle, P. Adurthi, F. Hernández-Campos, K. Jeffay, F. D. Smith: "Tmix: a tool for generating realistic TCP
//!   application workloads in ns-2", ACM CCR 36(3), 2006.
//! - F. D. Smith, F. Hernández-Campos, K. Jeffay, D. Ott: "What TCP/IP protocol headers can tell us about the web",
//!   SIGMETRICS 2001: quiet times that part pages.

#![forbid(unsafe_code)]

mod datagrams;
mod extract;
mod file;
mod local;
mod model;
mod names;
mod pages;
mod tcp;

pub use datagrams::{Cursor, Datagrams};
pub use extract::{Extraction, Seen};
pub use file::FileError;
pub use local::{Local, LocalError, Prefix};
pub use model::{Connection, Cue, Exchange, Side, Train, Way, Workload, Write};
