//! Nodes and ports: links as they are written, made into directions with a port each.

use std::collections::BTreeMap;
use std::ops::Range;

use giveway_disciplines::Spec;
use giveway_qdisc::{Bytes, LinkContext, Onward, Rate, Share, Span, Streams, Time};
use giveway_sim::Network;

use super::keys::{Ends, Outage, Way};
use crate::diagnostic::Diagnostic;
use crate::draft::choices;
use crate::fields::{Reading, grouped, head, keys};
use crate::tree::{Node, Table, Value};

/// One direction of a link. Its place in the list is its number.
#[derive(Clone, Debug)]
pub struct Port {
    /// "home->isp".
    pub name: String,
    /// The node that sends.
    pub from: u16,
    /// The node that receives.
    pub to: u16,
    /// How fast it sends.
    pub rate: Rate,
    /// How long a packet is on the wire.
    pub delay: Span,
    /// Extra delay, drawn evenly between zero and this.
    pub jitter: Span,
    /// Share of the packets lost on the wire.
    pub loss: Share,
    /// What it costs when routes are chosen.
    pub cost: u32,
    /// The largest packet.
    pub mtu: Bytes,
    /// When it is down, from and to, in order.
    pub outages: Vec<(Time, Time)>,
    /// What waits in front of it.
    pub queue: Queue,
    /// Where its discipline is written; none where it is the default.
    pub(crate) written: Option<Node>,
    /// Where its link is written.
    pub(crate) at: Range<usize>,
}

/// Which discipline is in front of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Queue {
    /// The one whose turn it is.
    Compare,
    /// Always this one.
    Fixed(Spec),
}

impl Queue {
    /// Whether it is that of a link that says nothing.
    pub fn is_usual(&self) -> bool {
        *self == default_queue()
    }

    /// The discipline there, where `compared` has its turn.
    pub fn spec<'a>(&'a self, compared: &'a Spec) -> &'a Spec {
        match self {
            Queue::Compare => compared,
            Queue::Fixed(spec) => spec,
        }
    }
}

impl Port {
    /// The site of a discipline there, for a run with these streams in a network with these links.
    pub fn context(&self, streams: &Streams, links: &Onward) -> LinkContext {
        let streams = streams.within("link").within(&self.name).within("qdisc");
        LinkContext { rate: self.rate, mtu: self.mtu, streams, onward: links.beyond(self.to) }
    }
}

/// All links, as disciplines are told of them.
pub fn onward(ports: &[Port]) -> Onward {
    Onward::new(0, ports.iter().map(|port| ((port.from, port.to), port.rate)))
}

/// The most ports of a network, two for each link that has both directions. A star of as many nodes as there may be
/// has half of them.
const MOST_PORTS: usize = 262_144;

/// The network of a scenario.
pub(crate) struct Topology {
    pub nodes: Vec<String>,
    pub ports: Vec<Port>,
    /// Whether every link could be read: otherwise nothing can be said about what is missing.
    pub whole: bool,
    node_numbers: BTreeMap<String, u16>,
    port_numbers: BTreeMap<String, usize>,
}

impl Topology {
    pub fn node(&self, name: &str) -> Option<u16> {
        self.node_numbers.get(name).copied()
    }
    pub fn port(&self, name: &str) -> Option<usize> {
        self.port_numbers.get(name).copied()
    }
    pub fn compares(&self) -> bool {
        self.ports.iter().any(|port| port.queue == Queue::Compare)
    }
}

/// The queue of every link that says nothing: as long as Linux' own.
fn default_queue() -> Queue {
    Queue::Fixed("fifo limit 1000p".parse().expect("the default discipline can be read"))
}

/// Reads all links.
pub(crate) fn read(reading: &mut Reading, root: &Table) -> Topology {
    let mut building = Building {
        topology: Topology {
            nodes: Vec::new(),
            ports: Vec::new(),
            whole: true,
            node_numbers: BTreeMap::new(),
            port_numbers: BTreeMap::new(),
        },
        full: false,
        usual: default_queue(),
    };
    match root.get("link").map(|node| (&node.value, node)) {
        Some((Value::List(links), _)) if !links.is_empty() => {
            for link in links {
                building.link(reading, link);
                if building.full {
                    break;
                }
            }
        }
        None | Some((Value::List(_), _)) => {
            building.topology.whole = false;
            let place = root.place("link");
            let end = if root.has("link") { place } else { reading.end() };
            reading.tell(
                Diagnostic::error(end, "a network needs links")
                    .help("write [[link]] with from, to, rate and delay"),
            );
        }
        Some((_, node)) => {
            building.topology.whole = false;
            let wrong = Diagnostic::error(node.span.clone(), "links are a list of tables");
            reading.tell(
                wrong.label(format!("this is {}", node.what())).help("write [[link]], with two brackets"),
            );
        }
    }
    building.topology
}

struct Building {
    topology: Topology,
    /// Whether there are more nodes or ports than a network may have. Links after that are not read.
    full: bool,
    /// The queue of every link that says nothing.
    usual: Queue,
}

/// What the two directions of a link need besides their ends.
struct Direction<'a> {
    way: Way,
    qdisc: Option<&'a Node>,
    queue: Option<Queue>,
}

impl Building {
    fn link(&mut self, reading: &mut Reading, node: &Node) {
        const EXAMPLE: &str = "[[link]] with from, to, rate and delay";
        let Some(table) = reading.table(node, "a link", EXAMPLE) else {
            self.topology.whole = false;
            return;
        };
        reading.unknown_keys(table, "a link", &[keys::<Ends>(), keys::<Way>()].concat());
        let errors = reading.found.len();
        // Its keys are checked here; the ranges that they hold are read below.
        let _: Option<Ends> = reading.fields(table, "a link");
        let there = direction(reading, table, "a link");
        for key in ["from", "to", "rate", "delay"].into_iter().filter(|key| !table.has(key)) {
            reading.missing(table, "a link", key);
        }
        let back = table.get("back").map(|written| (&written.value, written));
        let back = match back {
            None | Some((Value::Switch(true), _)) => Some(None),
            Some((Value::Switch(false), _)) => None,
            Some((Value::Table(back), _)) => {
                reading.unknown_keys(back, "the way back of a link", &keys::<Way>());
                Some(Some(direction(reading, back, "the way back")))
            }
            Some((_, written)) => {
                let wrong = Diagnostic::error(
                    written.span.clone(),
                    "back: expected a table, or false where there is no way back",
                );
                reading.tell(wrong.label(format!("this is {}", written.what())));
                None
            }
        };
        let pairs = self.pairs(reading, table);
        check_numbers(reading, table);
        let (Some(pairs), Some(rate), Some(delay)) = (pairs, there.way.rate, there.way.delay) else {
            self.topology.whole = false;
            return;
        };
        if reading.found.len() > errors {
            self.topology.whole = false;
        }
        let at = head(&reading.origin, table);
        for (from, to) in pairs {
            let (Some(a), Some(b)) = (self.number(&from), self.number(&to)) else {
                let message = format!("this link makes more than {} nodes", grouped(Network::MOST_NODES));
                return self.refuse_more(reading, at, message, "a network has at most so many: name fewer");
            };
            if self.topology.ports.len() + 2 > MOST_PORTS {
                let message = format!("this link makes more than {} ports", grouped(MOST_PORTS));
                let help = "a link has a port at each end; write fewer links, or back = false";
                return self.refuse_more(reading, at, message, help);
            }
            let ends = (a, b);
            let new = self.port(reading, &at, (&from, &to), ends, &there, None, (rate, delay));
            if new && let Some(back) = &back {
                let same = Direction { way: Way::default(), qdisc: None, queue: None };
                let back = back.as_ref().unwrap_or(&same);
                self.port(
                    reading,
                    &at,
                    (&to, &from),
                    (ends.1, ends.0),
                    back,
                    Some(&there.way),
                    (rate, delay),
                );
            }
        }
    }

    /// The nodes of a link, pair by pair.
    fn pairs(&mut self, reading: &mut Reading, table: &Table) -> Option<Vec<(String, String)>> {
        let (from, to) = (reading.nodes(table, "from"), reading.nodes(table, "to"));
        let (from, to) = (from?, to?);
        let pairs = reading.pairs(table, &from, &to)?;
        if let Some((node, _)) = pairs.iter().find(|(one, other)| one == other) {
            let message = format!("a link leads from \"{node}\" to itself");
            reading.tell(Diagnostic::error(table.place("to"), message).help("a link joins two nodes"));
            return None;
        }
        Some(pairs)
    }

    /// The number of a node, which comes into being here if it is new; `None` when there are too many.
    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(known) = self.topology.node(name) {
            return Some(known);
        }
        let nodes = &mut self.topology.nodes;
        if nodes.len() == Network::MOST_NODES {
            return None;
        }
        let number = u16::try_from(nodes.len()).expect("the limit is below 16 bits");
        nodes.push(name.to_owned());
        self.topology.node_numbers.insert(name.to_owned(), number);
        Some(number)
    }

    fn refuse_more(&mut self, reading: &mut Reading, at: Range<usize>, message: String, help: &str) {
        reading.tell(Diagnostic::error(at, message).help(help));
        self.full = true;
        self.topology.whole = false;
    }

    /// Adds one direction; false when it is there already.
    #[allow(clippy::too_many_arguments, reason = "each is a fact about one direction of a link")]
    fn port(
        &mut self,
        reading: &mut Reading,
        at: &Range<usize>,
        names: (&str, &str),
        ends: (u16, u16),
        direction: &Direction<'_>,
        like: Option<&Way>,
        (rate, delay): (Rate, Span),
    ) -> bool {
        let name = format!("{}->{}", names.0, names.1);
        if let Some(first) = self.topology.port(&name) {
            let line = reading.origin.place(&self.topology.ports[first].at).line;
            let message = format!("there are two links \"{name}\"");
            reading.tell(
                Diagnostic::error(at.clone(), message)
                    .label(format!("the first is in line {line}"))
                    .help("a [[link]] has both directions; write back = false where it has one"),
            );
            return false;
        }
        self.topology.port_numbers.insert(name.clone(), self.topology.ports.len());
        let way = &direction.way;
        let port = Port {
            name,
            from: ends.0,
            to: ends.1,
            rate: way.rate.unwrap_or(rate),
            delay: way.delay.unwrap_or(delay),
            jitter: way.jitter.unwrap_or_default(),
            loss: way.loss.unwrap_or_default(),
            cost: way.cost.or(like.and_then(|like| like.cost)).unwrap_or(1),
            mtu: way.mtu.or(like.and_then(|like| like.mtu)).unwrap_or(Bytes(1500)),
            outages: outages(way.outages.as_ref().or(like.and_then(|like| like.outages.as_ref()))),
            queue: direction.queue.clone().unwrap_or_else(|| self.usual.clone()),
            written: direction.qdisc.cloned(),
            at: at.clone(),
        };
        self.topology.ports.push(port);
        true
    }
}

/// Times at which a link is down, as times from the start.
fn outages(written: Option<&Vec<Outage>>) -> Vec<(Time, Time)> {
    let times = written.into_iter().flatten().map(|outage| {
        let down = Time::ZERO + outage.at;
        (down, down + outage.lasts)
    });
    times.collect()
}

/// What is said about one direction.
fn direction<'a>(reading: &mut Reading, table: &'a Table, what: &str) -> Direction<'a> {
    let way: Way = reading.fields(table, what).unwrap_or_default();
    let qdisc = table.get("qdisc");
    let queue = qdisc.and_then(|node| match node.text() {
        Some("compare") => Some(Queue::Compare),
        // A slip in this one word would otherwise be told as an unknown discipline.
        Some(word) if giveway_qdisc::units::nearest(word, ["compare"]).is_some() => {
            let wrong = Diagnostic::error(node.span.clone(), format!("unknown discipline \"{word}\""));
            reading.tell(wrong.help(choices(word, &["compare"])));
            None
        }
        _ => reading.spec(node).map(Queue::Fixed),
    });
    check_outages(reading, table, way.outages.as_deref().unwrap_or_default());
    if let Some(back) = table.get("back").and_then(Node::table) {
        check_numbers(reading, back);
    }
    Direction { way, qdisc, queue }
}

/// Outages come one after the other, and each takes some time.
fn check_outages(reading: &mut Reading, table: &Table, outages: &[Outage]) {
    let place = table.place("outages");
    if outages.iter().any(|outage| outage.lasts.is_zero()) {
        let wrong = Diagnostic::error(place.clone(), "outages: one of 0 is none");
        reading.tell(wrong.help("write for example outages = [{ at = \"10 s\", lasts = \"5 s\" }]"));
    }
    let late = outages.windows(2).find(|pair| pair[1].at <= pair[0].at + pair[0].lasts);
    if let Some([first, second]) = late {
        let message = format!(
            "outages: the link is still down at {}, from {} for {}",
            second.at, first.at, first.lasts
        );
        reading.tell(Diagnostic::error(place, message).help("write them in order, with time between them"));
    }
}

/// Numbers that have a unit and still make no link.
fn check_numbers(reading: &mut Reading, table: &Table) {
    let text = |key| Some((table.get(key)?, table.get(key)?.text()?));
    if let Some((node, Ok(rate))) = text("rate").map(|(node, text)| (node, text.parse::<Rate>()))
        && rate.as_bit() == 0
    {
        let wrong = Diagnostic::error(node.span.clone(), "rate: a link of 0 sends nothing");
        reading.tell(wrong.help("write for example \"10mbit\""));
    }
    // Two paths that lead back to each other would be equally short.
    if let Some(Node { span, value: Value::Integer(0) }) = table.get("cost") {
        let wrong = Diagnostic::error(span.clone(), "cost: at 0 packets could go round in circles");
        reading.tell(wrong.help("write at least 1, and more for the other links"));
    }
    if let Some((node, Ok(mtu))) = text("mtu").map(|(node, text)| (node, text.parse::<Bytes>()))
        && !(68..=65_535).contains(&mtu.0)
    {
        let message = format!("mtu: {mtu} is not between 68 and 65,535 bytes");
        reading.tell(Diagnostic::error(node.span.clone(), message).help("Ethernet has \"1500b\""));
    }
}
