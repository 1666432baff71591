//! Records the library of captures: for each rate and congestion control the capture with `fifo`, and what
//! the applications measured with each discipline of Linux, at the same arrivals.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use super::host::{Machine, results, said};
use crate::kernel::disk::SLOT;
use crate::library::{Cell, FOLDER, QDISCS};
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
        let lines = (0..QDISCS.len()).map(|discipline| line(cell, discipline));
        let output = machine.run(&lines.collect::<String>(), 1)?;
        said(&output);
        let mut measured = serde_json::Map::new();
        for (qdisc, _) in QDISCS {
            measured.insert(qdisc.to_owned(), results(&output, qdisc)?["results"][0]["metrics"].clone());
        }
        let text = serde_json::to_string(&measured).map_err(|error| error.to_string())?;
        let explain = |error: std::io::Error| format!("{FOLDER}/{name}: {error}");
        fs::write(folder.join(format!("{name}.json")), text + "\n").map_err(explain)?;
        let bytes = output.lines().find_map(|line| line.strip_prefix("CAPTURE fifo ")?.parse::<u64>().ok());
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

/// The line of the script for a discipline, the first of which is captured.
fn line(cell: &Cell, discipline: usize) -> String {
    let (name, _) = QDISCS[discipline];
    let start = if discipline == 0 { "capture fifo 0".to_owned() } else { format!("bed {name}") };
    let kernel = cell.kernel(discipline);
    let sets: String = cell.settings().iter().map(|set| format!(" --set '{set}'")).collect();
    let words = format!("--attempts 1 --seeds 1 --set 'disciplines=[\"{kernel}\"]'{sets}");
    format!("{start} scenarios/testbed/library.toml {words}\n")
}
