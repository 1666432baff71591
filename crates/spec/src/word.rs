//! Words of a spec, with their positions.

use std::ops::Range;

/// A word of a text and its position.
pub(crate) struct Word<'a> {
    pub text: &'a str,
    /// Position in the text, in bytes.
    pub span: Range<usize>,
}

impl<'a> Word<'a> {
    /// True if it is a parenthesis or a bracket.
    pub fn is_sign(&self) -> bool {
        self.text.len() == 1 && "()[]".contains(self.text)
    }

    /// The first word at or after byte `at`. Each parenthesis and each bracket is a separate word, except in
    /// a range of names: "home[1-20]".
    pub fn first(text: &'a str, at: usize) -> Option<Word<'a>> {
        let start = text.len() - text[at..].trim_start().len();
        let rest = &text[start..];
        let first = rest.chars().next()?;
        let len = if "()[]".contains(first) {
            // A range may be a whole name.
            range(rest).max(1)
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "()[]".contains(c)).unwrap_or(rest.len());
            end + range(&rest[end..])
        };
        Some(Word { text: &rest[..len], span: start..start + len })
    }
}

/// Length of the range at the start of a text, such as "[1-20]"; 0 if there is none.
fn range(text: &str) -> usize {
    let numbers = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(inside, _)| inside);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match numbers {
        Some(inside) if inside.split_once('-').is_some_and(|(a, b)| is_number(a) && is_number(b)) => {
            inside.len() + 2
        }
        _ => 0,
    }
}
