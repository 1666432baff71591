//! The tests of this crate, in one program: one link for all of them.

mod bounds;
mod bursts;
mod labels;
mod limits;
mod live;
mod messages;
mod runs;
mod switch;
