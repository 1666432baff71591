//! What is legal in a network but hardly meant: buffers out of proportion, runs that end before they begin.

use disciplines::Spec;
use qdisc::{Limit, Onward, Span, Streams, Time};
use sim::SOURCES;

use super::topology::{Port, Queue, Topology};
use super::traffic::Stream;
use super::{Network, Paths};
use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, head};
use crate::tree::{Node, Table};

/// A buffer this many times below or above the bandwidth-delay product is told. Between the square-root rule for many
/// flows (Appenzeller, Keslassy and McKeown, 2004) and a few bandwidth-delay products lies ordinary practice.
const PROPORTION: f64 = 10.0;

/// Warns of the traps of a network that is otherwise right.
pub(crate) fn look(
    reading: &mut Reading,
    network: &Network,
    root: &Table,
    topology: &Topology,
    paths: &Paths<'_>,
) {
    let trips = round_trips(network, topology, paths);
    queues(reading, network, root, &trips);
    let longest = trips.iter().flatten().map(|trips| trips.longest).max();
    if let Some(longest) = longest
        && network.times.duration < longest * 10
    {
        let message =
            format!("the run lasts {}, less than ten round trips of {longest}", network.times.duration);
        reading.tell(
            Diagnostic::warning(root.place("duration"), message)
                .help("TCP hardly gets out of slow start in that time"),
        );
    }
    for stream in &network.traffic {
        if stream.start >= Time::ZERO + network.times.duration {
            let message = format!("traffic \"{}\" starts after the end of the run", stream.name);
            reading.tell(Diagnostic::warning(stream.table.place("start"), message));
        }
    }
    segments(reading, network, root, topology, paths);
}

/// The base round trips of the traffic that crosses a port.
#[derive(Clone, Copy)]
struct Trips {
    shortest: Span,
    longest: Span,
}

/// For each port, the base round trips of the traffic that crosses it: propagation both ways and the transmission of
/// one full packet on the way there.
fn round_trips(network: &Network, topology: &Topology, paths: &Paths<'_>) -> Vec<Option<Trips>> {
    let mut trips: Vec<Option<Trips>> = vec![None; topology.ports.len()];
    for (from, to) in network.traffic.iter().flat_map(|stream| &stream.pairs) {
        let there = paths.path(*from, *to).unwrap_or_default();
        let back = paths.path(*to, *from).unwrap_or_default();
        let port = |at: &usize| &topology.ports[*at];
        let propagation = there.iter().chain(&back).map(|at| port(at).delay).fold(Span::ZERO, |a, b| a + b);
        let transmission = there.iter().map(|at| port(at).rate.time_for(port(at).mtu.0));
        let trip = transmission.fold(propagation, |a, b| a + b);
        for at in there {
            let known = trips[at].get_or_insert(Trips { shortest: trip, longest: trip });
            known.shortest = known.shortest.min(trip);
            known.longest = known.longest.max(trip);
        }
    }
    trips
}

/// Buffers against the bandwidth-delay product, and what disciplines themselves find strange.
fn queues(reading: &mut Reading, network: &Network, root: &Table, trips: &[Option<Trips>]) {
    let compared = root.get("disciplines").map(Node::items).unwrap_or_default();
    for (port, crossing) in network.ports.iter().zip(trips) {
        match (&port.queue, &port.written) {
            (Queue::Compare, _) => {
                for (spec, node) in network.disciplines.iter().zip(compared) {
                    queue(reading, spec, node, port, *crossing);
                }
            }
            (Queue::Fixed(spec), Some(node)) => queue(reading, spec, node, port, *crossing),
            // Nobody wrote it, and where nobody measures it nobody asks.
            (Queue::Fixed(_), None) => {}
        }
    }
}

fn queue(reading: &mut Reading, spec: &Spec, node: &Node, port: &Port, trips: Option<Trips>) {
    let site = port.site(&Streams::new(0), &Onward::default());
    for warning in spec.warnings(&site) {
        let wrong = Diagnostic::warning(node.span.clone(), warning);
        reading.tell(wrong.label(format!("at {}, {} with packets of {}", port.name, port.rate, port.mtu)));
    }
    let Some(limit) = spec.nature(&site).limit else { return };
    let bytes = match limit {
        Limit::Packets(packets) => packets as f64 * port.mtu.0 as f64,
        Limit::Bytes(bytes) => bytes as f64,
    };
    let Some(Trips { shortest, longest }) = trips else { return };
    let product = |trip: Span| port.rate.bytes_per_s() * trip.as_s();
    let place = reading.parameter(node, "limit");
    if bytes * PROPORTION < product(shortest) {
        let message = format!(
            "{limit} is {:.0} times less than the bandwidth-delay product",
            product(shortest) / bytes
        );
        reading.tell(
            Diagnostic::warning(place, message)
                .label(proportion(port, shortest))
                .help("a single TCP flow cannot fill the link"),
        );
    } else if bytes > PROPORTION * product(longest) && !controls_its_delay(spec) {
        let message = format!("{limit} is {:.0} times the bandwidth-delay product", bytes / product(longest));
        let wait = port.rate.time_for(bytes as u64);
        reading.tell(
            Diagnostic::warning(place, message)
                .label(proportion(port, longest))
                .help(format!("when it is full, packets wait for {:.1} s", wait.as_s())),
        );
    }
}

fn proportion(port: &Port, trip: Span) -> String {
    let packets = port.rate.bytes_per_s() * trip.as_s() / port.mtu.0 as f64;
    format!(
        "{} at {} with a round trip of {:.1} ms: {packets:.0} packets",
        port.name,
        port.rate,
        trip.as_s() * 1e3
    )
}

/// Whether a discipline has a set point of its own, so that its limit is only a last resort.
fn controls_its_delay(spec: &Spec) -> bool {
    let entry = disciplines::ALL.iter().find(|entry| entry.name == spec.name());
    let parameters = entry.map(|entry| crate::fields::keys_by(entry.schema)).unwrap_or_default();
    ["target", "max", "th_max"].iter().any(|name| parameters.iter().any(|parameter| parameter == name))
}

/// Segments that no link could carry in reality.
fn segments(reading: &mut Reading, network: &Network, root: &Table, topology: &Topology, paths: &Paths<'_>) {
    const HEADERS: u64 = 40;
    // Datagrams have the length that their source gives them.
    let is_tcp =
        |stream: &&Stream| SOURCES.iter().any(|entry| entry.name == stream.spec.name() && entry.answered);
    for stream in network.traffic.iter().filter(is_tcp) {
        let packet = stream.tcp.mss.0.saturating_add(HEADERS);
        let ways = stream.pairs.iter().filter_map(|(from, to)| paths.path(*from, *to));
        let narrow = ways.flatten().map(|at| &topology.ports[at]).find(|port| port.mtu.0 < packet);
        let Some(port) = narrow else { continue };
        let own = stream.table.get("tcp").and_then(Node::table).filter(|table| table.has("mss"));
        let shared = root.get("tcp").and_then(Node::table).filter(|table| table.has("mss"));
        let place =
            own.or(shared).map_or_else(|| head(&reading.origin, &stream.table), |table| table.place("mss"));
        let message =
            format!("packets of {packet} bytes are larger than the mtu of {}, {}", port.name, port.mtu);
        reading.tell(
            Diagnostic::warning(place, message)
                .help("they are sent whole all the same; make mss smaller or mtu larger"),
        );
    }
}
