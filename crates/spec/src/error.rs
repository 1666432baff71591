//! What is wrong with a text, and where.

use std::fmt;
use std::ops::Range;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Which bytes of the text are wrong.
    pub span: Range<usize>,
    /// What is wrong with them.
    pub message: String,
    /// What to write instead.
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
