//! The kernel's own qdiscs and ours in the same machine: what a packet costs, and what flows get. As tables.

use std::path::Path;

use serde_json::Value;

use super::fetch::Kernel;
use super::machine::{COUNTED, boot_for};
use super::users::hosts;
use crate::repository::Repository;

/// Longer than that nothing takes, on a machine that has better things to do.
const SECONDS: &str = "900";

/// All of them.
pub fn compare(repository: &Repository, folder: &Path, kernel: &Kernel) -> Result<String, String> {
    // Flows are measured by that clock as well: however late this machine is, in there nobody is.
    let said = |plan: &str| {
        hosts(repository, folder, kernel, plan)?;
        boot_for(folder, kernel, 0, &COUNTED, SECONDS)
    };
    let costs =
        [include_str!("../../../kernel/test/compare.sh"), include_str!("../../../kernel/test/backlog.sh")];
    let costs = said(&costs.concat())?;
    let flows = said(include_str!("../../../kernel/test/shares.sh"))?;
    Ok([
        "An empty queue\n".to_owned(),
        table(&costs, "COST", "noqueue")?,
        "\nA queue in which others wait\n".to_owned(),
        table(&costs, "WAIT", "pfifo")?,
        "\nTwo uploads beside a stream\n".to_owned(),
        shares(&flows)?,
        "\nShort transfers beside two uploads\n".to_owned(),
        transfers(&flows)?,
        flows.lines().filter(|line| line.starts_with("SAID ")).map(|line| format!("{line}\n")).collect(),
    ]
    .concat())
}

/// Cost of a packet with each qdisc, in instructions: all of it, and beyond what it costs with the one
/// that is named.
fn table(said: &str, word: &str, least: &str) -> Result<String, String> {
    let mut rows = Vec::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [first, kind, packets, seconds, dropped @ ..] = &words[..] else { continue };
        if *first != word {
            continue;
        }
        let number = |word: &str| word.parse::<f64>().map_err(|error| format!("{line}: {error}"));
        if dropped.iter().any(|dropped| *dropped != "0") {
            return Err(format!("{line}: {kind} dropped packets, which costs something else"));
        }
        rows.push(((*kind).to_owned(), number(seconds)? * 1e9 / number(packets)?));
    }
    let of = |kind: &str| {
        let found = rows.iter().find(|(other, _)| other == kind).map(|(_, cost)| *cost);
        found.ok_or_else(|| format!("the comparison has no {kind}"))
    };
    let (least_cost, pfifo, fq_codel) = (of(least)?, of("pfifo")?, of("fq_codel")?);
    let mut table = format!(
        "| qdisc | instructions per packet | beyond {least} | to pfifo | to fq_codel |\n|---|---:|---:|---:|---:|\n"
    );
    for (kind, cost) in &rows {
        let (own, to_pfifo, to_fq_codel) = (cost - least_cost, cost / pfifo, cost / fq_codel);
        table.push_str(&format!("| {kind} | {cost:.0} | {own:.0} | {to_pfifo:.2} | {to_fq_codel:.2} |\n"));
    }
    Ok(table)
}

/// The results of a test bed.
fn results(said: &str, scenario: &str) -> Result<Vec<(String, Value)>, String> {
    let start = format!("BED {scenario} ");
    let text = said.lines().find_map(|line| line.strip_prefix(&start));
    let text = text.ok_or_else(|| format!("the machine says nothing of the test bed {scenario}"))?;
    let report: Value = serde_json::from_str(text).map_err(|error| format!("{scenario}: {error}"))?;
    let rows = report["results"].as_array().ok_or_else(|| format!("{scenario} has no results"))?;
    let row = |row: &Value| (row["qdisc"].as_str().unwrap_or_default().to_owned(), row["metrics"].clone());
    Ok(rows.iter().map(row).collect())
}

/// Metrics of a row, each by its name and in a unit.
fn cells(metrics: &Value, names: &[(&str, f64, usize)]) -> String {
    let cell = |(name, unit, digits): &(&str, f64, usize)| match metrics[name]["mean"].as_f64() {
        Some(value) => format!(" {:.digits$} |", value / unit),
        None => " - |".to_owned(),
    };
    names.iter().map(cell).collect()
}

fn shares(said: &str) -> Result<String, String> {
    let mut table = "| discipline | uploads, Mbit/s | stream, Mbit/s | between the uploads (Jain) | of the stream is lost |\n|---|---:|---:|---:|---:|\n"
        .to_owned();
    let names = [
        ("src.uploads.goodput_bps", 1e6, 2),
        ("src.stream.goodput_bps", 1e6, 2),
        ("src.uploads.jain", 1.0, 3),
        ("src.stream.loss", 1.0, 3),
    ];
    for (qdisc, metrics) in results(said, "shares")? {
        table.push_str(&format!("| {qdisc} |{}\n", cells(&metrics, &names)));
    }
    Ok(table)
}

fn transfers(said: &str) -> Result<String, String> {
    let mut table = "| discipline | median, ms | p95, ms | p99, ms | done | not done | uploads, Mbit/s |\n|---|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let names = [
        ("fct_p50_s", 1e-3, 0),
        ("fct_p95_s", 1e-3, 0),
        ("fct_p99_s", 1e-3, 0),
        ("flows_completed", 1.0, 0),
        ("flows_incomplete", 1.0, 0),
        ("src.uploads.goodput_bps", 1e6, 2),
    ];
    for (qdisc, metrics) in results(said, "transfers")? {
        table.push_str(&format!("| {qdisc} |{}\n", cells(&metrics, &names)));
    }
    Ok(table)
}
