//! The page of instructions per packet, from `docs/instructions.csv`.

#[path = "../../src/instructions/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use crate::recorded;
use table::{Count, by_label};

const TEXT: &str = "\
# Instructions per packet

`cargo xtask instructions` counts the processor instructions of a fixed set of workloads with callgrind, and compares them with \
`docs/instructions.csv`. A workload that takes 3 % more fails, also in the gate. Counts do not depend on the load of the machine, and hardly on \
the machine. They are not time: a packet that waits for memory takes longer than its instructions.

- The workloads of the simulator are scenarios in their short form, with their usual measurements. A packet is one that arrives at a measured port, \
so the count includes its other links, its TCP and its acknowledgement.
- The workloads of a switch count a slot of all ports.
- The workloads of a discipline count an arrival and a departure, at 100 flows with 300 queued packets, and at 10,000 flows with one queued packet \
each.

The bars show the last label relative to the first one.
";

/// Instructions by workload, in the order of the file, one for each label.
type Rows<'a> = Vec<(&'a str, BTreeMap<usize, f64>)>;

pub fn page(root: &Path) -> Result<String, String> {
    let table: Vec<Count> = recorded::read(root)?;
    let table = by_label(&table);
    let labels: Vec<&str> = table.iter().map(|counts| counts[0].label.as_str()).collect();
    let mut rows: Rows<'_> = Vec::new();
    for (label, counts) in table.iter().enumerate() {
        for count in *counts {
            let row = rows.iter().position(|(name, _)| *name == count.workload).unwrap_or_else(|| {
                rows.push((&count.workload, BTreeMap::new()));
                rows.len() - 1
            });
            rows[row].1.insert(label, count.instructions);
        }
    }
    let mut page = format!(
        "{TEXT}\n| workload | {} | |\n| --- |{} --- |\n",
        labels.join(" | "),
        " ---: |".repeat(labels.len())
    );
    for (workload, counts) in &rows {
        let cell = |label| counts.get(&label).map_or_else(String::new, |count| format!("{count:.0}"));
        let cells: Vec<String> = (0..labels.len()).map(cell).collect();
        page.push_str(&format!("| {workload} | {} | {} |\n", cells.join(" | "), bar(counts)));
    }
    Ok(page)
}

/// The ratio of the last count to the first, as a bar with its number; empty if there is one count only.
fn bar(counts: &BTreeMap<usize, f64>) -> String {
    let (Some((first, before)), Some((last, now))) = (counts.first_key_value(), counts.last_key_value())
    else {
        return String::new();
    };
    if first == last {
        return String::new();
    }
    let ratio = now / before;
    // The mark is at 1.
    format!(
        "<svg width=\"150\" height=\"14\" role=\"img\" aria-label=\"{ratio:.2}\"><rect width=\"{:.0}\" height=\"12\" y=\"1\" \
         fill=\"#4477aa\"/><rect x=\"100\" width=\"1\" height=\"14\" fill=\"#888\"/></svg> {ratio:.2}",
        (100.0 * ratio).min(150.0)
    )
}
