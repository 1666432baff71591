//! The tests of this crate, in one program, which is linked once.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

mod bytes;
mod connections;
mod file;
mod memory;
mod others;

#[path = "support/bytes.rs"]
mod byte_input;
#[path = "../../capture/tests/support/bytes.rs"]
mod captured;
mod support;
