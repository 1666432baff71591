//! The tests of this crate as one program, which is linked once.

mod bounds;
mod bursts;
mod contests;
mod labels;
mod limits;
mod live;
mod machines;
mod messages;
mod runs;
mod stepped;
mod switch;
mod topologies;
mod varying;
