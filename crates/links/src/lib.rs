//! Links that vary: their rate and delay follow a trace, steps or a model, and their wire loses, duplicates,
//! corrupts, delays or reorders packets. Nothing here depends on a backend: a backend asks a [`Transmitter`]
//! when a transmission starts and ends, and a [`Line`] when the packet arrives.
//!
//! # Syntax in a scenario
//! ```toml
//! rate = "10mbit"                                             # constant, as before
//! rate = { trace = "x.mahi" }                                 # mahimahi: a line per 1,500 bytes; loops
//! rate = { csv = "x.csv", loop = true }                       # rows of time and rate
//! rate = { steps = [["0s", "50mbit"], ["10s", "1mbit"]] }     # piecewise constant; the last one stays
//! rate = { ramp = [["0s", "50mbit"], ["10s", "1mbit"]] }      # piecewise linear
//! rate = { model = "lte", mean = "20mbit", seed = 7 }         # see `models`
//! delay = { steps = [["0s", "20ms"], ["15s", "60ms"]] }       # csv, steps, ramp and model, too
//! loss = { model = "gemodel", p = "1%", r = "20%" }           # the words of netem
//! ```
//! A trace with `loop` starts again at its last time. Without `loop` the last rate or delay stays; a trace of
//! mahimahi, which has no rate, ends in silence. As in mahimahi, `loop` is true for a `trace`.
//!
//! A model is a trace that is computed. It has its own `seed`, so that all disciplines and all seeds of a
//! scenario meet the same link, as they would with a file.
//!
//! # Pieces
//! Every format is a stream of [`Piece`]s: for a while a constant rate, or at one instant a number of bytes.
//! The stream is read when the time comes, and a loop opens its file again. So a trace of a day takes as much
//! memory as one of a second.
//!
//! # A change of the rate
//! - A packet in transmission keeps what it has sent, and its other bits go at the new rates. The end of its
//!   transmission is the time at which the integral of the rate reaches its length, in whole numbers: the
//!   unit is a bit/s times a picosecond. It is rounded up to a picosecond, and what passes in the rest of
//!   that picosecond counts for the next packet if it follows at once. So no rounding adds up.
//! - While the rate is zero no transmission starts, and one that has started waits.
//! - Bytes at an instant, which are the *opportunities* of mahimahi: a packet leaves at the opportunity in
//!   which its last byte fits, and what is left of it goes to the packets behind it. What is left when the
//!   queue is empty is lost. This is the accounting that the manual page of mahimahi's `mm-link` describes.
//! - A discipline is informed ([`Qdisc::rate_changed`](giveway_qdisc::Qdisc::rate_changed)) of each change in
//!   order, with its time, before its next call. While it holds packets back, it is called at the change. A
//!   rate of zero is not reported. Opportunities have no rate: there the discipline is informed of the rate
//!   of each tenth of a second after it has passed, as a driver can measure it.
//!
//! So a change is not an event of the backend: a trace costs a comparison per packet and some work per piece.
//!
//! # Random draws
//! Each impairment draws from its own stream, so that one more impairment changes no other. There is one
//! exception: loss and jitter share the stream of the wire, loss first, as they did before. The order for a
//! packet is loss, corruption, jitter, reordering, duplication. A lost packet draws nothing else.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::shadow_unrelated))]

mod error;
mod lateness;
mod line;
mod loss;
mod medium;
pub mod models;
mod piece;
mod police;
mod profile;
mod quantity;
mod rows;
mod transmitter;

pub use error::TraceError;
pub use giveway_qdisc::blocks::Gilbert;
pub use lateness::{Lateness, Wake, Waker};
pub use line::{Fate, Impairments, Line, Reorder};
pub use loss::Loss;
pub use medium::{Airtime, BurstLimit, Medium, MediumSpec, Station};
pub use models::Model;
pub use piece::Piece;
pub use police::{Police, Policed};
pub use profile::{Course, Profile, Shape};
pub use quantity::Quantity;
pub use transmitter::Transmitter;
