//! Measures the TCP senders of Linux on a bottleneck: a reference for the senders of the simulator.
//!
//! The program `senders` runs in the virtual machine of `cargo xtask senders-linux`. A *cell* consists of one
//! or more bulk connections and yields a row for each of them ([`cell`]). A *packet trace* consists of one
//! connection on which scripted packets are lost or late, and yields a row for each packet ([`trace`]).
//!
//! # What is fixed
//! - The hosts are network namespaces, joined by pairs of virtual interfaces, which have no queue and an
//!   unlimited rate: `client - router - server`, and for packet traces `client - router - far - server`.
//!   BBR paces by itself.
//! - The bottleneck is the interface of the router towards the server: a token bucket (`tbf`) whose bucket
//!   is 60 microseconds longer than a packet, and below it the queue of the cell. The rate counts the 14
//!   bytes of the Ethernet header, so a full segment of 1448 bytes of data has 1514 bytes.
//! - The whole propagation delay is on the way back: `netem` delays acknowledgements at the router's
//!   interface towards the client. Data are never delayed outside of the bottleneck.
//! - Segmentation offloads are off, so each packet on a wire has at most 1500 bytes of IP. TCP itself works
//!   with bundles of segments, as Linux does by default; `segments` limits a bundle.
//! - Settings that differ from the defaults of the kernel: no metrics are cached from earlier connections;
//!   the limits of automatic buffers are 64 MB, so that no buffer limits a window; the backlog of the
//!   processor is 10,000 packets; `tcp_ecn` is 1 if the cell says so. IPv6 is off.
//! - A receiver has the congestion control of its sender, since a receiver of DCTCP answers marks
//!   differently.
//!
//! # What is open
//! - The work of the kernel and of this program takes time on the counted clock (a nanosecond for each
//!   instruction): some ten microseconds for each packet.
//! - Initial sequence numbers, and the hash of fq_codel, depend on random numbers of the kernel.
//! - Each cell is one run with one start of its connections. It says nothing about the spread of results.
//!   In cells of 100 Mbit/s with a round-trip time of 40 ms or more, the windows are not steady yet: seven
//!   seconds have few losses or none.
//! - DCTCP has a threshold on the waiting time (`codel ce_threshold`) and not on the length of the queue. The
//!   kernel of Debian has neither TCP Prague nor DualPI2, and its BBR is version 1.
//!
//! Only `cargo xtask senders-linux` uses this crate; it is not part of the program `giveway`.

#![forbid(unsafe_code)]

pub mod cell;
mod connections;
mod counters;
mod error;
mod flow;
mod network;
mod sniffer;
mod tcp;
pub mod trace;

pub use error::SendersError;

/// Measures a cell or a packet trace, which starts with its kind, and returns the rows of its result.
///
/// # Errors
/// If the line is not understood, or if a command or a system call fails.
pub fn measure(line: &str) -> Result<Vec<String>, SendersError> {
    match line.split_once(' ') {
        Some(("cell", rest)) => cell::Cell::parse(rest)?.measure(),
        Some(("trace", rest)) => trace::Trace::parse(rest)?.measure(),
        _ => Err(SendersError::Line { what: format!("{line} begins with neither cell nor trace") }),
    }
}
