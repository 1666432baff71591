//! Programs of the distribution, and what can go wrong with them.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::printed;

/// Why something cannot be done in the kernel: what was wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A program is not installed.
    #[error("{program} is not installed: {purpose}; on Debian: apt-get install {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// What it is for.
        purpose: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// Something of this machine or this command is not as it must be: a sentence.
    #[error("{0}")]
    Precondition(String),
    /// The kernel cannot have the discipline as it was written.
    #[error(transparent)]
    Plan(#[from] giveway_kernel_plan::PlanError),
    /// A program was run and failed.
    #[error("{command} failed: {said}")]
    Failed {
        /// What was run.
        command: String,
        /// The end of what it said.
        said: String,
    },
    /// A file of ours.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

impl KernelError {
    /// Whether something is missing or wrong, as opposed to one that failed.
    pub fn is_prerequisite(&self) -> bool {
        matches!(self, KernelError::Missing { .. } | KernelError::Precondition(_) | KernelError::Plan(_))
    }

    pub(crate) fn precondition(what: impl Into<String>) -> KernelError {
        KernelError::Precondition(what.into())
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> KernelError {
        let path = path.into();
        move |error| KernelError::File { path, error }
    }
}

/// A program that others may have, too, and where it comes from.
pub(crate) struct Tool {
    pub name: &'static str,
    /// What it may be called, the best first.
    pub names: &'static [&'static str],
    pub purpose: &'static str,
    pub package: &'static str,
}

pub(crate) const CLANG: Tool = Tool {
    name: "clang",
    // The one without a number is an old one where there are several.
    names: &["clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang"],
    purpose: "it compiles the discipline for this kernel (--object takes one that was built elsewhere)",
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
    purpose: "it puts qdiscs on interfaces",
    package: "iproute2",
};

pub(crate) const IP: Tool = Tool {
    name: "ip",
    names: &["ip", "/usr/sbin/ip"],
    purpose: "it looks at interfaces",
    package: "iproute2",
};

pub(crate) const UNSHARE: Tool = Tool {
    name: "unshare",
    names: &["unshare", "/usr/bin/unshare"],
    purpose: "it tries a qdisc where nobody is",
    package: "util-linux",
};

impl Tool {
    /// Runs it, and gives what it wrote to its standard output.
    pub fn run(&self, arguments: &[&str]) -> Result<String, KernelError> {
        self.all(arguments).map(|(out, _)| out)
    }

    /// Runs it, and gives what it wrote to its standard output and to its standard error.
    pub fn all(&self, arguments: &[&str]) -> Result<(String, String), KernelError> {
        for name in self.names {
            let output = Command::new(name).args(arguments).stdin(Stdio::null()).output();
            let output = match output {
                Ok(output) => output,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(KernelError::precondition(format!("{name} cannot be run: {error}")));
                }
            };
            if output.status.success() {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                return Ok((text(&output.stdout), text(&output.stderr)));
            }
            let said = [output.stdout, output.stderr].concat();
            return Err(KernelError::Failed {
                command: format!("{name} {}", arguments.join(" ")),
                said: last_lines(&String::from_utf8_lossy(&said)),
            });
        }
        let Tool { name: program, purpose, package, .. } = *self;
        Err(KernelError::Missing { program, purpose, package })
    }

    /// The same, where the answer is JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<serde_json::Value, KernelError> {
        let text = self.run(arguments)?;
        printed::json(&text).map_err(|error| KernelError::Failed {
            command: format!("{} {}", self.name, arguments.join(" ")),
            said: format!("what it says is no JSON: {error}"),
        })
    }
}

/// The verifier says much; why it refuses stands at the end.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(6)..].join("\n  ")
}
