//! The integration tests of this crate. They are one program, so that it is linked once.

mod attacks;
mod begin;
mod captures;
mod commands;
mod compare;
mod completing;
mod export;
mod folders;
mod hostile_text;
mod init;
mod judge;
mod kernel;
mod live;
mod live_fragments;
mod live_privileges;
mod live_replay;
mod live_router;
mod live_settings;
mod live_take_over;
mod manual;
mod messages;
mod pages;
mod replay;
mod report;
mod reserve;
mod security;
mod soak;
mod step;
mod switch;
mod testbed;
mod trr;
mod truth;
mod tutorials;

#[path = "../../live/tests/bed/mod.rs"]
mod bed;
mod chapters;
mod running;
mod streams;
#[path = "../../capture/tests/support/tshark.rs"]
mod tshark;
// The module is an example with a `main`, which the tests do not call.
#[allow(dead_code)]
#[path = "../../document/examples/document.rs"]
mod written;
