//! The texts of a scenario, which are a file and the flags that change it, and places in them.

use std::ops::Range;

/// The texts of a scenario: its file, then the flags of the command line. Spans count bytes over all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file, then the flags in their order.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The path of the file, or the name of the flag.
    name: String,
    /// True for a flag.
    flag: bool,
    /// The byte of the origin at which the text starts.
    start: usize,
    /// The text of the file or flag.
    text: String,
    /// The start of each line. A file with many mistakes would otherwise be scanned for each of them.
    lines: Vec<usize>,
}

/// The place of a span in its file or flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The path of the file, or the name of the flag, such as "--set".
    pub name: &'a str,
    /// True for a flag of the command line, false for the file.
    pub flag: bool,
    /// The whole text of the file or flag.
    pub text: &'a str,
    /// The bytes of that text that the place covers.
    pub span: Range<usize>,
    /// The number of the line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Part {
    fn new(name: String, flag: bool, start: usize, text: String) -> Part {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Part { lines: std::iter::once(0).chain(ends).collect(), name, flag, start, text }
    }

    /// The name of the flag and a space, which precede its text on the command line; empty for the file.
    pub(crate) fn prefix(&self) -> String {
        if self.flag { format!("{} ", self.name) } else { String::new() }
    }

    /// The text of the file or flag.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The byte at which each line starts.
    pub(crate) fn line_starts(&self) -> &[usize] {
        &self.lines
    }
}

impl Origin {
    /// The origin of a file without flags.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Origin {
        Origin { parts: vec![Part::new(name.into(), false, 0, text.into())] }
    }

    /// Adds the text of a flag, and returns the byte of the origin at which it starts.
    pub fn push(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        let last = self.parts.last().expect("an origin begins with a file");
        let start = last.start + last.text.len() + 1;
        self.parts.push(Part::new(name.into(), true, start, text.into()));
        start
    }

    /// The text of the file.
    pub fn file(&self) -> &str {
        &self.parts[0].text
    }

    /// The flags in the order of the command line: the name and the text of each.
    pub fn flags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts[1..].iter().map(|part| (part.name.as_str(), part.text.as_str()))
    }

    /// The file or flag of a span, and the bytes of its text.
    pub(crate) fn within(&self, span: &Range<usize>) -> (&Part, Range<usize>) {
        let part = self.parts.iter().rev().find(|part| part.start <= span.start).unwrap_or(&self.parts[0]);
        let within = |at: usize| {
            let mut at = at.saturating_sub(part.start).min(part.text.len());
            while !part.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        (part, within(span.start)..within(span.end))
    }

    /// The place of a span.
    pub fn place(&self, span: &Range<usize>) -> Place<'_> {
        let (part, span) = self.within(span);
        let line = part.lines.partition_point(|start| *start <= span.start);
        let before = &part.text[part.lines[line - 1]..span.start];
        let column = before.chars().count() + 1;
        Place { name: &part.name, flag: part.flag, text: &part.text, line, column, span }
    }

    /// The text of a span.
    pub(crate) fn text(&self, span: &Range<usize>) -> &str {
        let (part, span) = self.within(span);
        &part.text[span]
    }

    /// The span of some bytes of a string, given the span of its literal with quotes. For a literal with
    /// escapes it is the span of the whole literal.
    pub(crate) fn inside(&self, literal: &Range<usize>, string: &str, bytes: &Range<usize>) -> Range<usize> {
        match self.text(literal).find(string) {
            Some(skip) => literal.start + skip + bytes.start..literal.start + skip + bytes.end,
            None => literal.clone(),
        }
    }
}
