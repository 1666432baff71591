//! Congestion control: the amount of data that may be in flight. Each algorithm has a file, and a line in the
//! list below.
//!
//! A controller has no packets and no timers. It receives acknowledgements and congestion signals with their
//! times, and returns a window in bytes. Loss detection and recovery belong to the sender.

use giveway_qdisc::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Time of arrival.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively.
    pub bytes: u64,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// The round-trip time that this acknowledgement measured, if any.
    pub sample: Option<Span>,
    /// SND.UNA: everything below this sequence number is acknowledged.
    pub una: u64,
    /// SND.NXT: everything below this sequence number has been sent.
    pub next: u64,
    /// Bytes in flight before this acknowledgement.
    pub flight: u64,
    /// True if the congestion window, and not the application or the receive window, limits the sender.
    pub cwnd_limited: bool,
}

/// A congestion control algorithm.
pub trait Controller {
    /// New data was acknowledged outside of recovery.
    fn acked(&mut self, ack: &Ack);
    /// Duplicate or selective acknowledgements indicate a loss; called at most once per window. `flight` is
    /// in bytes.
    fn lost(&mut self, flight: u64, now: Time);
    /// The peer echoed a Congestion Experienced mark; called at most once per window. `flight` is in bytes.
    fn marked(&mut self, flight: u64, now: Time) {
        self.lost(flight, now);
    }
    /// The retransmission timer expired. `first` is false if it expired before for the same data. `flight` is
    /// in bytes.
    fn timed_out(&mut self, flight: u64, first: bool, now: Time);
    /// The sender was idle for longer than one retransmission timeout: RFC 5681, section 4.1.
    fn idled(&mut self, now: Time);
    /// Congestion window, bytes.
    fn window(&self) -> u64;
    /// Slow-start threshold, bytes; `u64::MAX` before the first loss.
    fn threshold(&self) -> u64;
}

/// The parameters of a new controller.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Segment size, bytes.
    pub mss: u64,
    /// Initial window, bytes.
    pub initial_window: u64,
    /// The quantity that makes the window grow.
    pub counting: Counting,
    /// True if HyStart++ ends the first slow start.
    pub hystart: bool,
}

/// The quantity that makes the window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Counting {
    /// Bytes acknowledged, at most two segments per acknowledgement in slow start (RFC 3465, L = 2).
    Bytes,
    /// Acknowledgements, one segment each in slow start.
    Acks,
}

/// An entry of the list of congestion control algorithms.
#[derive(Clone, Copy)]
pub struct ControllerEntry {
    /// Name in scenarios.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Source text of its file, whose header explains it.
    pub source: &'static str,
}

macro_rules! controllers {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// A congestion control algorithm, by name.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Congestion {
            $($name),*
        }

        impl Congestion {
            /// A controller for a new connection.
            pub fn build(self, start: Start) -> Box<dyn Controller> {
                match self {
                    $(Congestion::$name => Box::new($name::new(start))),*
                }
            }
            /// Name in scenarios.
            pub fn name(self) -> &'static str {
                match self {
                    $(Congestion::$name => stringify!($name)),*
                }
            }
        }

        /// Every congestion control algorithm.
        pub const CONTROLLERS: &[ControllerEntry] = &[$(ControllerEntry {
            name: stringify!($name),
            summary: $name::SUMMARY,
            source: include_str!(concat!("controller/", stringify!($name), ".rs")),
        }),*];
    };
}

controllers! {
    reno,
    cubic,
}
