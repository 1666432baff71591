//! The tests of this crate, in one program, which is linked once.

mod delays;
mod lockout;
mod measures;
mod senders;
mod slow_upstream;
mod steps;
