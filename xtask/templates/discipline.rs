//! NewDiscipline: its purpose, in one or two sentences.
//!
//! # Principles
//! - Describe its decisions and their reasons here. At present packets leave in the order of arrival.
//!
//! # Deviations
//! - None. List each departure from its paper with the reason.
//!
//! # Cost
//! - One queue operation per packet.
//!
//! # References
//! - The paper, with its sections.

use std::collections::VecDeque;

use giveway_qdisc::{
    Backlog, Cx, DropReason, Invalid, Limit, LinkContext, Next, Packet, Properties, Qdisc, check_limit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Discipline;

/// Parameters of `new_discipline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The largest backlog, in packets or in bytes.
    pub limit: Limit,
}

impl Default for Config {
    fn default() -> Config {
        Config { limit: Limit::Packets(1000) }
    }
}

impl Discipline for Config {
    const SUMMARY: &'static str = "one line for lists";
    type Qdisc<P: 'static> = NewDiscipline<P>;

    fn build<P: 'static>(&self, context: &LinkContext) -> Result<NewDiscipline<P>, Invalid> {
        check_limit("limit", self.limit, context.mtu)?;
        Ok(NewDiscipline { limit: self.limit, queue: VecDeque::new(), backlog: Backlog::ZERO })
    }

    fn properties(&self, _: &LinkContext) -> Properties {
        Properties::plain(self.limit)
    }

    fn variants() -> Vec<Config> {
        vec![Config { limit: Limit::Packets(5) }]
    }
}

/// State of `new_discipline`.
pub struct NewDiscipline<P> {
    limit: Limit,
    queue: VecDeque<Packet<P>>,
    backlog: Backlog,
}

impl<P> Qdisc<P> for NewDiscipline<P> {
    #[inline]
    fn enqueue(&mut self, pkt: Packet<P>, cx: &mut Cx<'_, P>) {
        if !self.limit.admits(self.backlog, pkt.bytes()) {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        self.backlog.add(pkt.bytes());
        self.queue.push_back(pkt);
    }

    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_, P>) -> Next<P> {
        let Some(pkt) = self.queue.pop_front() else { return Next::Empty };
        self.backlog.sub(pkt.bytes());
        Next::Packet(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, P>) {
        for pkt in self.queue.drain(..) {
            cx.drop(pkt, DropReason::Reset);
        }
        self.backlog = Backlog::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::trace::{T1, trace};

    /// Three flows into a short buffer, at 1,000 bytes per millisecond. The trace has name[start-end] for
    /// departures and name@time for drops, in milliseconds. Replace it by a trace of your discipline, derived
    /// by hand.
    #[test]
    fn a_packet_leaves_when_it_should() {
        assert_eq!(
            trace("new_discipline limit 4p", 1000, T1),
            "A1[0-1] A2[1-2] A3[2-3] A4[3-4] B1[4-4.5] B2[4.5-5] A6[5-6] | A5@1.3 C1@1.4 B3@2.7"
        );
    }
}
