//! Compares journals of disciplines in the kernel with the Rust disciplines. A Rust discipline gets the same
//! arrivals at the same times, and must send the same packets in the same order, and drop the same packets
//! for the same reasons. `cargo xtask test-kernel` runs this program.
//!
//! Arguments, four for each journal: the file, the rate of the link, the Rust discipline, and the minimum
//! number of arrivals.
//!
//! `kernel-judge params RATE DISCIPLINE [MARK=RATE|HOPS]...` prints the numbers that `giveway kernel load`
//! would write for the discipline, as words for `kernel/test/native/drive.c`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output is the result")]

use std::io::{self, Cursor, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use giveway_disciplines::Spec;
use giveway_kernel_check::journal;
use giveway_kernel_plan::plan::Plan;
use giveway_kernel_plan::route::{Route, RouteError};
use giveway_qdisc::{Bytes, LinkContext, Rate, Streams};
use giveway_replay::{Totals, Verdict};

/// The largest packet of the test, as the kernel counts it: with the header of the link.
const MTU: u64 = 1514;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rate, discipline, marks @ ..] = words.as_slice()
        && first == "params"
    {
        return match params(rate, discipline, marks) {
            Ok(words) => {
                println!("{}", words.join(" "));
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{discipline}: {error}");
                ExitCode::FAILURE
            }
        };
    }
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

/// The parameters and marks of a discipline in the kernel, each as `KEY=NUMBER`.
fn params(rate: &str, discipline: &str, marks: &[String]) -> Result<Vec<String>, String> {
    let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
    let plan = Plan::new(discipline, Some(rate), None, MTU).map_err(|error| error.to_string())?;
    let marked = marks.iter().map(|text| {
        let (mark, value) = text.split_once('=').ok_or(format!("{text:?} is not MARK=VALUE"))?;
        Ok((mark.parse::<u32>().map_err(|error| format!("{text:?}: {error}"))?, value))
    });
    let marked = marked.collect::<Result<Vec<_>, String>>()?;
    let values: Vec<(u32, u64)> = if let Spec::bsq(_) = plan.spec {
        let routes = marked.into_iter().map(|(mark, value)| Ok((mark, value.parse()?)));
        let routes = routes.collect::<Result<Vec<(u32, Route)>, RouteError>>();
        plan.routes(&routes.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?
    } else {
        let rates = marked.into_iter().map(|(mark, value)| Ok((mark, value.parse::<Rate>()?.as_bit())));
        rates.collect::<Result<_, <Rate as std::str::FromStr>::Err>>().map_err(|error| format!("{error}"))?
    };
    let words = plan.params.words().into_iter().map(|(name, value)| format!("{name}={value}"));
    Ok(words.chain(values.into_iter().map(|(mark, value)| format!("mark.{mark}={value}"))).collect())
}

fn judge(file: &str, rate: &str, discipline: &str, packets: &str) -> Result<String, String> {
    let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
    let spec: Spec = discipline.parse().map_err(|error| format!("{error}"))?;
    let context = LinkContext { mtu: Bytes(MTU), ..LinkContext::new(rate, Streams::new(1)) };
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
