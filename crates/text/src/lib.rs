//! Text for people.
//!
//! ```
//! use std::io::{Error, ErrorKind};
//!
//! use giveway_text::{chain, harmless};
//!
//! let error = Error::new(ErrorKind::NotFound, "no file \u{1b}[2J");
//! assert_eq!(harmless(&chain(&error)), r"no file \u001b[2J");
//! ```

#![forbid(unsafe_code)]

mod chain;
mod harmless;

pub use chain::chain;
pub use harmless::harmless;
