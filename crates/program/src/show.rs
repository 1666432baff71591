//! Messages on the standard error. Text from outside is made [`harmless`]: nothing else in the programs
//! writes to the standard error.

use std::borrow::Cow;
use std::cell::RefCell;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use giveway_text::{chain, harmless};

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

/// Shows a panic, whose message may contain text from a file, without anything that a terminal obeys.
pub fn panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| match harmless(&about.to_string()) {
        Cow::Borrowed(_) => usual(about),
        Cow::Owned(shown) => text(&format!("{shown}\n")),
    }));
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
