//! Real frames on Linux: a transparent bridge between two interfaces, a discipline and a shaper each way.
//!
//! The way of a frame, top-down: [`device`] receives it into a buffer of the [`pool`], [`look`] reads its headers,
//! [`direction`] offers it to a [`qdisc::Port`] and pulls from it when the link is free, [`line`](mod@line) delays or loses it where
//! that is asked for, and the device of the other interface sends it. [`tally`] counts, [`bridge`] runs both directions,
//! each in a thread of its own, and watches over them. Where that is asked for, [`fragments`] joins frames before they are
//! looked at, and cuts them before they are offered.
//!
//! # Principles
//! - **Time is the link's, not the thread's.** A thread wakes late; the link that it stands for would not have. So arrivals
//!   have the time that the kernel stamped on them, and departures the time at which the link was free, and both are told to
//!   the discipline in the order of these times. How late frames then really leave is measured ([`tally::Tally::lateness`]).
//!   There is no burst to configure: what leaves late leaves at once, but never more than a bounded time's worth
//!   ([`direction::CATCH_UP`]).
//! - **Fail open.** A panic or a queue that is stuck ends in plain forwarding ([`plain`]), and in a sentence that says so.
//! - **No privilege that is not used.** After set-up no thread is root or has a capability, and each has only the files and the system
//!   calls of its role ([`privilege`]).
//! - **No allocation per packet.** Frames lie in a pool of fixed size; when it is used up, arrivals are dropped and counted.
//!
//! Hosts name no discipline: whoever starts a bridge hands over functions that build them.

pub mod bridge;
pub mod checks;
pub mod cleanup;
pub mod clock;
pub mod device;
pub mod direction;
pub mod files;
pub mod fragments;
mod interface;
pub mod line;
pub mod look;
pub mod packet;
pub mod plain;
pub mod pool;
pub mod privilege;
pub mod reservations;
pub mod station;
pub mod tally;
pub mod tun;

pub use bridge::{Bridge, Handle, Way};
pub use device::{Arrival, Ends, Receiver, Sender};
pub use direction::{Fate, Order, Tap};
pub use look::Frame;
pub use tally::Status;
