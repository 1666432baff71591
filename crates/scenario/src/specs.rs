//! Disciplines and arbiters in a scenario: specs as text, or as tables with a `kind`.

use std::ops::Range;

use giveway_spec::SpecType;
use serde_json::{Map, Value as Json};

use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, keys_by};
use crate::tree::{Node, Table, Value};
use crate::words::choices;

impl Reading {
    /// Reads a spec from its catalogue; a `giveway_disciplines::Spec` is a discipline.
    pub fn spec<S: SpecType>(&mut self, node: &Node) -> Option<S> {
        let about = S::catalogue().about;
        match &node.value {
            Value::Text(text) => match text.parse::<S>() {
                Ok(spec) => Some(spec),
                Err(error) => {
                    let wrong =
                        Diagnostic::error(self.origin.inside(&node.span, text, &error.span), error.message);
                    self.report(Diagnostic { help: error.help, ..wrong });
                    None
                }
            },
            Value::Table(table) => self.spec_table(table),
            _ => {
                let wrong = Diagnostic::error(node.span.clone(), format!("expected a {}", about.noun));
                let wrong = wrong.label(format!("this is {}", node.what()));
                let table = S::catalogue().example_table();
                self.report(wrong.help(format!("write \"{}\", or {table}", about.example)));
                None
            }
        }
    }

    fn spec_table<S: SpecType>(&mut self, table: &Table) -> Option<S> {
        let (catalogue, noun) = (S::catalogue(), S::catalogue().about.noun);
        let Some(kind) = table.get("kind") else {
            self.missing(table, &format!("a {noun}"), "kind");
            return None;
        };
        let Some(name) = kind.text() else {
            let wrong = Diagnostic::error(kind.span.clone(), format!("kind: expected the name of a {noun}"));
            self.report(wrong.label(format!("this is {}", kind.what())));
            return None;
        };
        let Some(entry) = catalogue.entries.iter().find(|entry| entry.name == name) else {
            let names: Vec<&str> = catalogue.names().collect();
            let wrong = Diagnostic::error(kind.span.clone(), format!("unknown {noun} \"{name}\""));
            self.report(wrong.help(choices(name, &names)));
            return None;
        };
        let parameters = keys_by(entry.schema);
        let with_kind = [parameters.as_slice(), &["kind".to_owned()]].concat();
        self.unknown_keys(table, entry.name, &with_kind);
        let read = |json: Json| {
            let mut all = Map::from_iter([("kind".to_owned(), Json::from(name))]);
            all.extend(json.as_object().cloned().unwrap_or_default());
            serde_json::from_value::<S>(Json::Object(all))
        };
        self.read(table, entry.name, &parameters, &read).1
    }

    /// Reads the list of compared disciplines or arbiters, which must differ from each other.
    pub fn compared<S: SpecType>(&mut self, node: &Node) -> Option<Vec<S>> {
        let about = S::catalogue().about;
        if node.items().is_empty() {
            let message = format!("there are no {}s to compare", about.noun);
            let wrong = Diagnostic::error(node.span.clone(), message);
            self.report(wrong.help(format!("write for example disciplines = [\"{}\"]", about.example)));
            return None;
        }
        let mut specs: Vec<S> = Vec::with_capacity(node.items().len());
        let mut whole = true;
        for item in node.items() {
            match self.spec::<S>(item) {
                Some(spec) if specs.contains(&spec) => {
                    whole = false;
                    let message = format!("\"{spec}\" is compared with itself");
                    self.report(Diagnostic::error(item.span.clone(), message));
                }
                Some(spec) => specs.push(spec),
                None => whole = false,
            }
        }
        whole.then_some(specs)
    }

    /// The place of a parameter of a discipline.
    pub fn parameter(&self, node: &Node, name: &str) -> Range<usize> {
        match &node.value {
            Value::Table(table) => table.get(name).unwrap_or(node).span.clone(),
            Value::Text(text) => match words(text).find(|word| &text[word.clone()] == name) {
                Some(word) => {
                    let end =
                        words(text).find(|next| next.start > word.start).map_or(word.end, |value| value.end);
                    self.origin.inside(&node.span, text, &(word.start..end))
                }
                None => node.span.clone(),
            },
            _ => node.span.clone(),
        }
    }
}

/// The words of a text, as byte ranges.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    text.split(|c: char| c.is_whitespace() || "()[]".contains(c)).filter(|word| !word.is_empty()).map(
        |word| {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            start..start + word.len()
        },
    )
}
