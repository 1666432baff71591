//! The tests of this crate, in one program: one link for all of them.

mod crossbar;
mod hurst;

mod support;
