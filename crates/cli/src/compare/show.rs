//! Tables and findings of a comparison for the terminal.

use std::io::{self, Write};

use giveway_compare::{Advice, Capture, Link, Mode, Situation, Tried, ranking, word};
use giveway_measure::{DisciplineRow, Estimate, Style, Table, aligned};
use giveway_runner::Results;
use giveway_workload::Direction;

use crate::terminal;

/// Prints a table for each direction. Its first row contains the completion times in the capture itself.
pub fn tables(
    results: &Results,
    link: &Link,
    capture: &Capture,
    (mode, situation): (Mode, &Situation),
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
            "{:.2} MB in a capture of {:.1} s; this link needs at least {needs:.1} s to send them ({:.0} %). {:.1} s are measured",
            bytes / 1e6,
            capture.span().as_s(),
            100.0 * needs / capture.span().as_s().max(1e-3),
            situation.measured.as_s(),
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

/// Prints the recommendation, and an empty line.
pub fn advice(advice: &Advice, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", terminal::bold("Recommendation"))?;
    write!(out, "{}", terminal::paragraph(&advice.summary, "", ""))?;
    if let Some(tried) = &advice.tried {
        effects(tried, out)?;
    }
    for (what, text) in &advice.reasons {
        write!(out, "{}", terminal::point(&format!("{what}: {text}")))?;
    }
    for block in &advice.commands {
        writeln!(out, "\n{}:", block.title)?;
        for line in &block.lines {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out)
}

/// Prints the effects of a setup as a table.
fn effects(tried: &Tried, out: &mut dyn Write) -> io::Result<()> {
    let table = tried.table();
    let rows: Vec<Vec<String>> = std::iter::once(table.head).chain(table.rows).map(Vec::from).collect();
    aligned(&rows).lines().try_for_each(|line| writeln!(out, "  {line}"))?;
    writeln!(out)
}

/// The results of several rates side by side.
#[derive(Default)]
pub struct Sweep {
    rates: Vec<Rated>,
}

/// The results of one rate.
struct Rated {
    title: String,
    ranking: Vec<(String, Option<f64>)>,
    recommended: Option<String>,
}

impl Sweep {
    /// Adds the results of a link.
    pub fn add(&mut self, link: &Link, table: &Table, advice: Option<&Advice>) {
        let recommended = advice.map(|advice| advice.summary.clone());
        self.rates.push(Rated { title: link.title(), ranking: ranking(table), recommended });
    }

    /// Prints a table of rates and disciplines, and a sentence for each change of the recommendation.
    pub fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = self.rates.first() else { return Ok(()) };
        writeln!(out)?;
        writeln!(
            out,
            "{}: times that users wait for, in percent of those with the first discipline (geometric mean)",
            terminal::bold("All rates")
        )?;
        let width = self.rates.iter().map(|rate| rate.title.chars().count()).max().unwrap_or(0);
        let names: Vec<&str> = first.ranking.iter().map(|(name, _)| name.as_str()).collect();
        let wide: Vec<usize> = names.iter().map(|name| name.chars().count().max(6)).collect();
        let cells = |cells: &mut dyn Iterator<Item = String>| {
            cells.zip(&wide).map(|(cell, wide)| format!("  {cell:>wide$}")).collect::<String>()
        };
        writeln!(out, "{:width$}{}", "", cells(&mut names.iter().map(|name| (*name).to_owned())))?;
        for rate in &self.rates {
            let best = rate.ranking.iter().filter_map(|(_, ratio)| *ratio).min_by(f64::total_cmp);
            let cell = |(_, ratio): &(String, Option<f64>)| match ratio {
                None => "-".to_owned(),
                Some(ratio) => {
                    let mark = if Some(*ratio) == best { "*" } else { "" };
                    format!("{mark}{:.0} %", 100.0 * ratio)
                }
            };
            writeln!(out, "{:width$}{}", rate.title, cells(&mut rate.ranking.iter().map(cell)))?;
        }
        writeln!(out, "* the best")?;
        writeln!(out)?;
        writeln!(out, "{}", terminal::bold("Recommendation"))?;
        for rate in &self.rates {
            let text = rate.recommended.as_deref().unwrap_or("none, since nothing could be compared");
            write!(out, "{}", terminal::point(&format!("{}: {text}", rate.title)))?;
        }
        for pair in self.rates.windows(2) {
            let best = |rate: &Rated| {
                let known = rate.ranking.iter().filter_map(|(name, ratio)| Some((name.clone(), (*ratio)?)));
                known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
            };
            if let (Some(before), Some(after)) = (best(&pair[0]), best(&pair[1]))
                && before != after
            {
                let (from, to) = (&pair[0].title, &pair[1].title);
                writeln!(
                    out,
                    "- Between {from} and {to} the best discipline changes from {before} to {after}."
                )?;
            }
        }
        Ok(())
    }
}

/// Prints the way to the commands.
pub fn hint(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "- One rate alone (--rate) prints the commands.")
}

/// The row of the completion times in the capture itself.
fn captured(capture: &Capture, direction: Direction) -> DisciplineRow {
    let metrics = capture.responses(direction);
    let metrics = metrics.iter().map(|(name, value)| (name.to_owned(), Estimate::over(vec![value])));
    DisciplineRow { qdisc: "(as captured)".to_owned(), seeds: Vec::new(), metrics: metrics.collect() }
}

/// Prints the findings and the limits of the model.
pub fn findings(found: &[String], mode: Mode, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", terminal::bold("Findings"))?;
    for finding in found {
        write!(out, "{}", terminal::point(finding))?;
    }
    let limits = match mode {
        Mode::Flows => {
            "connections begin at their captured times or with their page, pauses have their captured length, and datagrams (calls) do not \
             react."
        }
        Mode::Replay => "senders do not react: lost packets are not retransmitted, and no sender slows down.",
    };
    write!(out, "{}", terminal::point(&format!("Not in the model: {limits}")))
}
