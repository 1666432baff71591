//! Names of nodes, and ranges of them: "s[1-10]" are s1 to s10, "[1-5]" are 1 to 5.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::Table;

/// Maximum number of nodes in one range.
const MAX: u64 = 10_000;

impl Reading {
    /// The nodes that a key names. `None` if the key is missing or wrong; if it is wrong, reports an error.
    pub fn nodes(&mut self, table: &Table, key: &str) -> Option<Vec<String>> {
        let node = table.get(key)?;
        // A value of another type was reported when the table was read.
        let text = node.text()?;
        match expand(text) {
            Ok(names) => Some(names),
            Err(InvalidName { bytes, error }) => {
                let span = self.origin.inside(&node.span, text, &bytes);
                let wrong = Diagnostic::error(span, error.to_string());
                self.report(wrong.help("write a name such as \"home\", or a range such as \"s[1-10]\""));
                None
            }
        }
    }

    /// The pairs of nodes that `from` and `to` name. Reports an error and returns `None` if their numbers do
    /// not match.
    pub fn pairs(&mut self, table: &Table, from: &[String], to: &[String]) -> Option<Vec<(String, String)>> {
        let pairs = pair(from, to);
        if pairs.is_none() {
            let message = format!("{} nodes cannot be paired with {}", from.len(), to.len());
            self.report(
                Diagnostic::error(table.place("to"), message).help(
                    "ranges of the same length are paired one by one; a single node is paired with all",
                ),
            );
        }
        pairs
    }
}

/// Expands a name or a range.
fn expand(text: &str) -> Result<Vec<String>, InvalidName> {
    let Some(open) = text.find('[') else {
        if text.is_empty() {
            return Err(NameError::Empty.at(0..0));
        }
        check(text, 0)?;
        return Ok(vec![text.to_owned()]);
    };
    let Some(close) = text[open..].find(']').map(|at| open + at) else {
        return Err(NameError::NoEnd.at(open..text.len()));
    };
    let (before, inner, after) = (&text[..open], &text[open + 1..close], &text[close + 1..]);
    // Both may be empty: a name can be a number.
    check(before, 0)?;
    check(after, close + 1)?;
    let range = open..close + 1;
    let bounds = inner.split_once('-').and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let Some((first, last)) = bounds else {
        return Err(NameError::NotNumbers(inner.to_owned()).at(range));
    };
    if first > last {
        return Err(NameError::Reversed { first, last }.at(range));
    }
    if last - first >= MAX {
        return Err(NameError::TooMany.at(range));
    }
    Ok((first..=last).map(|number| format!("{before}{number}{after}")).collect())
}

/// The value of a text of digits.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// True if the name of a node may have a character.
pub(crate) fn is_valid(c: char) -> bool {
    c.is_alphanumeric() || "-_.".contains(c)
}

/// The first character of a part of a name that the name of a node cannot have.
pub(crate) fn invalid_character(part: &str) -> Option<char> {
    part.chars().find(|c| !is_valid(*c))
}

/// Checks the characters of a name, or of a part that starts at byte `start`.
fn check(part: &str, start: usize) -> Result<(), InvalidName> {
    match part.char_indices().find(|(_, c)| !is_valid(*c)) {
        Some((at, c)) => Err(NameError::Character(c).at(start + at..start + at + c.len_utf8())),
        None => Ok(()),
    }
}

/// The error of a text that does not name nodes, with the bytes of the text that it is about.
#[derive(Debug, PartialEq, Eq)]
struct InvalidName {
    /// The bytes of the text.
    bytes: Range<usize>,
    /// The reason.
    error: NameError,
}

/// The reason why a text does not name nodes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NameError {
    #[error("the name of a node is empty")]
    Empty,
    #[error("this range has no end")]
    NoEnd,
    #[error("\"{0}\" is not a range of numbers")]
    NotNumbers(String),
    #[error("this range is empty: {first} is above {last}")]
    Reversed { first: u64, last: u64 },
    #[error("this range has more than {MAX} nodes")]
    TooMany,
    #[error("the name of a node has letters, digits, \"-\", \"_\" and \".\", not \"{0}\"")]
    Character(char),
}

impl NameError {
    /// The error at some bytes of the text.
    fn at(self, bytes: Range<usize>) -> InvalidName {
        InvalidName { bytes, error: self }
    }
}

/// Pairs every name of one list with every name of the other.
pub(crate) fn all_pairs(from: &[String], to: &[String]) -> Vec<(String, String)> {
    from.iter().flat_map(|one| to.iter().map(move |other| (one.clone(), other.clone()))).collect()
}

/// Pairs two lists: one by one if they have the same length, or a single name with all others. `None`
/// otherwise.
pub(crate) fn pair(from: &[String], to: &[String]) -> Option<Vec<(String, String)>> {
    let paired = |a: &String, b: &String| (a.clone(), b.clone());
    match (from, to) {
        (several, as_many) if several.len() == as_many.len() => {
            Some(several.iter().zip(as_many).map(|(a, b)| paired(a, b)).collect())
        }
        ([one], several) => Some(several.iter().map(|name| paired(one, name)).collect()),
        (several, [one]) => Some(several.iter().map(|name| paired(name, one)).collect()),
        _ => None,
    }
}
