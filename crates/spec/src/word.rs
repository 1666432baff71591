//! Words of a spec, with their positions.

use std::ops::Range;

/// A word of a text and its position.
pub(crate) struct Word<'a> {
    pub text: &'a str,
    /// Position in the text, in bytes.
    pub span: Range<usize>,
}

impl<'a> Word<'a> {
    /// The first word at or after byte `at`. Each parenthesis and each bracket is a separate word.
    pub fn first(text: &'a str, at: usize) -> Option<Word<'a>> {
        let start = text.len() - text[at..].trim_start().len();
        let rest = &text[start..];
        let first = rest.chars().next()?;
        let len = if "()[]".contains(first) {
            1
        } else {
            rest.find(|c: char| c.is_whitespace() || "()[]".contains(c)).unwrap_or(rest.len())
        };
        Some(Word { text: &rest[..len], span: start..start + len })
    }
}
