//! Headings of groups of flags of several commands.

/// Heading of flags for test programs. `--help` does not show these flags, and the reference lists them last.
pub const HARNESS: &str = "For test programs";
