//! The control plane of a running bridge: everything that people and programs tell `giveway live` or ask it
//! while it runs.
//!
//! - [`config`]: what a bridge does, one table of names for flags, the settings file and the control socket;
//!   [`settings`] reads the file.
//! - [`protocol`]: the lines of the control socket, and [`ControlApi`], which answers them; [`Controller`]
//!   implements it for a bridge in this process.
//! - [`http`]: requests for metrics and their answers.
//! - [`server`]: serves both to several clients at once, each with a deadline.
//! - [`lock`]: one bridge per interface; [`leftovers`]: what a bridge changed on the machine, in case that it
//!   cannot put it back.
//!
//! Parsing is in functions without input or output, so that it can be fuzzed: [`protocol::Command::parse`],
//! [`settings::parse`], [`http::respond`], [`leftovers::Changed::parse`]. There is no command line and no
//! terminal here.

#![forbid(unsafe_code)]

pub mod building;
pub mod config;
mod controller;
pub mod http;
pub mod leftovers;
pub mod lock;
pub mod protocol;
pub mod reservations;
pub mod server;
pub mod settings;
mod snapshots;

pub use controller::Controller;
pub use protocol::{Command, ControlApi};
