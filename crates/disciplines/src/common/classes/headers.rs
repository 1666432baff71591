//! Conditions on the headers of real packets: addresses, ports, protocol. The keys come from tc-flower(8).
//!
//! Rules with the same mask share a table (tuple space search, as in [`filter`](super::filter)). A range of
//! ports is written as blocks of a power of two, of at most 30, so that a mask is enough for it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use giveway_qdisc::units::nearest;
use giveway_qdisc::{FiveTuple, FlowKey, hash};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Protocols by name, with their numbers (IANA, Protocol Numbers).
const PROTOCOLS: [(&str, u8); 6] =
    [("icmp", 1), ("tcp", 6), ("udp", 17), ("gre", 47), ("icmpv6", 58), ("sctp", 132)];
/// No further rule.
const END: u32 = u32::MAX;

/// Addresses that share their first bits; IPv4 as IPv4-mapped IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: u128,
    mask: u128,
}

impl FromStr for Prefix {
    type Err = String;
    fn from_str(text: &str) -> Result<Prefix, String> {
        let wrong =
            || format!("\"{text}\" is not an address or a prefix, such as 192.0.2.0/24 or 2001:db8::/32");
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let (address, width) = match address.parse::<IpAddr>().map_err(|_| wrong())? {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped(), 32),
            IpAddr::V6(v6) => (v6, 128),
        };
        let bits = bits.map_or(Ok(width), |bits| bits.parse::<u32>().map_err(|_| wrong()))?;
        if bits > width {
            return Err(format!("\"{text}\": a prefix of these addresses has at most {width} bits"));
        }
        let mask = u128::MAX.checked_shl(width - bits).unwrap_or(0);
        let address = u128::from(address);
        if address & !mask != 0 {
            let first = std::net::Ipv6Addr::from(address & mask);
            let first = first.to_ipv4_mapped().map_or(first.to_string(), |v4| v4.to_string());
            return Err(format!("\"{text}\" has bits behind its {bits}: write {first}/{bits}"));
        }
        Ok(Prefix { address, mask })
    }
}

impl Prefix {
    /// The addresses of both; `None` if there are none.
    fn and(self, other: Prefix) -> Option<Prefix> {
        let (short, long) = if self.mask <= other.mask { (self, other) } else { (other, self) };
        (long.address & short.mask == short.address).then_some(long)
    }
}

/// A port, or a range of ports, "5000-5999".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl FromStr for Ports {
    type Err = String;
    fn from_str(text: &str) -> Result<Ports, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Ports { first, last }),
            (Ok(_), Ok(_)) => Err(format!("\"{text}\": the last port is below the first")),
            _ => Err(format!("\"{text}\" is not a port or a range, such as 443 or 5000-5999")),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.first < self.last { write!(f, "-{}", self.last) } else { Ok(()) }
    }
}

impl Ports {
    fn and(self, other: Ports) -> Option<Ports> {
        let both = Ports { first: self.first.max(other.first), last: self.last.min(other.last) };
        (both.first <= both.last).then_some(both)
    }

    /// The range as blocks: values and masks.
    fn blocks(self) -> Vec<(u16, u16)> {
        let (mut at, end) = (u32::from(self.first), u32::from(self.last) + 1);
        let mut blocks = Vec::new();
        while at < end {
            let aligned = if at == 0 { 16 } else { at.trailing_zeros() };
            let bits = aligned.min((end - at).ilog2());
            blocks.push((at as u16, (u32::MAX << bits) as u16));
            at += 1 << bits;
        }
        blocks
    }
}

/// An IP protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(u8);

impl FromStr for Protocol {
    type Err = String;
    fn from_str(text: &str) -> Result<Protocol, String> {
        let named = PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        named.map(|(_, number)| *number).or(text.parse().ok()).map(Protocol).ok_or_else(|| {
            let near = nearest(text, PROTOCOLS.iter().map(|(name, _)| *name));
            let help = near.map_or("write a number, or a name such as tcp".to_owned(), |near| {
                format!("did you mean \"{near}\"?")
            });
            format!("\"{text}\" is not an IP protocol: {help}")
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A value that is written as text, or as a number.
macro_rules! text_or_number {
    ($type:ident, $expecting:literal, $most:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct TextOrNumber;
                impl de::Visitor<'_> for TextOrNumber {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }
                }
                deserializer.deserialize_any(TextOrNumber)
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
                json_schema!({ "anyOf": [
                    { "type": "string" },
                    { "type": "integer", "minimum": 0, "maximum": $most }
                ] })
            }
        }
    };
}

text_or_number!(Ports, "a port such as 443, or a range such as \"5000-5999\"", 65535);
text_or_number!(Protocol, "a protocol such as \"udp\" or 17", 255);

/// A condition on the headers of a packet. All fields that are given must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Source addresses.
    pub src_ip: Option<Prefix>,
    /// Destination addresses.
    pub dst_ip: Option<Prefix>,
    /// Source ports.
    pub src_port: Option<Ports>,
    /// Destination ports.
    pub dst_port: Option<Ports>,
    /// The protocol.
    pub ip_proto: Option<Protocol>,
}

/// Two conditions at once: the outer `None` if nothing can match both.
pub fn both<T: Copy>(
    one: Option<T>,
    other: Option<T>,
    join: impl Fn(T, T) -> Option<T>,
) -> Option<Option<T>> {
    match (one, other) {
        (Some(one), Some(other)) => join(one, other).map(Some),
        (one, other) => Some(one.or(other)),
    }
}

impl Conditions {
    /// True without any field.
    pub fn is_empty(&self) -> bool {
        *self == Conditions::default()
    }

    /// Both conditions at once; `None` if no packet can match both.
    pub fn and(self, other: Conditions) -> Option<Conditions> {
        Some(Conditions {
            src_ip: both(self.src_ip, other.src_ip, Prefix::and)?,
            dst_ip: both(self.dst_ip, other.dst_ip, Prefix::and)?,
            src_port: both(self.src_port, other.src_port, Ports::and)?,
            dst_port: both(self.dst_port, other.dst_port, Ports::and)?,
            ip_proto: both(self.ip_proto, other.ip_proto, |one, two| (one == two).then_some(one))?,
        })
    }

    /// The condition as values with their masks; several for ranges of ports.
    fn blocks(&self) -> Vec<(Key, Key)> {
        let blocks = |ports: Option<Ports>| ports.map_or(vec![(0, 0)], Ports::blocks);
        let prefix = |prefix: Option<Prefix>| prefix.map_or((0, 0), |known| (known.address, known.mask));
        let ((from, from_mask), (to, to_mask)) = (prefix(self.src_ip), prefix(self.dst_ip));
        let (protocol, protocol_mask) = self.ip_proto.map_or((0, 0), |known| (known.0, u8::MAX));
        let mut all = Vec::new();
        for (from_port, from_port_mask) in blocks(self.src_port) {
            for (to_port, to_port_mask) in blocks(self.dst_port) {
                let (low, low_mask) = (0, 0);
                all.push((
                    Key { low, from, to, from_port, to_port, protocol },
                    Key {
                        low: low_mask,
                        from: from_mask,
                        to: to_mask,
                        from_port: from_port_mask,
                        to_port: to_port_mask,
                        protocol: protocol_mask,
                    },
                ));
            }
        }
        all
    }
}

/// Everything that a filter can ask of a packet. `low` are its other fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    low: u64,
    from: u128,
    to: u128,
    from_port: u16,
    to_port: u16,
    protocol: u8,
}

impl Key {
    fn and(self, mask: Key) -> Key {
        Key {
            low: self.low & mask.low,
            from: self.from & mask.from,
            to: self.to & mask.to,
            from_port: self.from_port & mask.from_port,
            to_port: self.to_port & mask.to_port,
            protocol: self.protocol & mask.protocol,
        }
    }

    fn hashed(&self) -> FlowKey {
        let ports =
            u64::from(self.from_port) << 32 | u64::from(self.to_port) << 16 | u64::from(self.protocol);
        let words =
            [self.from as u64, (self.from >> 64) as u64, self.to as u64, (self.to >> 64) as u64, ports];
        FlowKey(words.into_iter().fold(self.low, hash::mix))
    }
}

/// Rules on headers, in tables.
#[derive(Debug, Default)]
pub struct HeaderRules {
    tables: Vec<Table>,
}

/// The rules with the same mask.
#[derive(Debug)]
struct Table {
    mask: Key,
    /// First rule of each hash.
    first: giveway_qdisc::blocks::FlowMap<u32>,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    key: Key,
    /// Number among all filters, and class.
    decides: (u32, u32),
    /// The next rule with the same hash; [`END`] after the last.
    next: u32,
}

impl Table {
    fn get(&self, key: Key) -> Option<(u32, u32)> {
        let wanted = key.and(self.mask);
        let mut at = self.first.get(wanted.hashed()).copied()?;
        while let Some(rule) = self.rules.get(at as usize) {
            if rule.key == wanted {
                return Some(rule.decides);
            }
            at = rule.next;
        }
        None
    }
}

impl HeaderRules {
    /// True without rules.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Appends a rule: the condition, the other fields with their mask, and the number of the filter with its
    /// class. Returns false if earlier rules take all its packets.
    pub fn push(
        &mut self,
        conditions: &Conditions,
        (low, low_mask): (u64, u64),
        decides: (u32, u32),
    ) -> bool {
        let mut seen = false;
        for (key, mask) in conditions.blocks() {
            let (key, mask) = (Key { low, ..key }, Key { low: low_mask, ..mask });
            let hides = |table: &Table| table.mask.and(mask) == table.mask && table.get(key).is_some();
            if self.tables.iter().any(hides) {
                continue;
            }
            seen = true;
            let at = self.tables.iter().position(|table| table.mask == mask).unwrap_or_else(|| {
                let first = giveway_qdisc::blocks::FlowMap::with_capacity(0);
                self.tables.push(Table { mask, first, rules: Vec::new() });
                self.tables.len() - 1
            });
            let table = &mut self.tables[at];
            let own = table.rules.len() as u32;
            let first = table.first.entry(key.hashed(), || END);
            table.rules.push(Rule { key, decides, next: std::mem::replace(first, own) });
        }
        seen
    }

    /// Number and class of the first rule that the packet matches.
    pub fn get(&self, low: u64, headers: &FiveTuple) -> Option<(u32, u32)> {
        let key = Key {
            low,
            from: u128::from_be_bytes(headers.from),
            to: u128::from_be_bytes(headers.to),
            from_port: headers.from_port,
            to_port: headers.to_port,
            protocol: headers.protocol,
        };
        self.tables.iter().filter_map(|table| table.get(key)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_are_nested_or_apart() {
        let (wide, narrow) = (prefix("10.0.0.0/8"), prefix("10.1.0.0/16"));
        assert_eq!(wide.and(narrow), Some(narrow));
        assert_eq!(narrow.and(prefix("10.2.0.0/16")), None);
        assert_eq!(prefix("0.0.0.0/0").and(prefix("2001:db8::/32")), None, "0.0.0.0/0 is IPv4 only");
        assert_eq!(prefix("192.0.2.1"), prefix("192.0.2.1/32"));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err();
        assert_eq!(error("10.1.0.0/8"), "\"10.1.0.0/8\" has bits behind its 8: write 10.0.0.0/8");
        assert_eq!(error("10.0.0.0/33"), "\"10.0.0.0/33\": a prefix of these addresses has at most 32 bits");
        assert!(error("10.0.0/8").contains("such as 192.0.2.0/24"));
        assert_eq!("70-60".parse::<Ports>().unwrap_err(), "\"70-60\": the last port is below the first");
        assert!("65536".parse::<Ports>().unwrap_err().contains("such as 443"));
        assert!("tpc".parse::<Protocol>().unwrap_err().contains("did you mean \"tcp\"?"));
    }

    proptest! {
        /// The blocks of a range have each of its ports once, and no other.
        #[test]
        fn blocks_are_the_range(first: u16, length in 0..3000u16, port: u16) {
            let ports = Ports { first, last: first.saturating_add(length) };
            let near = ports.first.saturating_sub(9).saturating_add(port % (length + 18));
            for port in [port, near, ports.first, ports.last] {
                let inside = ports.blocks().iter().filter(|(value, mask)| port & mask == *value).count();
                prop_assert_eq!(inside, usize::from((ports.first..=ports.last).contains(&port)));
            }
            prop_assert!(ports.blocks().len() <= 30);
        }
    }
}
