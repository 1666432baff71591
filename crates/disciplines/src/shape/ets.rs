//! Enhanced transmission selection: some bands in strict priority, and below them bands that share what is
//! left in proportion to their quanta.
//!
//! # Principles
//! - The first `strict` bands are served in order: a band waits while one above it has a packet to send.
//! - The other bands take turns by deficit round robin. In its turn a band may send its quantum, and what it
//!   saved because the next packet did not fit.
//! - The class of a packet is its band, up to the last one; filters by DSCP, host or class go before that.
//! - Each band is a child: any discipline, a fifo by default. Each child has its own limit.
//!
//! # Deviations
//! - Linux maps the packet's priority to a band by a `priomap`. Here the backend sets the class.
//! - A band whose child holds its packets back is passed over until they may leave. Linux serves no later
//!   band.
//! - Linux 7.2 raises a quantum below 256 bytes to 256. Here it is as written.
//! - The packet that waits for its turn has left the child: packets that arrive in the meantime come after
//!   it.
//!
//! # Cost
//! - A check of each strict band above the one that is served, one addition for each turn, and the cost of
//!   the children.
//!
//! # References
//! - Linux: tc-ets(8).
//! - IEEE 802.1Q-2018, section 8.6.8.4: the selection algorithm.
//! - Shreedhar and Varghese, "Efficient Fair Queueing Using Deficit Round Robin", 1995.

use std::collections::VecDeque;

use giveway_qdisc::blocks::Head;
use giveway_qdisc::{Bytes, Cx, Invalid, LinkContext, Meta, Next, Packet, Properties, Qdisc, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::classes::service::on_link;
use crate::common::classes::{BandFilter, Bands, Children, ClassService};
use crate::common::taking::same;
use crate::{Discipline, Spec};

/// Parameters of `ets`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of bands, 1 to 16. By default the strict ones and one for each quantum.
    pub bands: Option<u16>,
    /// Number of strict bands, which are the first ones.
    pub strict: u16,
    /// Bytes of a turn of each further band. By default the largest packet of the link.
    pub quanta: Vec<Bytes>,
    /// The discipline of band 0, 1, 2 and so on. Bands beyond the list are plain fifos.
    pub children: Vec<Spec>,
    /// The filters. The first that a packet matches decides about its band; without one it is its class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<BandFilter>,
}

impl Discipline for Config {
    const SUMMARY: &'static str = "enhanced transmission selection: strict bands, then shares by quanta";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = Ets<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<Ets<P>, Invalid> {
        let bands = self.children().bands;
        if usize::from(self.strict) + self.quanta.len() > usize::from(bands) {
            let message = format!(
                "{} strict bands and {} quanta are more than {bands} bands",
                self.strict,
                self.quanta.len()
            );
            return Err(Invalid::new("bands", message));
        }
        if self.quanta.iter().any(|quantum| quantum.0 == 0) {
            return Err(Invalid::new("quanta", "a quantum of 0 bytes never sends: write at least 1b"));
        }
        let shared = usize::from(bands - self.strict);
        Ok(Ets {
            bands: self.children().build(context)?,
            strict: u32::from(self.strict),
            quanta: self.shared(context).collect(),
            saved: vec![0; shared],
            turns: VecDeque::with_capacity(shared),
            turning: 0,
            waiting: vec![None; shared],
        })
    }

    fn properties(&self, context: &LinkContext) -> Properties {
        self.children().properties(context)
    }

    children_answer!();

    fn variants() -> Vec<Config> {
        [
            "ets strict 1 quanta [3000b 1500b] children [(fq_codel limit 20p)]",
            "ets bands 4 children [(tbf rate 2mbit burst 2kb) (drr limit 9p)] filters [(band 3 to 2)]",
            "ets bands 2 strict 2",
            "ets quanta [100b 40b 7000b]",
        ]
        .map(|text| match text.parse() {
            Ok(Spec::ets(config)) => config,
            other => panic!("the constant is a spec: {other:?}"),
        })
        .into()
    }

    fn class_of(&self, like: &Meta, context: &LinkContext) -> Option<u32> {
        self.children().band_of(like, context)
    }

    /// The first strict band has the link, and the others have no guarantee. Without strict bands each has
    /// its share, after the latency of deficit round robin (Lenzini, Mingozzi and Stea 2004; and a packet for
    /// a band that leaves the turns when it is empty).
    fn class_service(&self, band: u32, context: &LinkContext) -> Result<ClassService, String> {
        let path = self.children().path_in_order(band)?;
        match (band, self.strict) {
            (0, 1..) => return Ok(ClassService::first(path, context)),
            (_, 1..) => return Err(format!("{path} waits for strict bands, and nothing limits band 0")),
            _ => {}
        }
        let quanta: Vec<u64> = self.shared(context).collect();
        let (frame, own, packet) = (quanta.iter().sum::<u64>(), quanta[band as usize], context.mtu.0);
        let share = u128::from(context.rate.as_bit()) * u128::from(own) / u128::from(frame);
        // (F - q)(1 + L/q) + L for each band, and one more.
        let waits = u128::from(frame - own) * u128::from(own + packet) / u128::from(own)
            + u128::from(packet) * (quanta.len() as u128 + 1);
        let latency = on_link(Bytes(u64::try_from(waits).unwrap_or(u64::MAX)), context);
        Ok(ClassService::line(path, Rate::bit(u64::try_from(share).unwrap_or(u64::MAX)), latency))
    }
}

impl Config {
    /// Quanta in bytes of the bands that take turns.
    fn shared(&self, context: &LinkContext) -> impl Iterator<Item = u64> {
        let given = self.quanta.iter().copied().chain(std::iter::repeat(context.mtu));
        given.map(|quantum| quantum.0).take(usize::from(self.children().bands - self.strict))
    }

    fn children(&self) -> Children<'_> {
        let written = u16::try_from(self.quanta.len()).unwrap_or(u16::MAX).saturating_add(self.strict);
        // Without any number there is one band.
        let bands = self.bands.unwrap_or(written.max(1));
        Children { bands, written: &self.children, filters: &self.filters }
    }
}

/// Enhanced transmission selection.
pub struct Ets<P> {
    bands: Bands<P>,
    /// Number of strict bands.
    strict: u32,
    /// Bytes of a turn, by the number of the band behind the strict ones.
    quanta: Vec<u64>,
    /// Bytes that a band may send in its turn.
    saved: Vec<u64>,
    /// Bands that take turns, the next one first.
    turns: VecDeque<u32>,
    /// Bands that take turns, a bit each.
    turning: u32,
    /// Time until which a band's child holds its packets back.
    waiting: Vec<Option<Time>>,
}

impl<P: 'static> Qdisc<P> for Ets<P> {
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let band = self.bands.of(&pkt.meta, cx);
        let queued = self.bands.enqueue(band, pkt, cx);
        if band < self.strict {
            return;
        }
        let at = (band - self.strict) as usize;
        // An arrival may change the time at which a child releases a packet.
        let was_waiting = self.waiting[at].take().is_some();
        if queued && (was_waiting || self.turning >> band & 1 == 0) {
            self.takes_turns(band);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, P>) -> Next<P> {
        let mut earliest: Option<Time> = None;
        let mut later = |at: Time| earliest = Some(earliest.map_or(at, |other| other.min(at)));
        for band in 0..self.strict {
            match self.bands.dequeue(band, cx) {
                Next::Packet(pkt) => return Next::Packet(pkt),
                Next::At(at) => later(at),
                Next::Empty => {}
            }
        }
        for at in 0..self.waiting.len() {
            if self.waiting[at].is_some_and(|until| until <= cx.now()) {
                self.waiting[at] = None;
                self.takes_turns(self.strict + at as u32);
            }
        }
        while let Some(band) = self.turns.front().copied() {
            let at = (band - self.strict) as usize;
            match self.bands.head(band, cx) {
                Head::Bytes(bytes) if u64::from(bytes) <= self.saved[at] => {
                    self.saved[at] -= u64::from(bytes);
                    let next = self.bands.dequeue(band, cx);
                    if self.bands.is_empty(band) {
                        self.leaves_turns(band);
                    }
                    return next;
                }
                Head::Bytes(bytes) => self.next_turn(at, bytes),
                Head::At(until) => {
                    self.leaves_turns(band);
                    self.waiting[at] = Some(until);
                }
                Head::Empty => self.leaves_turns(band),
            }
        }
        self.waiting.iter().copied().flatten().for_each(later);
        earliest.map_or(Next::Empty, Next::At)
    }

    bands_answer!();

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.bands.reset(cx);
        self.saved.fill(0);
        self.turns.clear();
        self.turning = 0;
        self.waiting.fill(None);
    }

    fn take_over(&mut self, old: &mut dyn Qdisc<P>, cx: &mut Cx<'_, P>) {
        let Some(old) = same::<P, Ets<P>>(old) else { return };
        self.bands.take_over(&mut old.bands, cx);
        for band in self.bands.numbers() {
            if band >= self.strict && !self.bands.is_empty(band) {
                self.takes_turns(band);
            }
        }
    }
}

impl<P> Ets<P> {
    /// A band joins the turns, as the last one, with a fresh turn.
    fn takes_turns(&mut self, band: u32) {
        self.turns.push_back(band);
        self.turning |= 1 << band;
        let at = (band - self.strict) as usize;
        self.saved[at] = self.quanta[at];
    }

    /// The first band has no more turns.
    fn leaves_turns(&mut self, band: u32) {
        self.turns.pop_front();
        self.turning &= !(1 << band);
    }

    /// The turn of the first band ends, because its next packet does not fit. If it is the only one, it gets
    /// all the turns that the packet needs at once.
    fn next_turn(&mut self, at: usize, bytes: u32) {
        let rounds = match self.turns.len() {
            1 => (u64::from(bytes) - self.saved[at]).div_ceil(self.quanta[at]),
            _ => 1,
        };
        self.saved[at] += self.quanta[at] * rounds;
        self.turns.rotate_left(1);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::events::build_error;
    use crate::testing::trace::trace;

    /// All packets arrive before the link starts. The class is the letter's position in the alphabet.
    const ARRIVALS: &str =
        "0 C1 1000, C2 1000, C3 1000, C4 1000, B1 1000, B2 1000, B3 1000, B4 1000, A1 1000";

    #[test]
    fn strict_bands_go_first_and_others_share() {
        assert_eq!(
            trace("ets strict 1 quanta [2000b 1000b]", 1000, ARRIVALS),
            "A1[0-1] C1[1-2] B1[2-3] B2[3-4] C2[4-5] B3[5-6] B4[6-7] C3[7-8] C4[8-9] |"
        );
    }

    #[test]
    fn a_band_saves_what_its_packet_did_not_need() {
        // B needs 1,000 bytes, so it sends in every second of its turns of 500.
        assert_eq!(
            trace("ets strict 1 quanta [500b 1000b]", 1000, ARRIVALS),
            "A1[0-1] C1[1-2] C2[2-3] B1[3-4] C3[4-5] C4[5-6] B2[6-7] B3[7-8] B4[8-9] |"
        );
    }

    #[test]
    fn a_band_that_holds_its_packets_back_lets_others_pass() {
        assert_eq!(
            trace(
                "ets quanta [1000b 1000b] children [(tbf rate 2mbit burst 1000b)]",
                1000,
                "0 A1 1000, A2 1000, B1 1000, B2 1000; 5 B3 1000"
            ),
            "A1[0-1] B1[1-2] B2[2-3] A2[4-5] B3[5-6] |"
        );
    }

    #[test]
    fn mistakes_are_refused() {
        let said = [
            "ets bands 2 strict 1 quanta [1000b 2000b]",
            "ets quanta [0b]",
            "ets bands 17",
            "ets bands 2 filters [(band 2 dscp EF)]",
            "ets bands 2 filters [(band 1)]",
        ]
        .map(|text| build_error(text).to_string());
        assert_eq!(
            said,
            [
                "bands: 1 strict bands and 2 quanta are more than 2 bands",
                "quanta: a quantum of 0 bytes never sends: write at least 1b",
                "bands: 17 is not between 1 and 16",
                "filters: there is no band 2: the last one is 1",
                "filters: a filter without fields matches every packet: write at least one, such as class 1",
            ]
        );
    }
}
