//! What Giveway writes into real packets, and reads out of them. So far that is one thing: the [`label`] option.
//!
//! Functions here take the bytes of an IP packet and know neither where it comes from nor where it goes. No input makes
//! them panic; what they cannot do they leave undone, and say why.

#![forbid(unsafe_code)]

pub mod label;
