//! Parameters of a TCP connection. The defaults follow the RFCs and, where those leave a choice, Linux.

use giveway_qdisc::{Bytes, Invalid, Packets, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{Congestion, Counting, Start};

/// The parameters of a TCP connection; both ends have the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpConfig {
    /// Congestion control.
    pub congestion: Congestion,
    /// Largest amount of data in a segment; the IP packet is 40 bytes longer.
    pub mss: Bytes,
    /// Initial window, in segments (RFC 6928).
    pub initial_window: Packets,
    /// Receive window: the most data that may be in flight, or wait at the receiver for a gap to be filled.
    pub receive_window: Bytes,
    /// Selective acknowledgements and the recovery of RFC 6675; otherwise NewReno, RFC 6582.
    pub sack: bool,
    /// Limited transmit, RFC 3042: the first two duplicate acknowledgements each let a new segment out.
    pub limited_transmit: bool,
    /// Explicit congestion notification, RFC 3168.
    pub ecn: bool,
    /// Acknowledge every second segment (RFC 5681, section 4.2) instead of every one.
    pub delayed_ack: bool,
    /// The longest delay of an acknowledgement; RFC 5681 allows up to 500 ms, Linux begins at 40 ms.
    pub delayed_ack_timer: Span,
    /// The quantity that makes the window grow: bytes acknowledged (RFC 3465), or acknowledgements (RFC 5681,
    /// equation 3).
    pub counting: Counting,
    /// End the first slow start when the round-trip time grows: HyStart++, RFC 9406.
    pub hystart: bool,
    /// Retransmission timeout before the first measurement (RFC 6298: 1 s).
    pub rto_initial: Span,
    /// Smallest retransmission timeout (RFC 6298: 1 s; Linux: 200 ms).
    pub rto_min: Span,
    /// Largest retransmission timeout (RFC 6298: at least 60 s).
    pub rto_max: Span,
    /// Granularity of the clock that measures round trips; times are rounded up to it. Zero is exact.
    pub clock: Span,
    /// Abort a connection after this many timeouts in a row; 0 never does (Linux `tcp_retries2`: 15).
    pub give_up: u32,
    /// Abort the handshake after this many timeouts in a row; 0 never does (Linux `tcp_syn_retries`: 6).
    pub give_up_handshake: u32,
    /// Spread the segments of a window over the round trip instead of sending them in bursts.
    pub pacing: bool,
    /// Generic segmentation offload: the most data that a sender puts on its link back to back. It waits with
    /// new data until it may send so much, or a third of its window. "0 b" is off. It has no effect with
    /// pacing.
    pub gso: Bytes,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            congestion: Congestion::cubic,
            mss: Bytes(1460),
            initial_window: Packets(10),
            receive_window: Bytes(4 << 20),
            sack: true,
            limited_transmit: true,
            ecn: false,
            delayed_ack: true,
            delayed_ack_timer: Span::ms(40),
            counting: Counting::Bytes,
            hystart: false,
            rto_initial: Span::s(1),
            rto_min: Span::s(1),
            rto_max: Span::s(60),
            clock: Span::us(1),
            give_up: 15,
            give_up_handshake: 6,
            pacing: false,
            gso: Bytes(0),
        }
    }
}

impl TcpConfig {
    /// The parameters of the congestion controller of a new connection.
    pub fn start(&self) -> Start {
        let mss = self.mss.0;
        Start {
            mss,
            initial_window: self.initial_window.0 * mss,
            counting: self.counting,
            hystart: self.hystart,
        }
    }

    /// Checks that every parameter is in range.
    ///
    /// # Errors
    /// The first parameter that is out of range, and a value to write instead.
    pub fn check(&self) -> Result<(), Invalid> {
        let mss = self.mss.0;
        if !(1..=65_495).contains(&mss) {
            return Err(Invalid::new("mss", format!("{} is not between 1 and 65,495 bytes", self.mss)));
        }
        if self.initial_window.0 == 0 {
            return Err(Invalid::new("initial_window", "a sender needs at least \"1 packet\" to begin with"));
        }
        if self.receive_window.0 < mss {
            let message = format!("{} does not fit one segment of {}", self.receive_window, self.mss);
            return Err(Invalid::new("receive_window", message));
        }
        if self.receive_window.0 > 1 << 30 {
            return Err(Invalid::new("receive_window", "TCP's window scaling ends at \"1gb\" (RFC 7323)"));
        }
        if self.rto_initial.is_zero() || self.rto_min.is_zero() {
            let which = if self.rto_min.is_zero() { "rto_min" } else { "rto_initial" };
            return Err(Invalid::new(
                which,
                "a timeout of 0 retransmits without end: write for example \"200ms\"",
            ));
        }
        if self.gso.0 > 1 << 20 {
            return Err(Invalid::new(
                "gso",
                format!("{} is more than \"1mb\", and Linux sends \"64kb\"", self.gso),
            ));
        }
        if self.rto_max < self.rto_min {
            let message = format!("{} is below rto_min, {}", self.rto_max, self.rto_min);
            return Err(Invalid::new("rto_max", message));
        }
        Ok(())
    }
}
