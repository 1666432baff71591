//! Errors of the parser, with positions.

use std::fmt;
use std::ops::Range;

/// Why something could not be read.
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
