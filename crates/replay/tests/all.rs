//! The tests of this crate, in one program, which is linked once.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

mod allocations;
mod bytes;
mod file;
mod registry;

#[path = "support/bytes.rs"]
mod byte_input;
mod support;
