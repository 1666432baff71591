//! Compares qdiscs of Linux and of Giveway in the same machine: the cost of a packet, and the shares of
//! flows. Writes tables.

use std::path::Path;

use serde_json::Value;

use super::fetch::Kernel;
use super::machine::{COUNTED, boot_for};
use super::users::hosts;
use crate::repository::Repository;

/// Time limit of a machine, in seconds.
const SECONDS: &str = "900";

/// Runs the comparisons, and returns their tables in Markdown.
pub fn compare(repository: &Repository, folder: &Path, kernel: &Kernel) -> Result<String, String> {
    // The clock of the machine counts instructions, so that load on this computer delays no measurement.
    let output = |plan: &str| {
        hosts(repository, folder, kernel, plan)?;
        boot_for(folder, kernel, 0, &COUNTED, SECONDS)
    };
    let costs =
        [include_str!("../../../kernel/test/compare.sh"), include_str!("../../../kernel/test/backlog.sh")];
    let costs = output(&costs.concat())?;
    let flows = output(include_str!("../../../kernel/test/shares.sh"))?;
    Ok([
        "An empty queue\n".to_owned(),
        table(&costs, "COST", "noqueue")?,
        "\nA queue with a backlog\n".to_owned(),
        table(&costs, "WAIT", "pfifo")?,
        "\nTwo uploads and a datagram stream\n".to_owned(),
        shares(&flows)?,
        "\nShort transfers and two uploads\n".to_owned(),
        transfers(&flows)?,
        flows.lines().filter(|line| line.starts_with("SAID ")).map(|line| format!("{line}\n")).collect(),
    ]
    .concat())
}

/// Table of the cost of a packet with each qdisc, in instructions: in total, and in excess of the qdisc
/// `least`.
fn table(output: &str, word: &str, least: &str) -> Result<String, String> {
    let mut rows = Vec::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [first, kind, packets, seconds, dropped @ ..] = &words[..] else { continue };
        if *first != word {
            continue;
        }
        let number = |word: &str| word.parse::<f64>().map_err(|error| format!("{line}: {error}"));
        if dropped.iter().any(|dropped| *dropped != "0") {
            return Err(format!("{line}: {kind} dropped packets, so the costs cannot be compared"));
        }
        rows.push(((*kind).to_owned(), number(seconds)? * 1e9 / number(packets)?));
    }
    let of = |kind: &str| {
        let found = rows.iter().find(|(other, _)| other == kind).map(|(_, cost)| *cost);
        found.ok_or_else(|| format!("the comparison has no {kind}"))
    };
    let (least_cost, pfifo, fq_codel) = (of(least)?, of("pfifo")?, of("fq_codel")?);
    let mut table = format!(
        "| qdisc | instructions per packet | more than {least} | ratio to pfifo | ratio to fq_codel |\n|---|---:|---:|---:|---:|\n"
    );
    for (kind, cost) in &rows {
        let (own, to_pfifo, to_fq_codel) = (cost - least_cost, cost / pfifo, cost / fq_codel);
        table.push_str(&format!("| {kind} | {cost:.0} | {own:.0} | {to_pfifo:.2} | {to_fq_codel:.2} |\n"));
    }
    Ok(table)
}

/// Results of a test bed: each discipline with its metrics.
fn results(output: &str, scenario: &str) -> Result<Vec<(String, Value)>, String> {
    let start = format!("BED {scenario} ");
    let text = output.lines().find_map(|line| line.strip_prefix(&start));
    let text =
        text.ok_or_else(|| format!("the output of the machine has no results of the test bed {scenario}"))?;
    let report: Value = serde_json::from_str(text).map_err(|error| format!("{scenario}: {error}"))?;
    let rows = report["results"].as_array().ok_or_else(|| format!("{scenario} has no results"))?;
    let row = |row: &Value| (row["qdisc"].as_str().unwrap_or_default().to_owned(), row["metrics"].clone());
    Ok(rows.iter().map(row).collect())
}

/// Cells of a row. A metric has a name, the value of its unit, and the number of decimals.
fn cells(metrics: &Value, names: &[(&str, f64, usize)]) -> String {
    let cell = |(name, unit, digits): &(&str, f64, usize)| match metrics[name]["mean"].as_f64() {
        Some(value) => format!(" {:.digits$} |", value / unit),
        None => " - |".to_owned(),
    };
    names.iter().map(cell).collect()
}

fn shares(output: &str) -> Result<String, String> {
    let mut table = "| discipline | uploads, Mbit/s | stream, Mbit/s | Jain's index of the uploads | loss of the stream |\n|---|---:|---:|---:|---:|\n"
        .to_owned();
    let names = [
        ("src.uploads.goodput_bps", 1e6, 2),
        ("src.stream.goodput_bps", 1e6, 2),
        ("src.uploads.jain", 1.0, 3),
        ("src.stream.loss", 1.0, 3),
    ];
    for (qdisc, metrics) in results(output, "shares")? {
        table.push_str(&format!("| {qdisc} |{}\n", cells(&metrics, &names)));
    }
    Ok(table)
}

fn transfers(output: &str) -> Result<String, String> {
    let mut table = "| discipline | median, ms | p95, ms | p99, ms | completed | incomplete | uploads, Mbit/s |\n|---|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let names = [
        ("fct_p50_s", 1e-3, 0),
        ("fct_p95_s", 1e-3, 0),
        ("fct_p99_s", 1e-3, 0),
        ("flows_completed", 1.0, 0),
        ("flows_incomplete", 1.0, 0),
        ("src.uploads.goodput_bps", 1e6, 2),
    ];
    for (qdisc, metrics) in results(output, "transfers")? {
        table.push_str(&format!("| {qdisc} |{}\n", cells(&metrics, &names)));
    }
    Ok(table)
}
