//! Filters, which choose the class of a packet: the first filter that a packet matches decides.
//!
//! Filters with the same fields share a table, so that the look-up takes as many steps as there are
//! combinations of fields, at most 15, however many classes there are (tuple space search, Srinivasan, Suri
//! and Varghese 1999).

use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::{Dscp, FlowKey, Hosts, Meta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        };
        if fields == Fields::default() {
            return Err(
                "a filter without fields matches every packet: write at least one, such as class 1".into()
            );
        }
        Ok(fields)
    }
}

/// A filter with the numbers of its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    class: Option<u16>,
    dscp: Option<u8>,
    from: Option<u16>,
    to: Option<u16>,
}

impl Fields {
    /// Both filters at once; `None` if no packet can match both.
    pub fn and(self, other: Fields) -> Option<Fields> {
        fn both<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
            match (one, other) {
                (Some(one), Some(other)) => (one == other).then_some(Some(one)),
                (one, other) => Some(one.or(other)),
            }
        }
        Some(Fields {
            class: both(self.class, other.class)?,
            dscp: both(self.dscp, other.dscp)?,
            from: both(self.from, other.from)?,
            to: both(self.to, other.to)?,
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
        let at = self.tables.iter().position(|table| table.mask == mask).unwrap_or_else(|| {
            self.tables.push(Table { mask, rules: FlowMap::default() });
            self.tables.len() - 1
        });
        self.tables[at].rules.entry(spread(wanted), || rule);
        true
    }

    /// The class of a packet; `None` if no filter matches.
    #[inline]
    pub fn class(&self, meta: &Meta) -> Option<u32> {
        let key = key(meta.class, meta.header.dscp().number(), meta.from, meta.to);
        let mut first: Option<(u32, u32)> = None;
        for table in &self.tables {
            if let Some(rule) = table.rules.get(spread(key & table.mask))
                && first.is_none_or(|(earlier, _)| rule.0 < earlier)
            {
                first = Some(*rule);
            }
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
        })
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
                prop_assert_eq!(classifier.class(&meta), expected.map(|at| at as u32));
                if let Some(at) = expected {
                    used[at] = true;
                }
            }
            for (seen, used) in seen.iter().zip(used) {
                prop_assert!(*seen || !used, "a filter that is called hidden decides");
            }
        }
    }

    #[test]
    fn two_filters_are_joined() {
        let (class, to) =
            (Fields { class: Some(1), ..Fields::default() }, Fields { to: Some(7), ..Fields::default() });
        assert_eq!(class.and(to), Some(Fields { class: Some(1), to: Some(7), ..Fields::default() }));
        assert_eq!(class.and(Fields { class: Some(2), ..to }), None);
    }
}
