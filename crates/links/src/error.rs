//! Errors in traces.

/// A trace that cannot be used. The caller adds the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct TraceError {
    /// Number of the line, from 1; for points in a scenario, the number of the point. `None` if the whole
    /// trace is wrong.
    pub line: Option<u64>,
    /// The mistake.
    pub message: String,
    /// Text to write instead.
    pub help: String,
}

impl TraceError {
    /// An error in a line.
    pub(crate) fn at(line: u64, message: impl Into<String>, help: impl Into<String>) -> TraceError {
        TraceError { line: Some(line), message: message.into(), help: help.into() }
    }

    /// An error of the whole trace.
    pub(crate) fn whole(message: impl Into<String>, help: impl Into<String>) -> TraceError {
        TraceError { line: None, message: message.into(), help: help.into() }
    }
}
