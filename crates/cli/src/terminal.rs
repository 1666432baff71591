//! What the terminal can do.

use std::io::{IsTerminal, stderr, stdout};

/// Columns of the standard output: as the environment says, or the terminal, or enough for a table.
pub fn width() -> usize {
    const OTHERWISE: usize = 120;
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || terminal_size::terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(measured).filter(|width| *width >= 40).unwrap_or(OTHERWISE)
}

/// Columns and lines of the standard output, or those of a small one.
pub fn size() -> (usize, usize) {
    let measured = terminal_size::terminal_size_of(stdout());
    measured.map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// Whether the standard output shows colours and bold.
pub fn styles() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Whether the standard error shows colours.
pub fn error_styles() -> bool {
    stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Whether somebody watches the standard error.
pub fn watched() -> bool {
    stderr().is_terminal()
}

/// A heading.
pub fn bold(text: &str) -> String {
    coloured("1", text)
}

/// Something that is as it should be: green.
pub fn good(text: &str) -> String {
    coloured("32", text)
}
/// Something that is not: red.
pub fn bad(text: &str) -> String {
    coloured("31", text)
}
/// Something that matters little.
pub fn faint(text: &str) -> String {
    coloured("2", text)
}

fn coloured(code: &str, text: &str) -> String {
    if styles() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
