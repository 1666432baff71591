//! A switch, slot by slot: packets cut into cells cross a bufferless fabric that connects each input with at most one
//! output at a time. Who is connected with whom is decided by an arbiter; what that means, by the mode of the switch.
//!
//! Start with [`sim`], then `modes/packet.rs` and `modes/preemptive.rs`, then [`arbiter`] and
//! [`arbiters::islip`].
//!
//! Time is counted in slots, the time of a cell on a link. A fabric may be faster by any ratio of whole numbers
//! ([`speed::Speedup`]).

#![forbid(unsafe_code)]

pub mod arbiter;
pub mod arbiters;
mod clock;
mod draws;
mod inputs;
mod links;
pub mod matching;
mod modes;
pub mod notes;
mod numbers;
pub mod options;
pub mod outcome;
pub mod packet;
mod per_port;
mod queues;
pub mod rates;
pub mod registry;
mod row;
mod shared;
pub mod sim;
mod slab;
pub mod speed;
pub mod stability;
mod tally;
pub mod traffic;
mod wheel;

pub use options::Mode;
pub use outcome::Outcome;
pub use per_port::PerPort;
pub use queues::Requests;
pub use registry::{ALL, Spec};
pub use row::Row;
pub use sim::{Plan, Sim, run};
pub use tally::{Packets, Slots, Times};
