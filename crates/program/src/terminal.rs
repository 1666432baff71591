//! Properties of the terminal: size, styles, interactive use.

#![expect(
    clippy::disallowed_methods,
    reason = "it asks about the standard output and error, and writes nothing"
)]

use std::io::{IsTerminal, stderr, stdout};

use crate::help::wrap;
use crate::output::own;

/// Columns for tables and text on the standard output: the variable `COLUMNS`, or else the width of the
/// terminal. Without both, or below 40, it is 120, which is enough for tables.
pub fn width() -> usize {
    const DEFAULT: usize = 120;
    known_width().unwrap_or(DEFAULT)
}

/// The width of [`width`] without its default.
fn known_width() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || terminal_size::terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0));
    given.or_else(measured).filter(|width| *width >= 40)
}

/// A paragraph of the standard output that starts with `first`; its other lines start with `next`. It is one
/// line where the width is not known, as in a file, so that programs find sentences in it.
pub fn paragraph(text: &str, first: &str, next: &str) -> String {
    match known_width() {
        Some(width) => wrap(text, width, first, next),
        None => format!("{first}{text}\n"),
    }
}

/// A point of a list on the standard output, as [`paragraph`].
pub fn point(text: &str) -> String {
    paragraph(text, "- ", "  ")
}

/// Columns and lines of the terminal at the standard output; 80 and 24 if they are unknown.
pub fn size() -> (usize, usize) {
    let measured = terminal_size::terminal_size_of(stdout());
    measured.map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// True if the standard output is a terminal.
pub fn shows_output() -> bool {
    stdout().is_terminal()
}

/// True if the standard output may show colours and bold text: a terminal, and `NO_COLOR` is not set.
pub fn styles() -> bool {
    shows_output() && std::env::var_os("NO_COLOR").is_none()
}

/// True if the standard error may show colours: a terminal, and `NO_COLOR` is not set.
pub fn error_styles() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// True if the standard error is a terminal, so that progress and hints are useful.
pub fn watched() -> bool {
    stderr().is_terminal()
}

/// Formats a heading for the standard output: bold, if it has styles.
pub fn bold(text: &str) -> String {
    coloured("1", text)
}

/// Formats a good result for the standard output: green, if it has styles.
pub fn good(text: &str) -> String {
    coloured("32", text)
}

/// Formats a bad result for the standard output: red, if it has styles.
pub fn bad(text: &str) -> String {
    coloured("31", text)
}

/// Formats a minor result for the standard output: faint, if it has styles.
pub fn faint(text: &str) -> String {
    coloured("2", text)
}

/// Formats a heading for a text that is printed as it is, such as the help of clap. The text is from this
/// program: escape sequences in it would pass.
pub fn bold_as_it_is(text: &str) -> String {
    if styles() { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

fn coloured(code: &str, text: &str) -> String {
    if styles() {
        format!("{}{text}{}", own(&format!("\x1b[{code}m")), own("\x1b[0m"))
    } else {
        text.to_owned()
    }
}
