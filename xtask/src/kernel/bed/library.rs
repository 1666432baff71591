//! Records the library of captures: for each cell the capture with `fifo`, and what
//! the applications measured with each discipline of Linux, at the same arrivals.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use serde_json::Value;

use super::host::{Machine, results, said};
use crate::kernel::disk::SLOT;
use crate::library::{Cell, FOLDER, QDISCS, QUANTILES, RUNS, RUNS_OF_HOMES, SETUPS};
use crate::repository::Done;

/// Records these cells, one machine for each.
///
/// # Errors
/// A failed run, or a capture that does not fit its place of the disk.
pub fn record(machine: &Machine<'_>, cells: &[Cell]) -> Done {
    let folder = machine.repository.root.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
    for cell in cells {
        let name = cell.name();
        let runs = runs(cell);
        let output = machine
            .run(&runs.iter().enumerate().map(|(at, run)| run.line(cell, at)).collect::<String>(), 1)?;
        said(&output);
        let mut measured: BTreeMap<&str, Vec<BTreeMap<String, Value>>> = BTreeMap::new();
        for (at, run) in runs.iter().enumerate() {
            let metrics = &results(&output, &label(at))?["results"][0]["metrics"];
            let of_run = names(cell).map(|name| (name.clone(), metrics[&name]["mean"].clone())).collect();
            measured.entry(&run.setup).or_default().push(of_run);
        }
        let text = serde_json::to_string_pretty(&measured).map_err(|error| error.to_string())?;
        let explain = |error: std::io::Error| format!("{FOLDER}/{name}: {error}");
        fs::write(folder.join(format!("{name}.json")), text + "\n").map_err(explain)?;
        let bytes = output.lines().find_map(|line| line.strip_prefix("CAPTURE run-0 ")?.parse::<u64>().ok());
        let bytes = bytes.filter(|bytes| *bytes <= SLOT);
        let bytes = bytes.ok_or_else(|| format!("{name}: there is no capture, or it is too long"))?;
        let mut disk = File::open(machine.folder.join("disk")).map_err(explain)?;
        disk.seek(SeekFrom::Start(0)).map_err(explain)?;
        let mut capture = Vec::new();
        disk.take(bytes).read_to_end(&mut capture).map_err(explain)?;
        fs::write(folder.join(format!("{name}.pcapng.gz")), capture).map_err(explain)?;
        println!("wrote {FOLDER}/{name}.pcapng.gz ({bytes} bytes) and .json");
    }
    Ok(())
}

/// A run of the machine.
struct Run {
    /// The discipline or the setup that is measured.
    setup: String,
    /// Changes of the scenario.
    settings: Vec<String>,
}

/// The runs of a cell. The first one is captured.
fn runs(cell: &Cell) -> Vec<Run> {
    let number = if cell.home().is_some() { RUNS_OF_HOMES } else { RUNS };
    let plain = (0..QDISCS.len()).flat_map(|at| (0..number).map(move |run| (at, run))).map(|(at, run)| Run {
        setup: QDISCS[at].0.to_owned(),
        settings: [cell.settings(run), cell.disciplines(at)].concat(),
    });
    let advised = cell.home().into_iter().flat_map(|home| {
        SETUPS.iter().map(|setup| Run {
            setup: setup.name(),
            settings: [cell.settings(0), setup.settings(home)].concat(),
        })
    });
    plain.chain(advised).collect()
}

/// The metrics of a run that are kept.
fn names(cell: &Cell) -> impl Iterator<Item = String> {
    let times = cell.measures().iter().flat_map(|measure| {
        QUANTILES[..measure.quantiles].iter().map(|(end, _)| format!("{}{end}", measure.measured))
    });
    let losses = cell.home().map(|_| ["src.call-up.loss", "src.call-down.loss", "flows_completed"]);
    times.chain(losses.into_iter().flatten().map(str::to_owned))
}

/// The name of a run in the output of the machine.
fn label(run: usize) -> String {
    format!("run-{run}")
}

impl Run {
    /// The line of the script for the run with this number.
    fn line(&self, cell: &Cell, number: usize) -> String {
        let name = label(number);
        let start = if number == 0 { format!("capture {name} 0") } else { format!("bed {name}") };
        let sets: String = self.settings.iter().map(|set| format!(" --set '{set}'")).collect();
        format!("{start} {} --attempts 1 --seeds 1{sets}\n", cell.scenario())
    }
}
