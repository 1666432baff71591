//! The tests of this crate, in one program: one link for all of them.

mod backbone;
mod families;
mod lockout;
mod measures;
mod studies;
