//! The tests of this crate, in one program: one link for all of them.

mod bytes;
mod oracles;
mod reader;
mod writer;

#[path = "support/bytes.rs"]
mod byte_input;
mod support;
