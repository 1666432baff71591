//! The tests of this crate, in one program: one link for all of them.

mod labels;
mod metrics;
mod recorder;

mod support;
