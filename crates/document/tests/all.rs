//! The tests of this crate, in one program: one link for all of them.

mod document;

// Its `main` is for the example.
#[allow(dead_code)]
#[path = "../examples/document.rs"]
mod example;
