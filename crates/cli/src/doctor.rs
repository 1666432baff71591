//! `giveway doctor`: what works on this machine, and what to type for the rest.
//!
//! Each part of Giveway lists the things that it needs. They are the checks that the commands themselves do,
//! so that the doctor says what they would say.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use giveway_kernel::{KernelError, attach, tools};
use giveway_program::other;
use giveway_runner::Outcome;
use giveway_trials::processors;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::markdown::wrap;

use crate::terminal;

/// Says which parts of Giveway work on this machine, and what to type for the others.
///
/// It changes nothing. Simulation, comparison of captures and papers need nothing but this program.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  giveway doctor
  sudo giveway doctor           # what works for root
  giveway doctor --json

Exit codes: 0 success, whatever works.";

/// A part of Giveway.
struct Part {
    /// The commands.
    name: &'static str,
    /// Their purpose, in a few words.
    about: &'static str,
    /// Things that are missing, each in a sentence with the remedy. Empty if the part works.
    missing: Vec<String>,
    /// Remarks on a part that works.
    remarks: Vec<String>,
}

/// Runs `giveway doctor`.
pub fn doctor(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let parts = [simulation(), live(), testbed(), kernel(), python()];
    if args.json {
        let parts: Vec<Value> = parts.iter().map(of_part).collect();
        let version = giveway_sources::VERSION;
        writeln!(out, "{}", json!({ "version": version, "parts": parts }))?;
    } else {
        parts.iter().try_for_each(|part| print(part, out))?;
    }
    Ok(Outcome::Done)
}

fn of_part(part: &Part) -> Value {
    let Part { name, about, missing, remarks } = part;
    json!({ "commands": name, "about": about, "works": missing.is_empty(), "missing": missing, "remarks": remarks })
}

fn print(part: &Part, out: &mut dyn Write) -> io::Result<()> {
    let mark = if part.missing.is_empty() { terminal::good("works  ") } else { terminal::bad("missing") };
    writeln!(out, "{mark}  {:<34} {}", part.name, terminal::faint(part.about))?;
    for line in part.missing.iter().chain(&part.remarks) {
        write!(out, "{}", wrap(line, terminal::width().min(100), "         - ", "           "))?;
    }
    Ok(())
}

/// The commands that need nothing but the program.
fn simulation() -> Part {
    let processors = processors();
    let remarks = match processors {
        1 => vec!["one processor: runs take turns".to_owned()],
        _ => vec![format!("{processors} processors, so {processors} runs at a time")],
    };
    Part { name: "run, compare, evaluate, reproduce", about: "simulation", missing: Vec::new(), remarks }
}

/// The bridge between two interfaces.
fn live() -> Part {
    let mut missing = Vec::new();
    if cfg!(target_os = "linux") {
        missing.extend(privileges());
    } else {
        missing.push("live needs Linux".to_owned());
    }
    Part { name: "live, control, reserve", about: "a bridge on real frames", missing, remarks: Vec::new() }
}

/// The privilege that the program for real interfaces lacks. It is asked, since a file may have privileges.
fn privileges() -> Option<String> {
    let asked = other::find(other::NET).map_err(|missing| missing.to_string()).and_then(|program| {
        let output = Command::new(&program).arg("privileges").output();
        output.map_err(|error| format!("cannot start {}: {error}", program.display()))
    });
    match asked {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) => Some(error),
    }
    .filter(|lacking| !lacking.is_empty())
}

/// Real hosts in network namespaces.
fn testbed() -> Part {
    let missing = giveway_testbed::ready().err().iter().map(|error| giveway_record::chain(error)).collect();
    let mut remarks = Vec::new();
    if let Err(error) = giveway_testbed::pcap::ready() {
        remarks.push(format!("without --pcap: {}", giveway_record::chain(&error)));
    }
    Part { name: "testbed, evaluate --testbed", about: "real hosts on this machine", missing, remarks }
}

/// BPF qdiscs.
fn kernel() -> Part {
    let missing: Vec<KernelError> = attach::ready().err().into_iter().chain(tools::missing()).collect();
    let missing = missing.iter().map(|error| giveway_record::chain(error)).collect();
    Part { name: "kernel", about: "disciplines as BPF qdiscs", missing, remarks: Vec::new() }
}

/// The Python package.
fn python() -> Part {
    let mut part = Part {
        name: "import giveway",
        about: "the Python package",
        missing: Vec::new(),
        remarks: Vec::new(),
    };
    let asked = Command::new("python3")
        .args(["-c", "import giveway; print(giveway.__version__)"])
        .stdin(Stdio::null())
        .output();
    match asked {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            part.remarks.push(format!("version {version} in python3"));
        }
        Ok(_) => part.missing.push(
            "python3 has no package giveway: pip install the wheel into a virtual environment".to_owned(),
        ),
        Err(_) => part.missing.push("there is no python3: apt-get install python3-venv".to_owned()),
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(part: &Part) -> String {
        let mut out = Vec::new();
        print(part, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_part_that_does_not_work_has_its_remedies_below_it() {
        let part = Part {
            name: "kernel",
            about: "disciplines as BPF qdiscs",
            missing: vec!["bpftool is not installed: apt-get install bpftool".to_owned()],
            remarks: Vec::new(),
        };
        let lines: Vec<String> = text(&part).lines().map(str::to_owned).collect();
        assert!(lines[0].starts_with("missing  kernel"), "{lines:?}");
        assert_eq!(lines[1], "         - bpftool is not installed: apt-get install bpftool");
        assert_eq!(of_part(&part)["works"], false);
    }

    #[test]
    fn simulation_works_everywhere() {
        assert!(simulation().missing.is_empty());
        assert!(text(&simulation()).starts_with("works"));
    }
}
