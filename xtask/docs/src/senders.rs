//! The page about the senders of the simulator and of Linux, from `docs/senders.csv`.

#[path = "../../src/senders/table.rs"]
mod table;

use std::path::Path;

use crate::recorded::{self, Column};
use table::ConnectionResult;

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

- **Goodput agrees within 1 % in every cell with one sender but one**, at 10 and 100 Mbit/s, from 10 to 100 ms, and from half to four bandwidth-delay \
products: bbr at 10 Mbit/s and 100 ms has 3 % more here.
- **Queueing agrees within 15 % in 35 of these 45 cells.**
- **bbr needs two habits of Linux.** Linux paces a hundredth below the bandwidth since 2018, so the simulator runs `bbr margin 1%` here, and it sends bursts \
of a millisecond of the rate, at least two segments (`pacing_burst`). With both, queueing at 100 Mbit/s and 10, 40 and 100 ms is 15, 10 and 2 % above that \
of Linux; with the margin alone 21, 17 and 2 %; with neither 31, 59 and 49 %. At 10 Mbit/s it is 11 to 27 % below; without the margin it was within 7 % \
there, except at 100 ms.
- **The packet in transmission counts.** Below `tbf`, Linux keeps the packet that waits for tokens in the queue, so a fifo of 8 packets has one less waiting \
than the simulator's. With the same limit on both sides reno and cubic waited 18 to 33 % longer here where the queue is short. With one packet less, as in this \
table, it is 18 % with cubic and 8 packets, and at most 11 % elsewhere.
- **With fq_codel reno and cubic wait 26 to 30 % longer.** The transmission that is added here is not part of Linux's value when the link was idle, which explains a part; the \
rest is not explained.
- **dctcp is marked less here at 10 ms, and more at 100 Mbit/s**, with 27 % more queueing there. Linux sends its segments in bundles, the simulator one by one; this \
was not tested.
- **vegas differs in single cells.** It keeps a fixed number of packets in the queue, so a fraction of a millisecond is half of it at 100 Mbit/s.
- **Shares of two senders agree within 12 points in all but four cells**: vegas beside vegas, where the order of the beginnings decides, cubic beside bbr and reno \
beside cubic with four bandwidth-delay products, and reno beside cubic with 8 packets. One run of Linux is one draw: where two runs of the simulator with other \
seeds differ, so would two runs of Linux. For example, cubic beside bbr with 8 packets has 11 % on average over 300 seeds here, and in 11 of them less goodput \
than in Linux.
- The first 50 segments of a connection are compared one by one in the test `linux_traces`.
";

pub fn page(root: &Path) -> Result<String, String> {
    let rows: Vec<ConnectionResult> = recorded::read(root)?;
    let cells: Vec<&[ConnectionResult]> = rows.chunk_by(|a, b| a.cell == b.cell).collect();
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
fn alone(cells: &[&[ConnectionResult]]) -> String {
    let variant = |row: &ConnectionResult| match &row.cell {
        cell if cell.ends_with("unbundled") => ", single segments",
        cell if cell.ends_with("again") => ", once more",
        _ => "",
    };
    let columns: [Column<'_, &ConnectionResult>; 13] = [
        ("sender", "---", &|row| format!("{}{}", row.control, variant(row))),
        ("rate", "---:", &|row| row.rate_mbit_s.to_string()),
        ("RTT", "---:", &|row| row.rtt_ms.to_string()),
        ("queue", "---", &|row| row.queue.clone()),
        ("goodput, Linux", "---:", &|row| format!("{:.2}", row.linux_goodput)),
        ("here", "---:", &|row| format!("{:.2}", row.goodput)),
        ("queueing, Linux", "---:", &|row| format!("{:.2}", row.linux_queueing)),
        ("here", "---:", &|row| format!("{:.2}", row.queueing)),
        ("difference", "---:", &|row| percent(row.queueing, row.linux_queueing)),
        ("lost, Linux", "---:", &|row| format!("{:.0}", row.linux_dropped)),
        ("here", "---:", &|row| format!("{:.0}", row.dropped)),
        ("marked, Linux", "---:", &|row| format!("{:.0}", row.linux_marked)),
        ("here", "---:", &|row| format!("{:.0}", row.marked)),
    ];
    recorded::table(&columns, cells.iter().filter(|rows| rows.len() == 1).map(|rows| &rows[0]))
}

/// The table of cells with two connections.
fn together(cells: &[&[ConnectionResult]]) -> String {
    let linux = |both: &[ConnectionResult]| both[0].linux_goodput + both[1].linux_goodput;
    let here = |both: &[ConnectionResult]| both[0].goodput + both[1].goodput;
    let columns: [Column<'_, &[ConnectionResult]>; 10] = [
        ("senders", "---", &|both| format!("{} / {}", both[0].control, both[1].control)),
        ("rate", "---:", &|both| both[0].rate_mbit_s.to_string()),
        ("RTT", "---:", &|both| both[0].rtt_ms.to_string()),
        ("queue", "---", &|both| both[0].queue.clone()),
        ("share, Linux", "---:", &|both| format!("{:.0} %", 100.0 * both[0].linux_goodput / linux(both))),
        ("here", "---:", &|both| format!("{:.0} %", 100.0 * both[0].goodput / here(both))),
        ("goodput of both, Linux", "---:", &|both| format!("{:.2}", linux(both))),
        ("here", "---:", &|both| format!("{:.2}", here(both))),
        ("queueing, Linux", "---:", &|both| format!("{:.2}", both[0].linux_queueing)),
        ("here", "---:", &|both| format!("{:.2}", both[0].queueing)),
    ];
    recorded::table(&columns, cells.iter().copied().filter(|rows| rows.len() == 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_shows_the_difference_and_two_the_share() {
        let row = |cell: &str, control: &str, goodput| ConnectionResult {
            cell: cell.to_owned(),
            control: control.to_owned(),
            linux_goodput: goodput,
            goodput,
            linux_queueing: 4.0,
            queueing: 5.0,
            ..ConnectionResult::default()
        };
        let (one, two) = ([row("a", "reno", 9.0)], [row("b", "reno", 3.0), row("b", "bbr", 6.0)]);
        let cells: [&[ConnectionResult]; 2] = [&one, &two];
        assert!(alone(&cells).contains("| reno | 0 | 0 |  | 9.00 | 9.00 | 4.00 | 5.00 | +25 % |"));
        assert!(together(&cells).contains("| reno / bbr | 0 | 0 |  | 33 % | 33 % | 9.00 | 9.00 |"));
    }
}
