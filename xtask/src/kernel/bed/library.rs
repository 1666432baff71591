//! Records the library of captures: for each cell the capture with `fifo`, and what
//! the applications measured with each discipline of Linux, at the same arrivals.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use serde_json::Value;

use super::host::{Machine, results, said};
use crate::kernel::disk::SLOT;
use crate::library::{Cell, FOLDER, QDISCS, QUANTILES, RUNS};
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
        let runs = || (0..QDISCS.len()).flat_map(|at| (0..RUNS).map(move |run| (at, run)));
        let output = machine.run(&runs().map(|(at, run)| line(cell, at, run)).collect::<String>(), 1)?;
        said(&output);
        let mut measured: BTreeMap<&str, Vec<BTreeMap<String, Value>>> = BTreeMap::new();
        for (at, run) in runs() {
            let metrics = &results(&output, &label(at, run))?["results"][0]["metrics"];
            let names = cell
                .measures()
                .iter()
                .flat_map(|measure| QUANTILES.map(|(end, _)| format!("{}{end}", measure.measured)));
            let of_run = names.map(|name| (name.clone(), metrics[&name]["mean"].clone())).collect();
            measured.entry(QDISCS[at].0).or_default().push(of_run);
        }
        let text = serde_json::to_string_pretty(&measured).map_err(|error| error.to_string())?;
        let explain = |error: std::io::Error| format!("{FOLDER}/{name}: {error}");
        fs::write(folder.join(format!("{name}.json")), text + "\n").map_err(explain)?;
        let bytes = output.lines().find_map(|line| line.strip_prefix("CAPTURE fifo-0 ")?.parse::<u64>().ok());
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

/// The name of a run in the output of the machine.
fn label(discipline: usize, run: u32) -> String {
    format!("{}-{run}", QDISCS[discipline].0)
}

/// The line of the script for a run of a discipline. The first of all is captured.
fn line(cell: &Cell, discipline: usize, run: u32) -> String {
    let name = label(discipline, run);
    let start = if (discipline, run) == (0, 0) { format!("capture {name} 0") } else { format!("bed {name}") };
    let kernel = cell.kernel(discipline);
    let sets: String = cell.settings(run).iter().map(|set| format!(" --set '{set}'")).collect();
    let words = format!("--attempts 1 --seeds 1 --set 'disciplines=[\"{kernel}\"]'{sets}");
    format!("{start} {} {words}\n", cell.scenario())
}
