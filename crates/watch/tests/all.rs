//! The tests of this crate, in one program, which is linked once.

mod monitoring;
mod openmetrics;
mod outputs;
mod screen;

mod support;
