//! Errors and warnings on the standard error. Those of a scenario are shown with the line of the mistake.

use std::io::Write;

use annotate_snippets::{AnnotationKind, Group, Level, Origin as At, Renderer, Snippet};
use giveway_runner::{RunnerError, chain};
use giveway_scenario::{Diagnostic, Origin, ScenarioError, Severity};

use crate::error::CliError;
use crate::terminal;

/// Shows the error of a command with its causes: the only place where an error ends.
pub fn error(error: &CliError) {
    match error {
        CliError::Reported(_) | CliError::Runner(RunnerError::Reported(_)) => {}
        CliError::Scenario(error) | CliError::Runner(RunnerError::Scenario(error)) => scenario(error),
        other => sentence(&chain(other)),
    }
}

/// Shows all mistakes of a scenario.
pub fn scenario(error: &ScenarioError) {
    diagnostics(&error.origin, &error.diagnostics);
}

/// Shows errors or warnings.
pub fn diagnostics(origin: &Origin, diagnostics: &[Diagnostic]) {
    let renderer = match terminal::error_styles() {
        true => Renderer::styled(),
        false => Renderer::plain(),
    };
    let renderer = renderer.term_width(terminal::width());
    let (shown, more) = giveway_scenario::shown(diagnostics);
    let shown: Vec<String> = shown.into_iter().map(|each| render(&renderer, origin, each)).collect();
    if shown.is_empty() {
        return;
    }
    let mut text = shown.join("\n\n") + "\n";
    if more > 0 {
        text.push_str(&format!("\n... and {more} more\n"));
    }
    print(&text);
}

/// Shows a message.
pub fn sentence(text: &str) {
    print(&format!("giveway: {text}\n"));
}

/// Draws the lines around a mistake as compilers do.
fn render(renderer: &Renderer, origin: &Origin, diagnostic: &Diagnostic) -> String {
    let excerpt = origin.excerpt(&diagnostic.span, 1);
    let place = origin.place(&diagnostic.span);
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let label = (!diagnostic.label.is_empty()).then_some(&*diagnostic.label);
    let mut snippet = Snippet::source(&*excerpt.text)
        .line_start(excerpt.first_line)
        .fold(false)
        .annotation(AnnotationKind::Primary.span(excerpt.span.clone()).label(label));
    let mut group = Group::with_title(level.primary_title(&*diagnostic.message));
    let before = excerpt.text[..excerpt.span.start].chars();
    let column = before.rev().take_while(|c| *c != '\n').count() + 1;
    if column == place.column {
        snippet = snippet.path(place.name);
    } else {
        // A long line is clipped, and the library would count columns in the rest. So the place is written separately.
        group = group.element(At::path(place.name).line(place.line).char_column(place.column));
    }
    group = group.element(snippet);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(&**help));
    }
    renderer.render(&[group])
}

/// Writes to the standard error. A failure is ignored, since there is no other place to report it.
fn print(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
