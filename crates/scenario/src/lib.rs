//! Scenarios: a TOML file in, a typed scenario out, ready to run on a host.
//!
//! [`Draft`] is a file that was read, with `--set` applied; [`Scenario`] is what it means. Between the two everything
//! is checked, so that nothing runs half-configured: every mistake that can be found is reported at once, each with
//! its place. What every scenario has is read once; the rest is its [`Host`]'s own. [`Scenario::cells`] are the runs, one per
//! discipline and seed; [`Network::run`] does one of them on a network.
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
//! let scenario = giveway_scenario::Scenario::parse(text, ".").unwrap();
//! assert_eq!(scenario.trials().len(), 1);
//!
//! let wrong = giveway_scenario::Scenario::parse(&text.replace("delay", "delya"), ".").unwrap_err();
//! assert_eq!(wrong.diagnostics[0].message, "unknown key \"delya\" of a link");
//! ```
//!
//! This crate knows the hosts and the disciplines, not the records: what a run shows is told to a
//! [`Probe`](giveway_qdisc::Probe), and [`Measured`] tells the front end how to set one up.

#![forbid(unsafe_code)]

mod crossbar;
mod diagnostic;
mod draft;
mod excerpt;
mod fields;
mod file;
mod host;
mod live;
mod network;
mod scenario;
mod schema;
mod specs;
mod traps;
mod tree;

pub use crossbar::Crossbar;
pub use diagnostic::{Diagnostic, Origin, Place, Severity, Wrong, shown};
pub use draft::Draft;
pub use excerpt::Excerpt;
pub use host::Host;
pub use live::{BpfQueue, Contender, Direction, KernelQueue, Live};
pub use network::{
    Bound, Build, Crossed, Finished, LinkBounds, Measured, Network, Port, Queue, Stream, StreamBounds,
    discipline,
};
pub use scenario::{Compared, Scenario, Trial};
pub use schema::{schema, traffic_keys};
