//! The tests of this crate, in one program, which is linked once.

mod labels;
mod metrics;
mod recorder;

mod support;
