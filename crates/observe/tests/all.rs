//! The tests of this crate, in one program: one link for all of them.

mod delays;
mod lockout;
mod measures;
mod slow_upstream;
mod steps;
