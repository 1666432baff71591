//! A scenario on a test bed: a network of the same keys, as far as one machine can be it.
//!
//! A test bed has hosts on two sides and one link between them, with a queue at either end of it. All other links of the
//! scenario are there only by their delays: a host's way over the bottleneck takes as long as the sum of its links, and
//! nothing queues on the others, so they must be some times faster. What cannot be built is refused here, with its
//! place: then a run that begins is the one that was written.
//!
//! What is compared may be a discipline of the kernel, too: `kernel:fq_codel`, `kernel:htb+bfifo limit 100k`. It stands
//! in for our router, with the kernel's own words behind its name; only the kernel knows whether it has it. `bpf:efd limit 300p`
//! is one of ours in the kernel: what it is to do there is known here, and what it cannot do there is refused with its place.

use std::fmt;
use std::ops::Range;

use giveway_kernel_plan::plan::Plan as InKernel;
use giveway_qdisc::{Bytes, PortId, Rate, Span};
use giveway_sim::TcpConfig;

use crate::diagnostic::{Diagnostic, Severity};
use crate::fields::Reading;
use crate::network::{self, Network, Queue, Stream};
use crate::scenario::Around;
use crate::tree::{Node, Table, Value};

/// A scenario on a test bed.
#[derive(Clone, Debug)]
pub struct Live {
    /// The same as a network: its traffic, its ports, its disciplines. What the simulator would run.
    pub network: Network,
    /// Who takes turns at the bottleneck. Never empty.
    pub compared: Vec<Contender>,
    /// Nodes that traffic begins or ends at, in front of the bottleneck.
    pub near: Vec<u16>,
    /// The same beyond it.
    pub far: Vec<u16>,
    /// From the near side to the far side.
    pub forth: Direction,
    /// The way back.
    pub back: Direction,
    /// The TCP of all traffic; only `congestion` may differ from entry to entry.
    pub tcp: TcpConfig,
}

/// One direction of the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// The port of the network that it is.
    pub port: PortId,
    /// How fast it sends; IP packets are counted whole, frames' headers not.
    pub rate: Rate,
    /// How long a packet is on its way besides, all links together.
    pub delay: Span,
    /// What waits in front of it.
    pub queue: Queue,
}

/// Who takes a turn at the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub enum Contender {
    /// A discipline of ours: its place among those of the network.
    Ours(usize),
    /// One of the kernel's.
    Kernel(KernelQueue),
    /// One of ours, as a BPF qdisc; it shapes by itself.
    Bpf(Box<BpfQueue>),
}

/// One of ours, as a BPF qdisc.
#[derive(Clone, Debug, PartialEq)]
pub struct BpfQueue {
    /// What it is told.
    pub plan: InKernel,
    /// Where the scenario says so.
    pub place: Range<usize>,
}

/// A discipline of the kernel, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelQueue {
    /// Its kind, as in `tc qdisc add ... KIND`.
    pub kind: String,
    /// What follows that.
    pub arguments: Vec<String>,
}

/// An access link of less than so many times the rate of the bottleneck would be a bottleneck of its own now and then.
const FASTER: u64 = 4;
/// Hosts on one side. Each is an address.
const MOST: usize = 250;
/// What Ethernet carries, and the interfaces of a test bed with it.
const MTU: Bytes = Bytes(1500);
/// Segments that fill it: without and with TCP's timestamps (RFC 7323).
const SEGMENTS: [Bytes; 2] = [Bytes(1460), Bytes(1448)];
/// What stands in where only the kernel's disciplines are compared, for whoever asks for the network.
const PLACEHOLDER: &str = "fifo limit 1000p";
const PREFIX: &str = "kernel:";
const OURS_THERE: &str = "bpf:";

impl KernelQueue {
    /// Reads what follows `kernel:`.
    fn read(text: &str) -> Result<KernelQueue, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-+".contains(c);
        if let Some(odd) = text.chars().find(|c| !plain(*c) && *c != ' ') {
            return Err(format!("{odd:?} is in no name and no number of tc"));
        }
        let mut words = text.split_whitespace().map(str::to_owned);
        let kind = words.next().ok_or("which discipline of the kernel?")?;
        // Everything that does not shape by itself stands in htb.
        let kind = kind.strip_prefix("htb+").unwrap_or(&kind).to_owned();
        if kind == "htb" || kind.is_empty() || kind.contains('+') {
            return Err("htb shapes and needs a discipline inside, as in htb+bfifo".to_owned());
        }
        Ok(KernelQueue { kind, arguments: words.collect() })
    }

    /// Whether it shapes by itself.
    pub fn shapes(&self) -> bool {
        self.kind == "tbf"
    }
}

impl fmt::Display for KernelQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        if !self.shapes() {
            f.write_str("htb+")?;
        }
        f.write_str(&self.kind)?;
        self.arguments.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

impl Live {
    /// What is compared, as it is written with defaults left out.
    pub fn names(&self) -> Vec<String> {
        let name = |contender: &Contender| match contender {
            Contender::Ours(at) => self.network.disciplines[*at].to_string(),
            Contender::Kernel(queue) => queue.to_string(),
            Contender::Bpf(queue) => format!("{OURS_THERE}{}", queue.plan.spelling()),
        };
        self.compared.iter().map(name).collect()
    }
}

/// Reads a scenario on a test bed; `None` when anything in the whole file is wrong.
pub(crate) fn read(reading: &mut Reading, around: &Around<'_>) -> Option<Live> {
    let mut root = around.root.clone();
    let taken = take_kernel(reading, &mut root);
    let network = network::read(reading, &Around { root: &root, ..*around })?;
    if let Some(node) = around.root.get("disciplines").filter(|node| node.items().len() == taken.len()) {
        // They would be about the placeholder.
        let about = |told: &Diagnostic| told.severity == Severity::Warning && told.span == node.span;
        reading.found.retain(|told| !about(told));
    }
    let plan = Plan { reading, root: &root, network: &network };
    let (near, far, forth, back, tcp) = plan.check()?;
    let compared = order(reading, around.root, &network, &taken, forth.rate);
    if reading.failed() {
        return None;
    }
    Some(Live { compared, near, far, forth, back, tcp, network })
}

/// What runs in the kernel, as it is written.
enum Taken {
    Kernel(KernelQueue),
    Bpf(String),
}

/// Takes what runs in the kernel out of what is compared, each with its place among them.
fn take_kernel(reading: &mut Reading, root: &mut Table) -> Vec<(usize, Taken)> {
    let Some(node) = root.get("disciplines").cloned() else { return Vec::new() };
    let mut taken = Vec::new();
    let mut others = Vec::new();
    for (at, item) in node.items().iter().enumerate() {
        let text = item.text().map(str::trim).unwrap_or_default();
        if let Some(text) = text.strip_prefix(OURS_THERE) {
            taken.push((at, Taken::Bpf(text.to_owned())));
            continue;
        }
        let Some(text) = text.strip_prefix(PREFIX) else {
            others.push(item.clone());
            continue;
        };
        match KernelQueue::read(text) {
            Ok(queue) => taken.push((at, Taken::Kernel(queue))),
            Err(why) => {
                let wrong = Diagnostic::error(item.span.clone(), why);
                reading.tell(wrong.help("write for example \"kernel:fq_codel\", as in tc's manual"));
            }
        }
    }
    if others.len() == node.items().len() {
        return taken;
    }
    if others.is_empty() {
        others.push(Node { span: node.span.clone(), value: Value::Text(PLACEHOLDER.to_owned()) });
    }
    let span = node.span.clone();
    let key = root.place("disciplines");
    root.set("disciplines", key, Node { span, value: Value::List(others) });
    taken
}

/// Ours and the kernel's, in the order in which they are written, at a bottleneck of this rate.
fn order(
    reading: &mut Reading,
    root: &Table,
    network: &Network,
    taken: &[(usize, Taken)],
    rate: Rate,
) -> Vec<Contender> {
    let written = root.get("disciplines").map_or(&[][..], Node::items);
    let mut ours = 0..network.disciplines.len();
    let mut taken = taken.iter().peekable();
    let one = |at: usize| match taken.next_if(|(place, _)| *place == at) {
        Some((_, Taken::Kernel(queue))) => Some(Contender::Kernel(queue.clone())),
        // Packets are counted without their frames, as in the whole scenario.
        Some((_, Taken::Bpf(text))) => match InKernel::new(text, Some(rate), None, MTU.0) {
            Ok(plan) => Some(Contender::Bpf(Box::new(BpfQueue { plan, place: written[at].span.clone() }))),
            Err(why) => {
                reading.tell(Diagnostic::error(written[at].span.clone(), why.to_string()));
                None
            }
        },
        None => ours.next().map(Contender::Ours),
    };
    (0..written.len().max(1)).filter_map(one).collect()
}

/// What is checked against what a machine can be.
struct Plan<'a> {
    reading: &'a mut Reading,
    root: &'a Table,
    network: &'a Network,
}

type Checked = (Vec<u16>, Vec<u16>, Direction, Direction, TcpConfig);

impl Plan<'_> {
    fn check(mut self) -> Option<Checked> {
        self.keys();
        let (forth, back) = self.bottleneck()?;
        let near = self.side(forth, back, self.network.ports[forth].from);
        let far = self.side(forth, back, self.network.ports[forth].to);
        if near.iter().any(|node| far.contains(node)) {
            let port = &self.network.ports[forth];
            let message = format!("there is a second way around the bottleneck {}", port.name);
            self.refuse(port.at.clone(), message, "a test bed has one link between its two sides");
            return None;
        }
        self.access(forth, back);
        self.traffic();
        let tcp = self.tcp();
        let delays = self.distances(&near, &far)?;
        let direction = |at: usize, delay: Span| {
            let port = &self.network.ports[at];
            Direction { port: PortId(at as u32), rate: port.rate, delay, queue: port.queue.clone() }
        };
        let hosts = |side: &[u16]| {
            let pairs = self.network.traffic.iter().flat_map(|stream| &stream.pairs);
            let mut hosts: Vec<u16> =
                pairs.flat_map(|(a, b)| [*a, *b]).filter(|node| side.contains(node)).collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts
        };
        let (near, far) = (hosts(&near), hosts(&far));
        if near.len().max(far.len()) > MOST {
            let place = self.root.place("traffic");
            let message = format!("a test bed has at most {MOST} hosts on either side");
            self.refuse(place, message, "give each host more flows instead");
        }
        Some((near, far, direction(forth, delays.0), direction(back, delays.1), tcp?))
    }

    fn refuse(&mut self, place: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        let wrong = Diagnostic::error(place, message).label("a test bed cannot be this");
        self.reading.tell(wrong.help(help));
    }

    /// Keys of links that nothing on a test bed does.
    fn keys(&mut self) {
        const NOT_BUILT: [(&str, &str); 4] = [
            ("outages", "no link fails"),
            ("jitter", "the line's delay does not vary"),
            ("loss", "the line loses nothing"),
            ("mtu", "all interfaces carry 1,500 bytes"),
        ];
        let links = self.root.get("link").map(Node::items).unwrap_or_default();
        let tables = links.iter().filter_map(Node::table);
        let tables: Vec<&Table> = tables
            .flat_map(|table| [Some(table), table.get("back").and_then(Node::table)])
            .flatten()
            .collect();
        for table in tables {
            for (key, why) in NOT_BUILT.into_iter().filter(|(key, _)| table.has(key)) {
                let as_built = key == "mtu"
                    && table
                        .get(key)
                        .and_then(Node::text)
                        .is_some_and(|text| text.parse::<Bytes>().is_ok_and(|mtu| mtu == MTU));
                if !as_built {
                    let help = "leave it out, or simulate it: host = \"network\"";
                    self.refuse(table.place(key), format!("{key}: {why}"), help);
                }
            }
        }
        if let Some(record) = self.root.get("record").and_then(Node::table) {
            for key in ["port", "senders", "episodes", "bursts"].into_iter().filter(|key| record.has(key)) {
                let help = "leave it out: the bottleneck's packets and all flows are measured";
                self.refuse(record.place(key), format!("{key}: it cannot be chosen"), help);
            }
        }
    }

    /// The two ports of the link that compares.
    fn bottleneck(&mut self) -> Option<(usize, usize)> {
        let ports = &self.network.ports;
        let comparing: Vec<usize> =
            (0..ports.len()).filter(|at| ports[*at].queue == Queue::Compare).collect();
        let Some(&forth) = comparing.first() else {
            let place = self.root.place("link");
            self.refuse(place, "no link says which one is the bottleneck", "write qdisc = \"compare\" in it");
            return None;
        };
        let reverse =
            |at: usize| ports.iter().position(|port| (port.from, port.to) == (ports[at].to, ports[at].from));
        let Some(back) = reverse(forth) else {
            let place = ports[forth].at.clone();
            self.refuse(place, "there is no way back over the bottleneck", "leave back = false out");
            return None;
        };
        if let Some(other) = comparing.iter().find(|at| ![forth, back].contains(at)) {
            let (first, second) = (&ports[forth], &ports[*other]);
            let message = format!("{} and {} are two bottlenecks: one can be built", first.name, second.name);
            let help = "write qdisc = \"compare\" in one [[link]], or simulate it: host = \"network\"";
            self.refuse(second.at.clone(), message, help);
            return None;
        }
        if ports[back].queue == Queue::Compare {
            let (first, second) = (&ports[forth], &ports[back]);
            let message =
                format!("{} and {} both compare: one direction is measured", first.name, second.name);
            self.refuse(
                second.at.clone(),
                message,
                "write a discipline as the qdisc of back, or leave it out",
            );
            return None;
        }
        Some((forth, back))
    }

    /// The nodes that can be reached from one without crossing the bottleneck.
    fn side(&self, forth: usize, back: usize, start: u16) -> Vec<u16> {
        let mut neighbours: Vec<Vec<u16>> = vec![Vec::new(); self.network.nodes.len()];
        for (number, port) in self.network.ports.iter().enumerate() {
            if ![forth, back].contains(&number) {
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

    /// The other links are delays, and must not be more.
    fn access(&mut self, forth: usize, back: usize) {
        let network = self.network;
        let fastest = network.ports[forth].rate.max(network.ports[back].rate);
        let others = network.ports.iter().enumerate().filter(|(at, _)| ![forth, back].contains(at));
        let mut told = None;
        for (_, port) in others {
            if let Some(written) = &port.written {
                let message = format!("nothing waits at {}: it is fast enough", port.name);
                self.refuse(written.span.clone(), message, "leave its qdisc out");
            }
            // Links of a range, and their two directions, would say the same.
            if port.rate.as_bit() < FASTER * fastest.as_bit() && told.replace(&port.at) != Some(&port.at) {
                let message = format!(
                    "{} has {}, less than {FASTER} times the {fastest} of the bottleneck: it would be a \
                     second bottleneck",
                    port.name, port.rate
                );
                self.refuse(port.at.clone(), message, "give it a higher rate");
            }
        }
    }

    fn traffic(&mut self) {
        for stream in &self.network.traffic {
            let what = format!("traffic \"{}\"", stream.name);
            let kind = stream.spec.name();
            if ["capture", "applications"].contains(&kind) {
                let message =
                    format!("{what}: {kind} repeats what a capture says, its distances too: it runs not");
                self.refuse(stream.table.place("kind"), message, "simulate it: host = \"network\"");
            }
            for (key, said) in [("class", stream.class != 0), ("reserved", stream.reserved.as_bit() != 0)] {
                if said {
                    let message = format!("{what}: frames carry no {key} of their own");
                    self.refuse(stream.table.place(key), message, format!("leave {key} out"));
                }
            }
        }
    }

    /// How far the two sides are from each other, there and back: the same for all.
    fn distances(&mut self, near: &[u16], far: &[u16]) -> Option<(Span, Span)> {
        let mut all: Option<(Span, Span)> = None;
        let network = self.network;
        let paths = network.paths();
        for stream in &network.traffic {
            // Nodes that the scenario does not name stand in a file.
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
                    self.refuse(named, message, "let it cross the bottleneck");
                    return None;
                }
                let way = |a, b| network.delay(&paths, a, b);
                let here = (way(left, right), way(right, left));
                let known = *all.get_or_insert(here);
                if known != here {
                    let message = format!(
                        "traffic \"{}\": the way from \"{}\" to \"{}\" and back takes {}, another {}: hosts of \
                         different distance cannot be",
                        stream.name,
                        name(left),
                        name(right),
                        here.0 + here.1,
                        known.0 + known.1
                    );
                    self.refuse(named, message, "give all of them links of the same delay");
                    return None;
                }
            }
        }
        if all.is_none() {
            let place = self.root.place("traffic");
            self.refuse(place, "the files of its traffic name no nodes", "let it cross the bottleneck");
        }
        all
    }

    /// The kernel's TCP has fewer knobs than the simulator's, and most of them are those of a whole host.
    fn tcp(&mut self) -> Option<TcpConfig> {
        let streams = &self.network.traffic;
        let first = streams.first()?;
        let congestion = first.tcp.congestion;
        let same = |stream: &&Stream| TcpConfig { congestion, ..stream.tcp.clone() } == first.tcp;
        if let Some(other) = streams.iter().find(|stream| !same(stream)) {
            let message = format!(
                "traffic \"{}\": a host has one TCP, only its congestion control differs",
                other.name
            );
            self.refuse(other.table.place("tcp"), message, "say the rest in the file's [tcp]");
        }
        let tcp = first.tcp.clone();
        let usual = TcpConfig::default();
        let wrong: [(&str, bool, String); 8] = [
            ("mss", !SEGMENTS.contains(&tcp.mss), "\"1460b\", or \"1448b\" with timestamps".into()),
            ("rto_initial", tcp.rto_initial != usual.rto_initial, format!("\"{}\"", usual.rto_initial)),
            ("limited_transmit", !tcp.limited_transmit, "true".into()),
            ("counting", tcp.counting != usual.counting, "\"bytes\"".into()),
            (
                "delayed_ack_timer",
                tcp.delayed_ack_timer != usual.delayed_ack_timer,
                format!("\"{}\"", usual.delayed_ack_timer),
            ),
            ("pacing", tcp.pacing, "false".into()),
            ("give_up", tcp.give_up > 255, "at most 255".into()),
            ("give_up_handshake", tcp.give_up_handshake > 127, "at most 127".into()),
        ];
        let place = self.root.get("tcp").and_then(Node::table);
        for (key, _, right) in wrong.into_iter().filter(|(_, wrong, _)| *wrong) {
            let at = place.map_or_else(|| first.table.place("tcp"), |table| table.place(key));
            self.refuse(
                at,
                format!("{key}: Linux has no such TCP"),
                format!("write {right}, or leave it out"),
            );
        }
        Some(tcp)
    }
}
