//! The tests of this crate, in one program, which is linked once.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

mod allocations;
mod bytes;
mod code;
mod fragments;
mod oracles;
mod packets;

#[path = "support/bytes.rs"]
mod byte_input;
#[path = "support/fragments.rs"]
mod support;
#[path = "../../capture/tests/support/tshark.rs"]
mod tshark;
