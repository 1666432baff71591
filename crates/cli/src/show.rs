//! Errors and warnings on the standard error, each with the place in its file underlined.

use std::io::Write;

use annotate_snippets::{AnnotationKind, Level, Origin as At, Renderer, Snippet};
use giveway_scenario::{Diagnostic, Origin, ScenarioError, Severity};

use crate::terminal;

/// Shows everything that is wrong with a scenario.
pub fn wrong(wrong: &ScenarioError) {
    diagnostics(&wrong.origin, &wrong.diagnostics);
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

/// Shows one sentence.
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
    // The place is written apart: a long line is clipped, and the library would count columns of what is left of it.
    let mut group = level
        .primary_title(&*diagnostic.message)
        .element(At::path(place.name).line(place.line).char_column(place.column))
        .element(
            Snippet::source(&*excerpt.text)
                .line_start(excerpt.first_line)
                .fold(false)
                .annotation(AnnotationKind::Primary.span(excerpt.span.clone()).label(label)),
        );
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(&**help));
    }
    renderer.render(&[group])
}

/// Nobody is left to be told when even this cannot be written.
fn print(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
