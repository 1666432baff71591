//! The tests of this crate as one program, which is linked once.

mod bounds;
mod bursts;
mod contests;
mod excerpts;
mod labels;
mod limits;
mod live;
mod machines;
mod messages;
mod names;
mod runs;
mod schema;
mod settings;
mod stepped;
mod sweep;
mod switch;
mod topologies;
mod varying;
