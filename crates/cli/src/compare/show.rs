//! The tables and the findings, for people.

use std::io::{self, Write};

use giveway_measure::{Estimate, Row, Style};
use giveway_workload::Direction;

use giveway_runner::Results;
use giveway_runner::compare::{Capture, Link, Mode};

use crate::terminal;

/// A table for each direction, with the capture's own times above the disciplines' where they compare.
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
    for way in [Direction::Up, Direction::Down] {
        let bytes = capture.bytes(way) as f64;
        let needs = bytes / link.rate(way).bytes_per_s();
        let heading = format!("{} at {}", way.name(), link.rate(way));
        writeln!(out, "{}", terminal::bold(&heading))?;
        writeln!(
            out,
            "{:.2} MB in the capture, which take this link {needs:.1} s; the capture is {:.1} s long",
            bytes / 1e6,
            capture.span().as_s(),
        )?;
        if bytes == 0.0 {
            writeln!(out)?;
            continue;
        }
        let mut table = results.table.at(&Link::port(way));
        if mode == Mode::Flows {
            table.rows.insert(0, captured(capture, way));
        }
        writeln!(out)?;
        let style = Style { width: terminal::width(), ascii: false, detailed: true };
        writeln!(out, "{}", table.render(style))?;
    }
    Ok(())
}

/// What the capture shows of itself.
fn captured(capture: &Capture, way: Direction) -> Row {
    let metrics = capture.responses(way);
    let metrics = metrics.iter().map(|(name, value)| (name.to_owned(), Estimate::over(vec![value])));
    Row { qdisc: "(as captured)".to_owned(), seeds: Vec::new(), metrics: metrics.collect() }
}

/// What it comes to.
pub fn findings(found: &[String], mode: Mode, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", terminal::bold("Findings"))?;
    for sentence in found {
        writeln!(out, "- {sentence}")?;
    }
    let limits = match mode {
        Mode::Flows => {
            "Connections begin when they began in the capture; pauses are those of the capture; datagrams \
             (QUIC, calls) do not react."
        }
        Mode::Replay => "Senders did not react: what was lost is not sent again, and nobody slows down.",
    };
    writeln!(out, "- Not in the model: {}{}", limits[..1].to_lowercase(), &limits[1..])
}
