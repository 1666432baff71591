//! Bandwidth reservations of the TRR paper (Chen and Chen, about 2000, section 3.1): a sender announces a flow, its rate and
//! its time to the router, which grants or refuses it, and announces the end of the flow.
//!
//! [`message`] is what the control packets look like, byte by byte; [`guard`] tells whether one is new; [`table`] is who has what, and until
//! when. All are pure code: bytes and times come in as arguments. What a flow has reserved goes to its packets as [`giveway_qdisc::Meta::reserved`]; whether a discipline does anything
//! with that is the discipline's business.
//!
//! The paper specifies only the fields: no widths, answers, reasons or authentication. The modules document the additions.

#![forbid(unsafe_code)]

pub mod guard;
mod key;
pub mod message;
pub mod table;

pub use guard::Guard;
pub use key::key;
pub use message::{EtherTypes, Kind, Message, MessageError, Reason, Tuple};
pub use table::{Counts, Limits, Owner, Reservation, Table};
