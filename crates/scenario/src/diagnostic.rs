//! What is wrong with a scenario, and where.

use std::fmt::{self, Write as _};
use std::ops::Range;

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
            message: message.into(),
            label: String::new(),
            help: None,
        }
    }
    pub(crate) fn warning(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }
    pub(crate) fn label(self, label: impl Into<String>) -> Diagnostic {
        Diagnostic { label: label.into(), ..self }
    }
    pub(crate) fn help(self, help: impl Into<String>) -> Diagnostic {
        Diagnostic { help: Some(help.into()), ..self }
    }
}

/// Where the words of a scenario come from: its file, and flags of the command line, one text after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    name: String,
    start: usize,
    text: String,
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
        Origin { parts: vec![Part { name: name.into(), start: 0, text: text.into() }] }
    }

    /// Adds the text of a flag, and tells where it begins.
    pub(crate) fn push(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        let last = self.parts.last().expect("an origin begins with a file");
        let start = last.start + last.text.len() + 1;
        self.parts.push(Part { name: name.into(), start, text: text.into() });
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

    /// Where a span lies.
    pub fn place(&self, span: &Range<usize>) -> Place<'_> {
        let part = self.parts.iter().rev().find(|part| part.start <= span.start).unwrap_or(&self.parts[0]);
        let within = |at: usize| {
            let mut at = at.saturating_sub(part.start).min(part.text.len());
            while !part.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let span = within(span.start)..within(span.end);
        let before = &part.text[..span.start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            name: &part.name,
            text: &part.text,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            span,
        }
    }

    /// The text of a span.
    pub(crate) fn text(&self, span: &Range<usize>) -> &str {
        let place = self.place(span);
        &place.text[place.span]
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

impl fmt::Display for Wrong {
    /// Each with its line underlined, in plain text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            write_plain(f, &self.origin, diagnostic)?;
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
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let line = place.text.lines().nth(place.line - 1).unwrap_or_default();
    let first = place.column - 1;
    let marked = place.text[place.span.clone()].lines().next().unwrap_or_default().chars().count().max(1);
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
