//! Disciplines and arbiters in a scenario: specs as text, or as tables with a `kind`.

use std::ops::Range;

use giveway_spec::SpecType;

use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, wrong_type};
use crate::tree::{Node, Table, Value};

impl Reading {
    /// Reads a spec: a string, or a table with a `kind`. Reports an error if it is wrong.
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
                let wrong = wrong_type(node, format!("expected {}", about.one()));
                let table = S::catalogue().example_table();
                self.report(wrong.help(format!("write \"{}\", or {table}", about.example)));
                None
            }
        }
    }

    /// Reads a spec that is written as a table with a `kind`.
    fn spec_table<S: SpecType>(&mut self, table: &Table) -> Option<S> {
        let catalogue = S::catalogue();
        let words = (&*catalogue.about.one(), catalogue.about.noun);
        let entry = self.kind(table, words, catalogue.entries, |entry| entry.name)?;
        let words = (entry.name, entry.name);
        self.keys_of_kind(table, words, &["kind"], &(entry.keys)(), entry.from_json)
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

    /// The place of a parameter in a spec, with its value; the place of the whole spec if it does not write
    /// the parameter.
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

/// The bytes of the words of a text.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    text.split(|c: char| c.is_whitespace() || "()[]".contains(c)).filter(|word| !word.is_empty()).map(
        |word| {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            start..start + word.len()
        },
    )
}
