//! Errors and warnings on the standard error, each with its line underlined.

use std::io::Write;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity,
};
use scenario::{Diagnostic, Origin, Wrong};

use crate::terminal;

/// Shows everything that is wrong with a scenario.
pub fn wrong(wrong: &Wrong) {
    diagnostics(&wrong.origin, &wrong.diagnostics);
}

/// Shows errors or warnings.
pub fn diagnostics(origin: &Origin, diagnostics: &[Diagnostic]) {
    let theme = match terminal::error_styles() {
        true => GraphicalTheme::unicode(),
        false => GraphicalTheme::unicode_nocolor(),
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(terminal::width());
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push('\n');
        let shown = handler.render_report(&mut text, report(origin, diagnostic).as_ref());
        shown.expect("a text takes everything");
    }
    print(&text);
}

/// Shows one sentence.
pub fn sentence(text: &str) {
    print(&format!("giveway: {text}\n"));
}

fn report(origin: &Origin, diagnostic: &Diagnostic) -> Report {
    let place = origin.place(&diagnostic.span);
    let label = (!diagnostic.label.is_empty()).then(|| diagnostic.label.clone());
    let mut told = MietteDiagnostic::new(&diagnostic.message)
        .with_severity(match diagnostic.severity {
            scenario::Severity::Error => Severity::Error,
            scenario::Severity::Warning => Severity::Warning,
        })
        .with_label(LabeledSpan::new_primary_with_span(label, place.span.clone()));
    if let Some(help) = &diagnostic.help {
        told = told.with_help(help);
    }
    Report::new(told).with_source_code(NamedSource::new(place.name, place.text.to_owned()))
}

/// Nobody is left to be told when even this cannot be written.
fn print(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
