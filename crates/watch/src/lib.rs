//! How a live port is seen: what it counts, made into text for a terminal or for a collector of metrics, and its packets in
//! a capture of bounded length.
//!
//! Everything here is a function of what it is given: no clock, no socket, no thread, no terminal. A host counts with [`Delays`],
//! [`Drops`] and [`TopFlows`], which cost a constant amount of memory however long it runs and whoever sends, and fills in a
//! [`Snapshot`] per direction when it is asked; [`openmetrics::render`] and [`tui::screen`] show a list of them.
//!
//! ```
//! use watch::{Look, Snapshot};
//!
//! let uplink = Snapshot { from: "eth0".into(), to: "eth1".into(), ..Snapshot::default() };
//! let screen = watch::tui::screen(&[uplink.clone()], 80, 24, Look::default());
//! assert!(screen[0].starts_with("eth0 → eth1"));
//! assert!(watch::openmetrics::render(&[uplink]).ends_with("# EOF\n"));
//! ```

#![forbid(unsafe_code)]

mod bounded;
mod delays;
mod flows;
pub mod openmetrics;
mod snapshot;
pub mod tui;

pub use bounded::{Bounded, Interface, Kept, Told, comment};
pub use delays::{Delays, Quantiles};
pub use flows::TopFlows;
pub use snapshot::{Direction, Drops, Flow, Fragments, Recent, Reservations, Snapshot, tuple_text};
pub use tui::Look;
