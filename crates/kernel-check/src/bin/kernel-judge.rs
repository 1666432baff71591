//! Compares journals of disciplines in the kernel with the Rust disciplines. A Rust discipline gets the same
//! arrivals at the same times, and must send the same packets in the same order, and drop the same packets
//! for the same reasons. `cargo xtask test-kernel` runs this program.
//!
//! Arguments, four for each journal: the file, the rate of the link, the Rust discipline, and the least
//! number of arrivals.

#![allow(clippy::print_stdout, reason = "the output is the result")]

use std::io::{self, Cursor, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use giveway_disciplines::Spec;
use giveway_kernel_check::journal;
use giveway_qdisc::{Bytes, LinkContext, Rate, Streams};
use giveway_replay::{Totals, Verdict};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut equal = !words.is_empty();
    for four in words.chunks(4) {
        let [file, rate, discipline, packets] = four else {
            println!("four arguments for each journal: FILE RATE DISCIPLINE PACKETS");
            return ExitCode::from(2);
        };
        match judge(file, rate, discipline, packets) {
            Ok(line) => println!("equal     {line}"),
            Err(error) => {
                println!("DIFFERENT {file}, {discipline}: {error}");
                equal = false;
            }
        }
    }
    if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn judge(file: &str, rate: &str, discipline: &str, packets: &str) -> Result<String, String> {
    let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
    let spec: Spec = discipline.parse().map_err(|error| format!("{error}"))?;
    // The kernel counts the header of the link.
    let context = LinkContext { mtu: Bytes(1514), ..LinkContext::new(rate, Streams::new(1)) };
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let entries = journal::read(&bytes).map_err(|error| error.to_string())?;
    let trace = Memory::default();
    journal::to_trace(&entries, file, &spec, &context, trace.clone()).map_err(|error| error.to_string())?;
    let trace = trace.0.lock().expect("no thread panics while it holds the lock").clone();
    let outcome = giveway_replay::check(Cursor::new(trace)).map_err(|error| error.to_string())?;
    let [section] = outcome.sections.as_slice() else { return Err("no discipline".to_owned()) };
    match &section.verdict {
        Verdict::Equal if outcome.complete() => {}
        Verdict::Equal => return Err("the trace is incomplete".to_owned()),
        Verdict::Different(difference) => return Err(difference.to_string()),
        Verdict::Unbuildable(error) => return Err(error.clone()),
    }
    let Totals { arrived, sent, dropped, operations, .. } = section.totals;
    if arrived < packets.parse::<u64>().map_err(|error| error.to_string())? {
        return Err(format!("only {arrived} packets arrived"));
    }
    let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    Ok(format!(
        "{arrived:>7} arrived {sent:>7} sent {dropped:>7} dropped {operations:>7} calls  {name}: {discipline}"
    ))
}

/// Written bytes; clones of a value share them.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panics while it holds the lock").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
