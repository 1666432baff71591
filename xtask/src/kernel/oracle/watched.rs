//! A qdisc of Linux that is compared, and its mixes of traffic.

/// A qdisc of Linux, with the functions that are recorded.
pub struct Watched {
    pub kind: &'static str,
    /// Interface of the qdisc. Both interfaces run in parallel.
    pub lane: &'static str,
    pub enqueue: &'static str,
    pub dequeue: &'static str,
    /// Macro for the part of the state that the journal records.
    pub state: &'static str,
    pub cases: &'static [Case],
}

/// A mix of traffic for a qdisc.
pub struct Case {
    pub flows: u32,
    /// `equal` or `mixed`, for `drive send`.
    pub sizes: &'static str,
    pub headers: Headers,
    /// Rate of the HTB class above the qdisc; for `root` there is none, because the qdisc has a shaper.
    pub link: &'static str,
    /// Parameters for tc.
    pub parameters: &'static str,
    /// The Rust discipline.
    pub discipline: &'static str,
    /// True if the link stops again and again while packets arrive, for 0.3 to 2.5 s.
    pub gaps: bool,
}

impl Case {
    /// Makes the traffic steady, and the link one with gaps. The link must be slower than the slowest of this
    /// traffic, 500 packets in a second, so that the queue is congested at each gap.
    pub const fn with_gaps(self) -> Case {
        Case { gaps: true, ..self }
    }
}

/// Headers of the packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// All packets of one pair of hosts; the mark of a packet is its flow.
    Flows,
    /// Several hosts, DSCPs and ECN fields; the mark of a packet carries all of them.
    Hosts,
    /// As with hosts, and flows have priorities; some have rates, or departure times.
    Paced,
}

impl Headers {
    /// The word of `drive send`.
    pub fn word(self) -> &'static str {
        match self {
            Headers::Flows => "",
            Headers::Hosts => "hosts",
            Headers::Paced => "paced",
        }
    }
}

/// A mix of traffic in which marks are flows.
pub const fn case(
    flows: u32,
    sizes: &'static str,
    link: &'static str,
    parameters: &'static str,
    discipline: &'static str,
) -> Case {
    Case { flows, sizes, headers: Headers::Flows, link, parameters, discipline, gaps: false }
}
