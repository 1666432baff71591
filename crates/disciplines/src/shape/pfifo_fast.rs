//! Three bands by DSCP, each first in, first out: the default queue of a Linux interface.
//!
//! # Principles
//! - The DSCP of a packet gives its priority in Linux, and the priority its band, by the two tables of
//!   tc-prio(8). The tables read the type of service of RFC 1349, which preceded the DSCP:
//!   - band 0: a DSCP whose lower three bits are 4 or 5, such as VA and AF42;
//!   - band 2: lower three bits 2 or 3, such as AF11 to AF41;
//!   - band 1: all others, such as best effort, EF and CS1 to CS7.
//! - A band is served when those before it are empty, so a busy band starves the ones after it.
//! - Each band holds `txqueuelen` packets; more are refused.
//!
//! # Deviations
//! - An application cannot set the priority itself (`SO_PRIORITY`), and the traffic class of a scenario has
//!   no effect: `prio` selects bands by it. So no packet has a priority above 6.
//! - `txqueuelen` is a property of the interface in Linux; tc accepts no parameters at all.
//!   The bands and the `priomap` that `tc qdisc show` prints are read, and are always the same.
//!
//! # Cost
//! - One table look-up and one queue operation per packet; the memory of the packets themselves.
//!
//! # References
//! - Linux: tc-pfifo_fast(8), and tc-prio(8) for the tables.

use giveway_qdisc::blocks::Queue;
use giveway_qdisc::{
    Backlog, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Packets, Properties, Qdisc,
    check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::priority::{self, BANDS, Bands, PRIOMAP};
use crate::{Discipline, InLinux};

/// Parameters of `pfifo_fast`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-idle" = ["bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"]))]
pub struct Config {
    /// Capacity of each band, in packets.
    pub txqueuelen: Packets,
}

impl Default for Config {
    fn default() -> Config {
        Config { txqueuelen: Packets(1000) }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "three bands by DSCP in strict priority: Linux's default for an interface";
    const IN_MAINLINE: bool = true;
    type Qdisc<P: 'static> = PfifoFast<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<PfifoFast<P>, Invalid> {
        let limit = Limit::Packets(self.txqueuelen.0);
        check_limit("txqueuelen", limit, context.mtu)?;
        Ok(PfifoFast {
            limit,
            band_of: priority::bands(&PRIOMAP).expect("the default is a map"),
            bands: std::array::from_fn(|_| Queue::new(limit)),
        })
    }

    fn in_linux(&self) -> Option<InLinux> {
        Some(InLinux::named("pfifo_fast"))
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(Limit::Packets(self.txqueuelen.0 * BANDS as u64))
    }

    fn variants() -> Vec<Config> {
        vec![Config { txqueuelen: Packets(3) }]
    }
}

/// Names of the backlog of each band, as gauges.
const GAUGES: [&str; BANDS] = ["band0_packets", "band1_packets", "band2_packets"];

/// The discipline `pfifo_fast`: a queue for each band.
pub struct PfifoFast<P> {
    /// Capacity of each band.
    limit: Limit,
    /// Band of each DSCP.
    band_of: Bands,
    /// The bands, the most urgent first.
    bands: [Queue<P>; BANDS],
}

impl<P> Qdisc<P> for PfifoFast<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        let dscp = pkt.meta.header.dscp();
        let band = &mut self.bands[usize::from(self.band_of[usize::from(dscp.number())])];
        if !self.limit.admits(band.backlog(), pkt.bytes()) {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        band.push(pkt);
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        self.bands.iter_mut().find_map(Queue::pop).map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.bands.iter().fold(Backlog::ZERO, |sum, band| sum.plus(band.backlog()))
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        self.bands.iter_mut().for_each(|band| band.reset(cx));
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        for (name, band) in GAUGES.iter().zip(&self.bands) {
            visit(name, band.backlog().packets as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Spec;
    use crate::testing::events::{build_error, context};
    use crate::testing::trace::{T1, trace, trace_on};
    use giveway_qdisc::{Dscp, Header};

    /// Runs a trace in which flow A has the first of these code points, B the second, and so on.
    fn with_codes(spec: &str, codes: &[&str], arrivals: &str) -> String {
        let codes: Vec<Dscp> = codes.iter().map(|code| code.parse().unwrap()).collect();
        let qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context()).unwrap();
        trace_on(qdisc, 1000, arrivals, |meta| {
            meta.header = Header::new(codes[usize::from(meta.class)], false);
        })
    }

    #[test]
    fn the_most_urgent_band_is_served_first() {
        let arrivals = "0 A1 1000; 0.1 B1 1000; 0.2 C1 1000; 0.3 D1 1000; 1.5 C2 1000; 2.5 D2 1000";
        // Bulk, best effort, voice admit, and EF, which is in the band of best effort.
        assert_eq!(
            with_codes("pfifo_fast", &["AF11", "CS0", "VA", "EF"], arrivals),
            "A1[0-1] C1[1-2] C2[2-3] B1[3-4] D1[4-5] D2[5-6] |"
        );
    }

    #[test]
    fn each_band_has_its_own_limit() {
        let arrivals = "0 A1 1000, A2 1000, A3 1000, B1 1000, B2 1000, B3 1000, C1 1000";
        assert_eq!(
            with_codes("pfifo_fast txqueuelen 2", &["AF11", "CS0", "VA"], arrivals),
            "C1[0-1] B1[1-2] B2[2-3] A1[3-4] A2[4-5] | A3@0 B3@0"
        );
    }

    /// The class of a packet has no effect; without a DSCP all packets are in one band.
    #[test]
    fn without_a_dscp_it_is_a_fifo() {
        assert_eq!(trace("pfifo_fast txqueuelen 4", 1000, T1), trace("fifo limit 4p", 1000, T1));
    }

    #[test]
    fn invalid_parameters_are_refused() {
        assert_eq!(
            build_error("pfifo_fast txqueuelen 0").to_string(),
            "txqueuelen: 0 packets are too few: write at least \"1p\""
        );
        assert_eq!(
            "pfifo_fast bands 3".parse::<Spec>().unwrap_err().to_string(),
            "unknown parameter \"bands\" of pfifo_fast; pfifo_fast has txqueuelen"
        );
    }
}
