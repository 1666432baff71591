//! Bands: classes with numbers, each with its own discipline, for `prio`, `ets` and `wrr`.

use giveway_qdisc::blocks::Head;
use giveway_qdisc::{
    Backlog, Bytes, ClassState, Cx, Dscp, FiveTuple, FlowTable, Guarantee, Invalid, LinkContext, Meta, Next,
    Packet, Properties, Rate, Time,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::headers::{Ports, Protocol};
use super::{Classifier, Filter, Leaf, Leaves, leaves, ranges, service};
use crate::{Advice, Spec, fifo};

/// Largest number of bands, as in Linux.
pub const MAX: u16 = 16;

/// Names of the bands, and of the gauges of their backlogs.
const NAMES: [(&str, &str); MAX as usize] = [
    ("band0", "band0_packets"),
    ("band1", "band1_packets"),
    ("band2", "band2_packets"),
    ("band3", "band3_packets"),
    ("band4", "band4_packets"),
    ("band5", "band5_packets"),
    ("band6", "band6_packets"),
    ("band7", "band7_packets"),
    ("band8", "band8_packets"),
    ("band9", "band9_packets"),
    ("band10", "band10_packets"),
    ("band11", "band11_packets"),
    ("band12", "band12_packets"),
    ("band13", "band13_packets"),
    ("band14", "band14_packets"),
    ("band15", "band15_packets"),
];

/// A filter of a discipline whose classes are numbered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BandFilter {
    /// The band of the packets that match.
    pub band: u16,
    /// The class of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<u16>,
    /// The DSCP, as a name such as "EF" or a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// The source host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The destination host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The source address or prefix, such as 192.0.2.0/24, of real packets.
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

/// The disciplines of the bands as they are configured. Bands beyond the list are plain fifos.
#[derive(Clone, Copy, Debug)]
pub struct Children<'a> {
    /// Number of bands.
    pub bands: u16,
    /// The first of them.
    pub written: &'a [Spec],
    /// The filters, in order.
    pub filters: &'a [BandFilter],
}

impl<'a> Children<'a> {
    /// The bands of a link.
    ///
    /// # Errors
    /// The parameter that is not valid.
    pub fn build<P: 'static>(self, context: &LinkContext) -> Result<Bands<P>, Invalid> {
        if !(1..=MAX).contains(&self.bands) {
            return Err(Invalid::new("bands", format!("{} is not between 1 and {MAX}", self.bands)));
        }
        if self.written.len() > usize::from(self.bands) {
            let message = format!("{} disciplines for {} bands: remove some", self.written.len(), self.bands);
            return Err(Invalid::new("children", message));
        }
        let mut classifier = Classifier::default();
        for filter in self.filters {
            let wrong = |message| Invalid::new("filters", message);
            if filter.band >= self.bands {
                let message = format!("there is no band {}: the last one is {}", filter.band, self.bands - 1);
                return Err(wrong(message));
            }
            let BandFilter { band: _, class, dscp, from, to, src_ip, dst_ip, src_port, dst_port, ip_proto } =
                filter.clone();
            let fields = Filter { class, dscp, from, to, src_ip, dst_ip, src_port, dst_port, ip_proto }
                .resolved(ranges::Copy::ONLY, &context.hosts)
                .map_err(wrong)?;
            classifier.push(fields, u32::from(filter.band));
        }
        let band = |(spec, at): (Spec, usize)| {
            let alike = leaves::written(Some(&spec));
            let leaf = Leaf::build(Some(&spec), alike, (NAMES[at].0, usize::from(MAX)), None, context);
            leaf.map_err(|invalid| Invalid::new("children", format!("band {at}, {}: {invalid}", spec.name())))
        };
        let leaves = self.specs().zip(0..).map(band).collect::<Result<_, _>>()?;
        Ok(Bands { leaves: Leaves::new(leaves), classifier, last: u32::from(self.bands) - 1 })
    }

    /// The band of packets like this one.
    pub fn band_of(self, like: &Meta, context: &LinkContext) -> Option<u32> {
        // Only the filters count, so that any payload will do.
        self.build::<u64>(context).ok().map(|bands| bands.band(like, None))
    }

    /// The path of a band, whose packets leave in the order of their arrival.
    ///
    /// # Errors
    /// The reason why they do not, in a sentence.
    pub fn path_in_order(self, band: u32) -> Result<String, String> {
        let path =
            NAMES.get(band as usize).map(|(name, _)| (*name).to_owned()).ok_or("there is no such band")?;
        service::in_order(&path, self.written.get(band as usize))?;
        Ok(path)
    }

    /// The discipline of every band.
    pub fn specs(self) -> impl Iterator<Item = Spec> + use<'a> {
        let default = std::iter::repeat_with(|| Spec::fifo(fifo::Config::default()));
        self.written.iter().cloned().chain(default).take(usize::from(self.bands))
    }

    /// Properties of a discipline that always serves a band which has a packet to send.
    pub fn properties(self, context: &LinkContext) -> Properties {
        let each = || self.specs().map(|spec| spec.properties(context));
        Properties {
            // A flow whose packets have several classes is in several bands.
            keeps_flow_order: false,
            work_conserving: each().all(|properties| properties.work_conserving),
            limit: None,
            marks: each().any(|properties| properties.marks),
            guarantee: Guarantee::Classes,
        }
    }

    /// Number of next hops that the bands use.
    pub fn lookahead(self) -> usize {
        self.specs().map(|spec| spec.lookahead()).max().unwrap_or(0)
    }

    /// Warnings about the bands.
    pub fn warnings(self, context: &LinkContext) -> Vec<String> {
        self.specs().flat_map(|spec| spec.warnings(context)).collect()
    }

    /// Advice about the bands.
    pub fn advice(self, largest: Bytes, context: &LinkContext) -> Vec<Advice> {
        self.specs().flat_map(|spec| spec.advice(largest, context)).collect()
    }
}

/// The methods of [`Discipline`](crate::Discipline) that all bands answer together, for a `Config` with
/// `children()`.
macro_rules! children_answer {
    () => {
        fn lookahead(&self) -> usize {
            self.children().lookahead()
        }

        fn warnings(&self, context: &giveway_qdisc::LinkContext) -> Vec<String> {
            self.children().warnings(context)
        }

        fn advice(
            &self,
            largest: giveway_qdisc::Bytes,
            context: &giveway_qdisc::LinkContext,
        ) -> Vec<crate::Advice> {
            self.children().advice(largest, context)
        }
    };
}

/// The methods of [`Qdisc`](giveway_qdisc::Qdisc) that all bands answer together, for a discipline with a
/// field `bands`.
macro_rules! bands_answer {
    () => {
        fn backlog(&self) -> giveway_qdisc::Backlog {
            self.bands.backlog()
        }

        fn rate_changed(&mut self, rate: giveway_qdisc::Rate, now: giveway_qdisc::Time) {
            self.bands.rate_changed(rate, now);
        }

        fn as_any_mut(&mut self) -> Option<&mut dyn std::any::Any> {
            Some(self)
        }

        fn flow_table(&self) -> giveway_qdisc::FlowTable {
            self.bands.flow_table()
        }

        /// The backlog of each band.
        fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
            self.bands.gauges(visit);
        }

        fn classes(&self, visit: &mut dyn FnMut(giveway_qdisc::ClassState)) {
            self.bands.classes(visit);
        }
    };
}

/// The bands of a discipline.
pub struct Bands<P> {
    leaves: Leaves<P>,
    classifier: Classifier,
    /// Number of the last band.
    last: u32,
}

impl<P> Bands<P> {
    /// The band of a packet, from the first filter that it matches, otherwise its class, at most the
    /// last one.
    #[inline]
    pub fn of(&self, meta: &Meta, cx: &Cx<'_, P>) -> u32 {
        self.band(meta, cx.headers())
    }

    #[inline]
    fn band(&self, meta: &Meta, headers: Option<&FiveTuple>) -> u32 {
        let filtered = self.classifier.class(meta, headers);
        filtered.unwrap_or_else(|| u32::from(meta.class).min(self.last))
    }

    /// The numbers of all bands.
    pub fn numbers(&self) -> std::ops::RangeInclusive<u32> {
        0..=self.last
    }

    /// Enqueues a packet in a band. Returns false if the band is empty afterwards.
    #[inline]
    pub fn enqueue(&mut self, band: u32, pkt: Packet<P>, cx: &mut Cx<'_, P>) -> bool {
        self.leaves.enqueue(band, pkt, cx);
        !self.leaves.is_empty(band)
    }

    /// The packet that a band sends next.
    #[inline]
    pub fn head(&mut self, band: u32, cx: &mut Cx<'_, P>) -> Head {
        self.leaves.head(band, cx)
    }

    /// Dequeues a packet of a band.
    #[inline]
    pub fn dequeue(&mut self, band: u32, cx: &mut Cx<'_, P>) -> Next<P> {
        self.leaves.dequeue(band, cx)
    }

    /// True if a band has no backlog.
    #[inline]
    pub fn is_empty(&self, band: u32) -> bool {
        self.leaves.is_empty(band)
    }

    /// Takes over the bands of another configuration. Packets of a band that exists no more go where the
    /// filters send them now.
    pub fn take_over(&mut self, old: &mut Bands<P>, cx: &mut Cx<'_, P>) {
        for band in old.numbers() {
            if band <= self.last {
                self.leaves.take_over(band, &mut old.leaves, band, cx);
            } else {
                old.leaves.drain(band, cx, &mut |pkt, inner| {
                    self.enqueue(self.of(&pkt.meta, inner), pkt, inner);
                });
            }
        }
    }

    /// Packets and bytes in all bands.
    pub fn backlog(&self) -> Backlog {
        self.leaves.backlog()
    }

    /// Drops all packets.
    pub fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.leaves.reset(cx);
    }

    /// Informs the bands of the rate of the link.
    pub fn rate_changed(&mut self, rate: Rate, now: Time) {
        self.leaves.rate_changed(rate, now);
    }

    /// State per flow of all bands.
    pub fn flow_table(&self) -> FlowTable {
        self.leaves.flow_table()
    }

    /// The backlog of each band.
    pub fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        for (band, (_, gauge)) in self.numbers().zip(NAMES) {
            visit(gauge, self.leaves.get(band).state().backlog.packets as f64);
        }
    }

    /// The bands as classes, each before the classes of its own discipline.
    pub fn classes(&self, visit: &mut dyn FnMut(ClassState)) {
        for (band, (name, _)) in self.numbers().zip(NAMES) {
            let leaf = self.leaves.get(band);
            visit(ClassState { path: name.to_owned(), level: 1, ..leaf.state() });
            leaf.below(name, 1, visit);
        }
    }
}
