//! Compares journals of qdiscs of Linux with the Rust disciplines of the same names, which get the same
//! arrivals at the same times. `cargo xtask test-kernel` runs this program.
//!
//! Arguments, four for each journal: the file, the rate of the link, the Rust discipline, and the minimum
//! number of arrivals. If the link had gaps, a slash and the minimum number of drops at their ends follow.

#![allow(clippy::print_stdout, reason = "the output is the result")]

use std::process::ExitCode;

use giveway_kernel_check::{journal, oracle};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut holds = !words.is_empty();
    for four in words.chunks(4) {
        let [file, rate, discipline, packets] = four else {
            println!("four arguments for each journal: FILE RATE DISCIPLINE PACKETS");
            return ExitCode::from(2);
        };
        let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
        match judge(file, rate, discipline, packets) {
            Ok(oracle::Comparison { arrived, sent, dropped, gaps, verdict }) => {
                let gaps = if gaps.count > 0 { format!(" ({gaps})") } else { String::new() };
                println!(
                    "{arrived:>7} arrived {sent:>7} sent {dropped:>7} dropped  {name}{gaps}: {discipline}: {verdict}"
                );
                holds &= verdict.holds();
            }
            Err(error) => {
                println!("DIFFERENT {name}, {discipline}: {error}");
                holds = false;
            }
        }
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn judge(file: &str, rate: &str, discipline: &str, packets: &str) -> Result<oracle::Comparison, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let entries = journal::read(&bytes).map_err(|error| error.to_string())?;
    let rate = rate.parse().map_err(|error| format!("{error}"))?;
    let comparison = oracle::judge(&entries, discipline, rate).map_err(|error| error.to_string())?;
    let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{packets}: {error}"));
    let (arrived, drops) = packets.split_once('/').unwrap_or((packets, "0"));
    if comparison.arrived < number(arrived)? {
        return Err(format!("only {} packets arrived", comparison.arrived));
    }
    if comparison.gaps.dropped < number(drops)? {
        return Err(format!("the gaps of the link show too little: {}", comparison.gaps));
    }
    Ok(comparison)
}
