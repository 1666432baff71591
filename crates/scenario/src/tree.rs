//! A TOML document as a tree of values with their places.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Diagnostic;

/// A value with its place in the origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The place of the value.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value of TOML.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date. No key has this type, but messages name it.
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// Keys with their values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// The place of the table. It starts with the header, or with the brace of an inline table.
    pub span: Range<usize>,
    /// The keys, in the order of the file.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The name of the key.
    pub key: String,
    /// The place of the key.
    pub key_span: Range<usize>,
    /// The value, with its place.
    pub node: Node,
}

/// Parses a document. Parts with errors are reported and left out.
pub(crate) fn document(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let end = text.trim_end().len();
        let span = error.span().unwrap_or(end..end);
        diagnostics
            .push(Diagnostic::error(span, "this is not TOML").label(error.message().replace('\n', "; ")));
    }
    let span = table.span();
    build_table(table.get_ref(), span, 0, diagnostics)
}

/// Parses the value of a flag that starts at `start`: as TOML if possible, otherwise as a string.
pub(crate) fn flag(text: &str, start: usize, diagnostics: &mut Vec<Diagnostic>) -> Node {
    match DeValue::parse(text) {
        Ok(value) => build(&value, start, diagnostics),
        Err(_) => Node { span: start..start + text.len(), value: Value::Text(text.to_owned()) },
    }
}

/// Converts a parsed value. `start` is the byte of the origin at which its text starts.
fn build(value: &Spanned<DeValue<'_>>, start: usize, diagnostics: &mut Vec<Diagnostic>) -> Node {
    let span = value.span().start + start..value.span().end + start;
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) => {
            match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
                Ok(number) => Value::Integer(number),
                Err(_) => {
                    let wrong = Diagnostic::error(span.clone(), "this number is too large");
                    diagnostics.push(wrong.help(format!(
                        "TOML has whole numbers from {} to {}",
                        i64::MIN,
                        i64::MAX
                    )));
                    Value::Integer(0)
                }
            }
        }
        DeValue::Float(number) => Value::Float(number.as_str().replace('_', "").parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| build(item, start, diagnostics)).collect())
        }
        DeValue::Table(table) => Value::Table(build_table(table, span.clone(), start, diagnostics)),
    };
    Node { span, value }
}

/// Converts a parsed table, like [`build`].
fn build_table(
    table: &DeTable<'_>,
    span: Range<usize>,
    start: usize,
    diagnostics: &mut Vec<Diagnostic>,
) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: Cow::into_owned(key.get_ref().clone()),
            key_span: key.span().start + start..key.span().end + start,
            node: build(value, start, diagnostics),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    Table { span, entries }
}

impl Node {
    /// The value, if it is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
    /// The items of a list. Any other value counts as a list of one item.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }
    /// The value, if it is a table.
    pub fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The value as JSON, from which typed keys are read.
    pub fn json(&self) -> Json {
        match &self.value {
            Value::Text(text) | Value::Date(text) => Json::from(text.as_str()),
            Value::Integer(number) => Json::from(*number),
            Value::Float(number) => Json::from(*number),
            Value::Boolean(value) => Json::from(*value),
            Value::List(items) => Json::Array(items.iter().map(Node::json).collect()),
            Value::Table(table) => Json::Object(table.json()),
        }
    }

    /// The type of the value, in words.
    pub fn what(&self) -> &'static str {
        match &self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::Date(_) => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Visits every string in the value, with its node.
    pub fn visit_texts<'a>(&'a self, visit: &mut dyn FnMut(&'a Node, &'a str)) {
        match &self.value {
            Value::Text(text) => visit(self, text),
            Value::List(items) => items.iter().for_each(|item| item.visit_texts(visit)),
            Value::Table(table) => table.visit_texts(visit),
            _ => {}
        }
    }
}

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
    /// The value of a key, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }
    /// True if the table contains a key.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }
    /// The place of the value of a key, or of the table if the key is missing.
    pub fn place(&self, key: &str) -> Range<usize> {
        self.get(key).map_or_else(|| self.span.clone(), |node| node.span.clone())
    }
    /// Sets the value of a key; an earlier value is replaced.
    pub fn set(&mut self, key: &str, key_span: Range<usize>, node: Node) {
        self.entries.retain(|entry| entry.key != key);
        self.entries.push(Entry { key: key.to_owned(), key_span, node });
    }
    /// Visits every string in the table, with its node.
    pub fn visit_texts<'a>(&'a self, visit: &mut dyn FnMut(&'a Node, &'a str)) {
        self.entries.iter().for_each(|entry| entry.node.visit_texts(visit));
    }
    /// The table as a JSON object.
    pub fn json(&self) -> Map<String, Json> {
        self.entries.iter().map(|entry| (entry.key.clone(), entry.node.json())).collect()
    }
}
