//! Datagram list: single datagrams from a file that lists their times and lengths.
//!
//! # Principles
//! - A CSV file with a row `time_s,size_bytes` for each datagram, or `time_s,src,dst,size_bytes`; in either,
//!   `flow` may be one more column at the end. The first row decides which of the four it is. A first row of
//!   exactly these names is a header; rows may come in any order, `#` starts a comment.
//! - Times are seconds after the source's start; rows of equal times keep the order of the file. Sizes count
//!   whole IP packets, with their 28 bytes of headers.
//! - `src` and `dst` are nodes, named as the scenario names them. Without these columns the scenario sets
//!   `from` and `to`, and each pair of nodes has all datagrams of the file.
//! - The column `flow` has a number or a name: rows with the same value and the same nodes are one flow. The
//!   same value in the reverse direction is another flow. Without that column the datagrams from one node to
//!   another are one flow.
//! - A bad row is an error: the message names the row, the column, the value found and the value expected.
//!
//! # Deviations
//! - Rows at the source's stop or later are left out.
//!
//! # Cost
//! - 16 bytes per row, one event per distinct time.
//!
//! # References
//! - CSV as RFC 4180 describes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use giveway_qdisc::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rows::{self, CsvRow, RowError};
use super::{MAX_FLOWS, NodeOrigin, Source, SourceContext, Traffic};
use crate::net::{Net, StreamId};
use crate::segment::UDP_HEADER;

/// Parameters of `datagram_list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// CSV file with the columns time_s, size_bytes, or time_s, src, dst, size_bytes; flow may follow.
    pub file: PathBuf,
}

const KINDS: [&[&str]; 4] = [
    &["time_s", "size_bytes"],
    &["time_s", "size_bytes", "flow"],
    &["time_s", "src", "dst", "size_bytes"],
    &["time_s", "src", "dst", "size_bytes", "flow"],
];

impl Traffic for Config {
    const SUMMARY: &'static str =
        "UDP datagrams from a CSV file: time_s,size_bytes, with nodes and flows or without";
    const PLACED: NodeOrigin = NodeOrigin::Either;
    const ANSWERED: bool = false;

    fn build(&self, context: &SourceContext) -> Result<Box<dyn Source>, Invalid> {
        let path = context.folder.join(&self.file);
        let list = read(&path, context)
            .map_err(|error| Invalid::new("file", format!("{}: {error}", path.display())))?;
        Ok(Box::new(list))
    }
}

struct DatagramList {
    /// The latest first, so that the next one is taken from the end.
    datagrams: Vec<Datagram>,
    /// All flows; flows of one datagram are adjacent.
    flows: Vec<Flow>,
    /// Number of flows that each datagram is sent on: one for each pair of nodes that the scenario names,
    /// otherwise one.
    copies: usize,
    /// True if the file names nodes.
    names_nodes: bool,
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    at: Time,
    /// Index of the first of its flows.
    flow: u32,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    from: u16,
    to: u16,
    stream: Option<StreamId>,
}

impl Source for DatagramList {
    fn wake(&mut self, net: &mut Net<'_>) {
        while let Some(datagram) = self.datagrams.pop_if(|datagram| datagram.at <= net.now()) {
            let first = datagram.flow as usize;
            for flow in &mut self.flows[first..first + self.copies] {
                let stream = *flow.stream.get_or_insert_with(|| net.stream(flow.from, flow.to));
                net.datagram(stream, datagram.bytes);
            }
        }
        if let Some(datagram) = self.datagrams.last() {
            net.wake_at(datagram.at);
        }
    }

    fn named(&self) -> Option<Vec<(u16, u16)>> {
        let pairs = || self.flows.iter().map(|flow| (flow.from, flow.to)).collect();
        self.names_nodes.then(pairs)
    }
}

/// The flow of a row: its nodes, if the file names them, and its name.
type FlowName = (Option<(u16, u16)>, String);

fn read(path: &Path, context: &SourceContext) -> Result<DatagramList, RowError> {
    let mut list = DatagramList { datagrams: Vec::new(), flows: Vec::new(), copies: 1, names_nodes: false };
    let mut known: BTreeMap<FlowName, u32> = BTreeMap::new();
    rows::read(path, &KINDS, |row| {
        let at = context.start + row.time("time_s")?.since(Time::ZERO);
        let ends = row.nodes(&context.nodes)?;
        let bytes = length(&row)?;
        let name = match row.text("flow") {
            Some("") => return Err(row.bad("flow", "a number or a name")),
            name => name.unwrap_or_default().to_owned(),
        };
        list.names_nodes = ends.is_some();
        let pairs = ends.as_ref().map_or(&context.pairs[..], std::slice::from_ref);
        list.copies = pairs.len();
        let new = list.flows.len() as u32;
        let flow = *known.entry((ends, name)).or_insert(new);
        if flow == new {
            list.flows.extend(pairs.iter().map(|(from, to)| Flow { from: *from, to: *to, stream: None }));
        }
        if list.flows.len() > MAX_FLOWS {
            return Err(RowError::Flows { row: row.number(), most: MAX_FLOWS });
        }
        if at < context.stop {
            list.datagrams.push(Datagram { at, flow, bytes });
        }
        Ok(())
    })?;
    // Equal times keep the order of the file.
    list.datagrams.reverse();
    list.datagrams.sort_by_key(|datagram| std::cmp::Reverse(datagram.at));
    Ok(list)
}

/// The length of its IP packet.
fn length(row: &CsvRow<'_>) -> Result<u32, RowError> {
    let column = "size_bytes";
    match row.text(column).unwrap_or_default().parse() {
        Ok(bytes) if (UDP_HEADER..=65_535).contains(&bytes) => Ok(bytes),
        _ => Err(row.bad(column, format!("the length of an IP packet in bytes, {UDP_HEADER} to 65,535"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpConfig;
    use giveway_qdisc::{Rate, Streams};

    /// Reads it for the pairs 0 to 2 and 1 to 2, from second 1 to second 10.
    fn read_text(text: &str) -> Result<DatagramList, RowError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("datagrams.csv");
        std::fs::write(&path, text).unwrap();
        let context = SourceContext {
            pairs: vec![(0, 2), (1, 2)],
            hosts: Vec::new(),
            access: Rate::default(),
            start: Time::s(1),
            stop: Time::s(10),
            tcp: TcpConfig::rfc(),
            quic: crate::QuicConfig::default(),
            streams: Streams::new(1),
            folder: folder.path().to_owned(),
            nodes: ["alice", "router", "bob"].map(str::to_owned).to_vec(),
        };
        read(&path, &context)
    }

    /// The datagrams in the order of sending: millisecond, bytes, and for each copy its nodes and the number
    /// of its flow.
    fn sent(text: &str) -> Vec<(u64, u32, String)> {
        let list = read_text(text).unwrap();
        let flow = |number: usize| {
            let Flow { from, to, .. } = list.flows[number];
            format!("{from}->{to} #{number}")
        };
        let copies = |first: u32| {
            let first = first as usize;
            (first..first + list.copies).map(flow).collect::<Vec<_>>().join(", ")
        };
        let datagrams = list.datagrams.iter().rev();
        datagrams
            .map(|datagram| (datagram.at.as_ps() / 1_000_000_000, datagram.bytes, copies(datagram.flow)))
            .collect()
    }

    #[test]
    fn every_pair_of_the_scenario_has_the_whole_list() {
        let both = "0->2 #0, 1->2 #1".to_owned();
        for header in ["", "time_s,size_bytes\n", "# from a trace\ntime_s, size_bytes\n"] {
            // Rows may come in any order, equal times keep theirs, and what lies at the stop or later is left
            // out.
            let rows = sent(&format!("{header}0.5,1000\n0, 28 \n9,99\n0.5,65535\n"));
            assert_eq!(
                rows,
                [(1000, 28, both.clone()), (1500, 1000, both.clone()), (1500, 65_535, both.clone())]
            );
        }
        assert_eq!(read_text("0,100\n").unwrap().named(), None);
    }

    #[test]
    fn rows_of_the_same_flow_are_one_flow() {
        let rows = sent("time_s,size_bytes,flow\n0,100,7\n1,200,voice\n2,300,7\n");
        let flows: Vec<String> = rows.into_iter().map(|(_, _, flows)| flows).collect();
        assert_eq!(flows, ["0->2 #0, 1->2 #1", "0->2 #2, 1->2 #3", "0->2 #0, 1->2 #1"]);
    }

    #[test]
    fn a_file_that_names_nodes_places_its_datagrams() {
        let rows = sent("0,alice,bob,100\n1,bob,alice,200\n2,alice,bob,300\n");
        let flows: Vec<String> = rows.into_iter().map(|(_, _, flows)| flows).collect();
        assert_eq!(flows, ["0->2 #0", "2->0 #1", "0->2 #0"]);
        // The same name in the reverse direction is another flow.
        let list =
            read_text("0,alice,bob,100,1\n1,bob,alice,200,1\n2,alice,bob,300,2\n20,alice,router,28,1\n");
        let list = list.unwrap();
        assert_eq!(list.datagrams.iter().map(|datagram| datagram.flow).collect::<Vec<_>>(), [2, 1, 0]);
        // The pairs of nodes do not depend on the stop of the source.
        assert_eq!(list.named().unwrap(), [(0, 2), (2, 0), (0, 2), (0, 1)]);
    }

    #[test]
    fn a_bad_row_is_named_with_its_column() {
        let refusal = |text: &str| read_text(text).err().expect("the file is invalid").to_string();
        assert_eq!(
            refusal("0,1000\n\n# a comment\n1,27\n"),
            "row 4, column size_bytes: found \"27\", expected the length of an IP packet in bytes, 28 to 65,535"
        );
        assert_eq!(
            refusal("0,65536\n"),
            "row 1, column size_bytes: found \"65536\", expected the length of an IP packet in bytes, 28 to 65,535"
        );
        assert_eq!(
            refusal("time,bytes\n"),
            "row 1, column time_s: found \"time\", expected seconds from 0 to 10,000,000"
        );
        assert_eq!(
            refusal("0,alice,bobb,100\n"),
            "row 1, column dst: found \"bobb\", expected the name of a node, perhaps \"bob\""
        );
        assert_eq!(refusal("0,100,\n"), "row 1, column flow: found \"\", expected a number or a name");
        assert_eq!(refusal("0,100\n1,100,7\n"), "row 2 has 3 columns; expected 2: time_s,size_bytes");
        assert_eq!(
            refusal("0\n"),
            "row 1 has 1 columns; expected 2: time_s,size_bytes, or 3: time_s,size_bytes,flow, or 4: \
             time_s,src,dst,size_bytes, or 5: time_s,src,dst,size_bytes,flow"
        );
    }

    #[test]
    fn more_flows_than_memory_can_hold_are_refused() {
        let rows = |flows: usize| (0..flows).map(|flow| format!("0,100,{flow}\n")).collect::<String>();
        assert_eq!(read_text(&rows(50_000)).unwrap().flows.len(), MAX_FLOWS);
        assert_eq!(
            read_text(&rows(50_001)).err().unwrap().to_string(),
            "row 50001 is of one flow too many: a source has at most 100000, all pairs of nodes together"
        );
    }
}
