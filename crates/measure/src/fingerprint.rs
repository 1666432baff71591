//! A fingerprint of all events of a run, which shows whether two runs are equal, bit for bit.
//!
//! FNV-1a with 128 bits, fed a 64-bit word at a time: one multiplication per word, because it runs for every
//! packet of a measured port. Each step is a bijection of the state, so a single difference is never lost. It
//! guards against mistakes, not against attackers. Its input is integers only, so the value does not depend
//! on the machine, the number of threads or the build.
//!
//! A run has one chain for each measured port, of the packets that were sent and dropped there, and one for
//! each group of sources, of its flows in the order of their numbers. The fingerprint combines the chains in
//! the order of the names. So it does not depend on the order in which a scenario lists ports and sources,
//! and the parts of a run that is split can each make their chains.

use std::fmt;
use std::str::FromStr;

use giveway_qdisc::{DropReason, FlowReport, Meta, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The text is not a [`Fingerprint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a fingerprint: 32 hexadecimal digits")]
pub struct FingerprintError {
    /// The text.
    pub text: String,
}

/// A fingerprint of a run, a file, or several runs in order: 128 bits, as text 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

/// Kinds of events, in the top byte of the first word of an event.
const SENT: u64 = 1 << 56;
const FLOW: u64 = 2 << 56;
const DROPPED: u64 = 16 << 56;

impl Fingerprint {
    /// The fingerprint of no events.
    pub const EMPTY: Fingerprint = Fingerprint(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);

    /// The fingerprint of a text, byte by byte: FNV-1a as published.
    pub fn of(text: &str) -> Fingerprint {
        let mut print = Fingerprint::EMPTY;
        for byte in text.bytes() {
            print.fold(u64::from(byte));
        }
        print
    }

    /// One fingerprint for several, in this order.
    pub fn combined(parts: impl IntoIterator<Item = Fingerprint>) -> Fingerprint {
        let mut print = Fingerprint::EMPTY;
        for part in parts {
            print.fold((part.0 >> 64) as u64);
            print.fold(part.0 as u64);
        }
        print
    }

    /// The first 64 bits, as a number.
    pub fn number(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The first 64 bits as 16 hexadecimal digits, for names of files.
    pub fn short(self) -> String {
        format!("{:016x}", self.number())
    }

    /// The fingerprint of a port or a source: its name, and `print` of its events.
    pub(crate) fn named(name: &str, print: Fingerprint) -> Fingerprint {
        Fingerprint::combined([Fingerprint::of(name), print])
    }

    /// Adds a packet that was sent.
    #[inline]
    pub(crate) fn on_departure(&mut self, meta: &Meta, now: Time) {
        self.packet(SENT, meta, now);
    }

    /// Adds a packet that was dropped.
    pub(crate) fn on_drop(&mut self, meta: &Meta, why: DropReason, now: Time) {
        self.packet(DROPPED + ((why as u64) << 56), meta, now);
    }

    /// Adds a flow, without the number of its source, which depends on the order of a list.
    pub(crate) fn flow(&mut self, report: &FlowReport) {
        let FlowReport { id, kind, from, to, start, end, bytes, delivered, goodput_bytes, .. } = *report;
        let FlowReport { packets, retransmitted, lost, timeouts, delay_mean, delay_p99, delay_max, .. } =
            *report;
        let words = [
            FLOW | (kind as u64) << 48 | u64::from(from) << 16 | u64::from(to),
            id,
            start.as_ps(),
            end.as_ps(),
            bytes,
            delivered,
            goodput_bytes,
            packets,
            retransmitted,
            lost.unwrap_or(u64::MAX),
            timeouts,
            delay_mean.as_ps(),
            delay_p99.as_ps(),
            delay_max.as_ps(),
            report.longest_pause.as_ps(),
            report.paused.as_ps(),
            report.ending as u64,
        ];
        for word in words {
            self.fold(word);
        }
    }

    #[inline]
    fn packet(&mut self, kind: u64, meta: &Meta, now: Time) {
        self.fold(kind ^ u64::from(meta.bytes));
        self.fold(now.as_ps());
        self.fold(meta.flow.0);
    }

    /// One step of FNV-1a: exclusive or, then times the prime 2⁸⁸ + 2⁸ + 0x3b.
    #[inline]
    fn fold(&mut self, word: u64) {
        const PRIME: u128 = (1 << 88) + (1 << 8) + 0x3b;
        self.0 = (self.0 ^ u128::from(word)).wrapping_mul(PRIME);
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl FromStr for Fingerprint {
    type Err = FingerprintError;
    fn from_str(text: &str) -> Result<Fingerprint, FingerprintError> {
        match (text.len(), u128::from_str_radix(text, 16)) {
            (32, Ok(bits)) => Ok(Fingerprint(bits)),
            _ => Err(FingerprintError { text: text.to_owned() }),
        }
    }
}
impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fingerprint, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the FNV specification (draft-eastlake-fnv), 128 bits.
    #[test]
    fn matches_the_published_vectors() {
        assert_eq!(Fingerprint::of("").to_string(), "6c62272e07bb014262b821756295c58d");
        assert_eq!(Fingerprint::of("a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(Fingerprint::of("foobar").to_string(), "343e1662793c64bf6f0d3597ba446f18");
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let print = Fingerprint::of("efd limit 300p");
        assert_eq!(print.to_string().parse(), Ok(print));
        assert!("12".parse::<Fingerprint>().is_err());
        assert!("+".repeat(32).parse::<Fingerprint>().is_err());
    }

    #[test]
    fn order_counts() {
        let (a, b) = (Fingerprint::of("a"), Fingerprint::of("b"));
        assert_ne!(Fingerprint::combined([a, b]), Fingerprint::combined([b, a]));
        assert_ne!(Fingerprint::combined([a]), a, "a combination of one is not the one");
    }
}
