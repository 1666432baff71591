//! A simulator of an input-queued switch, slot by slot. Packets are cut into cells and cross a bufferless
//! fabric, which connects each input with at most one output at a time. An arbiter matches inputs with
//! outputs; the mode of the switch decides whether a match carries a cell or a packet.
//!
//! Start with [`sim`], `engine.rs` and `modes/fabric.rs`, then `modes/packet.rs` and `modes/preemptive.rs`,
//! then [`arbiter`] and [`arbiters::islip`].
//!
//! Time is counted in slots. A slot is the transmission time of a cell on a link. The fabric may be faster
//! than the links by any ratio of whole numbers ([`speed::Speedup`]).
//!
//! iSLIP on a switch with 4 ports and uniform traffic at a load of 0.5:
//!
//! ```
//! use giveway_qdisc::Streams;
//! use giveway_switch::traffic::TrafficSpec;
//! use giveway_switch::{Plan, run};
//!
//! let traffic = serde_json::from_value(serde_json::json!({ "load": 0.5 })).unwrap();
//! let outcome = run(&Plan {
//!     ports: 4,
//!     arbiter: "islip iterations 2".parse().unwrap(),
//!     traffic: TrafficSpec::bernoulli(traffic),
//!     slots: 20_000,
//!     warmup: 2_000,
//!     streams: Streams::new(1),
//!     folder: "".into(),
//! })
//! .unwrap();
//! assert!(outcome.all.delay.mean.unwrap() < 5.0, "in slots");
//! ```

#![forbid(unsafe_code)]

pub mod arbiter;
pub mod arbiters;
mod clock;
mod draws;
mod engine;
mod histogram;
mod inputs;
mod links;
pub mod matching;
mod modes;
pub mod notes;
mod numbers;
pub mod options;
pub mod outcome;
pub mod outside;
pub mod packet;
mod per_port;
mod plan;
mod port_set;
mod queues;
pub mod rates;
pub mod registry;
mod shared;
pub mod sim;
mod slab;
pub mod speed;
pub mod stability;
mod statistics;
mod times;
pub mod traffic;
mod wheel;

pub use options::Mode;
pub use outcome::Outcome;
pub use outside::{BuildOutside, Outside, SlotRequests};
pub use per_port::PerPort;
pub use port_set::PortSet;
pub use queues::Requests;
pub use registry::{ALL, Spec};
pub use sim::{Plan, Sim, run};
pub use statistics::Slots;
pub use times::{Packets, Times};
