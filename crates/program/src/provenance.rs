//! Provenance of results: the command line, and the time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};

/// The arguments and the program of a process whose own belong to an interpreter.
static BEGUN: OnceLock<(Vec<OsString>, PathBuf)> = OnceLock::new();

/// Sets the arguments of `giveway`, without its name, and the program that is `giveway`, in place of this
/// process's own.
pub fn begin(arguments: Vec<OsString>, program: PathBuf) {
    // A process runs one command, so a second call changes nothing.
    let _ = BEGUN.set((arguments, program));
}

/// The arguments of `giveway`, without its name.
pub fn arguments() -> Vec<OsString> {
    match BEGUN.get() {
        Some((arguments, _)) => arguments.clone(),
        None => std::env::args_os().skip(1).collect(),
    }
}

/// The program `giveway`, for a child process.
///
/// # Errors
/// If the system does not say where the program of this process is.
pub fn program() -> std::io::Result<PathBuf> {
    BEGUN.get().map_or_else(std::env::current_exe, |(_, program)| Ok(program.clone()))
}

/// The command line of this process, quoted for a POSIX shell. The program is `giveway`, whatever its path
/// is.
pub fn command() -> String {
    let words = arguments().into_iter().map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("giveway".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The current time in UTC, as RFC 3339, to the second. If `SOURCE_DATE_EPOCH` is set
/// (<https://reproducible-builds.org/specs/source-date-epoch/>), its seconds since 1970 replace the current time, so
/// that a repeated command writes the same bytes.
#[allow(
    clippy::disallowed_methods,
    reason = "the time is recorded beside results, which do not depend on it"
)]
pub fn now() -> String {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let given = given.and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
    given.unwrap_or_else(|| SystemTime::now().into()).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Quotes a word for a POSIX shell (POSIX.1-2017, Shell Command Language, section 2.2.2).
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        let words = ["--set", "link.0.rate=2mbit", "disciplines=[\"fifo\"]", "it's", "", "a b"];
        let quoted: Vec<String> = words.map(quoted).into();
        assert_eq!(
            quoted,
            ["--set", "link.0.rate=2mbit", "'disciplines=[\"fifo\"]'", r"'it'\''s'", "''", "'a b'"]
        );
    }

    #[test]
    fn times_are_rfc_3339() {
        let now = now();
        assert!(DateTime::parse_from_rfc3339(&now).is_ok() && now.ends_with('Z'), "{now}");
    }
}
