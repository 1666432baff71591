//! The tests of this crate, in one program, which is linked once.

mod bytes;
mod formats;
mod merge;
mod oracles;
mod reader;
mod tunnels;
mod writer;

#[path = "support/bytes.rs"]
mod byte_input;
mod support;
