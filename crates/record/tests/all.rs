//! The tests of this crate, in one program: one link for all of them.

mod folder;
mod report;

mod support;
