//! Measures how the cost of a run grows with its size, and writes `docs/growth.csv`.
//!
//! Each curve is a kind of network in several sizes, with the same number of packets in each size
//! ([`workloads`]). The program `giveway` runs each size with all its files, as a user would, and a row of
//! the table has:
//! - the user time of the trial, of which the shortest of three runs counts if it is short;
//! - the largest memory of the process (GNU time);
//! - the instructions per packet (callgrind), for sizes that callgrind can run: of a run with some packets,
//!   minus a run with half as many, both without files, so that the set-up cancels out.
//!
//! With names of curves only these are measured again, which must be on the same machine.
//!
//! Time and memory depend on the machine, so nothing is compared with the table, and no test reads it.
//! `cargo xtask docs` draws it.

pub(crate) mod table;
mod workloads;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::repository::{Done, Repository};
use crate::{instructions, recorded, tools};
use table::SizeCost;
use workloads::{CURVES, Curve};

/// Runs that take less user time than this, in seconds, are repeated.
const SHORT: f64 = 3.0;
/// The part of the packets for callgrind, in whole runs.
const COUNTED: f64 = 0.2;
/// GNU time, which prints the largest memory of a process.
const TIME: &str = "/usr/bin/time";

/// Measures every size of these curves, or of all without a name, and writes the table. The rows of other
/// curves remain.
pub fn record(repository: &Repository, names: &[&str]) -> Done {
    if let Some(name) = names.iter().find(|name| CURVES.iter().all(|curve| curve.name != **name)) {
        let known: Vec<&str> = CURVES.iter().map(|curve| curve.name).collect();
        return Err(format!("there is no curve \"{name}\": write one of {}", known.join(", ")));
    }
    let old: Vec<SizeCost> = recorded::read(&repository.root)?;
    instructions::set_up(repository)?;
    if !repository.has(TIME, &["-f", "%M", "true"]) {
        tools::install(repository, &["time"])?;
    }
    repository.cargo(&["build", "--quiet", "--locked", "--release", "--package", "giveway-cli"])?;
    let program = repository.built("release", "giveway")?.to_string_lossy().into_owned();
    let folder = repository.target()?.join("xtask/growth");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut rows = Vec::new();
    for curve in CURVES {
        if !names.is_empty() && !names.contains(&curve.name) {
            rows.extend(old.iter().filter(|row| row.curve == curve.name).cloned());
            continue;
        }
        for size in curve.sizes {
            let row = measure(repository, &program, &folder, curve, *size)?;
            println!("{row:?}");
            rows.push(row);
        }
    }
    recorded::store(&repository.root, Some(&machine()), &rows)
}

fn measure(
    repository: &Repository,
    program: &str,
    folder: &Path,
    curve: &Curve,
    size: u32,
) -> Result<SizeCost, String> {
    let run = |before: &[String], amount: f64| run(repository, program, folder, curve, size, before, amount);
    let peak = folder.join("peak");
    let timed = [TIME, "-f", "%M", "-o", &peak.to_string_lossy()].map(str::to_owned);
    let mut row = SizeCost { curve: curve.name.to_owned(), size, ..run(&timed, 1.0)? };
    let text = fs::read_to_string(&peak).map_err(|error| format!("{}: {error}", peak.display()))?;
    row.peak_kib = text.trim().parse().map_err(|_| format!("{TIME} prints no memory: \"{text}\""))?;
    if row.cpu_s < SHORT {
        for _ in 0..2 {
            row.cpu_s = row.cpu_s.min(run(&[], 1.0)?.cpu_s);
        }
    }
    if size <= curve.counted {
        let out = folder.join("callgrind");
        let counting = ["valgrind", "--tool=callgrind", &format!("--callgrind-out-file={}", out.display())]
            .map(str::to_owned);
        let counts = |amount| -> Result<(f64, f64), String> {
            let packets = run(&counting, amount)?.packets as f64;
            Ok((packets, instructions::total(&out)?))
        };
        let (whole, half) = (counts(COUNTED)?, counts(COUNTED / 2.0)?);
        row.instructions = Some((whole.1 - half.1) / (whole.0 - half.0));
    }
    Ok(row)
}

/// Runs a part of the packets of a size, with another program before the command; all of them with a run
/// folder, a part without. The result has packets, events and user time.
fn run(
    repository: &Repository,
    program: &str,
    folder: &Path,
    curve: &Curve,
    size: u32,
    before: &[String],
    amount: f64,
) -> Result<SizeCost, String> {
    let (scenario, results) = (folder.join("scenario.toml"), folder.join("results"));
    let _ = fs::remove_dir_all(&results);
    let text = curve.scenario(size, amount);
    fs::write(&scenario, text).map_err(|error| format!("{}: {error}", scenario.display()))?;
    let mut command = before.to_vec();
    command.push(program.to_owned());
    command.extend(["run", "--quiet", "--json", "--jobs", "1"].map(str::to_owned));
    if amount == 1.0 {
        command.extend(["--out".to_owned(), results.to_string_lossy().into_owned()]);
    }
    command.push(scenario.to_string_lossy().into_owned());
    let printed = repository.output(&command[0], &command[1..])?;
    let found: Value = serde_json::from_str(printed.lines().next().unwrap_or_default())
        .map_err(|error| format!("giveway run prints no JSON: {error}"))?;
    let number = |key: &str| found[key].as_f64().ok_or(format!("giveway run prints no \"{key}\""));
    let packets = match curve.packets {
        Some(packets) => packets * amount,
        None => number("bottleneck_packets")?,
    };
    Ok(SizeCost {
        packets: packets as u64,
        events: number("events")? as u64,
        cpu_s: number("cpu_s")?,
        ..SizeCost::default()
    })
}

/// The processor, the number of processors that may be used, and the operating system.
fn machine() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {processors} processors, {}", std::env::consts::OS)
}
