//! Parameters of a TCP connection. The defaults are the mechanisms and the values of a current Linux
//! ([`Preset::Linux`]), as most servers run it. [`Preset::Rfc`] follows the RFCs and, where those leave a
//! choice, Linux.

use giveway_qdisc::{Bytes, Invalid, Packets, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::controller::{Congestion, Counting, Start, cubic};
use super::ecn_mode::EcnMode;
use super::pacer::{Bursts, Ratios};
use super::preset::Preset;
use super::slow_start::HyStartRule;
use super::validation::WindowValidation;
use crate::segment::{TCP_HEADER, TIMESTAMPS};

/// The parameters of a TCP connection; both ends have the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpConfig {
    /// Values of the keys that are not written: "linux" for a current Linux, or "rfc".
    pub preset: Preset,
    /// Congestion control with its parameters: "cubic", "bbr version 1".
    pub congestion: Congestion,
    /// Largest amount of data in a segment; the IP packet is 40 bytes longer, or 52 with timestamps.
    pub mss: Bytes,
    /// Initial window, in segments (RFC 6928).
    pub initial_window: Packets,
    /// Receive window: the maximum amount of data that may be in flight, or wait at the receiver for a gap to
    /// be filled.
    pub receive_window: Bytes,
    /// The receive window in the beginning, which grows with what the receiver reads, up to `receive_window`.
    /// A receiver acknowledges each segment at once while it opens. Without this key the window is constant.
    pub receive_window_initial: Option<Bytes>,
    /// The rule for a window that the application does not fill: "rfc5681" restarts after an idle time,
    /// "rfc2861" lets it decay (as in Linux), "rfc7661" preserves it.
    pub window_validation: WindowValidation,
    /// The timestamp option of RFC 7323: each segment is 12 bytes longer.
    pub timestamps: bool,
    /// Selective acknowledgements and the recovery of RFC 6675; otherwise NewReno, RFC 6582.
    pub sack: bool,
    /// The receiver reports segments that arrive twice (D-SACK, RFC 2883), and the sender takes back a
    /// reduction whose retransmissions were all needless. Needs rack.
    pub dsack: bool,
    /// Losses are detected by time and not by number: RACK, RFC 8985. Needs sack.
    pub rack: bool,
    /// Two round-trip times without an acknowledgement let a probe out, before the timeout: TLP, RFC 8985.
    /// Needs rack.
    pub tail_probe: bool,
    /// The window shrinks in proportion to what arrives during fast recovery, instead of at once: RFC 9937.
    /// Needs rack.
    pub prr: bool,
    /// Detects timeouts that were spurious, and takes their reduction back: F-RTO, RFC 5682. Needs rack.
    pub frto: bool,
    /// Limited transmit, RFC 3042: the first two duplicate acknowledgements each let a new segment out.
    pub limited_transmit: bool,
    /// Explicit congestion notification, RFC 3168.
    pub ecn: bool,
    /// The receiver counts marks and reports the counts: accurate ECN, RFC 9768. Needs ecn.
    pub accecn: bool,
    /// The feedback that the end which accepts a connection supports: "off", "classic" or "accurate".
    /// Default: the same as the end which opens it. Both use what both support.
    pub peer_ecn: Option<EcnMode>,
    /// A SYN that is retransmitted no longer asks for classic ECN: RFC 3168, section 6.1.1.1. A request for
    /// accurate ECN is repeated once, regardless of this key.
    pub ecn_fallback: bool,
    /// Acknowledge every second segment (RFC 5681, section 4.2) instead of every one.
    pub delayed_ack: bool,
    /// The longest delay of an acknowledgement; RFC 5681 allows up to 500 ms, Linux starts at 40 ms.
    pub delayed_ack_timer: Span,
    /// Number of segments at the start of a connection that are acknowledged at once (Linux: 16).
    pub quick_acks: u32,
    /// The quantity that makes the window grow: bytes acknowledged (RFC 3465, or "all" of them as in Linux),
    /// or acknowledgements (RFC 5681, equation 3).
    pub counting: Counting,
    /// End the first slow start when the round-trip time grows: true for HyStart++ (RFC 9406), "classic" for
    /// the rule of Linux.
    pub hystart: HyStartRule,
    /// The minimum growth of CUBIC's window while no plateau is known, which is after slow start and before
    /// the first loss, and after a timeout: in percent of the window per round-trip time (Linux: 5). With 0
    /// the window follows the curve alone: RFC 9438, section 4.8.
    pub cubic_probe: u32,
    /// Retransmission timeout before the first measurement (RFC 6298: 1 s).
    pub rto_initial: Span,
    /// Smallest retransmission timeout (RFC 6298: 1 s; Linux: 200 ms).
    pub rto_min: Span,
    /// The minimum difference between the retransmission timeout and the smoothed round-trip time (Linux:
    /// 200 ms).
    pub rto_margin: Span,
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
    /// Rate of the pacer in slow start, in percent of window per round-trip time (Linux: 200).
    pub pacing_ss_ratio: u32,
    /// Rate of the pacer in congestion avoidance, in percent of window per round-trip time (Linux: 120).
    pub pacing_ca_ratio: u32,
    /// With pacing, segments leave in bursts of so much time at the rate of the pacer, of at least two
    /// segments and at most 64 KiB (Linux: 1 ms); zero sends them one by one. A control may want shorter
    /// bursts.
    pub pacing_burst: Span,
    /// Generic segmentation offload: the maximum amount of data that a sender puts on its link back to back.
    /// It waits with new data until it may send so much, or a third of its window; with pacing, a burst takes
    /// at most a millisecond of the rate, but has at least two segments. "0 b" is off.
    pub gso: Bytes,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig::linux()
    }
}

impl TcpConfig {
    /// The RFCs, and the values of Linux where they leave a choice.
    pub fn rfc() -> TcpConfig {
        TcpConfig {
            preset: Preset::Rfc,
            congestion: Congestion::cubic(cubic::Config {}),
            mss: Bytes(1460),
            initial_window: Packets(10),
            receive_window: Bytes(4 << 20),
            receive_window_initial: None,
            window_validation: WindowValidation::Rfc5681,
            timestamps: false,
            sack: true,
            dsack: false,
            rack: false,
            tail_probe: false,
            prr: false,
            frto: false,
            limited_transmit: true,
            ecn: false,
            accecn: false,
            peer_ecn: None,
            ecn_fallback: false,
            delayed_ack: true,
            delayed_ack_timer: Span::ms(40),
            quick_acks: 0,
            counting: Counting::Bytes,
            hystart: HyStartRule::Off,
            cubic_probe: 0,
            rto_initial: Span::s(1),
            rto_min: Span::s(1),
            rto_margin: Span::ZERO,
            rto_max: Span::s(60),
            clock: Span::us(1),
            give_up: 15,
            give_up_handshake: 6,
            pacing: false,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 125,
            pacing_burst: Span::ZERO,
            gso: Bytes(0),
        }
    }

    /// A current Linux with its default sysctls.
    pub fn linux() -> TcpConfig {
        TcpConfig {
            preset: Preset::Linux,
            // The timestamp option takes 12 of the 1,460 bytes.
            timestamps: true,
            mss: Bytes(1448),
            // The largest window of `tcp_rmem`, 6 MiB of which the half is data.
            receive_window: Bytes(3 << 20),
            receive_window_initial: Some(Bytes(64_240)),
            window_validation: WindowValidation::Rfc2861,
            dsack: true,
            rack: true,
            tail_probe: true,
            prr: true,
            frto: true,
            ecn_fallback: true,
            quick_acks: 16,
            counting: Counting::All,
            hystart: HyStartRule::Classic,
            cubic_probe: 5,
            rto_min: Span::ms(200),
            rto_margin: Span::ms(200),
            rto_max: Span::s(120),
            pacing_ca_ratio: 120,
            pacing_burst: Span::ms(1),
            ..TcpConfig::rfc()
        }
    }

    /// The parameters of the congestion controller of a new connection, which has the number `seed`.
    pub fn start(&self, seed: u64) -> Start {
        let mss = self.mss.0;
        Start {
            preset: self.preset,
            mss,
            initial_window: self.initial_window.0 * mss,
            counting: self.counting,
            hystart: self.hystart,
            cubic_probe: self.cubic_probe,
            seed,
        }
    }

    /// The values of the keys that are not written: of the preset, as far as the keys that are written leave
    /// it in force, and of the congestion control.
    pub fn implied(&self) -> Map<String, Value> {
        let mut keys = self.preset.keys();
        let mut set = |key: &str, value: Value| {
            keys.insert(key.to_owned(), value);
        };
        if self.preset == Preset::Linux {
            // In Linux the least timeout is a least addition to the round-trip time.
            set("rto_margin", json!(self.rto_min));
            let initial = TcpConfig::linux().receive_window_initial;
            set("receive_window_initial", json!(initial.min(Some(self.receive_window))));
        }
        if !matches!(self.congestion, Congestion::cubic(_)) {
            // HyStart is a part of CUBIC in Linux: its Reno begins without.
            set("hystart", Value::Bool(false));
        }
        if !(self.sack && self.rack) {
            // These build on selective acknowledgements, and on one another.
            ["rack", "dsack", "tail_probe", "prr", "frto"]
                .iter()
                .for_each(|key| set(key, Value::Bool(false)));
        }
        for (key, on) in self.congestion.implies() {
            set(key, Value::Bool(*on));
        }
        keys
    }

    /// The length of the IP packet of a full segment.
    pub fn packet(&self) -> Bytes {
        let timestamps = if self.timestamps { TIMESTAMPS } else { 0 };
        Bytes(self.mss.0.saturating_add((TCP_HEADER + timestamps).into()))
    }

    /// The rates of a pacer whose control sets none.
    #[inline]
    pub(super) fn ratios(&self) -> Ratios {
        Ratios { slow_start: self.pacing_ss_ratio, avoidance: self.pacing_ca_ratio }
    }

    /// The bursts of a pacer whose control wants at most `limit`; zero for no limit.
    #[inline]
    pub(super) fn bursts(&self, limit: Span) -> Bursts {
        /// The maximum that a Linux sender passes on at once (`GSO_LEGACY_MAX_SIZE`).
        const MAX: u64 = 65_536;
        match (self.pacing_burst.is_zero(), self.gso.0) {
            (true, 0) => Bursts::NONE,
            (true, gso) => Bursts::of(Span::ms(1), gso, self.mss.0, limit),
            (false, _) => Bursts::of(self.pacing_burst, MAX, self.mss.0, limit),
        }
    }

    /// The feedback that the end which opens a connection asks for.
    pub(super) fn mode(&self) -> EcnMode {
        match (self.ecn, self.accecn) {
            (false, _) => EcnMode::Off,
            (true, false) => EcnMode::Classic,
            (true, true) => EcnMode::Accurate,
        }
    }

    /// The feedback that the end which accepts a connection supports.
    pub(super) fn peer_mode(&self) -> EcnMode {
        self.peer_ecn.unwrap_or(self.mode())
    }

    /// True if the receiver echoes marks as DCTCP does: RFC 8257, section 3.2. A peer with classic ECN is one
    /// that does not.
    #[inline]
    pub fn echoes_precisely(&self) -> bool {
        self.ecn && !self.accecn && self.peer_ecn.is_none() && self.congestion.echoes_precisely()
    }

    /// Checks that every parameter is in range, and that they fit together.
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
        if let Some(initial) = self.receive_window_initial
            && !(mss..=self.receive_window.0).contains(&initial.0)
        {
            let message = format!(
                "{initial} is not between the segment, {}, and receive_window, {}",
                self.mss, self.receive_window
            );
            return Err(Invalid::new("receive_window_initial", message));
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
        if self.cubic_probe > 100 {
            let message = format!("{} is more than 100 percent, and Linux has 5", self.cubic_probe);
            return Err(Invalid::new("cubic_probe", message));
        }
        self.congestion.check().map_err(|invalid| Invalid::new("congestion", invalid.to_string()))?;
        self.check_pairs()
    }

    /// Checks the parameters that need others.
    fn check_pairs(&self) -> Result<(), Invalid> {
        if self.peer_ecn.is_some_and(|peer| peer > EcnMode::Off) && !self.ecn {
            let message = "it has no effect unless ecn = true";
            return Err(Invalid::new("peer_ecn", message));
        }
        let needs = [
            ("rack", self.rack, "sack", self.sack),
            ("tail_probe", self.tail_probe, "rack", self.rack),
            ("prr", self.prr, "rack", self.rack),
            ("frto", self.frto, "rack", self.rack),
            // Only the loss detection by time reads the reports.
            ("dsack", self.dsack, "rack", self.rack),
            ("accecn", self.accecn, "ecn", self.ecn),
        ];
        for (key, on, other, other_on) in needs {
            if on && !other_on {
                let message = format!("it needs {other}: write {other} = true, or {key} = false");
                return Err(Invalid::new(key, message));
            }
        }
        for (key, on) in [("ecn", self.ecn), ("accecn", self.accecn), ("pacing", self.pacing)] {
            if !on && self.congestion.implies().contains(&(key, true)) {
                let name = self.congestion.name();
                let message =
                    format!("{name} needs it: leave {key} out, or write another congestion control");
                return Err(Invalid::new(key, message));
            }
        }
        for (key, ratio) in
            [("pacing_ss_ratio", self.pacing_ss_ratio), ("pacing_ca_ratio", self.pacing_ca_ratio)]
        {
            if !(1..=1000).contains(&ratio) {
                return Err(Invalid::new(key, format!("{ratio} is not between 1 and 1000 percent")));
            }
        }
        Ok(())
    }
}

impl Preset {
    /// The keys that presets set, with the values of this one.
    pub fn keys(self) -> Map<String, Value> {
        let table = |config: &TcpConfig| match serde_json::to_value(config) {
            Ok(Value::Object(table)) => table,
            _ => unreachable!("a configuration is a table"),
        };
        let (rfc, linux) = (table(&TcpConfig::rfc()), table(&TcpConfig::linux()));
        let values = if self == Preset::Rfc { &rfc } else { &linux };
        let differs = |key: &&String| rfc[*key] != linux[*key];
        rfc.keys().filter(differs).map(|key| (key.clone(), values[key].clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_the_defaults_with_its_keys() {
        for (preset, expected) in [(Preset::Rfc, TcpConfig::rfc()), (Preset::Linux, TcpConfig::linux())] {
            let config: TcpConfig = serde_json::from_value(Value::Object(preset.keys())).unwrap();
            assert_eq!(config, expected);
            expected.check().unwrap();
        }
    }

    /// The configuration that these keys make, as a scenario reads them.
    fn written(keys: Value) -> TcpConfig {
        let config = |keys: Value| -> TcpConfig { serde_json::from_value(keys).unwrap() };
        let Value::Object(keys) = keys else { unreachable!() };
        let mut all = config(Value::Object(keys.clone())).implied();
        all.extend(keys);
        config(Value::Object(all))
    }

    #[test]
    fn a_key_takes_along_the_values_of_the_preset_that_depend_on_it() {
        let without = written(json!({ "sack": false }));
        without.check().unwrap();
        assert!(!without.rack && !without.dsack && without.timestamps);
        let small = written(json!({ "receive_window": "32kb", "rto_min": "1ms" }));
        small.check().unwrap();
        assert_eq!((small.receive_window_initial, small.rto_margin), (Some(Bytes(32_768)), Span::ms(1)));
        assert_eq!(written(json!({ "congestion": "reno" })).hystart, HyStartRule::Off);
        assert_eq!((TcpConfig::linux().packet(), TcpConfig::rfc().packet()), (Bytes(1500), Bytes(1500)));
        assert_eq!(written(json!({})), TcpConfig::linux());
        assert_eq!(written(json!({ "preset": "rfc" })), TcpConfig::rfc());
        assert!(written(json!({ "preset": "rfc", "congestion": "bbr" })).rack);
    }

    #[test]
    fn parameters_that_need_others_are_refused_without_them() {
        let wrong = |config: TcpConfig| config.check().unwrap_err().to_string();
        let tcp = TcpConfig::rfc();
        insta::assert_snapshot!(wrong(TcpConfig { accecn: true, ..tcp.clone() }), @"accecn: it needs ecn: write ecn = true, or accecn = false");
        insta::assert_snapshot!(wrong(TcpConfig { rack: true, sack: false, ..tcp.clone() }), @"rack: it needs sack: write sack = true, or rack = false");
        insta::assert_snapshot!(wrong(TcpConfig { dsack: true, ..tcp.clone() }), @"dsack: it needs rack: write rack = true, or dsack = false");
        insta::assert_snapshot!(wrong(TcpConfig { pacing_ca_ratio: 0, ..tcp }), @"pacing_ca_ratio: 0 is not between 1 and 1000 percent");
    }
}
