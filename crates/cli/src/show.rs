//! Messages on the standard error. Mistakes in a scenario are shown with their lines.

use annotate_snippets::{AnnotationKind, Group, Level, Origin as At, Renderer, Snippet};
pub use giveway_program::show::{captured, error, message, panics, text};
use giveway_scenario::{Diagnostic, Excerpt, Origin, Place, Severity};
use giveway_text::harmless;

use crate::terminal;

/// The number of messages about a scenario that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    /// The first three. The last line says how many there are, and names the flag that shows them.
    Few,
    /// All.
    All,
}

impl Most {
    fn number(self) -> usize {
        match self {
            Most::Few => 3,
            Most::All => usize::MAX,
        }
    }
}

/// Shows errors or warnings of a scenario, each with its lines. With [`Most::Few`] a long list is cut off.
pub fn diagnostics(origin: &Origin, diagnostics: &[Diagnostic], most: Most) {
    let (shown, hidden) = giveway_scenario::shown(diagnostics, most.number());
    let shown: Vec<String> = shown.into_iter().map(|each| render(origin, each)).collect();
    if shown.is_empty() {
        return;
    }
    let mut all = shown.join("\n\n") + "\n";
    if let Some(hidden) = hidden.words() {
        all.push_str(&format!("\nand {hidden}; --all-errors shows them\n"));
    }
    text(&all);
}

/// Draws the lines around a mistake as compilers do, in colours unless the lines have something in them that
/// a terminal would obey.
fn render(origin: &Origin, diagnostic: &Diagnostic) -> String {
    let excerpt = origin.excerpt(&diagnostic.span, 1);
    let place = origin.place(&diagnostic.span);
    let words = |text: &str| harmless(text).into_owned();
    let diagnostic = Diagnostic {
        severity: diagnostic.severity,
        span: diagnostic.span.clone(),
        message: words(&diagnostic.message),
        label: words(&diagnostic.label),
        help: diagnostic.help.as_deref().map(words),
    };
    let name = words(place.name);
    let place = Place { name: &name, ..place };
    // The library replaces some characters of the lines itself, and passes others.
    let lines = excerpt.text.replace("\r\n", "\n");
    match terminal::error_styles() && harmless(&lines) == lines {
        true => draw(Renderer::styled(), &diagnostic, &excerpt, &place),
        false => words(&draw(Renderer::plain(), &diagnostic, &excerpt, &place)),
    }
}

fn draw(renderer: Renderer, diagnostic: &Diagnostic, excerpt: &Excerpt, place: &Place<'_>) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let label = (!diagnostic.label.is_empty()).then_some(&*diagnostic.label);
    let mut snippet = Snippet::source(&*excerpt.text)
        .line_start(excerpt.first_line)
        .fold(false)
        .annotation(AnnotationKind::Primary.span(excerpt.span.clone()).label(label));
    let title = Group::with_title(level.clone().primary_title(&*diagnostic.message));
    let before = excerpt.text[..excerpt.span.start].chars();
    let column = before.rev().take_while(|c| *c != '\n').count() + 1;
    let mut groups = Vec::new();
    if place.flag {
        // The text of a flag begins with its name. The command line has no position to jump to.
        groups.push(title.element(snippet));
    } else if column == place.column {
        snippet = snippet.path(place.name);
        groups.push(title.element(snippet));
    } else {
        // A long line is clipped, and the library counts columns in the rest. So the position is given
        // separately. In the same group as the position, a source without a path is marked with `:::`.
        let position = At::path(place.name).line(place.line).char_column(place.column);
        groups.push(title.element(position));
        groups.push(Group::with_level(level).element(snippet));
    }
    if let Some(help) = &diagnostic.help {
        let last = groups.pop().expect("a group was added above");
        groups.push(last.element(Level::HELP.message(&**help)));
    }
    renderer.term_width(terminal::width()).render(&groups)
}
