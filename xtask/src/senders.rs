//! Runs the cells of `docs/senders-linux.csv` in the simulator with the preset "linux", and writes
//! `docs/senders.csv`. `cargo xtask docs` makes a page of it.
//!
//! # What is fixed
//! - The network of the crate `senders`: a bottleneck whose rate counts 14 bytes of Ethernet header for each
//!   packet, and the whole propagation delay on the way back.
//! - Linux runs once, the simulator with five seeds.
//!
//! # What is open
//! - The mean time in the queue ends with the transmission, because the token bucket of the measurement lets
//!   a packet out when the link has sent it; the simulator's ends at the start, and the transmission
//!   is added.
//! - The step that marks for DCTCP is `codel ce_threshold` in both, with a control law that never acts.

pub(crate) mod table;

use std::fs;

use serde_json::Value;

use crate::recorded;
use crate::repository::{Done, Repository};
use table::ConnectionResult;

/// The measurements of Linux.
const LINUX: &str = "docs/senders-linux.csv";
/// The simulator runs each cell this many times, with different random numbers.
const SEEDS: u32 = 5;

/// A row of the measurements of Linux, by the names of its columns.
struct Measured<'a> {
    names: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl<'a> Measured<'a> {
    fn text(&self, name: &str) -> Result<&'a str, String> {
        let at = self.names.iter().position(|one| *one == name);
        let field = at.and_then(|at| self.fields.get(at).copied());
        field.ok_or_else(|| format!("{LINUX}: no column {name} in {:?}", self.fields))
    }
    fn number(&self, name: &str) -> Result<f64, String> {
        let text = self.text(name)?;
        text.parse().map_err(|_| format!("{LINUX}: {name} is {text:?} in {:?}", self.fields))
    }
}

/// Runs everything and writes the table.
pub fn record(repository: &Repository) -> Done {
    // The whole workspace, so that libraries have the features with which the tests have built them.
    repository.cargo(&["build", "--quiet", "--locked", "--workspace", "--bin", "giveway"])?;
    let program = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    let measured =
        fs::read_to_string(repository.root.join(LINUX)).map_err(|error| format!("{LINUX}: {error}"))?;
    let mut lines = measured.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let rows: Vec<Measured<'_>> =
        lines.map(|line| Measured { names: &names, fields: line.split(',').collect() }).collect();
    let folder = repository.target()?.join("senders");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join("cell.toml").to_string_lossy().into_owned();
    let mut compared_rows = Vec::new();
    for cell in rows.chunk_by(|a, b| a.fields[0] == b.fields[0]) {
        fs::write(&file, scenario(cell)?).map_err(|error| format!("{file}: {error}"))?;
        let arguments = ["run", "--quiet", "--json", &file].map(str::to_owned);
        let printed = repository.output(&program, &arguments)?;
        let found: Value = serde_json::from_str(printed.lines().next().unwrap_or_default())
            .map_err(|error| format!("giveway run prints no JSON: {error}"))?;
        for row in compared(cell, &found["results"][0]["metrics"])? {
            println!("{row:?}");
            compared_rows.push(row);
        }
    }
    recorded::store(&repository.root, None, &compared_rows)
}

/// The queue of a cell: its discipline here, and its name on the page.
fn queue(first: &Measured<'_>) -> Result<(String, String), String> {
    let packets = first.text("queue_packets")?;
    Ok(match first.text("queue")? {
        // The packet that waits for tokens is still in the queue below `tbf`. Here it is on the link.
        "fifo" => {
            let waiting = first.number("queue_packets")? as u64 - 1;
            (format!("fifo limit {waiting}p"), format!("fifo {packets}p"))
        }
        "step" => {
            let us = first.text("threshold_us")?;
            let law = "target 10s interval 100s";
            (format!("codel limit {packets}p {law} ecn ce_threshold {us}us"), format!("step {us} us"))
        }
        other => (other.to_owned(), other.to_owned()),
    })
}

/// The scenario of a cell.
fn scenario(cell: &[Measured<'_>]) -> Result<String, String> {
    let first = &cell[0];
    let (discipline, _) = queue(first)?;
    // A full packet has 1,500 bytes of IP and 1,514 bytes of Ethernet.
    let rate = (first.number("rate_mbit_s")? * 1e6 * 1500.0 / 1514.0) as u64;
    let (seconds, warmup, rtt) = (first.text("seconds")?, first.text("warmup_s")?, first.text("rtt_ms")?);
    let mut text = format!(
        "title = \"Senders\"\nphase = \"exact\"\nduration = \"{seconds}s\"\nwarmup = \"{warmup}s\"\nseeds = {SEEDS}\n\
         disciplines = [\"{discipline}\"]\n\
         [tcp]\npreset = \"linux\"\nreceive_window = \"60mb\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}bit\"\ndelay = \"10us\"\nqdisc = \"compare\"\n\
         [link.back]\nrate = \"10gbit\"\ndelay = \"{rtt}ms\"\nqdisc = \"fifo limit 100000p\"\n"
    );
    let ecn = if first.text("ecn")? == "1" { ", ecn = true" } else { "" };
    for (number, flow) in cell.iter().enumerate() {
        let control = flow.text("control")?;
        text.push_str(&format!(
            "[[traffic]]\nname = \"flow{number}\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nstart = \"{}ms\"\n\
             tcp = {{ congestion = \"{control}\"{ecn} }}\n",
            100 * number
        ));
    }
    Ok(text)
}

/// The rows of a cell.
fn compared(cell: &[Measured<'_>], metrics: &Value) -> Result<Vec<ConnectionResult>, String> {
    let first = &cell[0];
    let name = first.text("cell")?;
    let mean =
        |metric: &str| metrics[metric]["mean"].as_f64().ok_or_else(|| format!("{name}: no metric {metric}"));
    let sum = |column: &str| cell.iter().map(|flow| flow.number(column)).sum::<Result<f64, String>>();
    let (_, shown) = queue(first)?;
    let rate = first.number("rate_mbit_s")?;
    let goodput = sum("goodput_mbit_s")?;
    let weighted =
        |flow: &Measured<'_>| Ok(flow.number("queueing_mean_ms")? * flow.number("goodput_mbit_s")? / goodput);
    let linux_queueing = cell.iter().map(weighted).sum::<Result<f64, String>>()?;
    let transmission_ms = 1514.0 * 8.0 / (rate * 1e3);
    let rows = cell.iter().enumerate().map(|(number, flow)| {
        Ok(ConnectionResult {
            cell: name.to_owned(),
            rate_mbit_s: rate,
            rtt_ms: first.number("rtt_ms")?,
            queue: shown.clone(),
            control: flow.text("control")?.to_owned(),
            linux_goodput: flow.number("goodput_mbit_s")?,
            goodput: mean(&format!("src.flow{number}.goodput_bps"))? / 1e6,
            linux_queueing,
            queueing: mean("sojourn_mean_s")? * 1e3 + transmission_ms,
            linux_dropped: sum("dropped_packets")?,
            dropped: mean("drops")?,
            linux_marked: sum("marked_packets")?,
            marked: mean("marks")?,
        })
    });
    rows.collect()
}
