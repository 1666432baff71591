//! Wire formats in real packets: the [`label`] option, congestion marks ([`ecn`]), [`checksum`]s that a
//! sender left to its network card, and Ethernet frames in fragments ([`fragment`]).
//!
//! All functions take the bytes of a packet or frame, without input or output. No input makes them panic. If
//! an operation is not possible, the packet is unchanged and the result states the reason.
//!
//! ```
//! use giveway_qdisc::{Label, Rate};
//! use giveway_wire::{ecn, label};
//!
//! // An IPv4 header: ECT(0), 20 bytes, UDP. Its checksum is correct.
//! let header = [0x45, 2, 0, 20, 0, 0, 0x40, 0, 64, 17, 0x66, 0xd4, 10, 0, 0, 1, 10, 0, 0, 2];
//! let mut packet = header.to_vec();
//! label::insert(&mut packet, Label::of(Rate::mbit(1)))?;
//! assert_eq!(packet.len(), header.len() + label::OPTION);
//! assert!(label::read(&packet)?.is_set());
//! label::remove(&mut packet)?;
//! assert_eq!(packet, header);
//! assert_eq!(ecn::mark(&mut packet), ecn::Marked::Now);
//! assert_eq!(packet[1], 3, "congestion experienced");
//! # Ok::<(), giveway_wire::WireError>(())
//! ```

#![forbid(unsafe_code)]

pub mod checksum;
pub mod dscp;
pub mod ecn;
mod error;
pub mod fragment;
pub mod label;

pub use error::WireError;
