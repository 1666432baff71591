//! Scenarios: reads a TOML file into a typed scenario, which a backend can run.
//!
//! A [`Draft`] is a parsed file with the changes of `--set`. [`Draft::finish`] checks it and returns a
//! [`Scenario`], or a [`ScenarioError`] with every mistake and its place. The keys that all backends share
//! are read once; each backend reads its own part of the file in one call. [`Scenario::trials`] lists the
//! runs, one for each discipline and seed; [`Network::run`] runs one of them on a network, and
//! [`Network::stepped`] runs one step by step, and lets the caller read and change it.
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
//! This crate depends on the backends and the disciplines, not on the records: a run reports to a
//! [`Probe`](giveway_qdisc::Probe), and [`Measured`] has the arguments of a recorder.

#![forbid(unsafe_code)]

mod backend;
mod crossbar;
mod diagnostic;
mod draft;
mod error;
mod excerpt;
mod fields;
mod file;
mod hints;
mod kinds;
mod lints;
mod live;
mod network;
mod origin;
mod scenario;
mod schedule;
mod schema;
mod specs;
mod sweep;
mod tree;
mod trial;

pub use backend::Backend;
pub use crossbar::Crossbar;
pub use diagnostic::{Diagnostic, Severity};
pub use draft::Draft;
pub use error::{Hidden, LoadError, ScenarioError, shown};
pub use excerpt::Excerpt;
pub use live::{BpfQueue, Contender, Direction, KernelQueue, LinkKeyError, Live, link_key};
pub use network::{
    Bound, Build, ChangeError, Contest, Edge, End, Finished, LinkBounds, Measured, Network, Port,
    PortsOnRoute, Queue, Size, Stepped, Stream, StreamBounds, TOPOLOGIES, TopologyEntry, TopologySpec,
    discipline,
};
pub use origin::{Origin, Place};
pub use scenario::Scenario;
pub use schema::{schema, topology_keys, traffic_keys};
pub use sweep::Sweep;
pub use trial::{Compared, Trial};
