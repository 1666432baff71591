//! The tests of this crate, in one program, which is linked once.

mod folder;
mod report;

mod support;
