//! Congestion control: how much may be on its way. One file each, and one line in the list below.
//!
//! A controller knows no packets and no timers. It is told what was acknowledged and what went wrong, with the time, and
//! answers with a window in bytes. Loss detection and recovery are the sender's.

use qdisc::{Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{Counting, TcpConfig};

/// What an acknowledgement of new data tells a controller.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively.
    pub bytes: u64,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// The round trip that this acknowledgement measured, if it did.
    pub sample: Option<Span>,
    /// Everything below this sequence number has arrived, and everything below that one was sent.
    pub una: u64,
    /// See `una`.
    pub next: u64,
    /// Bytes on their way before this acknowledgement.
    pub flight: u64,
    /// Whether the window, and not the application or the receiver, held the sender back.
    pub cwnd_limited: bool,
}

/// How much may be on its way.
pub trait Controller {
    /// New data was acknowledged outside of recovery.
    fn acked(&mut self, ack: &Ack);
    /// A loss was found by duplicate or selective acknowledgements; called once per window. `flight` is in bytes.
    fn lost(&mut self, flight: u64, now: Time);
    /// The network marked; called once per window.
    fn marked(&mut self, flight: u64, now: Time) {
        self.lost(flight, now);
    }
    /// The retransmission timer ran out. `first` is false when it already did for the same data.
    fn timed_out(&mut self, flight: u64, first: bool, now: Time);
    /// The sender was idle for longer than a timeout: RFC 5681 section 4.1.
    fn idled(&mut self, now: Time);
    /// Congestion window, bytes.
    fn window(&self) -> u64;
    /// Slow-start threshold, bytes; `u64::MAX` before the first loss.
    fn threshold(&self) -> u64;
    /// The rate to send at, for controllers that set one.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// Inner state that is worth plotting.
    fn gauges(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// What controllers start from.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Segment size, bytes.
    pub mss: u64,
    /// Initial window, bytes.
    pub initial_window: u64,
    /// What makes the window grow.
    pub counting: Counting,
    /// Whether the first slow start is HyStart++.
    pub hystart: bool,
}

impl Start {
    /// From a connection's parameters.
    pub fn new(config: &TcpConfig) -> Start {
        let mss = config.mss.0;
        Start {
            mss,
            initial_window: config.initial_window.0 * mss,
            counting: config.counting,
            hystart: config.hystart,
        }
    }
}

/// One congestion control of the list.
#[derive(Clone, Copy)]
pub struct ControllerEntry {
    /// How it is written.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its source file, whose header explains it.
    pub source: &'static str,
}

macro_rules! controllers {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// Which congestion control.
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
            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Congestion::$name => stringify!($name)),*
                }
            }
        }

        /// Every congestion control.
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
