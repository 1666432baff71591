//! The tests of this crate, in one program: one link for all of them.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

mod allocations;
mod bytes;
mod file;
mod registry;

#[path = "support/bytes.rs"]
mod byte_input;
mod support;
