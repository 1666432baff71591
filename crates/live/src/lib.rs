//! Real frames on Linux: a transparent bridge between two interfaces, with a discipline and a shaper in each
//! direction.
//!
//! The path of a frame, top-down: [`device`] receives it into a buffer of the [`pool`], [`headers`] parses
//! it, [`direction`] offers it to a [`giveway_qdisc::Port`] and dequeues it when the link is free,
//! [`emulation`] delays or loses it if configured, and the device of the other interface sends it.
//! [`statistics`] counts. [`bridge`] runs both directions, each in a separate thread, and supervises them;
//! [`shared`] is the state that these threads share. [`fragments`] joins frames before they are parsed and
//! cuts them before they are offered, if configured. [`detour`] leads the frames of a router's one interface
//! through a bridge. [`reservations`] is the control plane of reservations.
//! [`Handle`] has what another process needs to take the interfaces over.
//!
//! # Principles
//! - **The discipline gets the times of the link, not of the thread.** A thread wakes up late, but a real
//!   link is not late. Arrivals therefore have the time stamps of the kernel, and departures the times at
//!   which the link becomes free; the discipline gets both in the order of these times. The lateness of
//!   actual transmissions is measured ([`statistics::Statistics::lateness`]). There is no burst size to
//!   configure: late frames are sent at once, but at most the frames of a bounded time
//!   ([`direction::CATCH_UP`]).
//! - **Fail open.** After a panic, or if a queue is stuck, the direction forwards plainly ([`plain`]), and
//!   this is reported.
//! - **Least privilege.** After set-up no thread is root or has a capability, and each thread has only the
//!   files and the system calls of its role ([`privilege`]).
//! - **No allocation per packet.** Frames are in a pool of fixed size. If no buffer is free, arrivals are
//!   dropped and counted.
//!
//! This crate names no discipline: the caller of [`Bridge::start`] provides functions that build them.

pub mod bridge;
pub mod checks;
pub mod cleanup;
pub mod clock;
pub mod command;
pub mod detour;
pub mod device;
pub mod direction;
pub mod emulation;
mod error;
pub mod fragments;
pub mod headers;
mod interface;
pub mod packet;
pub mod plain;
pub mod pool;
pub mod privilege;
pub mod reservations;
pub mod shared;
pub mod station;
pub mod statistics;
pub mod tun;
mod window;

pub use bridge::{Bridge, DirectionSetup};
pub use command::{Build, Command};
pub use device::{Arrival, Ends, Receiver, Sender};
pub use direction::{Outcome, Tap};
pub use emulation::LinkEmulation;
pub use error::LiveError;
pub use giveway_watch::Status;
pub use headers::Frame;
pub use shared::Handle;
