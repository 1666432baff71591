//! The tests of this crate, in one program: one link for all of them.

mod commands;
mod compare;
mod export;
mod folders;
mod kernel;
mod live;
mod live_fragments;
mod live_privileges;
mod live_replay;
mod replay;
mod report;
mod reserve;
mod soak;
mod switch;
mod testbed;
mod trr;
mod truth;

#[path = "../../live/tests/bed/mod.rs"]
mod bed;
mod running;
mod streams;
#[path = "../../capture/tests/support/tshark.rs"]
mod tshark;
// Its `main` is for the example.
#[allow(dead_code)]
#[path = "../../document/examples/document.rs"]
mod written;
