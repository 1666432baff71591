//! The limits of a test bed: refuses networks that one machine cannot emulate.

use std::ops::Range;
use std::path::Path;

use giveway_qdisc::{Bytes, PortId, Rate, Span};
use giveway_sim::{Protocol, QuicConfig, TcpConfig};

use super::model::Direction;
use super::setting::settings;
use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, head};
use crate::network::{Network, Port, Queue, Stream};
use crate::tree::{Node, Table};

/// The minimum ratio of the rate of an access link to the rate of the bottleneck. A slower access link would
/// sometimes have a queue.
const FASTER: u64 = 4;

/// Maximum number of hosts on one side. Each needs an address.
const MAX: usize = 250;

/// The MTU of Ethernet, and of every interface of a test bed.
pub(crate) const MTU: Bytes = Bytes(1500);

/// The segments that fill a packet of [`MTU`] bytes, without and with TCP timestamps (RFC 7323).
const SEGMENTS: [Bytes; 2] = [Bytes(1460), Bytes(1448)];

/// A network that one machine can emulate.
pub(crate) struct Emulated {
    /// The hosts in front of the bottleneck.
    pub near: Vec<u16>,
    /// The hosts behind it.
    pub far: Vec<u16>,
    /// The direction from the near hosts to the far hosts.
    pub forward: Direction,
    /// The direction from the far hosts to the near hosts.
    pub reverse: Direction,
    /// The TCP of all traffic.
    pub tcp: TcpConfig,
}

/// Checks a network against the limits of a test bed, and reports everything that it cannot emulate.
pub(crate) fn check(
    reading: &mut Reading,
    (root, folder): (&Table, &Path),
    network: &Network,
) -> Option<Emulated> {
    Check { reading, root, folder, network }.emulated()
}

/// A network while it is checked.
struct Check<'a> {
    reading: &'a mut Reading,
    root: &'a Table,
    /// The folder that file names are relative to.
    folder: &'a Path,
    network: &'a Network,
}

impl<'a> Check<'a> {
    /// The network that a test bed emulates; `None` if it cannot.
    fn emulated(mut self) -> Option<Emulated> {
        self.keys();
        let (forward, reverse) = self.bottleneck()?;
        self.others_are_constant([forward, reverse]);
        let near = self.side(forward, reverse, self.network.ports[forward].from);
        let far = self.side(forward, reverse, self.network.ports[forward].to);
        if near.iter().any(|node| far.contains(node)) {
            let port = &self.network.ports[forward];
            let message = format!("a second path leads around the bottleneck {}", port.name);
            self.refuse(port.at.clone(), message, "a test bed has one link between its two sides");
            return None;
        }
        self.access(forward, reverse);
        self.traffic();
        let tcp = self.tcp();
        let delays = self.distances(&near, &far)?;
        let network = self.network;
        for (at, delay) in [(forward, delays.0), (reverse, delays.1)] {
            let port = &network.ports[at];
            if port.impairments.delay.is_some() && delay != port.delay {
                let message = format!("the delay of {} varies, and other links have a delay, too", port.name);
                let help = "write delay = \"0s\" for the other links, and the whole delay here";
                self.refuse(port.at.clone(), message, help);
            }
        }
        let hosts = |side: &[u16]| {
            let pairs = self.network.traffic.iter().flat_map(|stream| &stream.pairs);
            let mut hosts: Vec<u16> =
                pairs.flat_map(|(a, b)| [*a, *b]).filter(|node| side.contains(node)).collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts
        };
        let (near, far) = (hosts(&near), hosts(&far));
        if near.len().max(far.len()) > MAX {
            let place = self.root.place("traffic");
            let message = format!("a test bed has at most {MAX} hosts on either side");
            self.refuse(place, message, "give each host more flows instead");
        }
        let direction = |at: usize, delay: Span| {
            let port = &self.network.ports[at];
            let settings = self.settings(at);
            let varies = port.impairments.rate.is_some();
            let (port, rate, queue) = (PortId(at as u32), port.rate, port.queue.clone());
            Direction { port, rate, delay, varies, settings, queue }
        };
        let (forward, reverse) = (direction(forward, delays.0), direction(reverse, delays.1));
        Some(Emulated { near, far, forward, reverse, tcp: tcp? })
    }

    /// Reports a part of the scenario that a test bed cannot emulate.
    fn refuse(&mut self, place: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        let wrong = Diagnostic::error(place, message).label("not possible on a test bed");
        self.reading.report(wrong.help(help));
    }

    /// Refuses keys without effect on a test bed.
    fn keys(&mut self) {
        const NOT_BUILT: [(&str, &str); 6] = [
            ("medium", "the links of a test bed are their own"),
            ("dispatch_jitter", "the machine of a test bed has its own"),
            ("thin_acks", "a test bed sends all acknowledgements"),
            ("police", "a test bed has no policers"),
            ("outages", "a test bed has no outages"),
            ("mtu", "every interface of a test bed has an MTU of 1,500 bytes"),
        ];
        let tables: Vec<&Table> = self.links().flat_map(directions).collect();
        for table in tables {
            for (key, why) in NOT_BUILT.into_iter().filter(|(key, _)| table.has(key)) {
                let as_built = key == "mtu"
                    && table
                        .get(key)
                        .and_then(Node::text)
                        .is_some_and(|text| text.parse::<Bytes>().is_ok_and(|mtu| mtu == MTU));
                if !as_built {
                    let help = "leave it out, or simulate it: backend = \"network\"";
                    self.refuse(table.place(key), format!("{key}: {why}"), help);
                }
            }
        }
        if let Some(record) = self.root.get("record").and_then(Node::table) {
            for key in ["port", "senders", "episodes", "bursts"].into_iter().filter(|key| record.has(key)) {
                let help = "leave it out: the packets of the bottleneck and all flows are measured";
                self.refuse(
                    record.place(key),
                    format!("{key}: the measurements of a test bed are fixed"),
                    help,
                );
            }
        }
    }

    /// The tables of all links.
    fn links(&self) -> impl Iterator<Item = &'a Table> + use<'a> {
        let links = self.root.get("link").map(Node::items).unwrap_or_default();
        links.iter().filter_map(Node::table)
    }

    /// The settings of `giveway live` for a port: everything but a constant rate and delay.
    fn settings(&self, at: usize) -> Vec<(&'static str, String)> {
        let ports = &self.network.ports;
        // A topology writes constant links.
        let Some(link) = self.links().find(|table| head(&self.reading.origin, table) == ports[at].at) else {
            return Vec::new();
        };
        // The first port of a link is its forward direction.
        let is_first = ports.iter().position(|port| port.at == ports[at].at) == Some(at);
        match link.get("back").and_then(Node::table) {
            _ if is_first => settings(link, link, self.folder),
            Some(back) => settings(back, link, self.folder),
            None => settings(&Table::default(), link, self.folder),
        }
    }

    /// Refuses links other than the bottleneck that vary or impair packets: a test bed emulates only their
    /// constant delay.
    fn others_are_constant(&mut self, bottleneck: [usize; 2]) {
        const WIRE: [&str; 6] = ["loss", "jitter", "reorder", "duplicate", "corrupt", "unordered"];
        let bottleneck = bottleneck.map(|at| &self.network.ports[at].at);
        let mut wrong = Vec::new();
        for table in self.links().filter(|table| !bottleneck.contains(&&head(&self.reading.origin, table))) {
            for table in directions(table) {
                let varies = |key: &str| table.get(key).and_then(Node::table).is_some();
                let varying = ["rate", "delay"].into_iter().filter(|key| varies(key));
                let present = WIRE.into_iter().filter(|key| table.has(key));
                wrong.extend(varying.chain(present).map(|key| (key, table.place(key))));
            }
        }
        for (key, place) in wrong {
            let message = format!("{key}: on a test bed only the bottleneck varies and impairs packets");
            let help =
                "write it in the [[link]] with qdisc = \"compare\", or simulate it: backend = \"network\"";
            self.refuse(place, message, help);
        }
    }

    /// The two ports of the bottleneck: the link that compares disciplines.
    fn bottleneck(&mut self) -> Option<(usize, usize)> {
        let ports = &self.network.ports;
        let comparing: Vec<usize> =
            (0..ports.len()).filter(|at| ports[*at].queue == Queue::Compare).collect();
        let Some(&forward) = comparing.first() else {
            let place = self.root.place("link");
            self.refuse(place, "no link is the bottleneck", "write qdisc = \"compare\" in it");
            return None;
        };
        let opposite =
            |at: usize| ports.iter().position(|port| (port.from, port.to) == (ports[at].to, ports[at].from));
        let Some(reverse) = opposite(forward) else {
            let place = ports[forward].at.clone();
            self.refuse(place, "the bottleneck has no reverse direction", "leave back = false out");
            return None;
        };
        if let Some(other) = comparing.iter().find(|at| ![forward, reverse].contains(at)) {
            let (first, second) = (&ports[forward], &ports[*other]);
            let message =
                format!("{} and {} are two bottlenecks, and a test bed has one", first.name, second.name);
            let help = "write qdisc = \"compare\" in one [[link]], or simulate it: backend = \"network\"";
            self.refuse(second.at.clone(), message, help);
            return None;
        }
        if let Some(port) = ports.iter().find(|port| !port.in_place_of.is_empty()) {
            let message = "in_place_of: a test bed has the compared discipline itself";
            self.refuse(port.at.clone(), message, "leave it out, or simulate it: backend = \"network\"");
            return None;
        }
        if ports[reverse].queue == Queue::Compare {
            let (first, second) = (&ports[forward], &ports[reverse]);
            let message = format!(
                "{} and {} both compare disciplines, and a test bed measures one direction",
                first.name, second.name
            );
            self.refuse(
                second.at.clone(),
                message,
                "write a discipline as the qdisc of back, or leave it out",
            );
            return None;
        }
        Some((forward, reverse))
    }

    /// The nodes that can be reached from one without crossing the bottleneck.
    fn side(&self, forward: usize, reverse: usize, start: u16) -> Vec<u16> {
        let mut neighbours: Vec<Vec<u16>> = vec![Vec::new(); self.network.nodes.len()];
        for (number, port) in self.network.ports.iter().enumerate() {
            if ![forward, reverse].contains(&number) {
                neighbours[usize::from(port.from)].push(port.to);
            }
        }
        let mut known = vec![false; neighbours.len()];
        known[usize::from(start)] = true;
        let mut reached = vec![start];
        let mut at = 0;
        while at < reached.len() {
            for next in &neighbours[usize::from(reached[at])] {
                if !std::mem::replace(&mut known[usize::from(*next)], true) {
                    reached.push(*next);
                }
            }
            at += 1;
        }
        reached
    }

    /// Checks that no link but the bottleneck can have a queue, since a test bed emulates only their delays.
    fn access(&mut self, forward: usize, reverse: usize) {
        let network = self.network;
        let highest = |port: &Port| {
            port.impairments.rate.as_ref().map_or(port.rate, |profile| Rate::bit(profile.most()))
        };
        let fastest = highest(&network.ports[forward]).max(highest(&network.ports[reverse]));
        let others = network.ports.iter().enumerate().filter(|(at, _)| ![forward, reverse].contains(at));
        let mut reported = None;
        for (_, port) in others {
            if let Some(written) = &port.written {
                let message = format!(
                    "{} has a discipline, but on a test bed only the bottleneck has a queue",
                    port.name
                );
                self.refuse(written.span.clone(), message, "leave its qdisc out");
            }
            // All links of a range, and both directions of each, have one place, so one message is enough.
            if port.rate.as_bit() < FASTER * fastest.as_bit() && reported.replace(&port.at) != Some(&port.at)
            {
                let message = format!(
                    "{} has {}, less than {FASTER} times the {fastest} of the bottleneck: it would be a \
                     second bottleneck",
                    port.name, port.rate
                );
                self.refuse(port.at.clone(), message, "give it a higher rate");
            }
        }
    }

    /// Refuses traffic that hosts cannot send.
    fn traffic(&mut self) {
        for stream in &self.network.traffic {
            let what = format!("traffic \"{}\"", stream.name);
            let kind = stream.spec.name();
            if ["capture", "applications"].contains(&kind) {
                let message = format!(
                    "{what}: a test bed cannot run {kind}, which replays the round-trip times of a capture"
                );
                self.refuse(stream.table.place("kind"), message, "simulate it: backend = \"network\"");
            }
            if stream.table.has("batch") {
                let message = format!("{what}: a test bed sends no departure times");
                self.refuse(stream.table.place("batch"), message, "leave batch out");
            }
            for (key, written) in [("class", stream.class != 0), ("reserved", stream.reserved.as_bit() != 0)]
            {
                if written {
                    let message = format!("{what}: real frames have no {key}");
                    self.refuse(stream.table.place(key), message, format!("leave {key} out"));
                }
            }
        }
    }

    /// The propagation delays between the two sides, forward and reverse, which must be the same for all
    /// pairs of hosts.
    fn distances(&mut self, near: &[u16], far: &[u16]) -> Option<(Span, Span)> {
        let mut all: Option<(Span, Span)> = None;
        let network = self.network;
        let paths = network.paths();
        for stream in &network.traffic {
            // Nodes that the scenario does not name are in a file.
            let named = stream.table.place(if stream.table.has("to") { "to" } else { "file" });
            for (from, to) in &stream.pairs {
                let name = |node: u16| &self.network.nodes[usize::from(node)];
                let (left, right) = if near.contains(from) { (*from, *to) } else { (*to, *from) };
                if !near.contains(&left) || !far.contains(&right) {
                    let message = format!(
                        "traffic \"{}\": \"{}\" and \"{}\" are on the same side of the bottleneck",
                        stream.name,
                        name(*from),
                        name(*to)
                    );
                    self.refuse(named, message, "choose hosts on opposite sides of the bottleneck");
                    return None;
                }
                let delay = |a, b| network.delay(&paths, a, b);
                let here = (delay(left, right), delay(right, left));
                let known = *all.get_or_insert(here);
                if known != here {
                    let message = format!(
                        "traffic \"{}\": the round-trip time is {} between \"{}\" and \"{}\", and {} between others: it \
                         must be the same for all hosts of a test bed",
                        stream.name,
                        here.0 + here.1,
                        name(left),
                        name(right),
                        known.0 + known.1
                    );
                    self.refuse(named, message, "give all of them links of the same delay");
                    return None;
                }
            }
        }
        if all.is_none() {
            let place = self.root.place("traffic");
            self.refuse(
                place,
                "the files of the traffic name no nodes",
                "choose hosts on opposite sides of the bottleneck",
            );
        }
        all
    }

    /// Checks that the library for QUIC has the parameters of the scenario.
    fn quic(&mut self) {
        let usual = QuicConfig::default();
        // All keys that the library has not, or has with one value only.
        let fixed = |quic: &QuicConfig| QuicConfig {
            datagram: usual.datagram,
            initial_window: usual.initial_window,
            certificates: usual.certificates,
            max_data: usual.max_data,
            max_stream_data: usual.max_stream_data,
            initial_rtt: usual.initial_rtt,
            ..quic.clone()
        };
        let wrong =
            |stream: &&Stream| stream.spec.protocol() == Protocol::Quic && fixed(&stream.quic) != usual;
        if let Some(other) = self.network.traffic.iter().find(wrong) {
            let message = format!("traffic \"{}\": the QUIC of a test bed has fixed behaviour", other.name);
            let help = "of [quic], write only datagram, initial_window, certificates, max_data, max_stream_data and initial_rtt";
            self.refuse(other.table.place("kind"), message, help);
        }
    }

    /// Checks that Linux TCP supports the parameters of the scenario. It has fewer of them than the
    /// simulator, and most of them apply to a whole host.
    fn tcp(&mut self) -> Option<TcpConfig> {
        let streams = &self.network.traffic;
        let first = streams.first()?;
        // A congestion control of Linux that needs pacing brings it along, and losses are always detected by
        // time.
        let pacing = |tcp: &TcpConfig| tcp.pacing && !tcp.congestion.implies().contains(&("pacing", true));
        let common = |tcp: &TcpConfig| TcpConfig {
            congestion: first.tcp.congestion.clone(),
            pacing: pacing(tcp),
            rack: true,
            // It belongs to CUBIC.
            hystart: first.tcp.hystart,
            ..tcp.clone()
        };
        let same = |stream: &&Stream| common(&stream.tcp) == common(&first.tcp);
        if let Some(other) = streams.iter().find(|stream| !same(stream)) {
            let message = format!(
                "traffic \"{}\": all traffic of a test bed has the same TCP; only congestion may differ",
                other.name
            );
            self.refuse(other.table.place("tcp"), message, "write the other keys in the file's [tcp]");
        }
        let own = |stream: &&Stream| stream.tcp.congestion.to_string() != stream.tcp.congestion.name();
        if let Some(other) = streams.iter().find(own) {
            let congestion = &other.tcp.congestion;
            let message = format!("congestion: Linux has no parameters for it, as \"{congestion}\" has");
            let place = other.table.place("tcp");
            self.refuse(place, message, format!("write congestion = \"{}\"", congestion.name()));
        }
        self.quic();
        let tcp = first.tcp.clone();
        let usual = TcpConfig::default();
        let wrong: [(&str, bool, String); 8] = [
            ("mss", !SEGMENTS.contains(&tcp.mss), "\"1460b\", or \"1448b\" with timestamps".into()),
            ("rto_initial", tcp.rto_initial != usual.rto_initial, format!("\"{}\"", usual.rto_initial)),
            ("limited_transmit", !tcp.limited_transmit, "true".into()),
            // The second is the one of the preset "rfc".
            (
                "counting",
                ![usual.counting, TcpConfig::rfc().counting].contains(&tcp.counting),
                "\"bytes\"".into(),
            ),
            (
                "delayed_ack_timer",
                tcp.delayed_ack_timer != usual.delayed_ack_timer,
                format!("\"{}\"", usual.delayed_ack_timer),
            ),
            ("pacing", pacing(&tcp), "false".into()),
            ("give_up", tcp.give_up > 255, "at most 255".into()),
            ("give_up_handshake", tcp.give_up_handshake > 127, "at most 127".into()),
        ];
        let place = self.root.get("tcp").and_then(Node::table);
        for (key, _, right) in wrong.into_iter().filter(|(_, wrong, _)| *wrong) {
            let at = place.map_or_else(|| first.table.place("tcp"), |table| table.place(key));
            self.refuse(
                at,
                format!("{key}: Linux TCP does not support this value"),
                format!("write {right}, or leave it out"),
            );
        }
        Some(tcp)
    }
}

/// The tables of a link and of its reverse direction.
fn directions(link: &Table) -> impl Iterator<Item = &Table> {
    [Some(link), link.get("back").and_then(Node::table)].into_iter().flatten()
}
