//! The parts that the programs `giveway` and `giveway-net` share.
//!
//! `giveway-net` runs as root and is small: it links no tables, no reports and no WebAssembly. Users type
//! `giveway live`, and `giveway` becomes the other program ([`other`]). The flags of its commands
//! ([`commands`]) are here, so that `giveway` shows their help, completions and manual pages.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod commands;
pub mod doors;
pub mod headings;
pub mod help;
pub mod other;
pub mod output;
pub mod provenance;
pub mod rates;
pub mod show;
pub mod terminal;
