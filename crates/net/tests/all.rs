//! The integration tests of this crate. They are one program, so that it is linked once.

mod kernel;
mod live;
mod live_fragments;
mod live_privileges;
mod live_replay;
mod live_router;
mod live_settings;
mod live_take_over;
mod reserve;
mod soak;
mod trr;

#[path = "../../live/tests/bed/mod.rs"]
mod bed;
mod running;
mod streams;
