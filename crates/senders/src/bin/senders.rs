//! The program of the virtual machine: measures the cells and the packet traces in a file.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path] = words.as_slice() else {
        eprintln!(
            "senders FILE: FILE has a cell or a packet trace in each line; see giveway_senders::cell and ::trace"
        );
        return ExitCode::FAILURE;
    };
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let failed = text.lines().filter(|line| !line.is_empty()).filter(|line| !measure(line)).count();
            if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures one line and prints the rows. True if it succeeds.
fn measure(line: &str) -> bool {
    match giveway_senders::measure(line) {
        Ok(rows) => {
            rows.iter().for_each(|row| println!("{row}"));
            true
        }
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(of) = cause {
                text = format!("{text}: {of}");
                cause = of.source();
            }
            println!("FAILED: {line}: {text}");
            false
        }
    }
}
