//! Judges journals of disciplines in the kernel: the Rust discipline gets the same arrivals at the same
//! times, and must let the same packets go, in the same order, and drop the same for the same reasons. `cargo
//! xtask test-kernel` runs it.
//!
//! Arguments, four each: the file of a journal, the rate of the link, the discipline as it would be typed,
//! and how many packets it must have got at least.

#![allow(clippy::print_stdout, reason = "it has nothing else to say")]

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
            println!("four words for each journal: FILE RATE DISCIPLINE PACKETS");
            return ExitCode::from(2);
        };
        match judge(file, rate, discipline, packets) {
            Ok(line) => println!("equal     {line}"),
            Err(why) => {
                println!("DIFFERENT {file}, {discipline}: {why}");
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
    let trace = trace.0.lock().expect("nobody panicked").clone();
    let outcome = giveway_replay::check(Cursor::new(trace)).map_err(|error| error.to_string())?;
    let [section] = outcome.sections.as_slice() else { return Err("no discipline".to_owned()) };
    match &section.verdict {
        Verdict::Equal if outcome.complete() => {}
        Verdict::Equal => return Err("the trace is not whole".to_owned()),
        Verdict::Different(difference) => return Err(difference.to_string()),
        Verdict::Unbuildable(why) => return Err(why.clone()),
    }
    let Totals { arrived, sent, dropped, operations, .. } = section.totals;
    if arrived < packets.parse::<u64>().map_err(|error| error.to_string())? {
        return Err(format!("only {arrived} packets came"));
    }
    let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    Ok(format!(
        "{arrived:>7} came {sent:>7} left {dropped:>7} dropped {operations:>7} calls  {name}: {discipline}"
    ))
}

/// A file in memory that is read when it is written.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
