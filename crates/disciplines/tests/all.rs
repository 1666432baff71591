//! The integration tests of this crate, in one program, so that they are linked once.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

mod allocations;
mod bounds;
mod bytes;
mod class_bounds;
mod contract;
mod extremes;
mod hostile;
mod life_cycle;
mod memory_budget;
mod starvation;
mod trees;
mod two_levels;

#[path = "support/bytes.rs"]
mod byte_input;
