//! What is wrong with a scenario, and where.

use std::fmt::{self, Write as _};
use std::ops::Range;

use crate::fields::grouped;

/// A mistake or a trap, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the scenario can run in spite of it.
    pub severity: Severity,
    /// Which bytes of the [`Origin`] it is about.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write beneath the underlined place; may be empty.
    pub label: String,
    /// What to do instead.
    pub help: Option<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It cannot run.
    Error,
    /// It runs, but hardly shows what was meant.
    Warning,
}

impl Diagnostic {
    pub(crate) fn error(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            span,
            message: clipped(message.into()),
            label: String::new(),
            help: None,
        }
    }
    pub(crate) fn warning(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }
    pub(crate) fn label(self, label: impl Into<String>) -> Diagnostic {
        Diagnostic { label: clipped(label.into()), ..self }
    }
    pub(crate) fn help(self, help: impl Into<String>) -> Diagnostic {
        Diagnostic { help: Some(clipped(help.into())), ..self }
    }
}

/// Where the words of a scenario come from: its file, and flags of the command line, one text after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    name: String,
    start: usize,
    text: String,
    /// Where each line begins, so that a file with many mistakes is not counted through for each of them.
    lines: Vec<usize>,
}

impl Part {
    fn new(name: String, start: usize, text: String) -> Part {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Part { lines: std::iter::once(0).chain(ends).collect(), name, start, text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn line_starts(&self) -> &[usize] {
        &self.lines
    }
}

/// A span, in its file or flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file or flag.
    pub name: &'a str,
    /// Its whole text.
    pub text: &'a str,
    /// Which bytes of that text.
    pub span: Range<usize>,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Origin {
    pub(crate) fn new(name: impl Into<String>, text: impl Into<String>) -> Origin {
        Origin { parts: vec![Part::new(name.into(), 0, text.into())] }
    }

    /// Adds the text of a flag, and tells where it begins.
    pub(crate) fn push(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        let last = self.parts.last().expect("an origin begins with a file");
        let start = last.start + last.text.len() + 1;
        self.parts.push(Part::new(name.into(), start, text.into()));
        start
    }

    /// The text of the file.
    pub fn file(&self) -> &str {
        &self.parts[0].text
    }

    /// The flags, with their texts.
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

    /// Where a span lies.
    pub fn place(&self, span: &Range<usize>) -> Place<'_> {
        let (part, span) = self.within(span);
        let line = part.lines.partition_point(|start| *start <= span.start);
        let before = &part.text[part.lines[line - 1]..span.start];
        Place { name: &part.name, text: &part.text, line, column: before.chars().count() + 1, span }
    }

    /// The text of a span.
    pub(crate) fn text(&self, span: &Range<usize>) -> &str {
        let (part, span) = self.within(span);
        &part.text[span]
    }

    /// Where bytes of a string stand whose literal, with its quotes, has this span. A literal with escapes has no
    /// such place; then it is the whole literal.
    pub(crate) fn inside(&self, literal: &Range<usize>, string: &str, bytes: &Range<usize>) -> Range<usize> {
        match self.text(literal).find(string) {
            Some(skip) => literal.start + skip + bytes.start..literal.start + skip + bytes.end,
            None => literal.clone(),
        }
    }
}

/// A scenario that cannot run: everything that is wrong with it.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Wrong {
    /// Where its words come from.
    pub origin: Origin,
    /// What is wrong, in order of the places. At least one of them is an error.
    pub diagnostics: Vec<Diagnostic>,
}

/// The most mistakes that are shown. Who has more of them mends these first.
const MOST_SHOWN: usize = 50;

/// Those that are shown of many, errors before warnings, and how many are not.
pub fn shown(diagnostics: &[Diagnostic]) -> (Vec<&Diagnostic>, usize) {
    if diagnostics.len() <= MOST_SHOWN {
        return (diagnostics.iter().collect(), 0);
    }
    let of = |severity| diagnostics.iter().filter(move |each| each.severity == severity);
    let most = of(Severity::Error).chain(of(Severity::Warning)).take(MOST_SHOWN);
    (most.collect(), diagnostics.len() - MOST_SHOWN)
}

impl fmt::Display for Wrong {
    /// Each with its line underlined, in plain text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, more) = shown(&self.diagnostics);
        for (i, diagnostic) in shown.into_iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            write_plain(f, &self.origin, diagnostic)?;
        }
        if more > 0 {
            writeln!(f, "\n... and {} more", grouped(more))?;
        }
        Ok(())
    }
}

/// One diagnostic as compilers show it.
fn write_plain(f: &mut fmt::Formatter<'_>, origin: &Origin, diagnostic: &Diagnostic) -> fmt::Result {
    let kind = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = origin.place(&diagnostic.span);
    let excerpt = origin.excerpt(&diagnostic.span, 0);
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let line = excerpt.text.lines().next().unwrap_or_default();
    let first = excerpt.text[..excerpt.span.start].chars().count();
    let marked = excerpt.text[excerpt.span].lines().next().unwrap_or_default().chars().count().max(1);
    writeln!(f, "{kind}: {}", diagnostic.message)?;
    writeln!(f, "{margin}--> {}:{}:{}", place.name, place.line, place.column)?;
    writeln!(f, "{number} | {line}")?;
    write!(f, "{margin} | {}{}", " ".repeat(first), "^".repeat(marked))?;
    if !diagnostic.label.is_empty() {
        write!(f, " {}", diagnostic.label)?;
    }
    f.write_char('\n')?;
    match &diagnostic.help {
        Some(help) => writeln!(f, "{margin} = help: {help}"),
        None => Ok(()),
    }
}

/// A text that fits into a message: what is quoted from a file may be longer than anybody reads.
fn clipped(text: String) -> String {
    const MOST: usize = 600;
    let count = text.chars().count();
    if count <= MOST {
        return text;
    }
    let head: String = text.chars().take(MOST / 2).collect();
    let tail: String = text.chars().skip(count - MOST / 2).collect();
    format!("{head} ... {tail}")
}
