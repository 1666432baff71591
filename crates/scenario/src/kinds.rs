//! Tables whose key `kind` selects the other keys: disciplines, arbiters and traffic.

use serde_json::Value as Json;

use crate::diagnostic::Diagnostic;
use crate::fields::{Reading, wrong_type};
use crate::hints::{choices, listed};
use crate::tree::Table;

impl Reading {
    /// Looks up the key `kind` of a table among `entries`. In messages, `what` is the table and `noun` an
    /// entry: "a discipline", "discipline". Reports an error if the key is missing or unknown.
    pub fn kind<'a, E>(
        &mut self,
        table: &Table,
        (what, noun): (&str, &str),
        entries: &'a [E],
        name_of: impl Fn(&E) -> &'static str,
    ) -> Option<&'a E> {
        let names: Vec<&str> = entries.iter().map(&name_of).collect();
        let Some(node) = table.get("kind") else {
            self.missing(table, what, "kind");
            return None;
        };
        let Some(name) = node.text() else {
            self.report(wrong_type(node, "kind: expected a name").help(listed(&names)));
            return None;
        };
        let found = entries.iter().find(|entry| name_of(entry) == name);
        if found.is_none() {
            let wrong = Diagnostic::error(node.span.clone(), format!("unknown {noun} \"{name}\""));
            self.report(wrong.help(choices(name, &names)));
        }
        found
    }

    /// Reads the keys that a kind has in addition to `shared`. `of_kind` is the table in messages about
    /// unknown keys, `what` in all others. `None` if a key is wrong or missing; the errors are reported.
    pub fn keys_of_kind<T>(
        &mut self,
        table: &Table,
        (of_kind, what): (&str, &str),
        shared: &[&str],
        own: &[&str],
        from_json: fn(Json) -> Result<T, serde_json::Error>,
    ) -> Option<T> {
        self.unknown_keys(table, of_kind, &[shared, own].concat());
        self.read(table, what, own, &from_json).1
    }
}
