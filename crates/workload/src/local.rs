//! The local side of the link.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use giveway_capture::Packet;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::WorkloadError;
use crate::model::Direction;

/// The rule that decides on which side of the link a host is.
///
/// Written as prefixes or MAC addresses of the local side with commas between them, or as `gateway=MAC`:
/// everything behind that gateway is the far side. The older form `beyond MAC` is accepted, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// These prefixes are local.
    Prefixes(Vec<Prefix>),
    /// These MAC addresses are local.
    Macs(Vec<[u8; 6]>),
    /// The far side is behind the gateway with this MAC address; all other hosts are local.
    Gateway([u8; 6]),
}

/// An address prefix; IPv4 as an IPv4-mapped IPv6 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    address: [u8; 16],
    /// Length of the prefix, 0 to 128 bits.
    bits: u8,
}

/// Addresses of two hosts, and their traffic.
pub(crate) struct Pair {
    /// The host that sent first or connected.
    pub a: ([u8; 16], Option<[u8; 6]>),
    pub b: ([u8; 16], Option<[u8; 6]>),
    pub packets: u64,
    /// True if `a` opened a connection.
    pub opened: bool,
}

impl Local {
    /// The direction in which a packet crosses the link; `None` if both ends are on one side.
    pub fn direction(
        &self,
        from: ([u8; 16], Option<[u8; 6]>),
        to: ([u8; 16], Option<[u8; 6]>),
    ) -> Option<Direction> {
        match (self.is_local(from)?, self.is_local(to)?) {
            (true, false) => Some(Direction::Up),
            (false, true) => Some(Direction::Down),
            _ => None,
        }
    }

    /// The direction in which a captured packet crosses the link; `None` if it does not, or is not IP.
    pub fn direction_of(&self, packet: &Packet) -> Option<Direction> {
        let (tuple, macs) = (packet.ip?.tuple, packet.mac);
        self.direction((tuple.from, macs.map(|macs| macs.from)), (tuple.to, macs.map(|macs| macs.to)))
    }

    fn is_local(&self, (address, mac): ([u8; 16], Option<[u8; 6]>)) -> Option<bool> {
        match self {
            Local::Prefixes(prefixes) => Some(prefixes.iter().any(|prefix| prefix.contains(&address))),
            Local::Macs(macs) => Some(macs.contains(&mac?)),
            Local::Gateway(gateway) => Some(mac? != *gateway),
        }
    }

    /// Guesses the local side from the traffic, and returns the reason as a sentence. `None` if the traffic
    /// gives no indication.
    pub(crate) fn guess(pairs: &[Pair]) -> Option<(Local, String)> {
        by_gateway(pairs)
            .or_else(|| by_private(pairs))
            .or_else(|| by_presence(pairs))
            .or_else(|| by_opener(pairs))
    }
}

/// Many addresses behind one MAC address: that is the gateway, and all other hosts are local.
fn by_gateway(pairs: &[Pair]) -> Option<(Local, String)> {
    let mut behind: BTreeMap<[u8; 6], BTreeSet<[u8; 16]>> = BTreeMap::new();
    for (address, mac) in pairs.iter().flat_map(|pair| [pair.a, pair.b]) {
        let mac = mac?;
        let is_group = mac[0] & 1 == 1;
        if !is_group {
            behind.entry(mac).or_default().insert(address);
        }
    }
    let mut counts: Vec<(usize, [u8; 6])> = behind.iter().map(|(mac, behind)| (behind.len(), *mac)).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let (most, gateway) = *counts.first()?;
    let next = counts.get(1).map(|(count, _)| *count)?;
    let clear = most >= 3 && most >= 2 * next;
    let why = || {
        format!(
            "{most} addresses are behind {}, so that is the gateway and all others are local",
            mac_text(gateway)
        )
    };
    clear.then(|| (Local::Gateway(gateway), why()))
}

/// Private addresses that exchange packets with public ones are local.
fn by_private(pairs: &[Pair]) -> Option<(Local, String)> {
    let (mut mixed, mut all) = (0, 0);
    for pair in pairs {
        all += pair.packets;
        mixed += if is_private(&pair.a.0) == is_private(&pair.b.0) { 0 } else { pair.packets };
    }
    let clear = mixed > 0 && mixed * 2 >= all;
    let share = 100 * mixed / all.max(1);
    clear.then(|| {
        let prefixes = PRIVATE.iter().map(|text| text.parse().expect("a prefix")).collect();
        (
            Local::Prefixes(prefixes),
            format!(
                "private addresses are local: {share} % of the packets go between private and public ones"
            ),
        )
    })
}

/// A host that takes part in nearly all traffic is local.
fn by_presence(pairs: &[Pair]) -> Option<(Local, String)> {
    let all: u64 = pairs.iter().map(|pair| pair.packets).sum();
    let mut present: BTreeMap<[u8; 16], (u64, u64)> = BTreeMap::new();
    for pair in pairs {
        present.entry(pair.a.0).or_default().0 += pair.packets;
        present.entry(pair.b.0).or_default().0 += pair.packets;
        if pair.opened {
            present.entry(pair.a.0).or_default().1 += 1;
        }
    }
    let everywhere = present.iter().filter(|(_, (packets, _))| packets * 10 >= all * 8);
    // If only two hosts exchange packets, the one that connects is local.
    let (address, (packets, opened)) = everywhere.max_by_key(|(_, (packets, opened))| (*opened, *packets))?;
    let also = present.iter().filter(|(other, seen)| *other != address && seen.0 * 10 >= all * 8).count();
    if also > 0 && *opened == 0 {
        return None;
    }
    let prefix = Prefix { address: *address, bits: 128 };
    let why =
        format!("{} takes part in {} % of the packets", address_text(address), 100 * packets / all.max(1));
    Some((Local::Prefixes(vec![prefix]), why))
}

/// Hosts that open connections are local.
fn by_opener(pairs: &[Pair]) -> Option<(Local, String)> {
    let opened = || pairs.iter().filter(|pair| pair.opened);
    let openers: BTreeSet<[u8; 16]> = opened().map(|pair| pair.a.0).collect();
    let servers: BTreeSet<[u8; 16]> = opened().map(|pair| pair.b.0).collect();
    let clear = !openers.is_empty() && openers.is_disjoint(&servers) && openers.len() <= 1_000;
    clear.then(|| {
        let why = format!("the {} hosts that open connections are local", openers.len());
        let prefixes = openers.into_iter().map(|address| Prefix { address, bits: 128 }).collect();
        (Local::Prefixes(prefixes), why)
    })
}

/// RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC 4291 section 2.5.6.
const PRIVATE: [&str; 7] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "fc00::/7",
    "fe80::/10",
];

fn is_private(address: &[u8; 16]) -> bool {
    let v4 = address[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    match (v4, address[12], address[13]) {
        (true, 10, _) | (true, 192, 168) | (true, 169, 254) => true,
        (true, 172, second) => (16..32).contains(&second),
        (true, 100, second) => (64..128).contains(&second),
        (true, ..) => false,
        (false, ..) => address[0] & 0xfe == 0xfc || (address[0] == 0xfe && address[1] & 0xc0 == 0x80),
    }
}

impl Prefix {
    fn contains(&self, address: &[u8; 16]) -> bool {
        let (whole, rest) = (usize::from(self.bits / 8), self.bits % 8);
        let mask = !(0xff_u16 >> rest) as u8;
        self.address[..whole] == address[..whole]
            && (rest == 0 || self.address[whole] & mask == address[whole] & mask)
    }
}

impl FromStr for Prefix {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Prefix, WorkloadError> {
        let wrong = || WorkloadError::Local(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let (address, offset) = match address.parse::<IpAddr>().map_err(|_| wrong())? {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().octets(), 96),
            IpAddr::V6(v6) => (v6.octets(), 0),
        };
        let bits = bits.map_or(Some(128), |bits| bits.checked_add(offset).filter(|bits| *bits <= 128));
        Ok(Prefix { address, bits: bits.ok_or_else(wrong)? })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v6 = Ipv6Addr::from(self.address);
        match v6.to_ipv4_mapped().filter(|_| self.bits >= 96) {
            Some(v4) if self.bits == 128 => write!(f, "{v4}"),
            Some(v4) => write!(f, "{v4}/{}", self.bits - 96),
            None if self.bits == 128 => write!(f, "{v6}"),
            None => write!(f, "{v6}/{}", self.bits),
        }
    }
}

impl FromStr for Local {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Local, WorkloadError> {
        if let Some(gateway) = text.strip_prefix("gateway=").or_else(|| text.strip_prefix("beyond ")) {
            return mac(gateway.trim())
                .map(Local::Gateway)
                .ok_or_else(|| WorkloadError::Local(gateway.to_owned()));
        }
        let parts = || text.split(',').map(str::trim);
        if let Some(macs) = parts().map(mac).collect() {
            return Ok(Local::Macs(macs));
        }
        Ok(Local::Prefixes(parts().map(str::parse).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Local::Prefixes(prefixes) => f.write_str(&join(prefixes.iter().map(Prefix::to_string))),
            Local::Macs(macs) => f.write_str(&join(macs.iter().map(|mac| mac_text(*mac)))),
            Local::Gateway(gateway) => write!(f, "gateway={}", mac_text(*gateway)),
        }
    }
}

impl Serialize for Local {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Local {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Local, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut parts = text.split(':');
    let mut mac = [0; 6];
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

pub(crate) fn address_text(address: &[u8; 16]) -> String {
    Prefix { address: *address, bits: 128 }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
        std::net::Ipv4Addr::new(a, b, c, d).to_ipv6_mapped().octets()
    }

    fn pair(a: [u8; 16], b: [u8; 16], macs: Option<(u8, u8)>, opened: bool) -> Pair {
        let mac = |number: u8| [2, 0, 0, 0, 0, number];
        Pair { a: (a, macs.map(|(a, _)| mac(a))), b: (b, macs.map(|(_, b)| mac(b))), packets: 10, opened }
    }

    fn guessed(pairs: &[Pair]) -> Option<String> {
        Local::guess(pairs).map(|(local, _)| local.to_string())
    }

    #[test]
    fn the_mac_with_many_addresses_is_the_gateway() {
        let home = v4(10, 0, 0, 6);
        let pairs = [
            pair(home, v4(10, 0, 0, 138), Some((1, 9)), false), // the router's own name server
            pair(home, v4(212, 1, 2, 3), Some((1, 9)), true),
            pair(v4(10, 0, 0, 4), v4(54, 1, 2, 3), Some((2, 9)), true),
        ];
        assert_eq!(guessed(&pairs).unwrap(), "gateway=02:00:00:00:00:09");
        let (local, _) = Local::guess(&pairs).unwrap();
        assert_eq!(local.direction(pairs[0].a, pairs[0].b), Some(Direction::Up));
        assert_eq!(local.direction(pairs[0].b, pairs[0].a), Some(Direction::Down));
        assert_eq!(local.direction(pairs[0].a, pairs[2].a), None, "both ends are local");
    }

    #[test]
    fn without_macs_private_addresses_are_local() {
        let pairs = [
            pair(v4(192, 168, 1, 20), v4(203, 0, 113, 10), None, true),
            pair(v4(198, 51, 100, 7), v4(192, 168, 1, 21), None, true),
        ];
        let local: Local = guessed(&pairs).unwrap().parse().unwrap();
        assert_eq!(local.direction(pairs[1].a, pairs[1].b), Some(Direction::Down));
    }

    #[test]
    fn between_public_addresses_the_host_of_the_capture_is_local() {
        let here = v4(203, 0, 113, 1);
        let pairs = [pair(here, v4(198, 51, 100, 7), None, true), pair(v4(192, 0, 2, 9), here, None, true)];
        assert_eq!(guessed(&pairs).unwrap(), "203.0.113.1");
        // Between two hosts alone, the one that connects is local.
        let alone = [pair(v4(10, 0, 0, 1), v4(10, 0, 1, 1), None, true)];
        assert_eq!(guessed(&alone).unwrap(), "10.0.0.1");
        let unopened = [pair(v4(10, 0, 0, 1), v4(10, 0, 1, 1), None, false)];
        assert_eq!(guessed(&unopened), None);
    }

    #[test]
    fn otherwise_the_hosts_that_connect_are_local() {
        let pairs = [
            pair(v4(203, 0, 113, 1), v4(198, 51, 100, 7), None, true),
            pair(v4(203, 0, 113, 2), v4(198, 51, 100, 8), None, true),
        ];
        assert_eq!(guessed(&pairs).unwrap(), "203.0.113.1,203.0.113.2");
        let mutual = [
            pair(v4(1, 0, 0, 1), v4(2, 0, 0, 1), None, true),
            pair(v4(2, 0, 0, 1), v4(3, 0, 0, 2), None, true),
            pair(v4(3, 0, 0, 2), v4(4, 0, 0, 2), None, true),
            pair(v4(4, 0, 0, 2), v4(1, 0, 0, 1), None, true),
        ];
        assert_eq!(guessed(&mutual), None);
    }

    #[test]
    fn the_text_of_a_local_side_is_parsed_to_the_same_side() {
        for text in [
            "192.168.0.0/16",
            "10.1.2.3",
            "fd00::/8,10.0.0.0/8",
            "2001:db8::1",
            "02:00:00:00:00:01,02:00:00:00:00:ff",
            "gateway=02:00:00:00:00:01",
        ] {
            assert_eq!(text.parse::<Local>().unwrap().to_string(), text);
        }
        let older: Local = "beyond 02:00:00:00:00:01".parse().unwrap();
        assert_eq!(older.to_string(), "gateway=02:00:00:00:00:01");
        for text in ["", "192.168.0.0/33", "300.1.1.1", "fd00::/129", "02:00:00:00:00", "gateway=10.0.0.1"] {
            let error = text.parse::<Local>().unwrap_err().to_string();
            assert!(error.contains("neither a prefix such as"), "{error}");
        }
        // Bits after the prefix do not count.
        let local: Local = "192.168.17.9/20".parse().unwrap();
        assert_eq!(
            local.direction((v4(192, 168, 31, 1), None), (v4(192, 168, 32, 1), None)),
            Some(Direction::Up)
        );
    }
}
