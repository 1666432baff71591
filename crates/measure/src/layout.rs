//! The plan of a recording: measured ports, names, and the measurement interval.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use giveway_qdisc::{Ending, FlowReport, PortId, Rate, Span, Time};

use crate::contest::Contest;

/// A function that returns the measured ports on the route between pairs of nodes, sender first.
#[derive(Clone)]
pub struct PortsOnRoute(Arc<Routes>);

type Routes = dyn Fn(&[(u16, u16)]) -> Vec<Vec<PortId>> + Send + Sync;

impl PortsOnRoute {
    /// The ports that this function returns.
    pub fn new(routes: Arc<Routes>) -> PortsOnRoute {
        PortsOnRoute(routes)
    }

    /// Restricts the result to `port`: other flows cross no port.
    pub fn only(&self, port: PortId) -> PortsOnRoute {
        let all = self.clone();
        PortsOnRoute(Arc::new(move |pairs| {
            let crossed = all.of(pairs).into_iter();
            crossed.map(|ports| ports.into_iter().filter(|known| *known == port).collect()).collect()
        }))
    }

    /// The measured ports that flows cross, for each pair of nodes.
    pub(crate) fn of(&self, pairs: &[(u16, u16)]) -> Vec<Vec<PortId>> {
        (self.0)(pairs)
    }
}

impl fmt::Debug for PortsOnRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PortsOnRoute")
    }
}

impl PartialEq for PortsOnRoute {
    /// True if both have the same function object. Two functions cannot be compared in another way.
    fn eq(&self, other: &PortsOnRoute) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for PortsOnRoute {}

/// The plan of a recording. Take the fields that are unknown from [`Layout::default`].
///
/// Ports are numbered densely from zero. A port without a name, a rate and a measurement is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The measured ports, whose packets form the summary. The first is the bottleneck.
    pub measured: Vec<PortId>,
    /// The measured ports on the routes of flows. Goodput counts flows that cross the bottleneck. If several
    /// ports are measured, each has its own summary with the flows that cross it. If no port is measured,
    /// goodput counts flows that cross any port. `None` if unknown: then all flows count everywhere.
    pub crossed: Option<PortsOnRoute>,
    /// Names of ports in tables.
    pub port_names: Vec<(PortId, String)>,
    /// Names of nodes, by number.
    pub node_names: Vec<String>,
    /// Names of traffic sources, by their number in the scenario. Sources with the same name are a group.
    pub source_names: Vec<String>,
    /// The groups of sources that compete in pairs, if there is such a contest.
    pub contest: Option<Contest>,
    /// Start of the measurement interval, inclusive.
    pub from: Time,
    /// End of the measurement interval, exclusive.
    pub until: Time,
    /// The rates of the links behind the ports.
    pub rates: Vec<(PortId, Rate)>,
    /// The ports whose rate varies. Their rates above are means over the measurement interval.
    pub varying: Vec<PortId>,
    /// Largest size of small packets in bytes: calls, games, name look-ups.
    pub small_packet_bytes: u32,
    /// Upper limits of the size classes of transfers, in bytes, ascending; one more class has the larger
    /// transfers.
    pub size_classes: Vec<u64>,
    /// The mean rate that a port of `varying` offered in each stretch of [`Layout::stretches`], for rows of
    /// delays.
    pub offers: Vec<(PortId, Vec<Rate>)>,
    /// Length of a slot, on a backend whose times are in slots; `None` for all others.
    pub slot: Option<Span>,
    /// Keeps time series and distributions as rows.
    pub keep_series: bool,
    /// Interval of the backend's samples of ports. Shares and delays over time are not finer.
    pub sample: Span,
    /// True if the end of the run is unknown, and `until` is only a limit. Then stretches of time start with
    /// the length of `sample`, and become longer while the run goes on.
    pub open_ended: bool,
    /// Keeps samples of senders as rows, if the backend takes any.
    pub senders: bool,
    /// Counts episodes of flows at the measured ports. This costs a look-up per packet and a row per flow.
    pub episodes: bool,
    /// Measures burstiness: of arrivals at the measured ports, of departures to each next hop, and of the
    /// packets of each source. This costs an exponential per arrival and per departure, and 400 bytes per
    /// source and second.
    pub bursts: bool,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            measured: Vec::new(),
            crossed: None,
            port_names: Vec::new(),
            node_names: Vec::new(),
            source_names: Vec::new(),
            contest: None,
            from: Time::ZERO,
            until: Time::ZERO,
            rates: Vec::new(),
            varying: Vec::new(),
            offers: Vec::new(),
            small_packet_bytes: 256,
            size_classes: vec![30_000, 300_000, 3_000_000],
            slot: None,
            keep_series: false,
            sample: Span::ZERO,
            open_ended: false,
            senders: false,
            episodes: false,
            bursts: false,
        }
    }
}

impl Layout {
    /// The first measured port.
    pub fn bottleneck(&self) -> Option<PortId> {
        self.measured.first().copied()
    }

    /// True if `now` is within the measurement interval.
    pub fn measures(&self, now: Time) -> bool {
        self.from <= now && now < self.until
    }

    /// Flow completion time of a completed flow; otherwise its age at the end of the run.
    pub fn age(&self, flow: &FlowReport) -> Span {
        let end = if flow.ending == Ending::Completed { flow.end } else { flow.end.max(self.until) };
        end.since(flow.start)
    }

    /// Length of the measurement interval.
    pub fn measured_time(&self) -> Span {
        self.until.since(self.from)
    }

    /// The rate of the link behind a port.
    pub fn rate(&self, port: PortId) -> Option<Rate> {
        of_port(&self.rates, port).copied()
    }

    /// The mean rate that a port offered in a stretch of [`Layout::stretches`]; `None` if its rate does not
    /// vary.
    pub(crate) fn offer(&self, port: PortId, stretch: usize) -> Option<Rate> {
        of_port(&self.offers, port)?.get(stretch).copied()
    }

    /// Name of a port.
    pub fn port_name(&self, port: PortId) -> Cow<'_, str> {
        of_port(&self.port_names, port).map_or_else(|| format!("port-{}", port.0).into(), |name| name.into())
    }

    /// Name of a node.
    pub fn node_name(&self, node: u16) -> Cow<'_, str> {
        let name = self.node_names.get(usize::from(node));
        name.map_or_else(|| format!("node-{node}").into(), |name| name.into())
    }

    /// Name of a traffic source.
    pub fn source_name(&self, source: u16) -> Cow<'_, str> {
        let name = self.source_names.get(usize::from(source));
        name.map_or_else(|| format!("source-{source}").into(), |name| name.into())
    }

    /// Every port that is recorded, in the order of the numbers.
    pub(crate) fn ports(&self) -> Vec<PortId> {
        let named = self.port_names.iter().map(|(id, _)| *id);
        let rated = self.rates.iter().map(|(id, _)| *id);
        let mut ports: Vec<PortId> = self.measured.iter().copied().chain(named).chain(rated).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// The names of the size classes, smallest first: `le30kB`, `le300kB`, `le3MB`, `gt3MB`.
    pub(crate) fn class_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.size_classes.iter().map(|edge| format!("le{}", size(*edge))).collect();
        names.extend(self.size_classes.last().map(|edge| format!("gt{}", size(*edge))));
        names
    }

    /// Number of the size class of a transfer of `bytes`.
    pub(crate) fn class_of(&self, bytes: u64) -> usize {
        self.size_classes.partition_point(|edge| *edge < bytes)
    }
}

/// A size in the name of a metric: without a space, in the largest unit that gives a whole number.
fn size(bytes: u64) -> String {
    match bytes {
        b if b > 0 && b.is_multiple_of(1_000_000) => format!("{}MB", b / 1_000_000),
        b if b > 0 && b.is_multiple_of(1_000) => format!("{}kB", b / 1_000),
        b => format!("{b}B"),
    }
}

/// The entry of a port in a list without a given order. A network lists all of its ports by their numbers, so
/// the entry at that index comes first: a search for each port would take the square of their number.
fn of_port<T>(list: &[(PortId, T)], port: PortId) -> Option<&T> {
    let at_index = list.get(port.0 as usize).filter(|(id, _)| *id == port);
    at_index.or_else(|| list.iter().find(|(id, _)| *id == port)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_have_names_and_edges() {
        let layout = Layout::default();
        assert_eq!(layout.class_names(), ["le30kB", "le300kB", "le3MB", "gt3MB"]);
        assert_eq!(
            [1, 30_000, 30_001, 300_000, 3_000_000, 3_000_001].map(|b| layout.class_of(b)),
            [0, 0, 1, 1, 2, 3]
        );
        let odd = Layout { size_classes: vec![1_500], ..Layout::default() };
        assert_eq!(odd.class_names(), ["le1500B", "gt1500B"]);
        let none = Layout { size_classes: vec![], ..Layout::default() };
        assert!(none.class_names().is_empty());
    }

    #[test]
    fn what_has_no_name_is_called_by_its_number() {
        let layout = Layout {
            port_names: vec![(PortId(2), "uplink".into())],
            node_names: vec!["alice".into()],
            ..Layout::default()
        };
        assert_eq!(layout.port_name(PortId(2)), "uplink");
        assert_eq!(layout.port_name(PortId(0)), "port-0");
        assert_eq!((layout.node_name(0), layout.node_name(1)), ("alice".into(), "node-1".into()));
        assert_eq!(layout.source_name(3), "source-3");
    }
    #[test]
    fn ports_are_found_in_any_order() {
        let rates = [1, 0, 7, 3].map(|port| (PortId(port), Rate::mbit(u64::from(port))));
        let layout = Layout { rates: rates.to_vec(), ..Layout::default() };
        for (port, rate) in rates {
            assert_eq!(layout.rate(port), Some(rate));
        }
        assert_eq!(layout.rate(PortId(2)), None);
    }
}
