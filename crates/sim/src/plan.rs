//! The plan of a run: the network, the sources of traffic and the times.

use std::ops::Range;

use giveway_qdisc::{Dscp, Rate, Span, Streams, Time};

use crate::net::Net;
use crate::network::Network;
use crate::quic::QuicConfig;
use crate::tcp::TcpConfig;
use crate::timing::Timing;
use crate::traffic::Source;

/// A simulation to run.
pub struct Plan {
    /// Nodes and links.
    pub network: Network,
    /// Sources of traffic. The index of a source in the list is its number in reports.
    pub sources: Vec<SourcePlan>,
    /// End of the run.
    pub until: Time,
    /// The measurement interval: from its first moment to its end, which is not part of it.
    pub measured: Range<Time>,
    /// Interval between two samples of the ports; `None` takes no samples.
    pub sample: Option<Span>,
    /// True if TCP senders are sampled at the same times as ports.
    pub sample_senders: bool,
    /// Random streams of the run.
    pub streams: Streams,
    /// Number of next hops behind a link that are written on each packet for the disciplines
    /// ([`giveway_qdisc::Meta::next_hops`]).
    pub lookahead: usize,
    /// The timing of hosts.
    pub timing: Timing,
}

/// A source of traffic, and how its packets are sent.
pub struct SourcePlan {
    /// Name, unique among the sources. The source's flows, and its rank among events at the same time, depend
    /// on the name and not on the index in the list.
    pub name: String,
    /// Name of the group that the source is measured with. Flow numbers are unique within a group.
    pub group: String,
    /// Time of the first wake-up.
    pub start: Time,
    /// The application.
    pub source: Box<dyn Source>,
    /// The pairs of nodes that it sends between, or some of them that have all nodes that it uses; `None` if
    /// they are not known. A network is [divided](crate::parallel) by them.
    pub pairs: Option<Vec<(u16, u16)>>,
    /// Parameters of its TCP.
    pub tcp: TcpConfig,
    /// Parameters of its QUIC.
    pub quic: QuicConfig,
    /// Traffic class of its packets.
    pub class: u16,
    /// DSCP of its packets.
    pub dscp: Dscp,
    /// The rate that is reserved for each of its flows; zero for none.
    pub reserved: Rate,
}

impl SourcePlan {
    /// A source that starts at time zero, is alone in its group and uses the default TCP.
    pub fn new(name: impl Into<String>, source: Box<dyn Source>) -> SourcePlan {
        let name = name.into();
        SourcePlan {
            group: name.clone(),
            name,
            start: Time::ZERO,
            source,
            pairs: None,
            tcp: TcpConfig::default(),
            quic: QuicConfig::default(),
            class: 0,
            dscp: Dscp::default(),
            reserved: Rate::default(),
        }
    }

    /// Takes the application out of the plan.
    pub(crate) fn take(&mut self) -> Box<dyn Source> {
        std::mem::replace(&mut self.source, Box::new(Vacancy))
    }
}

/// The place of an application that was taken out of the plan.
struct Vacancy;

impl Source for Vacancy {
    fn wake(&mut self, _: &mut Net<'_>) {
        unreachable!("a part of the network has taken the source")
    }
}
