//! Recorded measurements, which the chores of `xtask` write and the pages read.

#[allow(dead_code, reason = "pages read tables, and chores write them")]
#[path = "../../src/recorded.rs"]
mod tables;

pub use tables::*;
