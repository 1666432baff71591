//! The programs of the distribution that Giveway runs, each with the package that has it.

use std::io;

use crate::KernelError;
use crate::{printed, process};

/// Number of lines of a failed program's output in its error. The BPF verifier prints thousands of lines,
/// with the reason at the end.
const LAST_LINES: usize = 6;

/// A program of the distribution.
pub(crate) struct Tool {
    pub name: &'static str,
    /// File names under which it may be installed, the preferred one first.
    pub names: &'static [&'static str],
    /// Sentence for the error if none of them is installed.
    pub purpose: &'static str,
    /// Debian's package.
    pub package: &'static str,
}

pub(crate) const CLANG: Tool = Tool {
    name: "clang",
    // If several versions are installed, the name without a number is often an old one.
    names: &["clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang"],
    purpose: "it compiles the discipline for this kernel (--object takes an object that was compiled elsewhere)",
    package: "clang",
};
pub(crate) const BPFTOOL: Tool = Tool {
    name: "bpftool",
    names: &["bpftool", "/usr/sbin/bpftool"],
    purpose: "it reads the kernel's types and loads the discipline",
    package: "bpftool",
};
pub(crate) const TC: Tool = Tool {
    name: "tc",
    names: &["tc", "/usr/sbin/tc"],
    purpose: "it sets qdiscs on interfaces",
    package: "iproute2",
};
pub(crate) const IP: Tool = Tool {
    name: "ip",
    names: &["ip", "/usr/sbin/ip"],
    purpose: "it reads and sets flags of interfaces",
    package: "iproute2",
};
pub(crate) const UNSHARE: Tool = Tool {
    name: "unshare",
    names: &["unshare", "/usr/bin/unshare"],
    purpose: "it tries a qdisc in a new network namespace",
    package: "util-linux",
};

/// The programs that are not installed, of those that load a discipline.
pub fn missing() -> Vec<KernelError> {
    let asked: [(Tool, &[&str]); 4] =
        [(CLANG, &["--version"]), (BPFTOOL, &["version"]), (TC, &["-V"]), (IP, &["-V"])];
    let answers = asked.into_iter().filter_map(|(tool, arguments)| tool.run(arguments).err());
    answers.filter(|error| matches!(error, KernelError::Missing { .. })).collect()
}

impl Tool {
    /// Runs it and returns its standard output.
    pub fn run(&self, arguments: &[&str]) -> Result<String, KernelError> {
        self.outputs(arguments).map(|(out, _)| out)
    }

    /// Runs it and returns its standard output and its standard error.
    pub fn outputs(&self, arguments: &[&str]) -> Result<(String, String), KernelError> {
        for name in self.names {
            let output = match process::output(name, arguments, "") {
                Ok(output) => output,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(KernelError::precondition(format!("{name} cannot be run: {error}")));
                }
            };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            if output.status.success() {
                return Ok((text(&output.stdout), text(&output.stderr)));
            }
            return Err(KernelError::Failed {
                command: format!("{name} {}", arguments.join(" ")),
                output: last_lines(&text(&[output.stdout, output.stderr].concat())),
            });
        }
        let Tool { name: program, purpose, package, .. } = *self;
        Err(KernelError::Missing { program, purpose, package })
    }

    /// Runs it and parses its standard output as JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<serde_json::Value, KernelError> {
        let text = self.run(arguments)?;
        printed::json(&text).map_err(|error| KernelError::Failed {
            command: format!("{} {}", self.name, arguments.join(" ")),
            output: format!("its output is not JSON: {error}"),
        })
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_failed_program_has_the_end_of_its_output() {
        let shell = Tool { name: "sh", names: &["no-such-sh", "sh"], purpose: "", package: "dash" };
        assert_eq!(shell.run(&["-c", "echo fine"]).unwrap(), "fine\n");
        let error = shell.run(&["-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; done; exit 1"]).unwrap_err();
        assert!(error.to_string().ends_with("failed: 3\n  4\n  5\n  6\n  7\n  8"), "{error}");
        let error = shell.json(&["-c", "echo {"]).unwrap_err();
        assert!(error.to_string().contains("its output is not JSON"), "{error}");
        let missing = Tool { name: "x", names: &["no-such-x"], purpose: "it is a test", package: "y" };
        let error = missing.run(&[]).unwrap_err().to_string();
        assert_eq!(error, "x is not installed: it is a test; on Debian: apt-get install y");
    }
}
