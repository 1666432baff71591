//! Weighted round robin: bands take turns, and in its turn a band sends as many packets as its weight says.
//!
//! # Principles
//! - A turn is counted in packets, not in bytes. So shares of the link follow the weights only if all packets
//!   have one length, as cells have; of two bands with equal weights, one with packets ten times as long gets
//!   ten times as much. `ets` counts bytes.
//! - The class of a packet is its band, up to the last one; filters by DSCP, host or class go before that.
//! - Each band is a child: any discipline, a fifo by default. Each child has its own limit.
//!
//! # Deviations
//! - A band without a packet to send loses the rest of its turn, as in the paper.
//! - The paper interleaves the cells of a round by a frame table; here a turn is a burst.
//! - A band whose child holds its packets back loses its turn, too.
//!
//! # Cost
//! - At most one look at each band for a packet, and the cost of the children.
//!
//! # References
//! - Katevenis, Sidiropoulos and Courcoubetis, "Weighted Round-Robin Cell Multiplexing in a General-Purpose
//!   ATM Switch Chip", 1991.

use giveway_qdisc::{Cx, Guarantee, Invalid, LinkContext, Next, Packet, Properties, Qdisc, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::classes::{BandFilter, Bands, Children};
use crate::common::taking::same;
use crate::{Discipline, Spec};

/// Parameters of `wrr`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The packets of a turn, of band 0, 1, 2 and so on. Each is a band.
    pub weights: Vec<u32>,
    /// The discipline of band 0, 1, 2 and so on. Bands beyond the list are plain fifos.
    pub children: Vec<Spec>,
    /// The filters. The first that a packet matches decides about its band; without one it is its class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<BandFilter>,
}

impl Default for Config {
    fn default() -> Config {
        Config { weights: vec![1, 1, 1], children: Vec::new(), filters: Vec::new() }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "weighted round robin between bands, in packets";
    type Qdisc<P: 'static> = Wrr<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Wrr<P>, Invalid> {
        if self.weights.contains(&0) {
            return Err(Invalid::new("weights", "a band with the weight 0 never sends: write at least 1"));
        }
        let bands = self.children().build(context)?;
        Ok(Wrr { bands, weights: self.weights.clone(), turn: 0, left: self.weights[0] })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        // Its shares are of packets, whose lengths the others choose.
        self.children().properties(context).with(Guarantee::Nothing)
    }

    children_answer!();

    fn variants() -> Vec<Config> {
        [
            "wrr weights [3 1] children [(fq_codel limit 20p)]",
            "wrr weights [1 2 1 5] children [(tbf rate 2mbit burst 2kb) (drr limit 9p)] filters [(band 3 to 2)]",
        ]
        .map(|text| match text.parse() {
            Ok(Spec::wrr(config)) => config,
            other => panic!("the constant is a spec: {other:?}"),
        })
        .into()
    }
}

impl Config {
    fn children(&self) -> Children<'_> {
        let bands = u16::try_from(self.weights.len()).unwrap_or(u16::MAX);
        Children { bands, written: &self.children, filters: &self.filters }
    }
}

/// Weighted round robin.
pub struct Wrr<P> {
    bands: Bands<P>,
    weights: Vec<u32>,
    /// The band whose turn it is.
    turn: u32,
    /// Packets that are left of its turn.
    left: u32,
}

impl<P: 'static> Qdisc<P> for Wrr<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        self.bands.enqueue(self.bands.of(&pkt.meta, cx), pkt, cx);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let mut earliest: Option<Time> = None;
        let before = (self.turn, self.left);
        // The band whose turn it is may be looked at twice: with the rest of its turn, and with the next one.
        for _ in 0..=self.weights.len() {
            if self.left > 0 {
                match self.bands.dequeue(self.turn, cx) {
                    Next::Packet(pkt) => {
                        self.left -= 1;
                        return Next::Packet(pkt);
                    }
                    Next::At(at) => earliest = Some(earliest.map_or(at, |other| other.min(at))),
                    Next::Empty => {}
                }
            }
            self.turn = (self.turn + 1) % self.weights.len() as u32;
            self.left = self.weights[self.turn as usize];
        }
        // Nobody had a turn.
        (self.turn, self.left) = before;
        earliest.map_or(Next::Empty, Next::At)
    }

    bands_answer!();

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.bands.reset(cx);
        (self.turn, self.left) = (0, self.weights[0]);
    }

    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        if let Some(old) = same::<P, Wrr<P>>(old) {
            self.bands.take_over(&mut old.bands, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::events::build_error;
    use crate::testing::trace::trace;

    #[test]
    fn a_turn_has_as_many_packets_as_the_weight() {
        assert_eq!(
            trace(
                "wrr weights [2 1]",
                1000,
                "0 A1 1000, A2 1000, A3 1000, A4 1000, A5 1000, B1 100, B2 100, B3 100"
            ),
            "A1[0-1] A2[1-2] B1[2-2.1] A3[2.1-3.1] A4[3.1-4.1] B2[4.1-4.2] A5[4.2-5.2] B3[5.2-5.3] |",
            "the lengths do not matter"
        );
    }

    #[test]
    fn a_band_without_packets_loses_its_turn() {
        assert_eq!(
            trace("wrr weights [3 1]", 1000, "0 A1 1000, B1 1000, B2 1000; 1.5 A2 1000, A3 1000"),
            "A1[0-1] B1[1-2] A2[2-3] A3[3-4] B2[4-5] |"
        );
    }

    #[test]
    fn mistakes_are_refused() {
        let said = ["wrr weights []", "wrr weights [1 0]", "wrr filters [(band 3 class 1)]"]
            .map(|text| build_error(text).to_string());
        assert_eq!(
            said,
            [
                "bands: 0 is not between 1 and 16",
                "weights: a band with the weight 0 never sends: write at least 1",
                "filters: there is no band 3: the last one is 2"
            ]
        );
    }
}
