//! Messages about a scenario, each with its place.

use std::ops::Range;

use crate::hints::clipped;

/// An error or a warning about a scenario, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity: with a warning the scenario can run.
    pub severity: Severity,
    /// The bytes of the [`Origin`](crate::Origin) that it is about.
    pub span: Range<usize>,
    /// The message, in one line.
    pub message: String,
    /// The text beneath the underlined place; may be empty.
    pub label: String,
    /// A remedy.
    pub help: Option<String>,
}

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The scenario cannot run.
    Error,
    /// The scenario runs, but probably not as intended.
    Warning,
}

impl Diagnostic {
    /// An error without a label and a remedy.
    pub(crate) fn error(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            span,
            message: clipped(message.into()),
            label: String::new(),
            help: None,
        }
    }
    /// A warning without a label and a remedy.
    pub(crate) fn warning(span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(span, message) }
    }
    /// The diagnostic with a label.
    pub(crate) fn label(self, label: impl Into<String>) -> Diagnostic {
        Diagnostic { label: clipped(label.into()), ..self }
    }
    /// The diagnostic with a remedy.
    pub(crate) fn help(self, help: impl Into<String>) -> Diagnostic {
        Diagnostic { help: Some(clipped(help.into())), ..self }
    }
}
