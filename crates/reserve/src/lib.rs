//! Bandwidth reservations of the TRR paper (Chen and Chen, about 2000, section 3.1): a sender announces a
//! flow, its rate and its time to the router, which grants or refuses it, and announces the end of the flow.
//!
//! [`message`] defines the control packets byte by byte. [`guard`] rejects copies of messages. [`table`]
//! contains the reservations of a link. All of it is pure code: bytes and times are arguments. The reserved
//! rate of a flow goes to its packets as [`giveway_qdisc::Meta::reserved`]; each discipline decides whether
//! it honours it.
//!
//! The paper specifies only the fields: no widths, answers, reasons or authentication. The modules document
//! the additions.
//!
//! ```
//! use giveway_qdisc::Rate;
//! use giveway_reserve::{Kind, Limits, Message, Owner, Table, Tuple};
//!
//! let (from, to) = ([192, 0, 2, 1], [198, 51, 100, 7]);
//! let tuple = Tuple { from, to, from_port: 5004, to_port: 6000, protocol: 17 };
//! let request = Message {
//!     kind: Kind::Start,
//!     tuple,
//!     rate: Rate::mbit(1),
//!     start: 0,
//!     finish: u64::MAX,
//!     sender: [2, 0, 0, 0, 0, 1],
//!     number: 1,
//! };
//! let received = Message::decode(&request.encode(None), None)?;
//! let mut table = Table::new(Limits::of(Rate::mbit(10)));
//! let answer = table.take(&received, Owner { id: 1, open: true }, 0).unwrap();
//! assert_eq!(answer.kind, Kind::Granted);
//! assert_eq!(table.reserved(&tuple, 1), Rate::mbit(1));
//! # Ok::<(), giveway_reserve::MessageError>(())
//! ```

#![forbid(unsafe_code)]

pub mod guard;
mod key;
pub mod message;
pub mod table;

pub use guard::Guard;
pub use key::key;
pub use message::{EtherTypes, Kind, Message, MessageError, Reason, Tuple};
pub use table::{Counts, Limits, Owner, Reservation, Table};
