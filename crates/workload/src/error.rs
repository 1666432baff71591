//! The error type of the crate.

use std::io;

/// An error in reading a workload, or in the text of a local side.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The first line does not start a workload.
    #[error("is not a workload: its first line should be {{\"giveway_workload\":1,\"span\":...}}")]
    Foreign,
    /// The file has another version of the format.
    #[error("is a workload of version {found}; this program reads version {known}")]
    Version {
        /// The version of the file.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// A line is invalid.
    #[error("line {line}: {cause}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// The mistake.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A connection waits for itself, for a later one, or for one that does not exist.
    #[error(
        "connection {number}, counted from 0, waits for one that the file does not have, or starts after one that is not before it"
    )]
    Order {
        /// Its place among the connections, from 0.
        number: usize,
    },
    /// A text is not a local side: [`Local`](crate::Local).
    #[error("\"{0}\" is neither a prefix such as 192.168.0.0/16 nor a MAC address such as 02:00:00:00:00:01")]
    Local(
        /// The part of the text that is invalid.
        String,
    ),
}
