//! Judges journals of the kernel's own qdiscs: the Rust discipline of the same name gets the same arrivals at
//! the same times. `cargo xtask test-kernel` runs it.
//!
//! Arguments, four each: the file of a journal, the rate of the link, the Rust discipline, and how many
//! packets must have come.

#![allow(clippy::print_stdout, reason = "it has nothing else to say")]

use std::process::ExitCode;

use giveway_kernel_check::{journal, oracle};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut holds = !words.is_empty();
    for four in words.chunks(4) {
        let [file, rate, discipline, packets] = four else {
            println!("four words for each journal: FILE RATE DISCIPLINE PACKETS");
            return ExitCode::from(2);
        };
        let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
        match ask(file, rate, discipline, packets) {
            Ok(oracle::Answer { came, sent, dropped, verdict }) => {
                println!(
                    "{came:>7} came {sent:>7} left {dropped:>7} dropped  {name}: {discipline}: {verdict}"
                );
                holds &= verdict.holds();
            }
            Err(why) => {
                println!("DIFFERENT {name}, {discipline}: {why}");
                holds = false;
            }
        }
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn ask(file: &str, rate: &str, discipline: &str, packets: &str) -> Result<oracle::Answer, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let entries = journal::read(&bytes).map_err(|error| error.to_string())?;
    let rate = rate.parse().map_err(|error| format!("{error}"))?;
    let answer = oracle::ask(&entries, discipline, rate)?;
    let least: u64 = packets.parse().map_err(|error| format!("{packets}: {error}"))?;
    if answer.came < least {
        return Err(format!("only {} packets came", answer.came));
    }
    Ok(answer)
}
