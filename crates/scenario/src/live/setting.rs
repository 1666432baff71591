//! The keys of a link as settings of a live bridge: each alone, as a text, in the words of a `[[link]]`. A
//! test bed writes them for its router, which reads them.

use std::path::Path;

use giveway_links::Impairments;

use crate::diagnostic::{Diagnostic, Severity};
use crate::fields::Reading;
use crate::network::{DirectionKeys, read_varying};
use crate::origin::Origin;
use crate::tree::{self, Entry, Node, Table, Value};

/// The mistake in a key of a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
pub struct LinkKeyError {
    /// The mistake, in one line.
    pub message: String,
    /// Text to write instead.
    pub help: Option<String>,
}

/// Reads one key of a link, such as `rate`, from its value: a table in braces, as in `{ steps = [["0s",
/// "50mbit"], ["10s", "1mbit"]] }`, or a text without quotes, as in `0.1%`. Only what varies is read: a
/// constant rate, delay or loss has no effect. Files are relative to `folder`; without a folder they are
/// refused.
///
/// # Errors
/// The first mistake.
pub fn link_key(key: &str, value: &str, folder: Option<&Path>) -> Result<Impairments, LinkKeyError> {
    let text = format!("{key} = {value}");
    let mut diagnostics = Vec::new();
    let table = if value.trim_start().starts_with('{') {
        tree::document(&text, &mut diagnostics)
    } else {
        text_alone(key, value)
    };
    let mut reading = Reading { origin: Origin::new(key, text.as_str()), diagnostics };
    if reading.failed() {
        let Diagnostic { message, label, .. } = reading.diagnostics.swap_remove(0);
        let help = Some("write a table in braces, in the syntax of a [[link]]".to_owned());
        return Err(LinkKeyError { message: format!("{message}: {label}"), help });
    }
    if folder.is_none()
        && let Some(of) = table.get(key).and_then(Node::table)
        && let Some(file) = ["trace", "csv"].into_iter().find(|key| of.has(key))
    {
        let message = format!("{file}: a running bridge opens no files");
        let help = Some("name the file when the bridge starts, with a flag or in --settings".to_owned());
        return Err(LinkKeyError { message, help });
    }
    let keys: DirectionKeys = reading.fields(&table, "a link").unwrap_or_default();
    let variation = read_varying(&mut reading, &table, &keys, folder.unwrap_or(Path::new("")));
    let wrong = reading.diagnostics.into_iter().find(|wrong| wrong.severity == Severity::Error);
    match wrong {
        None => Ok(variation.impairments),
        // The caller names the key.
        Some(Diagnostic { message, help, .. }) => {
            let message = message.strip_prefix(&format!("{key}: ")).unwrap_or(&message).to_owned();
            Err(LinkKeyError { message, help })
        }
    }
}

/// A table with one text; `yes` and `no` are truth values.
fn text_alone(key: &str, value: &str) -> Table {
    let start = key.len() + " = ".len();
    let value_span = start..start + value.len();
    let value = match value {
        "yes" | "true" => Value::Boolean(true),
        "no" | "false" => Value::Boolean(false),
        text => Value::Text(text.to_owned()),
    };
    let node = Node { span: value_span.clone(), value };
    let entry = Entry { key: key.to_owned(), key_span: 0..key.len(), node };
    Table { span: 0..value_span.end, entries: vec![entry] }
}

/// The settings of one direction of a link that are not a constant rate or delay. `own` contains the keys of
/// the direction, which takes the rate and the delay of the link if it has none. Files are relative
/// to `folder`.
pub(super) fn settings(own: &Table, link: &Table, folder: &Path) -> Vec<(&'static str, String)> {
    const KEYS: [&str; 8] =
        ["rate", "delay", "loss", "jitter", "reorder", "duplicate", "corrupt", "unordered"];
    let both = ["rate", "delay"];
    let setting = |key: &'static str| {
        let node = own.get(key).or_else(|| link.get(key).filter(|_| both.contains(&key)))?;
        let constant = both.contains(&key) && node.table().is_none();
        (!constant).then(|| (key, written(node, folder)))
    };
    KEYS.into_iter().filter_map(setting).collect()
}

/// A value as a setting.
fn written(node: &Node, folder: &Path) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        Value::Boolean(value) => if *value { "yes" } else { "no" }.to_owned(),
        _ => {
            let mut json = node.json();
            for key in ["trace", "csv"] {
                if let Some(file) = json.get_mut(key)
                    && let Some(path) = file.as_str().map(|name| folder.join(name))
                {
                    let path = std::path::absolute(&path).unwrap_or(path);
                    *file = path.to_string_lossy().into_owned().into();
                }
            }
            toml::Value::try_from(json).map(|value| value.to_string()).unwrap_or_default()
        }
    }
}
