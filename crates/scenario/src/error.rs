//! The error of a scenario that cannot run, and its plain text.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use giveway_qdisc::units::nearest;

use crate::diagnostic::{Diagnostic, Severity};
use crate::hints::grouped;
use crate::origin::Origin;

/// The error of a scenario that cannot run, with all its mistakes.
#[derive(Clone, Debug, thiserror::Error)]
pub struct ScenarioError {
    /// The texts of the scenario.
    pub origin: Origin,
    /// Errors and warnings, ordered by place. At least one is an error.
    pub diagnostics: Vec<Diagnostic>,
}

/// Maximum number of diagnostics in one message.
const MAX_SHOWN: usize = 50;

/// The diagnostics that a message leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
}

impl Hidden {
    /// Their numbers in words, such as "95 more errors and 1 more warning"; `None` if nothing is left out.
    pub fn words(self) -> Option<String> {
        let some = |count: usize, what: &str| {
            let s = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{} more {what}{s}", grouped(count)))
        };
        let parts = [some(self.errors, "error"), some(self.warnings, "warning")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

/// The diagnostics to show, at most `most`, and those that are not shown. A list that is cut off has errors
/// before warnings; otherwise the order is kept.
pub fn shown(diagnostics: &[Diagnostic], most: usize) -> (Vec<&Diagnostic>, Hidden) {
    if diagnostics.len() <= most {
        return (diagnostics.iter().collect(), Hidden { errors: 0, warnings: 0 });
    }
    let of = |severity| diagnostics.iter().filter(move |each| each.severity == severity);
    let ordered: Vec<&Diagnostic> = of(Severity::Error).chain(of(Severity::Warning)).collect();
    let (shown, rest) = ordered.split_at(most);
    let errors = rest.iter().filter(|each| each.severity == Severity::Error).count();
    (shown.to_vec(), Hidden { errors, warnings: rest.len() - errors })
}

impl fmt::Display for ScenarioError {
    /// Formats up to 50 diagnostics as plain text, each with its line, in which the place is underlined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, hidden) = shown(&self.diagnostics, MAX_SHOWN);
        for (i, diagnostic) in shown.into_iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            write_plain(f, &self.origin, diagnostic)?;
        }
        if let Some(hidden) = hidden.words() {
            writeln!(f, "\nand {hidden}")?;
        }
        Ok(())
    }
}

/// Writes one diagnostic in the form that compilers use. The command line has no numbers of lines: a flag is
/// shown as it was given, without a position.
fn write_plain(f: &mut fmt::Formatter<'_>, origin: &Origin, diagnostic: &Diagnostic) -> fmt::Result {
    let kind = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = origin.place(&diagnostic.span);
    let excerpt = origin.excerpt(&diagnostic.span, 0);
    let number = if place.flag { " ".to_owned() } else { place.line.to_string() };
    let margin = " ".repeat(number.len());
    let line = excerpt.text.lines().next().unwrap_or_default();
    let first = excerpt.text[..excerpt.span.start].chars().count();
    let marked = excerpt.text[excerpt.span].lines().next().unwrap_or_default().chars().count().max(1);
    writeln!(f, "{kind}: {}", diagnostic.message)?;
    if !place.flag {
        writeln!(f, "{margin}--> {}:{}:{}", place.name, place.line, place.column)?;
    }
    writeln!(f, "{number} | {line}")?;
    write!(f, "{margin} | {}{}", " ".repeat(first), "^".repeat(marked))?;
    if !diagnostic.label.is_empty() {
        write!(f, " {}", diagnostic.label)?;
    }
    f.write_char('\n')?;
    match &diagnostic.help {
        Some(help) => writeln!(f, "{margin} = help: {help}"),
        None => Ok(()),
    }
}

/// The error of a scenario file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {source}{hint}", path = path.display(), hint = did_you_mean(near.as_deref()))]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// A file of the same folder with a similar name, if the file itself does not exist.
    pub near: Option<PathBuf>,
    /// The error of the system.
    pub source: io::Error,
}

impl LoadError {
    /// The error of the system for a file, with a similar file if there is one.
    pub(crate) fn new(path: &Path, source: io::Error) -> LoadError {
        let near = if source.kind() == io::ErrorKind::NotFound { near(path) } else { None };
        LoadError { path: path.to_owned(), near, source }
    }
}

/// The end of the message about a missing file.
fn did_you_mean(near: Option<&Path>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean {}?", near.display()))
}

/// The file in the same folder whose name is nearest to the name of `path`.
fn near(path: &Path) -> Option<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.to_owned()))
        .filter(|name| name.ends_with(".toml"))
        .collect();
    // The order of a folder differs from machine to machine.
    names.sort_unstable();
    let name = path.file_name()?.to_str()?;
    nearest(name, names.iter().map(String::as_str)).map(|near| path.with_file_name(near))
}
