//! TCP: what real stacks do, as plain state machines that are told the time.
//!
//! One connection is two [`Endpoint`]s. An endpoint is a [`sender`](endpoint) with its [`Scoreboard`], a
//! [`Receiver`] and a congestion [`Controller`]. Acknowledgements are packets and queue like any others.

mod config;
pub mod controller;
mod endpoint;
mod hystart;
mod receiver;
mod rtt;
mod scoreboard;

pub use config::{Counting, TcpConfig};
pub use controller::{Ack, CONTROLLERS, Congestion, Controller, ControllerEntry};
pub use endpoint::{Endpoint, Identity, Outcome};
pub use receiver::Receiver;
pub use rtt::RttEstimator;
pub use scoreboard::Scoreboard;
