//! Errors and warnings on the standard error, each with its line underlined.

use std::io::Write;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, MietteError, MietteSpanContents,
    Report, Severity, SourceCode, SourceSpan, SpanContents,
};
use scenario::{Diagnostic, Excerpt, Origin, Wrong};

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
    let (shown, more) = scenario::shown(diagnostics);
    let mut text = String::new();
    for diagnostic in shown {
        text.push('\n');
        let rendered = handler.render_report(&mut text, report(origin, diagnostic).as_ref());
        rendered.expect("a text takes everything");
    }
    if more > 0 {
        text.push_str(&format!("\n  ... and {more} more\n"));
    }
    print(&text);
}

/// Shows one sentence.
pub fn sentence(text: &str) {
    print(&format!("giveway: {text}\n"));
}

fn report(origin: &Origin, diagnostic: &Diagnostic) -> Report {
    let excerpt = origin.excerpt(&diagnostic.span, 1);
    let label = (!diagnostic.label.is_empty()).then(|| diagnostic.label.clone());
    let mut told = MietteDiagnostic::new(&diagnostic.message)
        .with_severity(match diagnostic.severity {
            scenario::Severity::Error => Severity::Error,
            scenario::Severity::Warning => Severity::Warning,
        })
        .with_label(LabeledSpan::new_primary_with_span(label, excerpt.span.clone()));
    if let Some(help) = &diagnostic.help {
        told = told.with_help(help);
    }
    let name = origin.place(&diagnostic.span).name.to_owned();
    Report::new(told).with_source_code(Source { name, excerpt })
}

/// Some lines of a file, with the numbers that they have there. The library that draws them would otherwise look through
/// the whole file for each message, and it cannot draw a line of more than 65,535 columns.
struct Source {
    name: String,
    excerpt: Excerpt,
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let lines = self.excerpt.text.read_span(span, before, after)?;
        // Asked for no lines around it, this is where the place begins.
        let column = if before == 0 { self.excerpt.byte } else { lines.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            lines.data(),
            *lines.span(),
            self.excerpt.first_line - 1 + lines.line(),
            column,
            lines.line_count(),
        )))
    }
}

/// Nobody is left to be told when even this cannot be written.
fn print(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
