//! What Giveway writes into real packets, and reads out of them: the [`label`] option, the mark of
//! congestion ([`ecn`]), and [`checksum`]s that a sender left unfinished.
//!
//! Functions here take the bytes of an IP packet and know neither where it comes from nor where it goes. No input makes
//! them panic; what they cannot do they leave undone, and say why.

#![forbid(unsafe_code)]

pub mod checksum;
pub mod ecn;
pub mod label;
