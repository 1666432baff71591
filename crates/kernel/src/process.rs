//! Runs a program of the distribution and collects its output.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Runs a program with `input` on its standard input, waits for its end and returns its exit status and
/// output.
///
/// # Errors
/// If the program cannot be started, or its output cannot be read.
pub fn output(program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut pipe = child.stdin.take().expect("the standard input is piped");
    // A program that does not read its input closes the pipe early, which is harmless.
    let _ = pipe.write_all(input.as_bytes());
    drop(pipe);
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_its_input_and_returns_its_output() {
        let cat = output("cat", &[], "one\n").unwrap();
        assert!(cat.status.success() && cat.stdout == b"one\n" && cat.stderr.is_empty());
        // `true` ends without reading: no error.
        assert!(output("true", &[], "unread").unwrap().status.success());
        assert_eq!(output("no-such-program", &[], "").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
