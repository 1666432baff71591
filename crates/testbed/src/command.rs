//! Programs of the system: `ip`, `tc`, `ethtool`.

use std::process::Output;

use giveway_kernel::process;

use crate::error::TestbedError;

/// Runs a command with `input` on its standard input, and returns its standard output.
pub(crate) fn run_with(words: &[&str], input: &str) -> Result<String, TestbedError> {
    let command_line = words.join(" ");
    let output = start(words, input).map_err(TestbedError::system(format!("run {command_line}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let output_text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TestbedError::Command { command: command_line, output: output_text })
}

/// Runs a command without input, and returns its standard output.
pub(crate) fn run(words: &[&str]) -> Result<String, TestbedError> {
    run_with(words, "")
}

/// True if a program can be started.
pub(crate) fn exists(program: &str, argument: &str) -> bool {
    start(&[program, argument], "").is_ok()
}

fn start(words: &[&str], input: &str) -> std::io::Result<Output> {
    let (program, arguments) = words.split_first().expect("a command has a first word");
    process::output(program, arguments, input)
}
