//! The integration tests of this crate, in one program, so that they are linked once.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

use giveway_disciplines::{ALL, Entry};

/// The disciplines that the suites test: all, or the one that the variable `GIVEWAY_DISCIPLINE` names.
fn tested() -> Vec<&'static Entry> {
    let Ok(name) = std::env::var("GIVEWAY_DISCIPLINE") else { return ALL.iter().collect() };
    let one: Vec<&Entry> = ALL.iter().filter(|entry| entry.name == name).collect();
    assert!(!one.is_empty(), "GIVEWAY_DISCIPLINE={name} is not a discipline");
    one
}

mod allocations;
mod bodies;
mod bounds;
mod bytes;
mod class_bounds;
mod contract;
mod extremes;
mod filled;
mod hostile;
mod life_cycle;
mod memory_budget;
mod starvation;
mod trees;
mod two_levels;

#[path = "support/bytes.rs"]
mod byte_input;
