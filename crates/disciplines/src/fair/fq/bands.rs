//! The bands of `fq`: each has new and old flows, and the bands share the link by turns in bytes.

use giveway_qdisc::{List, Meta, Place, Slots};

use super::flows::{Flow, Standing};
use crate::common::priority;

/// The minimum weight: with a smaller one a packet needs so many turns that a call takes long.
pub(super) const MIN_WEIGHT: u32 = 1 << 14;

/// The bands, the most urgent first.
#[derive(Debug)]
pub(super) struct Bands {
    bands: [Band; priority::BANDS],
    /// Band of each DSCP.
    of_dscp: priority::Bands,
    /// The band whose turn it is.
    current: usize,
}

#[derive(Debug)]
struct Band {
    new: List,
    old: List,
    /// Bytes that it may still send in this turn.
    credit: i64,
    weight: i64,
    /// Packets of this band, in flows of any band.
    packets: u64,
}

impl Bands {
    pub fn new(of_dscp: priority::Bands, weights: &[u32]) -> Bands {
        let band = |at: usize| {
            let weight = i64::from(weights[at]);
            Band { new: List::default(), old: List::default(), credit: weight, weight, packets: 0 }
        };
        Bands { bands: std::array::from_fn(band), of_dscp, current: 0 }
    }

    /// The band of a packet.
    #[inline]
    pub fn of(&self, meta: &Meta) -> u8 {
        self.of_dscp[usize::from(meta.header.dscp().number())]
    }

    /// Number of packets of a band.
    #[inline]
    pub fn packets(&self, band: u8) -> u64 {
        self.bands[usize::from(band)].packets
    }

    /// Counts an arrival.
    #[inline]
    pub fn on_arrival(&mut self, band: u8) {
        self.bands[usize::from(band)].packets += 1;
    }

    /// Counts a departure in the turn of a band, of a packet that another band may have counted.
    #[inline]
    pub fn on_departure(&mut self, band: u8, counted: u8, bytes: u32) {
        self.bands[usize::from(band)].credit -= i64::from(bytes);
        self.bands[usize::from(counted)].packets -= 1;
    }

    /// The flow with the next turn, and true if it is a new one; `None` if no band has flows. A band keeps
    /// its turn until its credit is spent or it has no flow.
    #[inline]
    pub fn turn(&mut self, flows: &Slots<Flow>) -> Option<(Place, bool)> {
        if self.bands.iter().all(|band| band.new.is_empty() && band.old.is_empty()) {
            return None;
        }
        loop {
            let band = &mut self.bands[self.current];
            if band.credit > 0 {
                if let Some(place) = flows.front_place(&band.new) {
                    return Some((place, true));
                }
                if let Some(place) = flows.front_place(&band.old) {
                    return Some((place, false));
                }
            }
            band.credit = (band.credit + band.weight).min(band.weight);
            self.current = (self.current + 1) % priority::BANDS;
        }
    }

    /// A flow that is in no list joins the new flows.
    #[inline]
    pub fn begin(&mut self, place: Place, flows: &mut Slots<Flow>) {
        let flow = &mut flows[place];
        flow.standing = Standing::New;
        let band = usize::from(flow.band);
        flows.attach(&mut self.bands[band].new, place);
    }

    /// A flow that is in no list joins the old flows.
    #[inline]
    pub fn come_back(&mut self, place: Place, flows: &mut Slots<Flow>) {
        let flow = &mut flows[place];
        flow.standing = Standing::Old;
        let band = usize::from(flow.band);
        flows.attach(&mut self.bands[band].old, place);
    }

    /// The flow with the turn moves to the end of the old flows.
    #[inline]
    pub fn end_turn(&mut self, place: Place, flows: &mut Slots<Flow>) {
        self.leave(place, flows);
        self.come_back(place, flows);
    }

    /// The flow with the turn leaves its list.
    #[inline]
    pub fn leave(&mut self, place: Place, flows: &mut Slots<Flow>) {
        let Flow { band, standing, .. } = flows[place];
        let band = &mut self.bands[usize::from(band)];
        flows.detach(if standing == Standing::New { &mut band.new } else { &mut band.old }, place);
    }

    pub fn clear(&mut self) {
        for band in &mut self.bands {
            (band.new, band.old) = (List::default(), List::default());
            (band.credit, band.packets) = (band.weight, 0);
        }
        self.current = 0;
    }
}
