//! The tests of this crate, in one program, which is linked once.

mod document;

// Its `main` is for the example.
#[allow(dead_code)]
#[path = "../examples/document.rs"]
mod example;
