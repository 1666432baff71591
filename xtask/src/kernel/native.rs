//! The equality test without a kernel: the C files of the disciplines, compiled for this machine.
//!
//! `kernel/test/native` has stand-ins for the headers of the kernel and of libbpf, and a driver that makes
//! random calls on a virtual clock. It follows the plan of the virtual machine and writes the same journals,
//! which the same judge compares with the Rust disciplines. The sanitizers of the compiler check the memory
//! and the arithmetic meanwhile.
//!
//! Only the virtual machine shows that the verifier accepts the programs, that they can be attached, and that
//! they work with the kernel's calls, timers, hashes and real traffic.

use std::fs;
use std::path::Path;

use super::disk::{ENTRIES, SLOT};
use super::equality::{DISCIPLINES, Run, judge, plan, runs};
use crate::repository::{Done, Repository};

/// Packets per discipline and mix.
const PACKETS: u32 = 80_000;

/// Options of the compiler: a fault in memory or arithmetic ends the program. The checks of single pointers
/// would take half of the time of the compiler, and the sanitizer of addresses finds their faults, too.
const SANITIZERS: [&str; 3] =
    ["-fsanitize=undefined,address", "-fno-sanitize-recover", "-fno-sanitize=null,alignment,object-size"];

/// Reservations of `trr`. Those after the fourth are unusual: marks that are not in the array of low marks,
/// most of the link, more than the link, and nearly nothing.
const RATES: [&str; 8] = [
    "1=400kbit",
    "2=1600kbit",
    "3=3600kbit",
    "4=6400kbit",
    "5=40mbit",
    "2000=400kbit",
    "3000=1gbit",
    "4000=1bit",
];

/// Routes of `bsq`. Some continue where others end, and the last marks are not in the array of low marks.
const ROUTES: [&str; 14] = [
    "1=4",
    "2=5",
    "3=6",
    "4=4.7",
    "5=4.8",
    "6=5.7",
    "7=5.7.9",
    "8=5.7.9.3",
    "9=5.7.9.2",
    "10=6.1.2.3",
    "11=10",
    "12=4.7.7",
    "2000=4.8",
    "3000=11.12.13.14",
];

/// Compares each discipline in C with the one in Rust, for each mix of traffic. The judge must be built.
///
/// # Errors
/// A discipline that cannot be compiled, breaks the contract with the kernel, or behaves differently.
pub fn check(repository: &Repository) -> Done {
    // The driver allocates nothing, and the search for leaks fails in some containers.
    let repository = &repository.with([("ASAN_OPTIONS".to_owned(), "detect_leaks=0".to_owned())]);
    let folder = repository.target()?.join("kernel/native");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let planner = repository.built("debug", "kernel-judge")?.to_string_lossy().into_owned();
    let runs = runs();
    let each = runs.chunks(runs.len() / DISCIPLINES.len());
    let results = DISCIPLINES.iter().zip(each).map(|((_, kind, _), runs)| {
        let compared = compare(repository, &folder, &planner, kind, runs);
        compared.map_err(|error| format!("{kind}: {error}"))
    });
    let wrong: Vec<String> = results.filter_map(Result::err).collect();
    let _ = fs::remove_dir_all(&folder);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Compares one discipline. `planner` is the program that prints its parameters.
fn compare(repository: &Repository, folder: &Path, planner: &str, kind: &str, runs: &[Run]) -> Done {
    let program = folder.join(kind).to_string_lossy().into_owned();
    compile(repository, kind, &program)?;
    let disk = folder.join("disk");
    fs::write(&disk, "").map_err(|error| format!("{}: {error}", disk.display()))?;
    let mut output = String::new();
    let plan = plan(runs, PACKETS, &[]);
    for journal in plan.lines().filter_map(Journal::parse) {
        let params = repository.output(planner, &journal.load(kind))?;
        let mut words: Vec<String> = params.split_whitespace().map(str::to_owned).collect();
        words.extend(journal.traffic());
        words.push(format!("run.out={}", disk.display()));
        repository.run(&program, &words)?;
        output.push_str(&format!("JOURNAL {}\n", journal.name));
    }
    judge(repository, folder, runs, PACKETS, &output)
}

/// Compiles the driver with a discipline, with sanitizers if there are any.
fn compile(repository: &Repository, kind: &str, out: &str) -> Done {
    let journal = format!("-DGIVEWAY_JOURNAL={ENTRIES}");
    let (name, file) =
        (format!("-DGIVEWAY_NAME=\"{kind}\""), format!("-DGIVEWAY_DISCIPLINE=\"{kind}.bpf.c\""));
    // The limits of all runs are below this number of packets.
    let mut words = vec!["-O1", "-Wall", "-Werror", "-fno-strict-aliasing", "-DGIVEWAY_ROOM=4096"];
    words.extend([&journal, &name, &file, "-Ikernel/test/native", "-Ikernel"]);
    words.extend(["kernel/test/native/drive.c", "-o", out]);
    if repository.has("cc", &[&SANITIZERS[..], &words].concat()) {
        return Ok(());
    }
    println!("{kind}: this compiler has no sanitizers, so memory and arithmetic are not checked");
    repository.run("cc", &words)
}

/// A run, as a line of the plan of the virtual machine describes it.
#[derive(Debug, PartialEq)]
struct Journal<'a> {
    name: &'a str,
    /// Number of its journal on the disk, and seed of its traffic.
    slot: u64,
    discipline: &'a str,
    rate: &'a str,
    packets: &'a str,
    flows: &'a str,
    sizes: &'a str,
    marks: &'a str,
}

impl<'a> Journal<'a> {
    /// The run of a line `journal LANE NAME SLOT 'DISCIPLINE' RATE PACKETS FLOWS SIZES MARKS`. `None` for
    /// another line.
    fn parse(line: &'a str) -> Option<Journal<'a>> {
        let (before, rest) = line.split_once('\'')?;
        let (discipline, after) = rest.split_once('\'')?;
        let words: Vec<&str> = before.split_whitespace().chain(after.split_whitespace()).collect();
        let ["journal", _, name, slot, rate, packets, flows, sizes, marks] = words[..] else { return None };
        let slot = slot.parse().ok()?;
        Some(Journal { name, slot, discipline, rate, packets, flows, sizes, marks })
    }

    /// Arguments of the program that prints what `giveway kernel load` would write.
    fn load(&self, kind: &str) -> Vec<&'a str> {
        let marks: &[&str] = match kind {
            "trr" => &RATES,
            "bsq" => &ROUTES,
            _ => &[],
        };
        [&["params", self.rate, self.discipline], marks].concat()
    }

    /// The traffic and the place of the journal.
    fn traffic(&self) -> Vec<String> {
        let Journal { slot, packets, flows, sizes, marks, .. } = self;
        let mixed = u32::from(*sizes == "mixed");
        vec![
            format!("run.packets={packets}"),
            format!("run.flows={flows}"),
            format!("run.mixed={mixed}"),
            format!("run.marks={marks}"),
            format!("run.seed={slot}"),
            format!("run.offset={}", slot * SLOT),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_the_virtual_machine_is_read_from_its_plan() {
        let runs = runs();
        let plan = plan(&runs, 5000, &[]);
        let journals: Vec<Journal<'_>> = plan.lines().filter_map(Journal::parse).collect();
        assert_eq!(journals.len(), runs.len());
        let bsq = journals.iter().find(|journal| journal.name == "bsq-mixed-500");
        let discipline = "bsq limit 1000p measure packets drop tail";
        let (name, rate, flows, sizes) = ("bsq-mixed-500", "50mbit", "500", "mixed");
        let last = runs.len() as u64 - 1;
        let expected =
            Journal { name, slot: last, discipline, rate, packets: "5000", flows, sizes, marks: "12" };
        assert_eq!(bsq, Some(&expected));
        assert!(expected.traffic().contains(&"run.mixed=1".to_owned()));
    }

    #[test]
    fn each_usual_mark_has_a_value() {
        let plan = plan(&runs(), 1, &[]);
        for journal in plan.lines().filter_map(Journal::parse) {
            let values = if journal.name.starts_with("trr") { RATES.len() } else { ROUTES.len() };
            assert!(journal.marks.parse::<usize>().unwrap() <= values, "{}", journal.name);
        }
    }
}
