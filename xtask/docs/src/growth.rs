//! The page about the growth of a run's cost, from `docs/growth.csv`.

#[path = "../../src/growth/table.rs"]
mod table;

use std::path::Path;

use crate::plot::{self, Series};
use crate::recorded::{self, Column, Recorded};
use table::SizeCost;

/// A curve: its name in the table, its heading, the name of its axis, and its text.
const CURVES: &[(&str, &str, &str, &str)] = &[
    (
        "flows",
        "Flows",
        "concurrent TCP connections",
        "Endless TCP transfers over one link of 10 Gbit/s with a queue of 1,000 packets. All connections begin within the first second, and \
all stay open until the end at 1.2 s. Each sends ten segments \
at once, so a million connections send ten million, of which the link can carry one million.",
    ),
    (
        "hops",
        "Hops",
        "bottlenecks in a row",
        "Ten endless TCP transfers over a chain of links of 10 Gbit/s, for half a second. A packet has events at each hop, so time grows \
at most linearly.",
    ),
    (
        "nodes",
        "Nodes",
        "nodes, hosts and switches",
        "Transfers from each host of one half of a leaf-spine network to a host of the other half: 480,000 data packets in all, however many \
hosts send them.",
    ),
    (
        "buffer",
        "Buffer",
        "limit of the queue in packets",
        "A hundred endless TCP transfers over a link of 10 Gbit/s with a delay of 1 ms, for a second. Within it their windows do not fill the \
largest buffers, so the memory shows that an empty buffer costs nothing.",
    ),
];

const TEXT: &str = "\
# Growth of time and memory

`cargo xtask growth` measures what a run costs as it grows: with flows, with hops, with nodes and with the buffer. It writes `docs/growth.csv`, \
from which this page is drawn. Every size of a curve has about the same number of packets, so a flat line means that the size costs nothing.

- *Time* is the user time of the trial, with the computation of its metrics and the writing of its tables, on one thread. It depends on the machine \
and on its load.
- *Memory* is the largest resident memory of the command `giveway run`, with its run folder and its report. About 20 MB are the program.
- *Instructions per packet* are counted by callgrind, for sizes that it can run. They do not depend on the load. They are those of the second half \
of a run that is a fifth as long, in which slow start weighs more, so they cannot be divided by the time.
- *Events per packet* are all events of the simulator, those of acknowledgements included, for each packet. In the curve of nodes a packet is a \
data packet of the applications, in the others one at the bottleneck.

The *exponent* of a curve is its slope on logarithmic axes between its last two sizes: 1 means that twice the size takes twice the time or \
memory. `n log n` has an exponent that is a little above 1, and the table has its value between the same sizes.
";

const LIMITS: &str = "\
## What limits the largest sizes

- **Flows**: memory. An idle connection takes at most 1,000 bytes in the simulator, and less if data went one way only; a test counts them. The \
records of the flows take 136 bytes each, and a connection with segments in the network 16 bytes for each of them. So a million connections fit \
1.2 GB. An entry of `bulk` may have a million connections, and a scenario several such entries.
- **Time of many flows**: the opening of connections and the segments that the full queue drops, which are work without a packet at the \
bottleneck. With 10^6 connections an event also takes about three times as long as with 10^5. Instructions were not counted at these sizes, so the \
page cannot say how much of that is waiting for memory.
- **Nodes**: the memory of ports and routes, 6 to 6.5 kB for each port. A topology that needs more than 4 GiB for them, by an upper estimate, is refused before it is built. \
So are networks of more than 65,534 nodes, whose numbers have 16 bits.
- **Hops**: nothing but time. A packet is moved once for each hop.
- **Buffer**: memory, 128 bytes for each queued packet, and 16 bytes for each segment that its sender keeps until it is acknowledged.
";

/// Memory in bytes by which a size must exceed the smallest one before it is divided by the size: two runs of
/// one size may differ by a few megabytes.
const NOTICEABLE: f64 = 1e7;

pub fn page(root: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join(SizeCost::FILE));
    let text = text.map_err(|error| format!("{}: {error}", SizeCost::FILE))?;
    let machine = text.lines().next().and_then(|line| line.strip_prefix("# "));
    let machine = machine.ok_or(format!("{}: the first line has no machine", SizeCost::FILE))?;
    let rows: Vec<SizeCost> = recorded::parse(&text)?;
    let mut page = format!("{TEXT}\nMeasured on: {machine}.\n");
    let mut worse = Vec::new();
    for (name, heading, axis, text) in CURVES {
        let rows: Vec<&SizeCost> = rows.iter().filter(|row| row.curve == *name).collect();
        let [.., before, last] = rows[..] else {
            return Err(format!("{}: {name} has no two sizes", SizeCost::FILE));
        };
        let time = exponent(before, last, |row| row.cpu_s);
        let memory = exponent(before, last, |row| row.peak_kib as f64);
        let most = exponent(before, last, |row| f64::from(row.size) * libm::log(f64::from(row.size)));
        for (what, found) in [("time", time), ("memory", memory)] {
            if found > most {
                worse.push(format!("the {what} of {name} ({found:.2}, against {most:.2})"));
            }
        }
        page.push_str(&format!(
            "\n## {heading}\n\n{text}\n\n{}\n{}\n",
            figures(&rows, axis),
            cells(&rows, axis)
        ));
        page.push_str(&format!(
            "| between the last two sizes | exponent |\n| --- | ---: |\n| time | {time:.2} |\n| memory | {memory:.2} |\n\
             | n log n | {most:.2} |\n"
        ));
    }
    page.push_str(&match worse.is_empty() {
        true => {
            "\n## Verdict\n\nNo curve grows faster than n log n between its last two sizes.\n\n".to_owned()
        }
        false => format!(
            "\n## Verdict\n\nFaster than n log n between the last two sizes: {}.\n\n",
            worse.join(", ")
        ),
    });
    page.push_str(LIMITS);
    Ok(page)
}

/// The slope on logarithmic axes.
fn exponent(before: &SizeCost, last: &SizeCost, value: impl Fn(&SizeCost) -> f64) -> f64 {
    libm::log(value(last) / value(before)) / libm::log(f64::from(last.size) / f64::from(before.size))
}

fn figures(rows: &[&SizeCost], axis: &str) -> String {
    let series = |title: &str, value: &dyn Fn(&SizeCost) -> Option<f64>| {
        let points = rows.iter().filter_map(|row| Some((f64::from(row.size), value(row)?)));
        plot::figure(&Series { title: title.to_owned(), axis: axis.to_owned(), points: points.collect() })
    };
    let figures = [
        series("user time, s", &|row| Some(row.cpu_s)),
        series("largest memory, MB", &|row| Some(megabytes(row))),
        series("instructions per packet", &|row| row.instructions),
        series("events per packet", &|row| Some(row.events as f64 / row.packets as f64)),
    ];
    figures.join("\n") + "\n"
}

fn cells(rows: &[&SizeCost], axis: &str) -> String {
    let each = match &*rows[0].curve {
        "buffer" => "bytes per packet of the limit".to_owned(),
        curve => format!("bytes per {}", curve.trim_end_matches('s')),
    };
    let columns: [Column<'_, &SizeCost>; 7] = [
        (axis, " ---: ", &|row| plot::grouped(u64::from(row.size))),
        ("user time, s", " ---: ", &|row| format!("{:.2}", row.cpu_s)),
        ("µs per packet", " ---: ", &|row| format!("{:.2}", row.cpu_s * 1e6 / row.packets as f64)),
        ("memory, MB", " ---: ", &|row| format!("{:.0}", megabytes(row))),
        (&each, " ---: ", &|row| {
            // The smallest size stands for the program itself.
            let added = (row.peak_kib.saturating_sub(rows[0].peak_kib) * 1024) as f64;
            let noticed = (added > NOTICEABLE).then(|| added / f64::from(row.size - rows[0].size));
            noticed.map_or_else(String::new, |bytes| plot::grouped(bytes as u64))
        }),
        ("events per packet", " ---: ", &|row| format!("{:.2}", row.events as f64 / row.packets as f64)),
        ("instructions per packet", " ---: ", &|row| {
            row.instructions.map_or_else(String::new, |count| plot::grouped(count as u64))
        }),
    ];
    recorded::table(&columns, rows.iter().copied())
}

/// The largest memory in units of 10^6 bytes.
fn megabytes(row: &SizeCost) -> f64 {
    row.peak_kib as f64 * 1024.0 / 1e6
}
