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
mod manual;
mod messages;
mod pages;
mod replay;
mod report;
mod security;
mod step;
mod switch;
mod testbed;
mod truth;
mod tutorials;
mod two_programs;

#[path = "../../live/tests/bed/mod.rs"]
mod bed;
mod chapters;
mod programs;
#[path = "../../capture/tests/support/tshark.rs"]
mod tshark;
// The module is an example with a `main`, which the tests do not call.
#[allow(dead_code)]
#[path = "../../document/examples/document.rs"]
mod written;
