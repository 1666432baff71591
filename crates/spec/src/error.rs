//! Errors of the parser, with positions.

use std::fmt;
use std::ops::Range;

/// A mistake in the text of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Range of the wrong bytes in the text.
    pub span: Range<usize>,
    /// The mistake.
    pub message: String,
    /// A correction.
    pub help: Option<String>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}
impl std::error::Error for SpecError {}

/// The names, separated by commas, for messages.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
