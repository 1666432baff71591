//! QUIC: state machines that receive packets and the time, and return packets. RFC 9000 and RFC 9002.
//!
//! # Principles
//! - A connection has two [`End`]s. Each has [`streams`], acknowledges the other's packets ([`acks`]), and
//!   detects the loss of its own packets ([`recovery`]). The congestion controls are the same as TCP's,
//!   through the same contract.
//! - Lost data are retransmitted in packets with new numbers, so that no acknowledgement is ambiguous.
//! - 1-RTT: the client starts with an Initial packet of 1,200 bytes, the server answers with its part of the
//!   handshake, and data of the client leave after one round trip. A server whose client has not proved its
//!   address sends at most three times what it has received: RFC 9000, section 8.1.
//! - 0-RTT: the client knows the server from before, and data leave at once.
//! - ECN: a receiver counts marks in its acknowledgements, and the sender stops using ECN if the counts do
//!   not fit what it has sent: RFC 9000, section 13.4.2.
//!
//! # Deviations
//! - One space of packet numbers, and at most one packet in a datagram: packets that a real end puts
//!   together into a datagram count as one packet here, with the headers of all.
//! - A server that misses the last message of the client's handshake takes data of the client at once,
//!   instead of keeping them until the message has arrived.
//! - An acknowledgement has at most six ranges, or four with ECN.
//! - A packet that arrives a probe timeout after it was sent and counts as lost is ignored.
//! - No close: a connection is over when both applications have closed it and everything is acknowledged.
//! - No migration, no search for larger packets, no address tokens, no retry, no encryption but its lengths.
//!
//! # References
//! - RFC 9000 (QUIC), RFC 9001 (its use of TLS), RFC 9002 (loss detection and congestion control).
//! - draft-ietf-quic-ack-frequency: acknowledgements of more than two packets.

mod acks;
mod config;
mod control;
mod end;
mod handshake;
pub mod packet;
mod recovery;
mod sent;
mod spans;
mod streams;

pub use config::QuicConfig;
pub(crate) use end::{End, Opening};
