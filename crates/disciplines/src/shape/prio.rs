//! Strict priority: bands in order of urgency, each with its own discipline. A band is served when all bands
//! above it are empty.
//!
//! # Principles
//! - The class of a packet is its band: 0 is the most urgent. Classes beyond the last band go to the last.
//!   Filters by DSCP, host or class go before that.
//! - A band is served whenever it has a packet to send, so a busy band starves all below it. That is its
//!   purpose. Limit the load of the upper bands, with a shaper if necessary.
//! - Each band is a child: any discipline, a fifo by default. Each child has its own limit; there is no
//!   common limit.
//! - While a child that shapes may not send yet, the bands below are served.
//!
//! # Deviations
//! - Linux `prio` maps the packet's priority to a band by a `priomap` of 16 entries. Here the backend sets
//!   the class, so there is no map.
//! - Linux bounds the bands to 2 to 16; one band is allowed here, and is its child.
//!
//! # Cost
//! - A check of each band above the one that is served, and the cost of the children.
//!
//! # References
//! - Linux: tc-prio(8), whose three bands are the default.

use giveway_qdisc::{Cx, Invalid, LinkContext, Meta, Next, Packet, Properties, Qdisc, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::classes::{BandFilter, Bands, Children, ClassService};
use crate::common::taking::same;
use crate::{Discipline, Spec};

/// Parameters of `prio`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of bands, 1 to 16.
    pub bands: u16,
    /// The discipline of band 0, 1, 2 and so on. Bands beyond the list are plain fifos.
    pub children: Vec<Spec>,
    /// The filters. The first that a packet matches decides about its band; without one it is its class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<BandFilter>,
}

impl Default for Config {
    fn default() -> Config {
        Config { bands: 3, children: Vec::new(), filters: Vec::new() }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "strict priority between bands, each with its own discipline";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Prio<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Prio<P>, Invalid> {
        Ok(Prio { bands: self.children().build(context)? })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        self.children().properties(context)
    }

    children_answer!();

    fn variants() -> Vec<Config> {
        let read = |text: &str| text.parse().expect("the constant is a spec");
        let filters = vec![BandFilter { band: 1, to: Some("3".to_owned()), ..BandFilter::default() }];
        vec![
            Config { bands: 1, children: vec![read("efd limit 5p threshold 1p")], filters: Vec::new() },
            Config {
                bands: 2,
                children: vec![read("tbf rate 3mbit burst 3kb"), read("drr limit 6000b")],
                filters,
            },
            Config {
                bands: 16,
                children: vec![read("fifo limit 2p"), read("prio bands 2 children [(sfq)]")],
                filters: Vec::new(),
            },
        ]
    }

    fn class_of(&self, like: &Meta, context: &LinkContext) -> Option<u32> {
        self.children().band_of(like, context)
    }

    /// Band 0 has the link. Nothing limits it, so that the others have no guarantee.
    fn class_service(&self, band: u32, context: &LinkContext) -> Result<ClassService, String> {
        let path = self.children().path_in_order(band)?;
        match band {
            0 => Ok(ClassService::first(path, context)),
            _ => Err(format!("{path} waits for the bands before it, and nothing limits band 0")),
        }
    }
}

impl Config {
    fn children(&self) -> Children<'_> {
        Children { bands: self.bands, written: &self.children, filters: &self.filters }
    }
}

/// Strict priority between bands, each with its own discipline.
pub struct Prio<P> {
    /// Bands, the most urgent first.
    bands: Bands<P>,
}

impl<P: 'static> Qdisc<P> for Prio<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.bands.enqueue(self.bands.of(&pkt.meta, cx), pkt, cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let mut earliest: Option<Time> = None;
        for band in self.bands.numbers() {
            match self.bands.dequeue(band, cx) {
                Next::Packet(pkt) => return Next::Packet(pkt),
                Next::At(at) => earliest = Some(earliest.map_or(at, |other| other.min(at))),
                Next::Empty => {}
            }
        }
        earliest.map_or(Next::Empty, Next::At)
    }

    bands_answer!();

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.bands.reset(cx);
    }

    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        if let Some(old) = same::<P, Prio<P>>(old) {
            self.bands.take_over(&mut old.bands, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::events::build_error;
    use crate::testing::trace::trace;

    // The class is the letter's position in the alphabet, so A goes before B, and C, D and all others share
    // band 2.
    const ARRIVALS: &str =
        "0 D1 1000; 0.1 C1 1000; 0.2 B1 1000; 0.3 A1 1000; 1.5 D2 1000; 2.5 A2 1000; 3.5 C2 1000";

    #[test]
    fn the_most_urgent_band_is_served_first() {
        assert_eq!(
            trace("prio", 1000, ARRIVALS),
            "D1[0-1] A1[1-2] B1[2-3] A2[3-4] C1[4-5] D2[5-6] C2[6-7] |"
        );
    }

    #[test]
    fn bands_are_disciplines() {
        assert_eq!(
            trace("prio bands 2 children [(fifo) (fifo limit 1p drop head)]", 1000, ARRIVALS),
            "D1[0-1] A1[1-2] D2[2-3] A2[3-4] C2[4-5] | C1@0.2 B1@1.5"
        );
    }

    #[test]
    fn a_shaped_band_lets_others_pass() {
        // A's bucket holds one packet and needs 4 ms for the next.
        assert_eq!(
            trace(
                "prio bands 2 children [(tbf rate 2mbit burst 1000b)]",
                1000,
                "0 A1 1000; 0.1 A2 1000; 0.2 B1 1000; 1.5 B2 1000"
            ),
            "A1[0-1] B1[1-2] B2[2-3] A2[4-5] |"
        );
    }

    #[test]
    fn children_are_written_and_read_again() {
        for text in [
            "prio children [(fifo limit 10p) (efd)]",
            "prio bands 2 children [(prio bands 2 children [(sfq flows 3) (drr quanta [100b 1kb])]) (fifo)]",
            "tbf rate 1mbit burst 2kb child (prio children [(tbf child (efd limit 7p))])",
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        let table = r#"{ "kind": "prio", "children": ["fifo limit 10p", { "kind": "efd" }] }"#;
        let spec: Spec = serde_json::from_str(table).unwrap();
        assert_eq!(spec.to_string(), "prio children [(fifo limit 10p) (efd)]");
        assert_eq!(serde_json::from_value::<Spec>(serde_json::to_value(&spec).unwrap()).unwrap(), spec);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        assert_eq!(build_error("prio bands 17").to_string(), "bands: 17 is not between 1 and 16");
        assert_eq!(
            build_error("prio bands 1 children [(fifo) (fifo)]").to_string(),
            "children: 2 disciplines for 1 bands: remove some"
        );
        assert_eq!(
            build_error("prio children [(fifo) (fifo limit 100b)]").to_string(),
            "children: band 1, fifo: limit: 100b cannot hold one packet of 1500 bytes: write at least \"1500b\""
        );
    }
}
