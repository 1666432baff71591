//! Tables and findings of a comparison for the terminal.

use std::io::{self, Write};

use giveway_measure::{Estimate, Row, Style};
use giveway_runner::Results;
use giveway_runner::compare::{Capture, Link, Mode, word};
use giveway_workload::Direction;

use crate::terminal;

/// Prints a table for each direction. Its first row has the completion times in the capture itself.
pub fn tables(
    results: &Results,
    link: &Link,
    capture: &Capture,
    mode: Mode,
    out: &mut dyn Write,
) -> io::Result<()> {
    if results.finished < results.planned {
        writeln!(out, "{} of {} runs", results.finished, results.planned)?;
    }
    for direction in [Direction::Up, Direction::Down] {
        let bytes = capture.bytes(direction) as f64;
        let needs = bytes / link.rate(direction).bytes_per_s();
        let heading = format!("{} at {}", word(direction), link.rate(direction));
        writeln!(out, "{}", terminal::bold(&heading))?;
        writeln!(
            out,
            "{:.2} MB in a capture of {:.1} s; this link needs at least {needs:.1} s to send them",
            bytes / 1e6,
            capture.span().as_s(),
        )?;
        if bytes == 0.0 {
            writeln!(out)?;
            continue;
        }
        let mut table = results.table.at(&Link::port(direction));
        if mode == Mode::Flows {
            table.rows.insert(0, captured(capture, direction));
        }
        writeln!(out)?;
        let style = Style { width: terminal::width(), ascii: false, detailed: true };
        writeln!(out, "{}", table.render(style))?;
    }
    Ok(())
}

/// The row of the completion times in the capture itself.
fn captured(capture: &Capture, direction: Direction) -> Row {
    let metrics = capture.responses(direction);
    let metrics = metrics.iter().map(|(name, value)| (name.to_owned(), Estimate::over(vec![value])));
    Row { qdisc: "(as captured)".to_owned(), seeds: Vec::new(), metrics: metrics.collect() }
}

/// Prints the findings and the limits of the model.
pub fn findings(found: &[String], mode: Mode, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", terminal::bold("Findings"))?;
    for finding in found {
        writeln!(out, "- {finding}")?;
    }
    let limits = match mode {
        Mode::Flows => {
            "connections begin at their captured times, pauses have their captured length, and datagrams (calls) do not \
             react."
        }
        Mode::Replay => "senders do not react: lost packets are not retransmitted, and no sender slows down.",
    };
    writeln!(out, "- Not in the model: {limits}")
}
