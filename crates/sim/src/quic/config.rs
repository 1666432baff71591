//! Parameters of a QUIC connection. The defaults follow RFC 9000 and RFC 9002.

use giveway_qdisc::{Bytes, Invalid, Packets, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tcp::controller::{Congestion, Counting, Start, cubic};
use crate::tcp::{HyStartRule, Preset, Ratios};

/// The parameters of a QUIC connection; both ends have the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuicConfig {
    /// Congestion control with its parameters: "cubic", "bbr version 1".
    pub congestion: Congestion,
    /// Largest UDP payload, 1,200 to 1,452 bytes; the IP packet is 28 bytes longer. 1,350 bytes come from
    /// Langley et al., "The QUIC transport protocol", 2017.
    pub datagram: Bytes,
    /// Initial window, in packets (RFC 9002, section 7.2).
    pub initial_window: Packets,
    /// The client knows the server from before: its first packets have data (0-RTT), and the server sends no
    /// certificates. Otherwise data leave after one round trip.
    pub zero_rtt: bool,
    /// The server's part of the handshake without 0-RTT: its certificates above all.
    pub certificates: Bytes,
    /// The receiver acknowledges this many packets at once (RFC 9000: every second; another number is
    /// requested as in the draft on ACK frequency).
    pub ack_every: Packets,
    /// The longest delay of an acknowledgement (RFC 9000: 25 ms).
    pub max_ack_delay: Span,
    /// A packet that is so many packets late is acknowledged at once; 0 never does (draft on ACK frequency).
    pub reordering: u32,
    /// After a loss that was none the sender waits longer before it calls a packet lost: as many packets, and
    /// as much time, as would have spared it the mistake (RFC 9002, section 6.1). Otherwise it waits for
    /// three packets or an eighth of the round-trip time.
    pub adapt_reordering: bool,
    /// Explicit congestion notification, with counts in acknowledgements (RFC 9000, section 13.4).
    pub ecn: bool,
    /// Flow control: the maximum amount of data of a connection that the receiver has not taken in order.
    pub max_data: Bytes,
    /// Flow control: the maximum amount of data of a stream that the receiver has not taken in order.
    pub max_stream_data: Bytes,
    /// Round-trip time before the first measurement (RFC 9002: 333 ms).
    pub initial_rtt: Span,
    /// Give up a connection that waits for an acknowledgement and receives nothing for this time; "0 s" never
    /// does.
    pub idle_timeout: Span,
    /// End the first slow start when the round-trip time grows: true for HyStart++ (RFC 9406), "classic" for
    /// the rule of Linux.
    pub hystart: HyStartRule,
    /// Spread the packets of a window over the round trip, after the initial window (RFC 9002, section 7.7).
    pub pacing: bool,
    /// Rate of the pacer in slow start, in percent of window per round-trip time.
    pub pacing_ss_ratio: u32,
    /// Rate of the pacer in congestion avoidance, in percent of window per round-trip time.
    pub pacing_ca_ratio: u32,
    /// With pacing: the maximum amount of data that leaves back to back, at most a millisecond of the rate,
    /// but at least two packets. "0 b" sends single packets.
    pub gso: Bytes,
}

impl Default for QuicConfig {
    fn default() -> QuicConfig {
        QuicConfig {
            congestion: Congestion::cubic(cubic::Config {}),
            datagram: Bytes(1350),
            initial_window: Packets(10),
            zero_rtt: false,
            certificates: Bytes(3000),
            ack_every: Packets(2),
            max_ack_delay: Span::ms(25),
            reordering: 1,
            adapt_reordering: false,
            ecn: false,
            max_data: Bytes(16 << 20),
            max_stream_data: Bytes(16 << 20),
            initial_rtt: Span::ms(333),
            idle_timeout: Span::s(30),
            hystart: HyStartRule::Off,
            pacing: true,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 125,
            gso: Bytes(0),
        }
    }
}

impl QuicConfig {
    /// The parameters of the congestion controller of a new connection, which has the number `seed`.
    pub(crate) fn start(&self, seed: u64) -> Start {
        let mss = self.datagram.0;
        Start {
            preset: Preset::Rfc,
            mss,
            initial_window: self.initial_window.0 * mss,
            // RFC 9002, section 7.3.1: slow start grows by all bytes that are acknowledged.
            counting: Counting::All,
            hystart: self.hystart,
            cubic_probe: 0,
            seed,
        }
    }

    pub(crate) fn ratios(&self) -> Ratios {
        Ratios { slow_start: self.pacing_ss_ratio, avoidance: self.pacing_ca_ratio }
    }

    /// Keys with other values with this congestion control if the scenario does not set them.
    pub fn implies(&self) -> impl Iterator<Item = (&'static str, bool)> {
        // Counts of ECN are accurate in QUIC, so that the key `accecn` of TCP has no counterpart.
        let keys = ["ecn", "pacing"];
        self.congestion.implies().iter().copied().filter(move |(key, _)| keys.contains(key))
    }

    /// Checks that every parameter is in range, and that they fit together.
    ///
    /// # Errors
    /// The first parameter that is out of range, and a value to write instead.
    pub fn check(&self) -> Result<(), Invalid> {
        let wrong = |key, message: String| Err(Invalid::new(key, message));
        if !(1200..=1452).contains(&self.datagram.0) {
            let message = format!("{} is not between 1,200 and 1,452 bytes of UDP payload", self.datagram);
            return wrong("datagram", message);
        }
        if !(2..=100_000).contains(&self.initial_window.0) {
            let message = format!("{} is not between 2 and 100,000 packets", self.initial_window.0);
            return wrong("initial_window", message);
        }
        if !(100..=100_000).contains(&self.certificates.0) {
            return wrong(
                "certificates",
                format!("{} is not between \"100b\" and \"100kb\"", self.certificates),
            );
        }
        if !(1..=1000).contains(&self.ack_every.0) {
            let message = format!("{} is not between 1 and 1000 packets", self.ack_every.0);
            return wrong("ack_every", message);
        }
        if self.max_ack_delay >= Span::ms(1 << 14) {
            let message = format!("{} is not below 2^14 ms (RFC 9000, section 18.2)", self.max_ack_delay);
            return wrong("max_ack_delay", message);
        }
        for (key, window) in [("max_data", self.max_data), ("max_stream_data", self.max_stream_data)] {
            if window.0 < 4 * self.datagram.0 {
                let message = format!("{window} does not fit four packets of {}", self.datagram);
                return wrong(key, message);
            }
            if window.0 > 1 << 30 {
                return wrong(key, format!("{window} is more than \"1gb\", as much as TCP can have"));
            }
        }
        if self.initial_rtt.is_zero() || self.initial_rtt > Span::s(10) {
            let message = format!("{} is not above 0 and at most 10 s: write \"333ms\"", self.initial_rtt);
            return wrong("initial_rtt", message);
        }
        if self.gso.0 > 1 << 20 {
            return wrong("gso", format!("{} is more than \"1mb\", and Linux sends \"64kb\"", self.gso));
        }
        let ratios = [("pacing_ss_ratio", self.pacing_ss_ratio), ("pacing_ca_ratio", self.pacing_ca_ratio)];
        for (key, ratio) in ratios {
            if !(1..=1000).contains(&ratio) {
                return wrong(key, format!("{ratio} is not between 1 and 1000 percent"));
            }
        }
        self.congestion.check().map_err(|invalid| Invalid::new("congestion", invalid.to_string()))?;
        for (key, on) in [("ecn", self.ecn), ("pacing", self.pacing)] {
            if !on && self.implies().any(|implied| implied == (key, true)) {
                let name = self.congestion.name();
                return wrong(
                    key,
                    format!("{name} needs it: leave {key} out, or write another congestion control"),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused() {
        let wrong = |config: QuicConfig| config.check().unwrap_err().to_string();
        let quic = QuicConfig::default();
        quic.check().unwrap();
        insta::assert_snapshot!(wrong(QuicConfig { datagram: Bytes(1500), ..quic.clone() }), @"datagram: 1500b is not between 1,200 and 1,452 bytes of UDP payload");
        insta::assert_snapshot!(wrong(QuicConfig { ack_every: Packets(0), ..quic.clone() }), @"ack_every: 0 is not between 1 and 1000 packets");
        insta::assert_snapshot!(wrong(QuicConfig { max_data: Bytes(2000), ..quic.clone() }), @"max_data: 2000b does not fit four packets of 1350b");
        insta::assert_snapshot!(wrong(QuicConfig { congestion: Congestion::named("dctcp"), ..quic }), @"ecn: dctcp needs it: leave ecn out, or write another congestion control");
    }
}
