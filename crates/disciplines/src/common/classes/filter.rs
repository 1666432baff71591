//! Filters, which choose the class of a packet: the first filter that a packet matches decides.
//!
//! Filters with the same fields share a table, so that the look-up takes as many steps as there are
//! combinations of fields, however many classes there are (tuple space search, Srinivasan, Suri and Varghese
//! 1999). Addresses, ports and protocols exist on real frames only ([`Cx::headers`]); their tables are in
//! [`headers`](super::headers). The mark of Linux (`fwmark`) is not there: it never leaves the kernel that
//! gave it, so no frame carries it.

use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::{Cx, Dscp, FiveTuple, FlowKey, Hosts, Meta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::headers::{Conditions, HeaderRules, Ports, Prefix, Protocol, both};
use super::ranges;

/// A condition for packets of a class. All fields that are given must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// The class of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<u16>,
    /// The DSCP, as a name such as "EF" or a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// The source host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The destination host. In a class that is a range, a range of as many hosts has one for each class; so
    /// does a range of as many as there are below each class above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The source address or prefix, such as 192.0.2.0/24, of real packets. It may be a range, such as
    /// 192.0.2.[1-20], like a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src_ip: Option<String>,
    /// The destination address or prefix, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_ip: Option<String>,
    /// The source port of real packets, or a range such as 5000-5999.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src_port: Option<Ports>,
    /// The destination port, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_port: Option<Ports>,
    /// The protocol of real packets, as a name such as udp or a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_proto: Option<Protocol>,
}

impl Filter {
    /// The filter of a class of a range.
    ///
    /// # Errors
    /// The mistake, in a sentence.
    pub fn resolved(&self, copy: ranges::Copy, hosts: &Hosts) -> Result<Fields, String> {
        let host = |written: &Option<String>| {
            let number = |name: &String| hosts.number(&copy.of(name)?);
            written.as_ref().map(number).transpose()
        };
        let fields = Fields {
            class: self.class,
            dscp: self.dscp.map(Dscp::number),
            from: host(&self.from)?,
            to: host(&self.to)?,
            conditions: self.conditions(copy)?,
        };
        if !fields.conditions.is_empty() && !hosts.have_addresses() {
            return Err(
                "hosts have no addresses and ports here, only real frames do: filter by from, to, class or \
                        dscp"
                    .into(),
            );
        }
        if fields == Fields::default() {
            return Err(
                "a filter without fields matches every packet: write at least one, such as class 1".into()
            );
        }
        Ok(fields)
    }

    fn conditions(&self, copy: ranges::Copy) -> Result<Conditions, String> {
        let prefix = |written: &Option<String>| -> Result<Option<Prefix>, String> {
            written.as_ref().map(|text| copy.of(text)?.parse()).transpose()
        };
        Ok(Conditions {
            src_ip: prefix(&self.src_ip)?,
            dst_ip: prefix(&self.dst_ip)?,
            src_port: self.src_port,
            dst_port: self.dst_port,
            ip_proto: self.ip_proto,
        })
    }
}

/// A filter with the numbers of its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    class: Option<u16>,
    dscp: Option<u8>,
    from: Option<u16>,
    to: Option<u16>,
    conditions: Conditions,
}

impl Fields {
    /// Both filters at once; `None` if no packet can match both.
    pub fn and(self, other: Fields) -> Option<Fields> {
        fn equal<T: PartialEq>(one: T, other: T) -> Option<T> {
            (one == other).then_some(one)
        }
        Some(Fields {
            class: both(self.class, other.class, equal)?,
            dscp: both(self.dscp, other.dscp, equal)?,
            from: both(self.from, other.from, equal)?,
            to: both(self.to, other.to, equal)?,
            conditions: self.conditions.and(other.conditions)?,
        })
    }

    /// The bits of a key that the fields use.
    fn mask(self) -> u64 {
        let bits = |given: bool, field: u64| if given { field } else { 0 };
        bits(self.class.is_some(), CLASS)
            | bits(self.dscp.is_some(), DSCP)
            | bits(self.from.is_some(), FROM)
            | bits(self.to.is_some(), TO)
    }
}

// Places of the fields in a key.
const CLASS: u64 = 0xffff;
const DSCP: u64 = 0xff << 16;
const FROM: u64 = 0xffff << 24;
const TO: u64 = 0xffff << 40;

/// All fields of a packet in one number.
#[inline]
fn key(class: u16, dscp: u8, from: u16, to: u16) -> u64 {
    u64::from(class) | u64::from(dscp) << 16 | u64::from(from) << 24 | u64::from(to) << 40
}

/// A number that looks random, as the tables need, and is different for different keys.
#[inline]
fn spread(key: u64) -> FlowKey {
    let product = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    FlowKey(product ^ product >> 32)
}

/// Filters with their classes, in order.
#[derive(Debug, Default)]
pub struct Classifier {
    tables: Vec<Table>,
    headers: HeaderRules,
    rules: u32,
}

/// The filters that use the same fields.
#[derive(Debug)]
struct Table {
    mask: u64,
    /// Number of the filter and its class, by the values of its fields.
    rules: FlowMap<(u32, u32)>,
}

impl Classifier {
    /// Appends a filter for a class. Returns false if an earlier filter takes all its packets.
    pub fn push(&mut self, fields: Fields, class: u32) -> bool {
        let mask = fields.mask();
        let wanted = key(
            fields.class.unwrap_or_default(),
            fields.dscp.unwrap_or_default(),
            fields.from.unwrap_or_default(),
            fields.to.unwrap_or_default(),
        );
        let hidden = self
            .tables
            .iter()
            .any(|table| table.mask & !mask == 0 && table.rules.get(spread(wanted & table.mask)).is_some());
        let rule = (self.rules, class);
        self.rules += 1;
        if hidden {
            return false;
        }
        if !fields.conditions.is_empty() {
            return self.headers.push(&fields.conditions, (wanted, mask), rule);
        }
        let at = self.tables.iter().position(|table| table.mask == mask).unwrap_or_else(|| {
            self.tables.push(Table { mask, rules: FlowMap::default() });
            self.tables.len() - 1
        });
        self.tables[at].rules.entry(spread(wanted), || rule);
        true
    }

    /// The class of a packet that arrives with a call; `None` if no filter matches.
    #[inline]
    pub fn of<P>(&self, meta: &Meta, cx: &Cx<'_, P>) -> Option<u32> {
        self.class(meta, cx.headers())
    }

    /// The class of a packet, whose headers may be known; `None` if no filter matches.
    #[inline]
    pub fn class(&self, meta: &Meta, headers: Option<&FiveTuple>) -> Option<u32> {
        // Most disciplines with bands have no filters.
        if self.rules == 0 { None } else { self.search(meta, headers) }
    }

    #[inline(never)]
    fn search(&self, meta: &Meta, headers: Option<&FiveTuple>) -> Option<u32> {
        let key = key(meta.class, meta.header.dscp().number(), meta.from, meta.to);
        let mut first: Option<(u32, u32)> = None;
        for table in &self.tables {
            if let Some(rule) = table.rules.get(spread(key & table.mask))
                && first.is_none_or(|(earlier, _)| rule.0 < earlier)
            {
                first = Some(*rule);
            }
        }
        if !self.headers.is_empty()
            && let Some(headers) = headers
        {
            first = first.into_iter().chain(self.headers.get(key, headers)).min();
        }
        first.map(|(_, class)| class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Header;
    use proptest::prelude::*;

    fn fields() -> impl Strategy<Value = Fields> {
        let few = || prop::option::of(0..3u16);
        (few(), few(), few(), few()).prop_map(|(class, dscp, from, to)| Fields {
            class,
            dscp: dscp.map(|dscp| dscp as u8 * 8),
            from,
            to,
            ..Fields::default()
        })
    }

    /// Conditions that match some of the packets of [`packets`].
    fn conditions() -> impl Strategy<Value = Conditions> {
        let prefix = || {
            prop::option::of(prop::sample::select(vec![
                "10.0.0.0/8",
                "10.1.0.0/16",
                "10.1.2.3",
                "2001:db8::/32",
                "0.0.0.0/0",
            ]))
        };
        let ports = || prop::option::of(prop::sample::select(vec!["53", "50-60", "0-65535", "5000-5999"]));
        let protocol = prop::option::of(prop::sample::select(vec!["tcp", "17"]));
        (prefix(), prefix(), ports(), ports(), protocol).prop_map(
            |(src, dst, src_port, dst_port, protocol)| Conditions {
                src_ip: src.map(|text| text.parse().unwrap()),
                dst_ip: dst.map(|text| text.parse().unwrap()),
                src_port: src_port.map(|text| text.parse().unwrap()),
                dst_port: dst_port.map(|text| text.parse().unwrap()),
                ip_proto: protocol.map(|text| text.parse().unwrap()),
            },
        )
    }

    /// The headers of a packet, with the truth about each condition in its own words.
    fn packets() -> impl Strategy<Value = FiveTuple> {
        let address = || {
            prop::sample::select(vec![
                "10.1.2.3",
                "10.1.9.9",
                "10.7.0.1",
                "192.0.2.1",
                "2001:db8::1",
                "2001:db9::",
            ])
        };
        let port = || prop::sample::select(vec![0, 50, 53, 60, 61, 5000, 5999, 6000]);
        (address(), address(), port(), port(), prop::sample::select(vec![6, 17])).prop_map(
            |(from, to, from_port, to_port, protocol)| FiveTuple {
                from: octets(from),
                to: octets(to),
                from_port,
                to_port,
                protocol,
            },
        )
    }

    fn octets(address: &str) -> [u8; 16] {
        match address.parse().unwrap() {
            std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            std::net::IpAddr::V6(v6) => v6.octets(),
        }
    }

    /// True if a packet meets a condition: another way to say it than by tables.
    fn meets(conditions: &Conditions, packet: &FiveTuple) -> bool {
        let one =
            |address: [u8; 16]| std::net::Ipv6Addr::from(address).to_string().parse::<Prefix>().unwrap();
        let port = |port: u16| port.to_string().parse::<Ports>().unwrap();
        let exact = Conditions {
            src_ip: Some(one(packet.from)),
            dst_ip: Some(one(packet.to)),
            src_port: Some(port(packet.from_port)),
            dst_port: Some(port(packet.to_port)),
            ip_proto: Some(packet.protocol.to_string().parse().unwrap()),
        };
        conditions.and(exact).is_some()
    }

    proptest! {
        /// The first filter in order decides, and a filter is called hidden only if it never does.
        #[test]
        fn the_first_match_decides(filters in prop::collection::vec(fields(), 0..40)) {
            let mut classifier = Classifier::default();
            let seen: Vec<bool> =
                filters.iter().zip(0..).map(|(fields, class)| classifier.push(*fields, class)).collect();
            let mut used = vec![false; filters.len()];
            for (class, dscp, from, to) in
                (0..81u16).map(|n| (n % 3, (n / 3 % 3) as u8 * 8, n / 9 % 3, n / 27))
            {
                let header = Header::new(Dscp::new(dscp).unwrap(), false);
                let meta = Meta { class, header, from, to, ..Meta::default() };
                let matches = |fields: &Fields| {
                    fields.class.is_none_or(|wanted| wanted == class)
                        && fields.dscp.is_none_or(|wanted| wanted == dscp)
                        && fields.from.is_none_or(|wanted| wanted == from)
                        && fields.to.is_none_or(|wanted| wanted == to)
                };
                let expected = filters.iter().position(matches);
                prop_assert_eq!(classifier.class(&meta, None), expected.map(|at| at as u32));
                if let Some(at) = expected {
                    used[at] = true;
                }
            }
            for (seen, used) in seen.iter().zip(used) {
                prop_assert!(*seen || !used, "a filter that is called hidden decides");
            }
        }
    }

    proptest! {
        /// So it is with addresses, prefixes and ranges of ports, next to filters that ask for other fields.
        #[test]
        fn the_first_match_decides_with_headers(
            filters in prop::collection::vec((prop::option::of(0..2u16), conditions()), 1..20),
            packets in prop::collection::vec((0..2u16, packets()), 1..40),
        ) {
            let mut classifier = Classifier::default();
            let fields = |(class, conditions): &(Option<u16>, Conditions)| {
                Fields { class: *class, conditions: *conditions, ..Fields::default() }
            };
            let seen: Vec<bool> =
                filters.iter().zip(0..).map(|(filter, at)| classifier.push(fields(filter), at)).collect();
            for (class, packet) in &packets {
                let meta = Meta { class: *class, ..Meta::default() };
                let matches = |(wanted, conditions): &(Option<u16>, Conditions)| {
                    wanted.is_none_or(|wanted| wanted == *class) && meets(conditions, packet)
                };
                let expected = filters.iter().position(matches);
                prop_assert_eq!(classifier.class(&meta, Some(packet)), expected.map(|at| at as u32));
                if let Some(at) = expected {
                    prop_assert!(seen[at], "a filter that is called hidden decides");
                }
            }
        }
    }

    /// Without addresses no filter for them matches, and names of hosts and addresses exclude each other.
    #[test]
    fn addresses_exist_on_real_frames_only() {
        let filter = Filter { dst_ip: Some("10.0.[0-3].0/24".into()), ..Filter::default() };
        let third = ranges::Copy { at: 2, count: 4, each: 4 };
        let fields = filter.resolved(third, &Hosts::hashed()).unwrap();
        let mut classifier = Classifier::default();
        assert!(classifier.push(fields, 7));
        let to = |address| FiveTuple {
            from: octets("10.9.9.9"),
            to: octets(address),
            from_port: 0,
            to_port: 0,
            protocol: 1,
        };
        let class = |headers: Option<&FiveTuple>| classifier.class(&Meta::default(), headers);
        assert_eq!(class(Some(&to("10.0.2.77"))), Some(7));
        assert_eq!((class(Some(&to("10.0.3.77"))), class(None)), (None, None));
        let simulated = Hosts::new([("nas".into(), 3)]);
        assert!(filter.resolved(third, &simulated).unwrap_err().contains("filter by from, to"));
    }

    #[test]
    fn two_filters_are_joined() {
        let (class, to) =
            (Fields { class: Some(1), ..Fields::default() }, Fields { to: Some(7), ..Fields::default() });
        assert_eq!(class.and(to), Some(Fields { class: Some(1), to: Some(7), ..Fields::default() }));
        assert_eq!(class.and(Fields { class: Some(2), ..to }), None);
    }
}
