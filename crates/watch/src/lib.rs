//! Observation of a live port: its counters as text for a terminal or a metrics collector, and its packets in
//! a capture of bounded length.
//!
//! Everything here is a function of its arguments: no clock, no socket, no thread, no terminal. A backend
//! counts with [`Delays`], [`Drops`] and [`TopFlows`], which need a constant amount of memory, and fills in a
//! [`Snapshot`] per direction on request. [`json::render`], [`openmetrics::render`], [`tui::screen`] and
//! [`summary::render`] format a list of them, so that a counter has one name and one value in all four.
//!
//! ```
//! use giveway_watch::{Style, Snapshot};
//!
//! let uplink = Snapshot { from: "eth0".into(), to: "eth1".into(), ..Snapshot::default() };
//! let screen = giveway_watch::tui::screen(&[uplink.clone()], 80, 24, Style::default());
//! assert!(screen[0].starts_with("eth0 → eth1"));
//! assert!(giveway_watch::openmetrics::render(&[uplink]).ends_with("# EOF\n"));
//! ```

#![forbid(unsafe_code)]

mod bounded;
mod delays;
mod flows;
pub mod json;
pub mod openmetrics;
mod snapshot;
mod status;
pub mod summary;
pub mod tui;

pub use bounded::{Bounded, CaptureSummary, Interface, Kept, comment};
pub use delays::{Delays, Quantiles};
pub use flows::TopFlows;
pub use snapshot::{Backend, Direction, OpenShare, Reservations, Settings, Snapshot};
pub use status::{Drops, Fragments, Losses, Status, TopFlow, tuple_text};
pub use tui::Style;
