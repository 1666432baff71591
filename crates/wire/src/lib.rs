//! What Giveway writes into real packets, and reads out of them: the [`label`] option, the mark of
//! congestion ([`ecn`]), [`checksum`]s that a sender left unfinished, and frames in pieces ([`fragment`]).
//!
//! Functions here take the bytes of a packet or frame and know neither where it comes from nor where it goes. No input makes
//! them panic; what they cannot do they leave undone, and say why.

#![forbid(unsafe_code)]

pub mod checksum;
pub mod ecn;
pub mod fragment;
pub mod label;
