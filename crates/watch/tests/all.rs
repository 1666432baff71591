//! The tests of this crate, in one program: one link for all of them.

mod monitoring;
mod openmetrics;
mod outputs;
mod screen;

mod support;
