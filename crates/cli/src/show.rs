//! Messages on the standard error. Mistakes in a scenario are shown with their lines. Text from outside is
//! made [`harmless`]: nothing else in this crate writes to the standard error.

use std::cell::RefCell;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use annotate_snippets::{AnnotationKind, Group, Level, Origin as At, Renderer, Snippet};
use giveway_document::harmless;
use giveway_record::chain;
use giveway_scenario::{Diagnostic, Excerpt, Origin, Place, Severity};

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
    let mut text = shown.join("\n\n") + "\n";
    if let Some(hidden) = hidden.words() {
        text.push_str(&format!("\nand {hidden}; --all-errors shows them\n"));
    }
    print(&text);
}

/// Importance of a message in the journal of a service manager: a level of syslog(3), as in sd-daemon(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Importance {
    Error = 3,
    Warning = 4,
    Information = 6,
}

/// Shows a message in a line that starts with the name of the program.
pub fn message(text: &str) {
    line(Importance::Information, text);
}

/// Shows a message about a problem that the program survives.
pub fn warning(text: &str) {
    line(Importance::Warning, text);
}

/// Shows a message in a line. The journal of the service manager gets its importance.
fn line(importance: Importance, text: &str) {
    let text = harmless(text);
    if !is_journal() {
        return print(&format!("giveway: {text}\n"));
    }
    let lines = text.lines().map(|line| format!("<{}>{line}\n", importance as u8));
    print(&lines.collect::<String>());
}

/// True if the standard error is a connection to the journal, systemd.exec(5): `JOURNAL_STREAM` then has its
/// device and inode.
#[expect(clippy::disallowed_methods, reason = "it asks about the standard error, and writes nothing")]
fn is_journal() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
        let number = |text: &str| text.parse::<u64>().ok();
        let named =
            stream.split_once(':').and_then(|(device, inode)| Some((number(device)?, number(inode)?)));
        let own = std::io::stderr().as_fd().try_clone_to_owned().map(File::from);
        let own = own.and_then(|own| own.metadata()).ok().map(|of| (of.dev(), of.ino()));
        named.is_some() && named == own
    })
}

/// Shows an error with its causes in a line.
pub fn error(error: &dyn Error) {
    line(Importance::Error, &chain(error));
}

/// Shows a text that is not a line of this program, such as an error of clap.
pub fn text(text: &str) {
    print(&harmless(text));
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

thread_local! {
    /// The messages of this thread, while they are captured.
    static CAPTURED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls `work`, and returns the messages that it shows on this thread, in place of showing them.
pub fn captured<T>(work: impl FnOnce() -> T) -> (T, String) {
    CAPTURED.with_borrow_mut(|captured| *captured = Some(String::new()));
    let done = work();
    (done, CAPTURED.take().unwrap_or_default())
}

/// Writes to the standard error. A failure is ignored, because it cannot be reported anywhere else.
#[expect(clippy::disallowed_methods, reason = "the only place that writes to the standard error")]
fn print(text: &str) {
    let is_captured = CAPTURED
        .with_borrow_mut(|captured| captured.as_mut().map(|captured| captured.push_str(text)).is_some());
    if is_captured {
        return;
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}
