//! Reads `[contest]`: senders of which every pair shares its own link.
//!
//! # Principles
//! - A contest stands for links and traffic: for each pair of senders a `[[link]]` with the keys of the
//!   table, and a bulk transfer of each. It is written out before links and traffic are read, so every key of
//!   a link and of `[tcp]` has its usual meaning, and messages point at the table.
//! - A sender paired with itself has both transfers in one source.

use std::collections::BTreeSet;

use giveway_qdisc::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::keys::{DirectionKeys, Names};
use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, keys, wrong_type};
use crate::tree::{Node, Table, Value};

/// The senders of a contest, each with its own name.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// The names, in the order of the file.
    pub senders: Vec<String>,
}

impl Contest {
    /// Every pair of two places in the list, the smaller first; also of each sender with itself.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.senders.len();
        (0..count).flat_map(move |one| (one..count).map(move |other| (one, other)))
    }

    /// The name of the traffic of `one` on the link that it shares with `other`.
    pub fn traffic(&self, one: usize, other: usize) -> String {
        match one == other {
            true => format!("{} beside itself", self.senders[one]),
            false => format!("{} beside {}", self.senders[one], self.senders[other]),
        }
    }

    /// The nodes of the link of a pair, the sending one first.
    fn nodes(&self, one: usize, other: usize) -> (String, String) {
        let (one, other) = (one.min(other), one.max(other));
        let name = format!("{}.{}", node_name(&self.senders[one]), node_name(&self.senders[other]));
        (name.clone(), format!("{name}.receiver"))
    }

    /// The name of the port that a pair shares.
    pub fn port(&self, one: usize, other: usize) -> String {
        let (from, to) = self.nodes(one, other);
        format!("{from}->{to}")
    }
}

/// A name as a node can have it: other characters become hyphens.
fn node_name(sender: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    sender.chars().map(valid).collect()
}

/// The keys of a contest. It also contains the keys of a link.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ContestKeys {
    /// The congestion controls, such as "cubic". A table takes a name and keys of tcp: { name = "reno with
    /// ECN", congestion = "reno", ecn = true }.
    #[schemars(with = "Names")]
    pub senders: IgnoredAny,
    /// The transfers of each sender on a link. Default: 1.
    pub flows: Option<u32>,
    /// The time within which transfers start, each at a random time. Default: 100 ms.
    pub spread: Option<Span>,
    /// The keys that differ in the reverse direction of the links.
    #[schemars(with = "crate::file::Part")]
    pub back: IgnoredAny,
}

/// The keys of a contest that its links do not have.
pub(crate) const OWN: [&str; 3] = ["senders", "flows", "spread"];
/// Maximum number of senders: with 40 there are 820 links.
const MAX: usize = 40;

/// A sender, as written.
struct Sender {
    name: String,
    /// The keys of its TCP.
    tcp: Table,
}

/// Writes a contest out as links and traffic. Returns the keys at the top with them, and the contest; `None`
/// without one, or if it is wrong.
pub(crate) fn write_out(reading: &mut Reading, root: &Table) -> Option<(Table, Contest)> {
    let table = reading.table(root.get("contest")?, "[contest]", "[contest] with senders, rate and delay")?;
    let known = [keys::<ContestKeys>(), keys::<DirectionKeys>()].concat();
    reading.unknown_keys(table, "[contest]", &known);
    let read: ContestKeys = reading.fields(table, "[contest]").unwrap_or_default();
    let senders = senders(reading, table)?;
    let contest = Contest { senders: senders.iter().map(|sender| sender.name.clone()).collect() };
    let mut nodes = BTreeSet::new();
    if let Some((one, other)) =
        contest.pairs().find(|(one, other)| !nodes.insert(contest.nodes(*one, *other).0))
    {
        let message =
            format!("\"{}\" and \"{}\" have similar names", contest.senders[one], contest.senders[other]);
        let wrong = Diagnostic::error(table.place("senders"), message);
        reading.report(wrong.help("names differ in more than spaces and punctuation"));
        return None;
    }
    let flows = read.flows.unwrap_or(1);
    let writer = Writer { table, known: &known, spread: read.spread };
    let (mut links, mut traffic) = (Vec::new(), Vec::new());
    for (one, other) in contest.pairs() {
        links.push(writer.link(&contest, one, other));
        if one == other {
            traffic.push(writer.transfers(&contest, (one, one), &senders[one], flows.saturating_mul(2)));
        } else {
            traffic.push(writer.transfers(&contest, (one, other), &senders[one], flows));
            traffic.push(writer.transfers(&contest, (other, one), &senders[other], flows));
        }
    }
    let mut written = root.clone();
    append(&mut written, "link", links, table);
    append(&mut written, "traffic", traffic, table);
    Some((written, contest))
}

/// Appends tables to a list of tables. Any other value stays, and is reported later.
fn append(root: &mut Table, key: &str, tables: Vec<Node>, contest: &Table) {
    match root.get_mut(key) {
        Some(Node { value: Value::List(list), .. }) => list.extend(tables),
        Some(_) => {}
        None => {
            let span = contest.span.clone();
            root.set(key, span.clone(), Node { span, value: Value::List(tables) });
        }
    }
}

/// The senders; `None` if any is wrong.
fn senders(reading: &mut Reading, table: &Table) -> Option<Vec<Sender>> {
    let Some(node) = table.get("senders") else {
        reading.missing(table, "[contest]", "senders");
        return None;
    };
    let items = node.items();
    if !(1..=MAX).contains(&items.len()) {
        let message = format!("senders: a contest has 1 to {MAX} senders, not {}", items.len());
        let wrong = Diagnostic::error(node.span.clone(), message);
        reading.report(wrong.help("write for example senders = [\"cubic\", \"bbr\"]"));
        return None;
    }
    let senders: Vec<Sender> = items.iter().filter_map(|item| sender(reading, item)).collect();
    let mut names = BTreeSet::new();
    if let Some(twice) = senders.iter().find(|sender| !names.insert(sender.name.as_str())) {
        let wrong =
            Diagnostic::error(node.span.clone(), format!("senders: \"{}\" is listed twice", twice.name));
        reading.report(wrong.help("a sender also competes with itself; give each variant its own name"));
        return None;
    }
    (senders.len() == items.len()).then_some(senders)
}

fn sender(reading: &mut Reading, item: &Node) -> Option<Sender> {
    if let Some(text) = item.text() {
        let mut tcp = Table { span: item.span.clone(), entries: Vec::new() };
        tcp.set("congestion", item.span.clone(), item.clone());
        return Some(Sender { name: text.to_owned(), tcp });
    }
    let Some(table) = item.table() else {
        let wrong = wrong_type(item, "senders: expected a congestion control, or a table");
        reading.report(wrong.help("write for example \"cubic\" or { congestion = \"cubic\", ecn = true }"));
        return None;
    };
    let Some(name) = table.get("name").or_else(|| table.get("congestion")).and_then(Node::text) else {
        reading.missing(table, "a sender", "congestion");
        return None;
    };
    let mut tcp = table.clone();
    tcp.entries.retain(|entry| entry.key != "name");
    Some(Sender { name: name.to_owned(), tcp })
}

/// Writes the tables of pairs.
struct Writer<'a> {
    /// The table of the contest, with the keys of the links.
    table: &'a Table,
    /// The valid keys of the table.
    known: &'a [&'a str],
    spread: Option<Span>,
}

impl Writer<'_> {
    /// A table at the place of the contest, with these keys.
    fn node(&self, keys: Vec<(&str, Value)>) -> Node {
        let span = self.table.span.clone();
        let mut table = Table { span: span.clone(), entries: Vec::new() };
        for (key, value) in keys {
            table.set(key, span.clone(), Node { span: span.clone(), value });
        }
        Node { span, value: Value::Table(table) }
    }

    /// The link of a pair.
    fn link(&self, contest: &Contest, one: usize, other: usize) -> Node {
        let (from, to) = contest.nodes(one, other);
        let mut node = self.node(vec![
            ("from", Value::Text(from)),
            ("to", Value::Text(to)),
            ("qdisc", Value::Text("compare".to_owned())),
        ]);
        let Value::Table(link) = &mut node.value else { unreachable!("it was just made") };
        let of_link = |key: &str| !OWN.contains(&key) && self.known.contains(&key);
        for entry in self.table.entries.iter().filter(|entry| of_link(&entry.key)) {
            link.set(&entry.key, entry.key_span.clone(), entry.node.clone());
        }
        node
    }

    /// The transfers of one sender of a pair.
    fn transfers(
        &self,
        contest: &Contest,
        (one, other): (usize, usize),
        sender: &Sender,
        flows: u32,
    ) -> Node {
        let (from, to) = contest.nodes(one, other);
        let mut keys = vec![
            ("name", Value::Text(contest.traffic(one, other))),
            ("kind", Value::Text("bulk".to_owned())),
            ("from", Value::Text(from)),
            ("to", Value::Text(to)),
            ("flows", Value::Integer(flows.into())),
            ("tcp", Value::Table(sender.tcp.clone())),
        ];
        if let Some(spread) = self.spread {
            keys.push(("spread", Value::Text(spread.to_string())));
        }
        self.node(keys)
    }
}
