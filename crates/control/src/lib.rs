//! The control plane of a running bridge: its configuration, its control socket and its metrics.
//!
//! - [`config`]: the configuration of a bridge, with one table of names for flags, the settings file and the
//!   control socket. [`settings`] reads the file.
//! - [`protocol`]: the requests of the control socket, and [`ControlApi`], the interface that answers them.
//!   [`Controller`] implements it for a bridge in this process.
//! - [`client`]: sends a request to a control socket.
//! - [`http`]: requests for metrics and their answers.
//! - [`server`]: serves several clients of either socket at once, each with a deadline.
//! - [`lock`]: a lock for each interface, because it can have only one bridge. [`leftovers`]: files with the
//!   changes of the machine that a killed bridge could not undo.
//! - [`handover`]: hands a running bridge over to another process.
//!
//! Parsers are functions without input or output, so that they can be fuzzed: [`protocol::Command::parse`],
//! [`settings::parse`], [`http::respond`], [`leftovers::Changed::parse`], and both sides of [`handover`].
//! This crate has no command line and no terminal.

#![forbid(unsafe_code)]

pub mod building;
pub mod client;
pub mod config;
mod controller;
mod error;
pub mod handover;
pub mod http;
pub mod leftovers;
mod link;
pub mod lock;
pub mod protocol;
pub mod reservations;
pub mod server;
pub mod settings;
mod snapshots;

pub use controller::Controller;
pub use error::ControlError;
pub use protocol::{Command, ControlApi};
