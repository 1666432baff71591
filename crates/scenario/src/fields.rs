//! Reads a table into a type, key by key. Each wrong value is reported with its place, and the other keys are
//! still read.

use std::collections::BTreeSet;
use std::path::Path;

use giveway_files::input;
use giveway_qdisc::Invalid;
use giveway_qdisc::units::nearest;
pub(crate) use giveway_spec::keys;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use crate::diagnostic::{Diagnostic, Severity};
use crate::hints::{choices, grouped};
use crate::origin::Origin;
use crate::tree::{Entry, Node, Table, Value};

/// A scenario while it is read, with the diagnostics so far.
pub(crate) struct Reading {
    /// The texts that places refer to.
    pub origin: Origin,
    /// The errors and warnings so far.
    pub diagnostics: Vec<Diagnostic>,
}

/// A function that reads a type from JSON.
type Read<'a, T> = &'a dyn Fn(Json) -> Result<T, serde_json::Error>;

impl Reading {
    /// Adds a diagnostic.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The help for an unknown name. The search for the nearest of many names is slow, so a file with many
    /// mistakes gets a full search for the first of them only.
    pub fn choices<N: AsRef<str>>(&self, wrong: &str, names: &[N]) -> String {
        const MANY: usize = 100;
        if self.diagnostics.len() > MANY {
            choices(wrong, &names[..names.len().min(MANY)])
        } else {
            choices(wrong, names)
        }
    }

    /// Drops all but the first diagnostic of each place in `span`, of which the scenario reads several
    /// copies.
    pub fn keep_one_per_place(&mut self, span: &std::ops::Range<usize>) {
        let mut seen = BTreeSet::new();
        let inside = |place: &std::ops::Range<usize>| span.start <= place.start && place.end <= span.end;
        self.diagnostics.retain(|each| !inside(&each.span) || seen.insert((each.span.start, each.span.end)));
    }

    /// True if there is an error, not only warnings.
    pub fn failed(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The place for messages about a missing key at the top: the first word of the file.
    pub fn top(&self) -> std::ops::Range<usize> {
        let text = self.origin.file();
        let start = text.len() - text.trim_start().len();
        let end = text[start..].find(char::is_whitespace).map_or(text.len(), |len| start + len);
        start..end
    }

    /// The place for messages about a missing table: the end of the file.
    pub fn end(&self) -> std::ops::Range<usize> {
        let end = self.origin.file().trim_end().len();
        end..end
    }

    /// The table at a node; reports an error if it has another type.
    pub fn table<'a>(&mut self, node: &'a Node, what: &str, example: &str) -> Option<&'a Table> {
        let table = node.table();
        if table.is_none() {
            let wrong = wrong_type(node, format!("{what} is a table"));
            self.report(wrong.help(format!("write for example {example}")));
        }
        table
    }

    /// Reads an optional table of the file, such as `[record]`, and its keys; those that are wrong get their
    /// defaults. `None` if there is no such table. Reports an error if the key has another type.
    pub fn section<'a, T>(&mut self, root: &'a Table, key: &str, example: &str) -> Option<(&'a Table, T)>
    where
        T: Default + DeserializeOwned,
    {
        let name = format!("[{key}]");
        let table = self.table(root.get(key)?, &name, &format!("{name} with {example}"))?;
        self.unknown_keys(table, &name, keys::<T>());
        Some((table, self.fields(table, &name).unwrap_or_default()))
    }

    /// The tables of a required list, such as `[[link]]`. `missing` is the message if there are none, and
    /// `example` names keys to write. Reports an error if the key has another type.
    pub fn sections<'a>(
        &mut self,
        root: &'a Table,
        key: &str,
        missing: &str,
        example: &str,
    ) -> Option<&'a [Node]> {
        match root.get(key) {
            Some(Node { value: Value::List(items), .. }) if !items.is_empty() => return Some(items),
            Some(Node { value: Value::List(_), .. }) | None => {
                let place = if root.has(key) { root.place(key) } else { self.end() };
                let wrong = Diagnostic::error(place, missing);
                self.report(wrong.help(format!("write [[{key}]] with {example}")));
            }
            Some(node) => {
                let wrong = wrong_type(node, format!("{key} is a list of tables"));
                self.report(wrong.help(format!("write [[{key}]], with two brackets")));
            }
        }
        None
    }

    /// Reports a parameter with which the value of a table cannot be built, at its key or at the table.
    /// `what` is the table in the message.
    pub fn invalid(&mut self, table: &Table, what: &str, invalid: &Invalid) {
        let key = table.get(invalid.parameter).map(|node| node.span.clone());
        let place = key.unwrap_or_else(|| head(&self.origin, table));
        self.report(Diagnostic::error(place, format!("{what}: {invalid}")));
    }

    /// Reports a text of a table that names a pipe, a socket or a device, which a source would wait for.
    /// Returns `None` then.
    pub fn only_files(&mut self, table: &Table, folder: &Path) -> Option<()> {
        let mut wrong = Vec::new();
        table.visit_texts(&mut |node, text| {
            if let Err(error) = input::check(&folder.join(text)) {
                wrong.push(Diagnostic::error(node.span.clone(), format!("{text} cannot be read: {error}")));
            }
        });
        let fine = wrong.is_empty();
        wrong.into_iter().for_each(|diagnostic| self.report(diagnostic));
        fine.then_some(())
    }

    /// Reports the keys of a table that are not among `known`.
    pub fn unknown_keys(&mut self, table: &Table, what: &str, known: &[&str]) {
        for entry in table.entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            let wrong =
                Diagnostic::error(entry.key_span.clone(), format!("unknown key \"{}\" of {what}", entry.key));
            self.report(wrong.help(choices(&entry.key, known)));
        }
    }

    /// Reads the keys of a table that `T` has, and leaves other keys alone. `None` if they do not make a `T`.
    pub fn fields<T: DeserializeOwned>(&mut self, table: &Table, what: &str) -> Option<T> {
        self.read(table, what, keys::<T>(), &|json| serde_json::from_value(json)).1
    }

    /// Reads the keys `known` of a table. Returns the valid ones, and the value that they make together:
    /// `None` if a required key is missing. Reports each invalid key.
    pub fn read<T>(
        &mut self,
        table: &Table,
        what: &str,
        known: &[&str],
        read: Read<'_, T>,
    ) -> (Map<String, Json>, Option<T>) {
        let mut valid = Map::new();
        for entry in table.entries.iter().filter(|entry| known.contains(&&*entry.key)) {
            let json = entry.node.json();
            let alone = Map::from_iter([(entry.key.clone(), json.clone())]);
            match read(Json::Object(alone)).map_err(|error| error.to_string()) {
                // Each key is read alone, so others are missing.
                Err(error) if !error.starts_with("missing field") => {
                    let wrong = explain(entry, &error);
                    self.report(wrong);
                }
                Ok(_) | Err(_) => {
                    valid.insert(entry.key.clone(), json);
                }
            }
        }
        let all = read(Json::Object(valid.clone())).map_err(|error| error.to_string());
        let value = match all {
            Ok(value) => Some(value),
            Err(error) => {
                match missing(&error) {
                    // The key is there, and its error was reported above.
                    Some(key) if table.has(key) => {}
                    Some(key) => self.missing(table, what, key),
                    None => self.report(Diagnostic::error(table.span.clone(), format!("{what}: {error}"))),
                }
                None
            }
        };
        (valid, value)
    }

    /// Reads a table whose keys may stand in a table of defaults instead. Returns the valid keys of both, and
    /// the configuration that they make; keys that neither has take the values that `implied` derives from
    /// it. `what` and an example are for messages.
    pub fn layered<T: DeserializeOwned>(
        &mut self,
        node: &Node,
        (what, example): (&str, &str),
        defaults: &Map<String, Json>,
        implied: impl Fn(&T) -> Map<String, Json>,
        check: impl Fn(&T) -> Result<(), Invalid>,
    ) -> Option<(Map<String, Json>, T)> {
        let table = self.table(node, what, example)?;
        let known = keys::<T>();
        self.unknown_keys(table, what, known);
        let (own, _) = self.read::<T>(table, what, known, &|json| serde_json::from_value(json));
        let mut written = defaults.clone();
        written.extend(own);
        let config = |keys: Map<String, Json>| -> T {
            serde_json::from_value(Json::Object(keys))
                .expect("each key is valid alone, and all have defaults")
        };
        let mut all = implied(&config(written.clone()));
        all.extend(written.clone());
        let config = config(all);
        if let Err(invalid) = check(&config) {
            self.invalid(table, what, &invalid);
            return None;
        }
        Some((written, config))
    }

    /// Reports a missing key, unless the table contains a similar key, which was reported as unknown.
    pub fn missing(&mut self, table: &Table, what: &str, key: &str) {
        if mistyped(table, key) {
            return;
        }
        self.report(Diagnostic::error(head(&self.origin, table), format!("{what} needs \"{key}\"")));
    }
}

/// Translates an error of serde about the value of an entry into a diagnostic with its place.
fn explain(entry: &Entry, error: &str) -> Diagnostic {
    let (key, node) = (&entry.key, &entry.node);
    if let Some(expected) = expectation(error, "invalid type: ") {
        let culprit = culprit(node, expected);
        let wrong = wrong_type(culprit, format!("{key}: expected {}", in_words(expected)));
        let is_number = matches!(culprit.value, Value::Integer(_) | Value::Float(_));
        return if is_number && expected.contains("unit") {
            wrong.label("this number has no unit")
        } else {
            wrong
        };
    }
    if let Some((name, names)) = unknown(error, "unknown variant ") {
        let place = find_text(node, name).unwrap_or(node).span.clone();
        return Diagnostic::error(place, format!("unknown {key} \"{name}\"")).help(choices(name, &names));
    }
    if let Some((name, names)) = unknown(error, "unknown field ") {
        let place = find_key(node, name).map_or(&node.span, |entry| &entry.key_span).clone();
        let message = format!("unknown key \"{name}\" of {key}");
        return Diagnostic::error(place, message).help(choices(name, &names));
    }
    let message = match expectation(error, "invalid value: ") {
        Some(expected) => format!("{key}: expected {}", range(expected)),
        None => format!("{key}: {error}"),
    };
    Diagnostic::error(node.span.clone(), message)
}

/// The expected value in an error of serde such as "invalid type: integer `3`, expected a string".
fn expectation<'a>(error: &'a str, prefix: &str) -> Option<&'a str> {
    let (_, expected) = error.strip_prefix(prefix)?.split_once(", expected ")?;
    Some(expected)
}

/// A type of serde as TOML calls it.
fn in_words(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "a table",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "f64" => "a number",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// The range of an integer type in words; any other expectation is unchanged.
fn range(expected: &str) -> String {
    let most = match expected {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        // The largest whole number of TOML.
        "u64" | "usize" => i64::MAX as u64,
        _ => return expected.to_owned(),
    };
    format!("a whole number from 0 to {}", grouped(most as usize))
}

/// An error about a value of the wrong type. The label names its type.
pub(crate) fn wrong_type(node: &Node, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(node.span.clone(), message).label(format!("this is {}", node.what()))
}

/// True if a table contains a key that is probably a misspelling of `key`.
pub(crate) fn mistyped(table: &Table, key: &str) -> bool {
    table.entries.iter().any(|entry| entry.key != key && nearest(&entry.key, [key]).is_some())
}

/// The place of a table in messages: its header, or the first line of an inline table.
pub(crate) fn head(origin: &Origin, table: &Table) -> std::ops::Range<usize> {
    let first = origin.text(&table.span).lines().next().unwrap_or_default().len();
    table.span.start..table.span.start + first
}

/// The key in an error of serde such as "missing field `rate`".
fn missing(error: &str) -> Option<&str> {
    error.strip_prefix("missing field `")?.strip_suffix('`')
}

/// The unknown name and the known ones in an error of serde such as "unknown variant `a`, expected `b` or
/// `c`".
fn unknown<'a>(error: &'a str, prefix: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (wrong, rest) = error.strip_prefix(prefix)?.strip_prefix('`')?.split_once('`')?;
    Some((wrong, rest.split('`').skip(1).step_by(2).collect()))
}

/// The part of a value with the wrong type: in a list, the first item that is not a string.
fn culprit<'a>(node: &'a Node, expected: &str) -> &'a Node {
    match &node.value {
        Value::List(items) if !expected.contains("sequence") => {
            items.iter().find(|item| item.text().is_none()).unwrap_or(node)
        }
        _ => node,
    }
}

/// The first string in a value that is `wanted`.
fn find_text<'a>(node: &'a Node, wanted: &str) -> Option<&'a Node> {
    let mut found = None;
    node.visit_texts(&mut |place, text| {
        if text == wanted && found.is_none() {
            found = Some(place);
        }
    });
    found
}

/// The first entry in a value whose key is `wanted`.
fn find_key<'a>(node: &'a Node, wanted: &str) -> Option<&'a Entry> {
    match &node.value {
        Value::List(items) => items.iter().find_map(|item| find_key(item, wanted)),
        Value::Table(table) => table
            .entries
            .iter()
            .find(|entry| entry.key == wanted)
            .or_else(|| table.entries.iter().find_map(|entry| find_key(&entry.node, wanted))),
        _ => None,
    }
}
