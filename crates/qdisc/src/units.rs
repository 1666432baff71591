//! Time, rate and size: integers with their unit in the type.
//!
//! The unit of time is a picosecond, so that the time of 64 bytes at 400 Gbit/s (1,280 ps) is exact and
//! sums never depend on their order. A `u64` of picoseconds has a range of 213 days, which no simulation
//! reaches; a backend that runs for longer restarts its clock.
//!
//! Quantities follow the syntax of `tc`, and are parsed exactly: a value that is not a whole number of the
//! basic unit (picosecond, bit/s, byte) is refused, not rounded.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::backlog::Backlog;

const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// The number, saturated to 64 bits.
const fn saturated(number: u128) -> u64 {
    if number > u64::MAX as u128 { u64::MAX } else { number as u64 }
}

/// A point in time: picoseconds since the epoch of the backend (for a simulation, its start).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in picoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A data rate in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A number of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(pub u64);

/// Value of a parameter in tables, in a basic unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A number with its unit: "packets", "B", "s", "bit/s", or "1" if it has none. A switch is 1 or 0.
    Number(f64, &'static str),
    /// Any other value, as text.
    Text(String),
}

/// A size in packets or in bytes, in the unit that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many packets of any size.
    Packets(u64),
    /// At most this many bytes.
    Bytes(u64),
}

/// The depth of a queue in time or in packets, in the unit that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The time that a packet has waited.
    Time(Span),
    /// The number of packets.
    Packets(u64),
}

/// A probability or share, 0 to 1. Written `0.02` or `2%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);
    /// Later than all times; it means "not scheduled".
    pub const NEVER: Time = Time(u64::MAX);

    /// `ps` picoseconds after the epoch.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// `us` microseconds after the epoch.
    pub const fn us(us: u64) -> Time {
        Time(us.saturating_mul(1_000_000))
    }
    /// `ms` milliseconds after the epoch.
    pub const fn ms(ms: u64) -> Time {
        Time(ms.saturating_mul(1_000_000_000))
    }
    /// `s` seconds after the epoch.
    pub const fn s(s: u64) -> Time {
        Time(s.saturating_mul(PS_PER_SECOND))
    }
    /// Picoseconds since the epoch.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Seconds since the epoch, for reports only, since it is rounded.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / PS_PER_SECOND as f64
    }
    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero time.
    pub const ZERO: Span = Span(0);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }
    /// `ns` nanoseconds.
    pub const fn ns(ns: u64) -> Span {
        Span(ns.saturating_mul(1_000))
    }
    /// `us` microseconds.
    pub const fn us(us: u64) -> Span {
        Span(us.saturating_mul(1_000_000))
    }
    /// `ms` milliseconds.
    pub const fn ms(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000_000))
    }
    /// `s` seconds.
    pub const fn s(s: u64) -> Span {
        Span(s.saturating_mul(PS_PER_SECOND))
    }
    /// A span of `s` seconds, rounded to a picosecond, for random draws. Negative values become zero.
    pub fn from_s_f64(s: f64) -> Span {
        Span((s * PS_PER_SECOND as f64 + 0.5) as u64)
    }
    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Seconds, for reports and for formulae that the paper writes in real numbers.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / PS_PER_SECOND as f64
    }
    /// The time for people, in messages: as it is written if that is short, otherwise with three digits.
    pub fn rough(self) -> String {
        let exact = self.to_string();
        if exact.bytes().filter(u8::is_ascii_digit).count() <= 4 {
            return exact;
        }
        let units = [(PS_PER_SECOND, "s"), (K * K * K, "ms"), (K * K, "us"), (K, "ns")];
        let (one, name) = units.into_iter().find(|(one, _)| self.0 >= *one).unwrap_or((1, "ps"));
        let number = self.0 as f64 / one as f64;
        let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
        format!("{number:.digits$} {name}")
    }
    /// True if the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The difference, or zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
    /// `self * num / den` without intermediate overflow, rounded down. Saturates at the longest span.
    ///
    /// # Panics
    /// If `den` is zero.
    pub const fn scale(self, num: u64, den: u64) -> Span {
        Span(saturated(self.0 as u128 * num as u128 / den as u128))
    }
}

impl Rate {
    /// `bit` bit/s.
    pub const fn bit(bit: u64) -> Rate {
        Rate(bit)
    }
    /// `kbit` · 10³ bit/s.
    pub const fn kbit(kbit: u64) -> Rate {
        Rate(kbit.saturating_mul(1_000))
    }
    /// `mbit` · 10⁶ bit/s.
    pub const fn mbit(mbit: u64) -> Rate {
        Rate(mbit.saturating_mul(1_000_000))
    }
    /// `gbit` · 10⁹ bit/s.
    pub const fn gbit(gbit: u64) -> Rate {
        Rate(gbit.saturating_mul(1_000_000_000))
    }
    /// The rate in bit/s.
    pub const fn as_bit(self) -> u64 {
        self.0
    }
    /// Bytes per second.
    pub fn bytes_per_s(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// Transmission time of `bytes` at this rate, rounded up to a picosecond so that a link is never faster
    /// than its rate. Saturates at the longest span.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Span {
        const PS_PER_BYTE_AT_1_BIT: u64 = 8 * PS_PER_SECOND;
        assert!(self.0 > 0, "a link has a rate");
        // Up to 2.3 MB the product fits 64 bits, whose division is several times faster.
        match bytes.checked_mul(PS_PER_BYTE_AT_1_BIT) {
            Some(scaled) => Span(scaled.div_ceil(self.0)),
            None => Span(saturated((bytes as u128 * PS_PER_BYTE_AT_1_BIT as u128).div_ceil(self.0 as u128))),
        }
    }
    /// Number of whole bytes that pass in `span`, saturating.
    pub const fn bytes_in(self, span: Span) -> u64 {
        saturated(self.0 as u128 * span.0 as u128 / (8 * PS_PER_SECOND as u128))
    }
}

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Bytes = Bytes(0);
}

impl Limit {
    /// True if a backlog is within the limit.
    #[inline]
    pub fn allows(self, backlog: Backlog) -> bool {
        match self {
            Limit::Packets(most) => backlog.packets <= most,
            Limit::Bytes(most) => backlog.bytes <= most,
        }
    }
    /// True if a backlog and another packet of `bytes` bytes are within the limit.
    #[inline]
    pub fn admits(self, backlog: Backlog, bytes: u32) -> bool {
        self.allows(Backlog { packets: backlog.packets + 1, bytes: backlog.bytes + u64::from(bytes) })
    }
    /// Initial capacity of a queue with this limit, in packets: enough for packets of 64 bytes, and at most
    /// 4,096.
    pub fn initial_capacity(self) -> usize {
        self.most_packets(64).min(1 << 12)
    }
    /// Largest number of packets within the limit if each has at least `smallest` bytes.
    pub fn most_packets(self, smallest: u64) -> usize {
        match self {
            Limit::Packets(most) => most as usize,
            Limit::Bytes(most) => (most / smallest) as usize,
        }
    }
}

impl Share {
    /// A share from a number; `None` outside 0 to 1.
    pub fn new(share: f64) -> Option<Share> {
        (0.0..=1.0).contains(&share).then_some(Share(share))
    }
    /// The number, 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.checked_sub(other.0).expect("a span is never negative"))
    }
}
impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Span {
    type Output = Span;
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}

// ---------------------------------------------------------------------------------------------------
// Parsing and formatting
// ---------------------------------------------------------------------------------------------------

/// Error of a quantity that cannot be parsed. The message states a valid example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for UnitError {}

/// A kind of quantity, with its names for messages, and its units as multiples of the base unit.
struct Dimension {
    noun: &'static str,
    base: &'static str,
    example: &'static str,
    /// Largest value, 2^64 - 1 base units, rounded down to a short text.
    largest: &'static str,
    /// Numerator and denominator of one unit in base units.
    units: &'static [(&'static str, u64, u64)],
}

const K: u64 = 1000;
const KI: u64 = 1024;

const TIME_UNITS: Dimension = Dimension {
    noun: "a time",
    base: "picosecond",
    example: "\"5ms\"",
    largest: "5124h",
    units: &[
        ("ps", 1, 1),
        ("ns", K, 1),
        ("nsec", K, 1),
        ("nsecs", K, 1),
        ("us", K * K, 1),
        ("µs", K * K, 1),
        ("usec", K * K, 1),
        ("usecs", K * K, 1),
        ("ms", K * K * K, 1),
        ("msec", K * K * K, 1),
        ("msecs", K * K * K, 1),
        ("s", PS_PER_SECOND, 1),
        ("sec", PS_PER_SECOND, 1),
        ("secs", PS_PER_SECOND, 1),
        ("second", PS_PER_SECOND, 1),
        ("seconds", PS_PER_SECOND, 1),
        ("min", 60 * PS_PER_SECOND, 1),
        ("h", 3600 * PS_PER_SECOND, 1),
    ],
};

const RATE_UNITS: Dimension = Dimension {
    noun: "a rate",
    base: "bit/s",
    example: "\"10mbit\" or \"10 Mbit/s\"",
    largest: "18446744tbit",
    units: &[
        ("bit", 1, 1),
        ("kbit", K, 1),
        ("mbit", K * K, 1),
        ("gbit", K * K * K, 1),
        ("tbit", K * K * K * K, 1),
        ("kibit", KI, 1),
        ("mibit", KI * KI, 1),
        ("gibit", KI * KI * KI, 1),
        ("tibit", KI * KI * KI * KI, 1),
        ("bit/s", 1, 1),
        ("kbit/s", K, 1),
        ("mbit/s", K * K, 1),
        ("gbit/s", K * K * K, 1),
        ("tbit/s", K * K * K * K, 1),
        // tc(8): "bps" is bytes per second.
        ("bps", 8, 1),
        ("kbps", 8 * K, 1),
        ("mbps", 8 * K * K, 1),
        ("gbps", 8 * K * K * K, 1),
        ("tbps", 8 * K * K * K * K, 1),
        ("kibps", 8 * KI, 1),
        ("mibps", 8 * KI * KI, 1),
        ("gibps", 8 * KI * KI * KI, 1),
        ("tibps", 8 * KI * KI * KI * KI, 1),
        ("b/s", 8, 1),
        ("byte/s", 8, 1),
        ("bytes/s", 8, 1),
    ],
};

const SIZE_UNITS: Dimension = Dimension {
    noun: "a size",
    base: "byte",
    example: "\"1514b\" or \"64kb\" (as in tc, 1 kb is 1024 bytes)",
    largest: "17179869183g",
    units: &[
        ("b", 1, 1),
        ("byte", 1, 1),
        ("bytes", 1, 1),
        // tc(8): "k or kb" are kilobytes of 1024 bytes, in any case.
        ("k", KI, 1),
        ("kb", KI, 1),
        ("kib", KI, 1),
        ("m", KI * KI, 1),
        ("mb", KI * KI, 1),
        ("mib", KI * KI, 1),
        ("g", KI * KI * KI, 1),
        ("gb", KI * KI * KI, 1),
        ("gib", KI * KI * KI, 1),
        // tc counts the bits of a size by 1024, too: its "32kbit" are 4,096 bytes.
        ("kbit", KI, 8),
        ("mbit", KI * KI, 8),
        ("gbit", KI * KI * KI, 8),
    ],
};

const PACKET_UNITS: Dimension = Dimension {
    noun: "a number of packets",
    base: "packet",
    example: "\"300p\" or \"300 packets\"",
    largest: "18446744073709551615p",
    units: &[("p", 1, 1), ("pkt", 1, 1), ("pkts", 1, 1), ("packet", 1, 1), ("packets", 1, 1)],
};

impl Dimension {
    /// Parses a number and its unit, exactly, into base units.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+'))
            .unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
        let (mantissa, scale) = decimal(number).ok_or_else(|| {
            UnitError(if number.starts_with('-') {
                format!("{} cannot be negative: got \"{trimmed}\"", self.noun)
            } else {
                format!("\"{trimmed}\" is not {}: write for example {}", self.noun, self.example)
            })
        })?;
        if unit.is_empty() {
            return Err(UnitError(format!(
                "\"{trimmed}\" has no unit: {} is written for example {}",
                self.noun, self.example
            )));
        }
        let (_, num, den) =
            self.units.iter().find(|(name, ..)| name.eq_ignore_ascii_case(unit)).ok_or_else(|| {
                let names: Vec<&str> = self.units.iter().map(|(name, ..)| *name).collect();
                let near = nearest(unit, names.iter().copied());
                UnitError(match near {
                    Some(near) => {
                        format!("\"{unit}\" is not a unit of {}: did you mean \"{number}{near}\"?", self.noun)
                    }
                    None => format!(
                        "\"{unit}\" is not a unit of {}: write for example {}",
                        self.noun, self.example
                    ),
                })
            })?;
        let too_large = || {
            UnitError(format!(
                "\"{trimmed}\" is too large for {}: write \"{}\" at most",
                self.noun, self.largest
            ))
        };
        let scaled = mantissa.checked_mul(u128::from(*num)).ok_or_else(too_large)?;
        let divisor = scale * u128::from(*den);
        if scaled % divisor != 0 {
            let (noun, base) = (self.noun, self.base);
            // Without the value of the unit, 4.4 MB looks like a whole number of bytes.
            let plural = if base.ends_with("/s") { "" } else { "s" };
            let near = match scaled / divisor {
                0 => String::new(),
                near => format!(
                    " (1 {unit} is {} {base}{plural}); write \"{near}{}\"",
                    num / den,
                    self.units[0].0
                ),
            };
            return Err(UnitError(format!(
                "\"{trimmed}\" is finer than {noun} can be: its smallest step is 1 {base}{near}"
            )));
        }
        u64::try_from(scaled / divisor).map_err(|_| too_large())
    }
}

/// Mantissa and power of ten of a plain decimal; `None` for any other text.
fn decimal(text: &str) -> Option<(u128, u128)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let whole = whole.strip_prefix('+').unwrap_or(whole);
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 || fraction.len() > 15 {
        return None;
    }
    // The text has only digits, so the only possible error is a number larger than any quantity.
    let mantissa = format!("{whole}{fraction}").parse::<u128>().unwrap_or(u128::MAX);
    // A larger number is out of range in any unit. The bound keeps the products of the caller in range.
    if mantissa > u128::from(u64::MAX) * 1_000_000 {
        return Some((u128::from(u64::MAX) * 1_000_000, 1));
    }
    let scale = 10u128.checked_pow(fraction.len() as u32)?;
    Some((mantissa, scale))
}

/// The candidate with the smallest edit distance to a misspelled word, if the distance is small enough.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_ascii_lowercase();
    let length = wrong.chars().count();
    let most = (length / 3).max(1);
    candidates
        .into_iter()
        // The difference of the lengths is a lower bound of the distance, and cheaper.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= most)
        .map(|candidate| (distance(&lower, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance with transpositions (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substitute = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substitute.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Writes `value` in the largest unit that keeps it whole.
fn write_whole(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let (name, one) =
        units.iter().rev().find(|(_, one)| value != 0 && value.is_multiple_of(*one)).unwrap_or(&units[0]);
    write!(f, "{}{name}", value / one)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("ps", 1), ("ns", K), ("us", K * K), ("ms", K * K * K), ("s", PS_PER_SECOND)];
        if self.0 == 0 { f.write_str("0s") } else { write_whole(f, self.0, &units) }
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &[("bit", 1), ("kbit", K), ("mbit", K * K), ("gbit", K * K * K)])
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &[("b", 1), ("kb", KI), ("mb", KI * KI), ("gb", KI * KI * KI)])
    }
}
impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}p", self.0)
    }
}
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(most) => Packets(*most).fmt(f),
            Limit::Bytes(most) => Bytes(*most).fmt(f),
        }
    }
}
impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Depth::Time(span) => span.fmt(f),
            Depth::Packets(packets) => Packets(*packets).fmt(f),
        }
    }
}
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Span, UnitError> {
        TIME_UNITS.parse(text).map(Span)
    }
}
impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Rate, UnitError> {
        RATE_UNITS.parse(text).map(Rate)
    }
}
impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        SIZE_UNITS.parse(text).map(Bytes)
    }
}
impl FromStr for Packets {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Packets, UnitError> {
        PACKET_UNITS.parse(text).map(Packets)
    }
}
impl FromStr for Limit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Limit, UnitError> {
        match (PACKET_UNITS.parse(text), SIZE_UNITS.parse(text)) {
            (Ok(packets), _) => Ok(Limit::Packets(packets)),
            (_, Ok(bytes)) => Ok(Limit::Bytes(bytes)),
            (Err(large), _) | (_, Err(large)) if large.0.contains("is too large") => Err(large),
            // If only the unit is missing or wrong, the message has both kinds of units. Otherwise the first
            // message is precise.
            (Err(_), Err(bytes)) if bytes.0.contains("unit") => Err(UnitError(format!(
                "\"{}\" needs a unit: \"300p\" counts packets, \"64kb\" counts bytes",
                text.trim()
            ))),
            (Err(packets), Err(_)) => {
                Err(UnitError(packets.0.replace("a number of packets", "a limit in packets or bytes")))
            }
        }
    }
}
impl FromStr for Depth {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Depth, UnitError> {
        match (PACKET_UNITS.parse(text), TIME_UNITS.parse(text)) {
            (Ok(packets), _) => Ok(Depth::Packets(packets)),
            (_, Ok(span)) => Ok(Depth::Time(Span(span))),
            (Err(wrong), _) | (_, Err(wrong))
                if wrong.0.contains("too large") || wrong.0.contains("finer") =>
            {
                Err(wrong)
            }
            // As for a limit: if only the unit is missing or wrong, the message has both kinds of units.
            (Err(_), Err(span)) if span.0.contains("unit") => Err(UnitError(format!(
                "\"{}\" needs a unit: \"1ms\" is a time, \"20p\" counts packets",
                text.trim()
            ))),
            (Err(packets), Err(_)) => {
                Err(UnitError(packets.0.replace("a number of packets", "a time or a number of packets")))
            }
        }
    }
}
impl FromStr for Share {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Share, UnitError> {
        let trimmed = text.trim();
        let (number, percent) = match trimmed.strip_suffix('%') {
            Some(number) => (number.trim(), true),
            None => (trimmed, false),
        };
        // A share may have more digits than a quantity, since it is written with all digits of its value.
        let many = || number.bytes().all(|b| b.is_ascii_digit() || b == b'.').then(|| number.parse().ok())?;
        let plain = decimal(number).map(|(mantissa, scale)| mantissa as f64 / scale as f64).or_else(many);
        let plain: f64 = plain.ok_or_else(|| {
            UnitError(format!("\"{trimmed}\" is not a probability: write for example \"2%\" or \"0.02\""))
        })?;
        let value = plain / if percent { 100.0 } else { 1.0 };
        Share::new(value).ok_or_else(|| {
            let near = match percent || value > 100.0 {
                true => String::new(),
                false => format!("; write for example \"{trimmed}%\""),
            };
            UnitError(format!("\"{trimmed}\" is not a probability: it must lie between 0 and 1 (100%){near}"))
        })
    }
}

/// Implements serde by text, and a schema with which editors complete values.
macro_rules! by_text {
    ($($type:ident, $format:literal, $pattern:literal, $help:literal;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($help)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": $format, "pattern": $pattern })
            }
        }
    )*};
}

by_text! {
    Span, "span", r"^[0-9.]+ ?(ps|ns|us|ms|s|sec|min|h)$", "a time with its unit, such as \"5ms\"";
    Rate, "rate", r"^[0-9.]+ ?([kKmMgGtT]i?)?(bit(/s)?|bps|B/s)$", "a rate with its unit, such as \"10mbit\"";
    Bytes, "bytes", r"^[0-9.]+ ?(b|bytes?|[kKmMgG]i?[bB]?)$", "a size with its unit, such as \"1514b\"";
    Packets, "packets", r"^[0-9]+ ?(p|pkts?|packets?)$", "a number of packets with its unit, such as \"300p\"";
    Limit, "limit", r"^[0-9.]+ ?(p|pkts?|packets?|b|bytes?|[kKmMgG]i?[bB]?)$", "a limit in packets or bytes, such as \"300p\" or \"64kb\"";
    Depth, "depth", r"^[0-9.]+ ?(p|pkts?|packets?|ps|ns|us|ms|s|sec|min|h)$", "a depth in time or packets, such as \"1ms\" or \"20p\"";
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}
impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Share;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability such as 0.02 or \"2%\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Share, E> {
                Share::new(number).ok_or_else(|| {
                    E::custom(format!("{number} is not a probability: it must lie between 0 and 1"))
                })
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Share, E> {
                self.visit_f64(number as f64)
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}
impl JsonSchema for Share {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": r"^[0-9.]+ ?%?$" }
        ], "format": "share" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Result<Span, String> {
        text.parse::<Span>().map_err(|e| e.to_string())
    }

    #[test]
    fn reads_what_tc_reads() {
        assert_eq!("10mbit".parse(), Ok(Rate::mbit(10)));
        assert_eq!("10 Mbit/s".parse(), Ok(Rate::mbit(10)));
        assert_eq!("1.5Gbit".parse(), Ok(Rate::mbit(1500)));
        assert_eq!("1mbps".parse(), Ok(Rate::mbit(8)), "tc's bps is bytes per second");
        assert_eq!("1kibit".parse(), Ok(Rate::bit(1024)));
        assert_eq!(span("5ms"), Ok(Span::ms(5)));
        assert_eq!(span("0.3 us"), Ok(Span::ns(300)));
        assert_eq!(
            "1514".parse::<Bytes>().unwrap_err().to_string().split(':').next(),
            Some("\"1514\" has no unit")
        );
        assert_eq!("64kb".parse(), Ok(Bytes(65536)));
        assert_eq!("32kbit".parse(), Ok(Bytes(4096)));
        assert_eq!("1ms".parse(), Ok(Depth::Time(Span::ms(1))));
        assert_eq!("20p".parse(), Ok(Depth::Packets(20)));
        assert_eq!("20ps".parse(), Ok(Depth::Time(Span::from_ps(20))));
        assert_eq!("300p".parse(), Ok(Limit::Packets(300)));
        assert_eq!("300 packets".parse(), Ok(Limit::Packets(300)));
        assert_eq!("30kb".parse(), Ok(Limit::Bytes(30720)));
        assert_eq!("2%".parse(), Ok(Share(0.02)));
    }

    /// Files may have any number, so constructors saturate, as sums do.
    #[test]
    fn times_saturate() {
        assert_eq!((Span::ns(u64::MAX), Span::s(u64::MAX)), (Span(u64::MAX), Span(u64::MAX)));
        assert_eq!((Time::us(u64::MAX), Time::ms(u64::MAX)), (Time::NEVER, Time::NEVER));
    }

    #[test]
    fn every_share_is_written_and_read_again() {
        let seven: Share = "0.7%".parse().unwrap();
        for share in [seven, Share(1.0 / 3.0), Share(f64::MIN_POSITIVE), Share(f64::from_bits(1)), Share(1.0)]
        {
            assert_eq!(share.to_string().parse(), Ok(share));
        }
        assert!("1e-3".parse::<Share>().is_err() && ".".parse::<Share>().is_err());
    }

    #[test]
    fn errors_of_quantities_have_a_valid_example() {
        let message = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            message("10"),
            "\"10\" has no unit: a rate is written for example \"10mbit\" or \"10 Mbit/s\""
        );
        assert_eq!(message("10mbitt"), "\"mbitt\" is not a unit of a rate: did you mean \"10mbit\"?");
        assert_eq!(message("-3mbit"), "a rate cannot be negative: got \"-3mbit\"");
        let most = "write \"18446744tbit\" at most";
        assert_eq!(
            message("99999999999tbit"),
            format!("\"99999999999tbit\" is too large for a rate: {most}")
        );
        assert_eq!(message("0.5bit"), "\"0.5bit\" is finer than a rate can be: its smallest step is 1 bit/s");
        assert_eq!(
            message("0.0123456kbit"),
            "\"0.0123456kbit\" is finer than a rate can be: its smallest step is 1 bit/s (1 kbit is 1000 bit/s); write \"12bit\""
        );
        assert_eq!(
            "4.4 MB".parse::<Bytes>().unwrap_err().to_string(),
            "\"4.4 MB\" is finer than a size can be: its smallest step is 1 byte (1 MB is 1048576 bytes); write \"4613734b\""
        );
        assert_eq!(
            span("0.1ps").unwrap_err(),
            "\"0.1ps\" is finer than a time can be: its smallest step is 1 picosecond"
        );
        assert_eq!(
            "300".parse::<Limit>().unwrap_err().to_string(),
            "\"300\" needs a unit: \"300p\" counts packets, \"64kb\" counts bytes"
        );
        assert_eq!(
            "150%".parse::<Share>().unwrap_err().to_string(),
            "\"150%\" is not a probability: it must lie between 0 and 1 (100%)"
        );
    }

    #[test]
    fn errors_of_too_large_quantities_have_the_largest_one() {
        for (largest, beyond) in [("5124h", "5125h"), ("5124h", &format!("{}h", "9".repeat(60)))] {
            assert!(span(largest).is_ok());
            assert!(span(beyond).is_err(), "{beyond}");
        }
        let most = |text: &str| match text.parse::<Limit>().unwrap_err().to_string().split_once("write ") {
            Some((_, most)) => most.trim_end_matches(" at most").trim_matches('"').to_owned(),
            None => panic!("{text} does not state the largest value"),
        };
        assert_eq!(most("18446744073709551616p").parse(), Ok(Limit::Packets(u64::MAX)));
        assert_eq!(most("17179869184gb").parse(), Ok(Limit::Bytes(17_179_869_183 << 30)));
        let digits = "9".repeat(60);
        let rate = format!("{digits}bit").parse::<Rate>().unwrap_err().to_string();
        assert!(rate.ends_with("is too large for a rate: write \"18446744tbit\" at most"), "{rate}");
        assert_eq!("18446744tbit".parse::<Rate>().map(Rate::as_bit), Ok(18_446_744_000_000_000_000));
        let time = format!("{digits}s").parse::<Span>().unwrap_err().to_string();
        assert!(time.ends_with("write \"5124h\" at most"), "{time}");
    }

    #[test]
    fn times_for_people_have_few_digits() {
        let cases = [
            (69_605_568_446, "69.6 ms"),
            (1_714_285_715, "1.71 ms"),
            (1_811_212_000_000, "1.81 s"),
            (123_456_789, "123 us"),
            (12_345, "12.3 ns"),
            (12_000_000_000, "12ms"),
            (1_500_000_000_000, "1500ms"),
            (123, "123ps"),
            (0, "0s"),
        ];
        for (ps, text) in cases {
            assert_eq!(Span(ps).rough(), text);
        }
        assert!(Span(u64::MAX).rough().ends_with(" s"));
    }

    #[test]
    fn quantities_saturate_and_never_wrap() {
        let most = Span(u64::MAX);
        assert_eq!([Span::ns(1 << 63), Span::us(u64::MAX), Span::ms(1 << 40), Span::s(1 << 40)], [most; 4]);
        assert_eq!([Time::us(1 << 60), Time::ms(1 << 60), Time::s(1 << 60)], [Time::NEVER; 3]);
        assert_eq!([Rate::kbit(u64::MAX), Rate::mbit(u64::MAX), Rate::gbit(1 << 63)], [Rate(u64::MAX); 3]);
        assert_eq!(Rate::bit(1).time_for(u64::MAX), most);
        assert_eq!(Rate(u64::MAX).bytes_in(most), u64::MAX);
        assert_eq!(most.scale(3, 2), most);
    }

    #[test]
    fn quantities_are_written_and_read_again() {
        for ps in [0, 1, 999, 1_000, 5_000_000_000, 1_500_000_000_000, 90 * PS_PER_SECOND, 1_234_567] {
            assert_eq!(span(&Span(ps).to_string()), Ok(Span(ps)));
        }
        for bit in [1, 1_000, 1_500_000, 10_000_000, 999_999_999] {
            assert_eq!(Rate(bit).to_string().parse(), Ok(Rate(bit)));
        }
        for bytes in [0, 1, 1024, 1514, 65536, 25_000] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn link_times_are_exact_and_never_early() {
        assert_eq!(Rate::gbit(400).time_for(64), Span(1_280));
        assert_eq!(Rate::mbit(10).time_for(1500), Span::us(1200));
        assert_eq!(Rate::bit(3).time_for(1), Span(2_666_666_666_667));
        assert_eq!(Rate::mbit(8).time_for(4_000_000_000), Span::s(4_000));
        assert_eq!(Rate::mbit(10).bytes_in(Span::ms(1)), 1250);
    }

    #[test]
    fn the_nearest_word_to_a_misspelled_one_is_found() {
        assert_eq!(nearest("fq_codle", ["fifo", "fq_codel", "codel"]), Some("fq_codel"));
        assert_eq!(nearest("lmit", ["limit", "target"]), Some("limit"));
        assert_eq!(nearest("zebra", ["limit", "target"]), None);
    }
}
