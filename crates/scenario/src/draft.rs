//! A parsed scenario file that is not checked yet. Flags of the command line change it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use giveway_files::input;
use giveway_qdisc::{Bytes, Rate, Span};
use serde_json::Value as Json;

use crate::diagnostic::Diagnostic;
use crate::error::LoadError;
use crate::hints::choices;
use crate::origin::Origin;
use crate::tree::{self, Node, Table, Value};

/// A parsed scenario file with the changes of flags.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The text of the file, and the flags.
    pub(crate) origin: Origin,
    /// The keys at the top of the file, with the changes of flags.
    pub(crate) root: Table,
    /// The folder that file names are relative to.
    pub(crate) folder: PathBuf,
    /// The errors so far, of the syntax and of flags.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Draft {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read. [`Draft::finish`] reports mistakes inside it.
    pub fn load(path: impl AsRef<Path>) -> Result<Draft, LoadError> {
        let path = path.as_ref();
        let text = input::read_to_string(path).map_err(|error| LoadError::new(path, error))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Draft::named(&path.display().to_string(), &text, folder))
    }

    /// Parses a text; file names in it are relative to `folder`.
    pub fn parse(text: &str, folder: impl Into<PathBuf>) -> Draft {
        Draft::named("scenario", text, folder.into())
    }

    /// Parses the text of a file that messages call `name`.
    fn named(name: &str, text: &str, folder: PathBuf) -> Draft {
        let mut diagnostics = Vec::new();
        let mut root = tree::document(text, &mut diagnostics);
        rename_host(&mut root, &mut diagnostics);
        Draft { origin: Origin::new(name, text), root, folder, diagnostics }
    }

    /// Applies `--set KEY=VALUE`. The key is a path: `duration`, `link.0.rate`, `traffic.upload.flows`.
    /// Elements of a list have numbers from 0; most also have names. A value that is not TOML is a string, so
    /// it needs no quotes. [`Draft::finish`] reports mistakes in the flag.
    pub fn set(self, assignment: &str) -> Draft {
        self.apply("--set", assignment)
    }

    /// Applies an assignment as [`set`](Draft::set) does; `flag` is the name of the flag in messages.
    pub fn assign(self, flag: &str, assignment: &str) -> Draft {
        self.apply(flag, assignment)
    }

    /// The keys that decide the result of a trial, besides its discipline and its seed, as TOML. Comments,
    /// the title, the compared disciplines and the seeds are left out. The rest is written in one way, since
    /// "10 Mbit/s" and "10mbit" give the same results, and so does another order of keys.
    pub(crate) fn identity(&self) -> String {
        const BESIDES: [&str; 6] = ["title", "description", "disciplines", "seeds", "short", "sweep"];
        let mut keys = self.root.json();
        keys.retain(|key, _| !BESIDES.contains(&key.as_str()));
        let mut keys = Json::Object(keys);
        write_in_one_way("", &mut keys);
        toml::to_string(&keys).expect("parsed TOML can be written as TOML")
    }

    /// Applies an assignment; `flag` is the name of the flag in messages.
    pub(crate) fn apply(mut self, flag: &str, assignment: &str) -> Draft {
        let start = self.origin.push(flag, assignment);
        let Some((path, value)) = assignment.split_once('=') else {
            let span = start..start + assignment.len();
            let wrong = Diagnostic::error(span, format!("{flag} needs a key and a value"));
            self.diagnostics.push(wrong.help("write for example --set duration=5s"));
            return self;
        };
        let skipped = value.len() - value.trim_start().len();
        let node = tree::flag(value.trim(), start + path.len() + 1 + skipped, &mut self.diagnostics);
        let mut steps = Vec::new();
        let mut at = start;
        for step in path.split('.') {
            steps.push(Step { name: step.trim(), span: at..at + step.len() });
            at += step.len() + 1;
        }
        if let [Step { name: name @ HOST, .. }] = steps.as_mut_slice() {
            *name = BACKEND;
        }
        if let Err(wrong) = put(&mut self.root, &steps, node) {
            self.diagnostics.push(wrong);
        }
        self
    }

    /// The scenario as TOML: the file itself, or the result of the flags.
    pub fn text(&self) -> String {
        let flags: Vec<String> =
            self.origin.flags().map(|(name, text)| format!("# {name} {}\n", printable(text))).collect();
        if flags.is_empty() {
            return self.origin.file().to_owned();
        }
        let tree = toml::to_string_pretty(&self.root.json()).expect("parsed TOML can be written as TOML");
        format!("# Changed by flags:\n{}\n{tree}", flags.concat())
    }
}

/// Escapes control characters, which a comment of TOML must not have.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for c in text.chars() {
        match c.is_control() {
            true => printable.extend(c.escape_default()),
            false => printable.push(c),
        }
    }
    printable
}

/// The older name of the key `backend`.
const HOST: &str = "host";
/// The key that selects the backend of a scenario.
const BACKEND: &str = "backend";

/// Renames the key `host` of a file to `backend`.
fn rename_host(root: &mut Table, diagnostics: &mut Vec<Diagnostic>) {
    let both = root.has(BACKEND);
    let Some(entry) = root.entries.iter_mut().find(|entry| entry.key == HOST) else { return };
    if both {
        let wrong =
            Diagnostic::error(entry.key_span.clone(), "host is an older name of backend, and both are given");
        diagnostics.push(wrong.help("leave host out"));
    }
    BACKEND.clone_into(&mut entry.key);
}

/// One step of a path.
struct Step<'a> {
    /// The key, or the number or name of an element of a list.
    name: &'a str,
    /// The place in the origin.
    span: Range<usize>,
}

/// Sets the value at a path. Missing tables are added.
fn put(table: &mut Table, path: &[Step<'_>], node: Node) -> Result<(), Diagnostic> {
    let (step, rest) = path.split_first().expect("split returns at least one part");
    if step.name.is_empty() {
        return Err(Diagnostic::error(step.span.clone(), "this key is empty")
            .help("write for example --set link.0.rate=5mbit"));
    }
    if rest.is_empty() {
        table.set(step.name, step.span.clone(), node);
        return Ok(());
    }
    if !table.has(step.name) {
        let empty = Table { span: step.span.clone(), entries: Vec::new() };
        table.set(step.name, step.span.clone(), Node { span: step.span.clone(), value: Value::Table(empty) });
    }
    let inner = table.get_mut(step.name).expect("the key was just added");
    enter(inner, step, rest, node)
}

/// Applies the rest of a path inside the value that `step` names.
fn enter(inner: &mut Node, step: &Step<'_>, rest: &[Step<'_>], node: Node) -> Result<(), Diagnostic> {
    match &mut inner.value {
        Value::Table(table) => put(table, rest, node),
        Value::List(items) => {
            let item = element(items, step, &rest[0])?;
            match &rest[1..] {
                [] => {
                    *item = node;
                    Ok(())
                }
                inner => enter(item, &rest[0], inner, node),
            }
        }
        _ => Err(Diagnostic::error(step.span.clone(), format!("\"{}\" has no keys", step.name))),
    }
}

/// The element of a list with the number or the name `wanted`.
fn element<'a>(
    items: &'a mut [Node],
    list: &Step<'_>,
    wanted: &Step<'_>,
) -> Result<&'a mut Node, Diagnostic> {
    let count = items.len();
    if let Ok(number) = wanted.name.parse::<usize>() {
        return items.get_mut(number).ok_or_else(|| {
            let message = format!("\"{}\" has no element {number}", list.name);
            Diagnostic::error(wanted.span.clone(), message)
                .help(format!("it has {count} elements, numbered from 0"))
        });
    }
    let names: Vec<String> = items.iter().map(name_of).collect();
    if let Some(at) = names.iter().position(|name| name == wanted.name) {
        return Ok(&mut items[at]);
    }
    let message = format!("\"{}\" has no element \"{}\"", list.name, wanted.name);
    Err(Diagnostic::error(wanted.span.clone(), message).help(choices(wanted.name, &names)))
}

/// The name of an element of a list: its text, its key `name` or `kind`, or its nodes as in "home->isp".
fn name_of(item: &Node) -> String {
    let Some(table) = item.table() else { return item.text().unwrap_or_default().to_owned() };
    let word = |key| table.get(key).and_then(Node::text).unwrap_or_default();
    match (table.has("name"), table.has("kind")) {
        (true, _) => word("name").to_owned(),
        (false, true) => word("kind").to_owned(),
        (false, false) => format!("{}->{}", word("from"), word("to")),
    }
}
/// Sorts the keys of a value, and writes each quantity in it in one way.
fn write_in_one_way(key: &str, value: &mut Json) {
    // A name is a name, even if it looks like a time.
    const NAMES: [&str; 3] = ["name", "from", "to"];
    match value {
        Json::Object(keys) => {
            keys.sort_keys();
            keys.iter_mut().for_each(|(key, value)| write_in_one_way(key, value));
        }
        Json::Array(values) => values.iter_mut().for_each(|value| write_in_one_way(key, value)),
        Json::String(text) if !NAMES.contains(&key) && text.starts_with(|c: char| c.is_ascii_digit()) => {
            let span = text.parse::<Span>().map(|span| span.to_string());
            let rate = || text.parse::<Rate>().map(|rate| rate.to_string());
            let bytes = || text.parse::<Bytes>().map(|bytes| bytes.to_string());
            if let Ok(written) = span.or_else(|_| rate()).or_else(|_| bytes()) {
                *text = written;
            }
        }
        _ => {}
    }
}
