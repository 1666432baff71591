//! Lints for networks: buffers out of proportion to the link, parameters for another length of packets, and
//! runs that are too short.

use std::collections::BTreeMap;
use std::ops::Range;

use giveway_disciplines::{Spec, frame};
use giveway_qdisc::{Bytes, Downstream, Limit, LinkContext, Rate, Span, Streams, Time};
use giveway_sim::Protocol;

use super::model::Network;
use super::paths::Paths;
use super::topology::{Port, Queue, Topology};
use super::traffic::Stream;
use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, head};
use crate::tree::{Node, Table};

/// The ratio of a buffer to the bandwidth-delay product, or its inverse, from which there is a warning.
/// Ordinary practice lies between the square-root rule for many flows (Appenzeller, Keslassy and McKeown,
/// 2004) and a few bandwidth-delay products.
const PROPORTION: f64 = 10.0;

/// Adds warnings about a valid network.
pub(crate) fn check(
    reading: &mut Reading,
    network: &Network,
    root: &Table,
    topology: &Topology,
    paths: &Paths,
) {
    let traffic = port_traffic(network, topology, paths);
    queues(reading, network, root, &traffic);
    let longest = traffic.iter().flatten().map(|traffic| traffic.longest).max();
    if let Some(longest) = longest
        && network.times.duration < longest * 10
    {
        let message = format!(
            "the run lasts {}, less than ten round-trip times of {}",
            network.times.duration,
            longest.rough()
        );
        reading.report(
            Diagnostic::warning(root.place("duration"), message)
                .help("TCP is in slow start for most of that time"),
        );
    }
    for stream in &network.traffic {
        if stream.start >= Time::ZERO + network.times.duration {
            let message = format!("traffic \"{}\" starts after the end of the run", stream.name);
            reading.report(Diagnostic::warning(stream.table.place("start"), message));
        }
    }
    segments(reading, network, root, topology, paths);
    scalable(reading, network, root, topology, paths);
}

/// The properties of the traffic that crosses a port.
#[derive(Clone, Copy)]
struct PortTraffic<'a> {
    /// The shortest base round-trip time.
    shortest: Span,
    /// The longest base round-trip time.
    longest: Span,
    /// The largest packet of a source with a known one, and the name of that traffic.
    largest: Option<(Bytes, &'a str)>,
}

/// The traffic that crosses each port. A base round-trip time is the propagation in both directions, and the
/// transmission of one full packet in the forward direction.
fn port_traffic<'a>(
    network: &'a Network,
    topology: &Topology,
    paths: &Paths,
) -> Vec<Option<PortTraffic<'a>>> {
    let mut traffic: Vec<Option<PortTraffic<'a>>> = vec![None; topology.ports.len()];
    for stream in &network.traffic {
        let packet = packet(stream);
        for (from, to) in &stream.pairs {
            let there = paths.path(*from, *to).unwrap_or_default();
            let back = paths.path(*to, *from).unwrap_or_default();
            let port = |at: &usize| &topology.ports[*at];
            let propagation =
                there.iter().chain(&back).map(|at| port(at).delay).fold(Span::ZERO, |a, b| a + b);
            let transmission = there.iter().map(|at| port(at).rate.time_for(port(at).mtu.0));
            let trip = transmission.fold(propagation, |a, b| a + b);
            for at in there {
                let new = PortTraffic { shortest: trip, longest: trip, largest: None };
                let known = traffic[at].get_or_insert(new);
                known.shortest = known.shortest.min(trip);
                known.longest = known.longest.max(trip);
                if let Some(packet) = packet
                    && known.largest.is_none_or(|(largest, _)| packet > largest)
                {
                    known.largest = Some((packet, stream.name.as_str()));
                }
            }
        }
    }
    traffic
}

/// The largest packet of a stream; `None` if it is not known.
fn packet(stream: &Stream) -> Option<Bytes> {
    stream.spec.largest().or_else(|| stream.spec.answered().then(|| full_segment(stream)))
}

/// The IP packet of a full segment of the stream's TCP, or of a full packet of its QUIC.
fn full_segment(stream: &Stream) -> Bytes {
    match stream.spec.protocol() {
        Protocol::Tcp => stream.tcp.packet(),
        Protocol::Quic => Bytes(stream.quic.datagram.0 + u64::from(giveway_sim::segment::UDP_HEADER)),
    }
}

/// Adds the warnings of disciplines, and warnings of buffers out of proportion to the bandwidth-delay
/// product.
fn queues(reading: &mut Reading, network: &Network, root: &Table, traffic: &[Option<PortTraffic<'_>>]) {
    let compared = root.get("disciplines").map(Node::items).unwrap_or_default();
    for (port, traffic) in network.ports.iter().zip(traffic) {
        match (&port.queue, &port.written) {
            (Queue::Compare, _) => {
                for (spec, node) in network.disciplines.iter().zip(compared) {
                    queue(reading, port.spec(spec), node, port, *traffic);
                }
            }
            (Queue::Fixed(spec), Some(node)) => queue(reading, spec, node, port, *traffic),
            // The user did not write the default queue.
            (Queue::Fixed(_), None) => {}
        }
    }
}

/// Warns of one discipline at one port.
fn queue(reading: &mut Reading, spec: &Spec, node: &Node, port: &Port, traffic: Option<PortTraffic<'_>>) {
    let context = port.context(&Streams::new(0), &Downstream::default());
    for warning in spec.warnings(&context) {
        let wrong = Diagnostic::warning(node.span.clone(), warning);
        reading.report(wrong.label(format!("at {}, {} with packets of {}", port.name, port.rate, port.mtu)));
    }
    other_rates(reading, spec, node, port);
    if let Some((largest, name)) = traffic.and_then(|traffic| traffic.largest) {
        for advice in spec.advice(largest, &context) {
            let wrong = Diagnostic::warning(reading.parameter(node, "avpkt"), advice.warning);
            let label = format!("at {}, {}, with traffic \"{name}\"", port.name, port.rate);
            reading.report(wrong.label(label).help(advice.help));
        }
    }
    let Some(limit) = spec.properties(&context).limit else { return };
    let bytes = match limit {
        Limit::Packets(packets) => packets as f64 * port.mtu.0 as f64,
        Limit::Bytes(bytes) => bytes as f64,
    };
    let place = reading.parameter(node, "limit");
    if let Limit::Bytes(most) = limit
        && most < frame(&context).0
    {
        let message = format!("{limit} hold no packet of {} with its Ethernet header", port.mtu);
        let help = format!(
            "giveway live and Linux count the header, and drop every full packet: write at least {}b",
            frame(&context).0
        );
        return reading.report(Diagnostic::warning(place, message).help(help));
    }
    let Some(PortTraffic { shortest, longest, .. }) = traffic else { return };
    // A full queue drains at the rate of a shaper, and a full packet takes as long.
    let shaped = spec.shaped_rate(&context);
    let rate = shaped.unwrap_or(port.rate);
    let later = rate.time_for(port.mtu.0).saturating_sub(port.rate.time_for(port.mtu.0));
    let (shortest, longest) = (shortest + later, longest + later);
    let product = |trip: Span| rate.bytes_per_s() * trip.as_s();
    let link = if shaped.is_some() { "shaper" } else { "link" };
    if bytes * PROPORTION < product(shortest) {
        let message = format!(
            "{limit} is {:.0} times less than the bandwidth-delay product",
            product(shortest) / bytes
        );
        reading.report(
            Diagnostic::warning(place, message)
                .label(proportion(port, shaped, shortest))
                .help(format!("a single TCP flow cannot fill the {link}")),
        );
    } else if bytes > PROPORTION * product(longest) && !controls_its_delay(spec) {
        let message = format!("{limit} is {:.0} times the bandwidth-delay product", bytes / product(longest));
        let delay = rate.time_for(bytes as u64);
        reading.report(
            Diagnostic::warning(place, message)
                .label(proportion(port, shaped, longest))
                .help(format!("a full queue delays packets by {}", shown(delay, Span::s(1)))),
        );
    }
}

/// Warns of a discipline whose parameters suit the mean rate of a link that varies, and not its lowest or its
/// highest.
fn other_rates(reading: &mut Reading, spec: &Spec, node: &Node, port: &Port) {
    let Some(profile) = &port.impairments.rate else { return };
    let context = port.context(&Streams::new(0), &Downstream::default());
    if !spec.warnings(&context).is_empty() {
        return;
    }
    for rate in [profile.least(), profile.most()].map(Rate::bit) {
        if rate.as_bit() == 0 || rate == port.rate {
            continue;
        }
        let warnings = spec.warnings(&LinkContext { rate, ..context.clone() });
        let warned = !warnings.is_empty();
        for warning in warnings {
            let wrong = Diagnostic::warning(node.span.clone(), warning);
            let label = format!("at {}, while it has {rate}; its mean is {}", port.name, port.rate);
            reading.report(wrong.label(label));
        }
        // The same discipline may also be wrong for the highest rate, for another reason; one is enough.
        if warned {
            return;
        }
    }
}

/// The label that compares a limit to the path: the port, its rate or the rate of its shaper, and the
/// bandwidth-delay product in packets.
fn proportion(port: &Port, shaped: Option<Rate>, trip: Span) -> String {
    let packets = shaped.unwrap_or(port.rate).bytes_per_s() * trip.as_s() / port.mtu.0 as f64;
    let at = match shaped {
        // With overhead it is hardly ever a round number.
        Some(rate) => format!("shaped to {}", Rate::kbit(rate.as_bit().div_ceil(1000))),
        None => format!("at {}", port.rate),
    };
    let trip = shown(trip, Span::ms(1));
    format!("{} {at} with a round-trip time of {trip}: {packets:.0} packets", port.name)
}

/// A time with one digit after the point, in `unit`, in thousandths of it if it is much shorter, or in
/// millionths. `unit` is 1 s or 1 ms.
fn shown(time: Span, unit: Span) -> String {
    let units = [(Span::s(1), "s"), (Span::ms(1), "ms")];
    let fits = |(each, _): &&(Span, &str)| *each <= unit && time * 10 >= *each;
    let (unit, name) = units.iter().find(fits).copied().unwrap_or((Span::us(1), "µs"));
    format!("{:.1} {name}", time.as_s() / unit.as_s())
}

/// True if a discipline has a set point for its delay, so that the limit is only a last resort.
fn controls_its_delay(spec: &Spec) -> bool {
    let entry = giveway_disciplines::ALL.iter().find(|entry| entry.name == spec.name());
    let parameters = entry.map(|entry| (entry.keys)()).unwrap_or_default();
    ["target", "max", "th_max", "rtt"].iter().any(|name| parameters.contains(name))
}

/// Warns of scalable senders whose queues only drop: they answer each of many marks a little, and drops as
/// all others do. One queue on the path that marks is enough, since queues are expected at some links only.
fn scalable(reading: &mut Reading, network: &Network, root: &Table, topology: &Topology, paths: &Paths) {
    // A large network has many paths over the same ports.
    let mut known: BTreeMap<(usize, usize), bool> = BTreeMap::new();
    let mut marks = |at: usize, number: usize, compared: &Spec| {
        *known.entry((at, number)).or_insert_with(|| {
            let port = &topology.ports[at];
            port.spec(compared).properties(&port.context(&Streams::new(0), &Downstream::default())).marks
        })
    };
    for stream in network.traffic.iter().filter(|stream| stream.spec.answered()) {
        let control = &stream.tcp.congestion;
        if !control.needs_marks() {
            continue;
        }
        let routes = || stream.pairs.iter().filter_map(|(from, to)| paths.path(*from, *to)).flatten();
        // A comparison of disciplines that mark with others shows the difference.
        if network
            .disciplines
            .iter()
            .enumerate()
            .any(|(number, compared)| routes().any(|at| marks(at, number, compared)))
        {
            continue;
        }
        let place = key_place(reading, root, stream, ("tcp", "congestion"));
        let message = format!(
            "traffic \"{}\" has {}, which finds its rate by marks, and no queue on its path marks",
            stream.name,
            control.name()
        );
        reading.report(Diagnostic::warning(place, message).help(
            "write for example qdisc = \"dualpi2\" or \"fq_codel ce_threshold 1ms\" at the slowest link",
        ));
    }
}

/// Warns of TCP segments above the MTU of a link.
fn segments(reading: &mut Reading, network: &Network, root: &Table, topology: &Topology, paths: &Paths) {
    // The source determines the length of datagrams.
    let over_tcp = network.traffic.iter().filter(|stream| stream.spec.answered());
    for stream in over_tcp {
        let packet = full_segment(stream).0;
        let routes = stream.pairs.iter().filter_map(|(from, to)| paths.path(*from, *to));
        let narrow = routes.flatten().map(|at| &topology.ports[at]).find(|port| port.mtu.0 < packet);
        let Some(port) = narrow else { continue };
        let (table, key) = match stream.spec.protocol() {
            Protocol::Tcp => ("tcp", "mss"),
            Protocol::Quic => ("quic", "datagram"),
        };
        let place = key_place(reading, root, stream, (table, key));
        let message =
            format!("packets of {packet} bytes are larger than the mtu of {}, {}", port.name, port.mtu);
        reading.report(Diagnostic::warning(place, message).help(format!(
            "the simulator sends them, a real link would not: make {key} smaller or mtu larger"
        )));
    }
}

/// The place of a key of a table such as `tcp`, in the entry of a stream or in the file; the entry itself if
/// the key is in neither.
fn key_place(reading: &Reading, root: &Table, stream: &Stream, (table, key): (&str, &str)) -> Range<usize> {
    let with_key = |parent: &Table| {
        let table = parent.get(table).and_then(Node::table)?;
        table.has(key).then(|| table.place(key))
    };
    with_key(&stream.table).or_else(|| with_key(root)).unwrap_or_else(|| head(&reading.origin, &stream.table))
}
