//! Scenarios: a TOML file in, a typed scenario out, ready to run on a host.
//!
//! [`Draft`] is a file that was read, with `--set` applied; [`Scenario`] is what it means. Between the two everything
//! is checked, so that nothing runs half-configured: every mistake that can be found is reported at once, each with
//! its place. [`Scenario::cells`] are the runs, one per discipline and seed; [`Scenario::run`] does one of them.
//!
//! ```
//! let text = r#"
//!     duration = "1 s"
//!     disciplines = ["fifo limit 100p"]
//!     [[link]]
//!     from = "home"
//!     to = "isp"
//!     rate = "10 Mbit/s"
//!     delay = "10 ms"
//!     qdisc = "compare"
//!     [[traffic]]
//!     kind = "bulk"
//!     from = "home"
//!     to = "isp"
//! "#;
//! let scenario = scenario::Scenario::parse(text, ".").unwrap();
//! assert_eq!(scenario.cells().len(), 1);
//!
//! let wrong = scenario::Scenario::parse(&text.replace("delay", "delya"), ".").unwrap_err();
//! assert_eq!(wrong.diagnostics[0].message, "unknown key \"delya\" of a link");
//! ```
//!
//! This crate knows the hosts and the disciplines, not the records: what a run shows is told to a
//! [`Probe`](qdisc::Probe), and [`Measured`] tells the front end how to set one up.

#![forbid(unsafe_code)]

mod diagnostic;
mod draft;
mod fields;
mod file;
mod names;
mod run;
mod scenario;
mod schema;
mod specs;
mod topology;
mod traffic;
mod traps;
mod tree;

pub use diagnostic::{Diagnostic, Origin, Place, Severity, Wrong};
pub use draft::Draft;
pub use run::{Cell, Finished, Measured};
pub use scenario::Scenario;
pub use schema::schema;
pub use topology::{Port, Queue};
pub use traffic::Stream;
