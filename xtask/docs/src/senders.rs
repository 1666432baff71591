//! The page about the senders of the simulator and those of Linux, from `docs/senders.csv`.

#[path = "../../src/senders/table.rs"]
mod table;

use std::path::Path;

use table::Row;

/// The page in the book.
pub const PAGE: &str = "docs/book/reference/senders.md";

const TEXT: &str = "\
# Senders, simulated and in Linux

The same bottlenecks with the senders of Linux 7.2, in a virtual machine whose clock counts instructions, and with the simulator's preset \"linux\". \
`cargo xtask senders-linux` measures Linux and writes `docs/senders-linux.csv`; `cargo xtask senders` runs the simulator and writes `docs/senders.csv`, from \
which this page is made.

- Linux ran each cell once. The simulator's values are means over five seeds.
- *Goodput* is that of the data after the warm-up, in Mbit/s. The largest possible is 0.956 of the rate.
- *Queueing* is the mean time from the arrival at the bottleneck to the end of the transmission, in ms.
- *Lost* and *marked* are packets at the bottleneck after the warm-up.
";

/// The conclusions, which were drawn from the table as it is. Read them again when it is measured again.
const FINDINGS: &str = "
## Findings

- **Goodput agrees within 1 % in every cell with one sender**, at 10 and 100 Mbit/s, from 10 to 100 ms, and from half to four bandwidth-delay products.
- **Queueing agrees within 11 % in two thirds of these cells.** At 10 Mbit/s bbr is within 7 % in any fifo of up to 40 ms, dctcp within 9 %, vegas \
within 8 %.
- **It does not with bbr at 100 Mbit/s, and above 40 ms**: the simulator has 17 to 59 % more there, and 18 % less with fq_codel. Linux paces a hundredth below the bandwidth since 2018, the \
draft of version 1 does not. With `bbr margin 0.01` the simulator has 3.75, 3.70 and 4.53 ms at 100 Mbit/s and 10, 40 and 100 ms, where Linux has 3.11, \
3.18 and 4.53, and without it 4.06, 5.05 and 6.71. So the margin explains most of it. At 10 Mbit/s and 40 ms the margin makes it worse: 7.31 instead of \
8.52 ms, where Linux has 8.51.
- **Reno and cubic wait longer here where the queue is short**: by 18 to 33 % with reno and 17 packets, with 8 packets at 10 ms, and \
with fq_codel (cubic with 17 packets by 6 %). The transmission that is added here is not part of Linux's value when the link was idle, which explains a part of that with fq_codel. The rest \
is not explained.
- **dctcp is marked less here at 10 ms, and more at 100 Mbit/s**, with 27 % more queueing there. Linux sends bundles of segments, the simulator single ones; this \
was not tested.
- **Shares of two senders agree within 11 points in 26 of 28 cells.** The two others are vegas beside vegas, where the order of the beginnings decides, and \
cubic beside bbr with four bandwidth-delay products. One run of Linux is one draw: where two runs of the simulator with other seeds differ, so would two runs of \
Linux.
- The first 50 segments of a connection are compared one by one in the test `linux_traces`.
";

/// Builds the page.
///
/// # Errors
/// The file cannot be read, or a line is wrong.
pub fn page(root: &Path) -> Result<String, String> {
    let path = root.join(table::FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", table::FILE))?;
    let rows = table::parse(&text)?;
    let cells: Vec<&[Row]> = rows.chunk_by(|a, b| a.cell == b.cell).collect();
    let mut page = TEXT.to_owned();
    page.push_str("\n## One sender\n\n");
    page.push_str(&alone(&cells));
    page.push_str(
        "\n## Two senders\n\nThe second begins 0.1 s after the first. *Share* is that of the first.\n\n",
    );
    page.push_str(&together(&cells));
    page.push_str(FINDINGS);
    Ok(page)
}

fn percent(value: f64, of: f64) -> String {
    if of == 0.0 { "-".to_owned() } else { format!("{:+.0} %", 100.0 * (value / of - 1.0)) }
}

/// The table of cells with one connection.
fn alone(cells: &[&[Row]]) -> String {
    let mut out = String::from(
        "| sender | rate | RTT | queue | goodput, Linux | here | queueing, Linux | here | difference | lost, Linux | here | \
         marked, Linux | here |\n|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in cells.iter().filter(|rows| rows.len() == 1).map(|rows| &rows[0]) {
        let variant = if row.cell.ends_with("unbundled") {
            ", single segments"
        } else if row.cell.ends_with("again") {
            ", once more"
        } else {
            ""
        };
        out.push_str(&format!(
            "| {}{variant} | {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {:.0} | {:.0} | {:.0} | {:.0} |\n",
            row.control,
            row.rate_mbit_s,
            row.rtt_ms,
            row.queue,
            row.linux_goodput,
            row.goodput,
            row.linux_queueing,
            row.queueing,
            percent(row.queueing, row.linux_queueing),
            row.linux_dropped,
            row.dropped,
            row.linux_marked,
            row.marked
        ));
    }
    out
}

/// The table of cells with two connections.
fn together(cells: &[&[Row]]) -> String {
    let mut out = String::from(
        "| senders | rate | RTT | queue | share, Linux | here | goodput of both, Linux | here | queueing, Linux | here |\n\
         |---|---:|---:|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for rows in cells.iter().filter(|rows| rows.len() == 2) {
        let (first, second) = (&rows[0], &rows[1]);
        let linux = first.linux_goodput + second.linux_goodput;
        let here = first.goodput + second.goodput;
        out.push_str(&format!(
            "| {} / {} | {} | {} | {} | {:.0} % | {:.0} % | {linux:.2} | {here:.2} | {:.2} | {:.2} |\n",
            first.control,
            second.control,
            first.rate_mbit_s,
            first.rtt_ms,
            first.queue,
            100.0 * first.linux_goodput / linux,
            100.0 * first.goodput / here,
            first.linux_queueing,
            first.queueing
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_shows_the_difference_and_two_the_share() {
        let row = |cell: &str, control: &str, goodput| Row {
            cell: cell.to_owned(),
            control: control.to_owned(),
            linux_goodput: goodput,
            goodput,
            linux_queueing: 4.0,
            queueing: 5.0,
            ..Row::default()
        };
        let (one, two) = ([row("a", "reno", 9.0)], [row("b", "reno", 3.0), row("b", "bbr", 6.0)]);
        let cells: [&[Row]; 2] = [&one, &two];
        assert!(alone(&cells).contains("| reno | 0 | 0 |  | 9.00 | 9.00 | 4.00 | 5.00 | +25 % |"));
        assert!(together(&cells).contains("| reno / bbr | 0 | 0 |  | 33 % | 33 % | 9.00 | 9.00 |"));
    }
}
