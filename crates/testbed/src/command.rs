//! Programs of the system: `ip`, `tc`, `ethtool`.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::trouble::Trouble;

/// Runs a command, gives it `input`, and returns what it said.
pub(crate) fn run_with(words: &[&str], input: &str) -> Result<String, Trouble> {
    let told = words.join(" ");
    let output = start(words, input).map_err(Trouble::system(format!("run {told}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Trouble::Command { command: told, said })
}

/// The same without input.
pub(crate) fn run(words: &[&str]) -> Result<String, Trouble> {
    run_with(words, "")
}

/// Whether there is such a program.
pub(crate) fn exists(program: &str, argument: &str) -> bool {
    start(&[program, argument], "").is_ok()
}

fn start(words: &[&str], input: &str) -> std::io::Result<Output> {
    let (program, arguments) = words.split_first().expect("a command has a first word");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut pipe = child.stdin.take().expect("it was asked for");
    // A program that reads nothing closes its end early, which is no harm.
    let _ = pipe.write_all(input.as_bytes());
    drop(pipe);
    child.wait_with_output()
}
