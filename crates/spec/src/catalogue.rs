//! The registry behind a spec type: its entries, and the schemas of their parameters.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use giveway_qdisc::units::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::SpecError;
use crate::error::listed;
use crate::keys;
use crate::scope::Scope;

/// A group of a registry, for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, which is also the folder of its sources.
    pub name: &'static str,
    /// The purpose of everything in it, in one sentence.
    pub summary: &'static str,
}

/// An entry of a registry. `S` is the enum of the registry, or a spec that contains it.
pub struct Entry<S> {
    /// Name in specs and scenarios.
    pub name: &'static str,
    /// The group in which lists show it, in a registry that has groups.
    pub family: Option<Family>,
    /// Summary in one line.
    pub summary: &'static str,
    /// Header of its source file, which is its documentation: see [`header!`](crate::header).
    pub header: &'static str,
    /// Names of its parameters.
    pub keys: fn() -> Vec<&'static str>,
    /// JSON Schema of its `Config`.
    pub schema: fn() -> Schema,
    /// JSON Schema of its `Config` inside a larger schema, whose definitions it shares.
    pub schema_within: fn(&mut SchemaGenerator) -> Schema,
    /// Its spec from parameters by name.
    pub from_json: fn(Value) -> Result<S, serde_json::Error>,
    /// True if tc has it: then numbers without a unit have the unit of tc(8), and a line of `tc qdisc` is
    /// read.
    pub as_tc: bool,
}

// Derived implementations would require `S: Clone`, although no `S` is inside.
impl<S> Clone for Entry<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Entry<S> {}

impl<S> Entry<S> {
    /// An entry with the parameters of the configuration `C`, in no family.
    pub const fn of<C>(name: &'static str, summary: &'static str, header: &'static str) -> Entry<S>
    where
        C: Into<S> + DeserializeOwned + JsonSchema,
    {
        Entry {
            name,
            family: None,
            summary,
            header,
            keys: || keys::<C>().to_vec(),
            schema: || schema_for!(C),
            schema_within: C::json_schema,
            from_json: |value| serde_json::from_value::<C>(value).map(C::into),
            as_tc: false,
        }
    }
}

impl<S: SpecType> Entry<S> {
    /// Its spec with all parameters at their defaults.
    ///
    /// # Panics
    /// If a parameter has no default. Every parameter of a spec has one, since a name alone is a spec.
    pub fn default(&self) -> S {
        let none = Value::Object(serde_json::Map::new());
        (self.from_json)(none).expect("every parameter of a spec has a default")
    }
}

/// The header of a source file, its first lines with `//!`, as `header!(include_str!(PATH))`. The code after
/// it would make programs larger.
#[macro_export]
macro_rules! header {
    ($source:expr) => {{
        const SOURCE: &str = $source;
        const HEADER: [u8; $crate::header_length(SOURCE)] = $crate::beginning(SOURCE);
        match ::core::str::from_utf8(&HEADER) {
            Ok(header) => header,
            Err(_) => panic!("a header ends with a line"),
        }
    }};
}

/// The bytes of the header of a source file.
pub const fn header_length(source: &str) -> usize {
    let text = source.as_bytes();
    let mut end = 0;
    while end + 2 < text.len() && text[end] == b'/' && text[end + 1] == b'/' && text[end + 2] == b'!' {
        while end < text.len() && text[end] != b'\n' {
            end += 1;
        }
        if end < text.len() {
            end += 1;
        }
    }
    end
}

/// The first bytes of a text.
///
/// # Panics
/// If the text is shorter.
pub const fn beginning<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let mut beginning = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        beginning[at] = text.as_bytes()[at];
        at += 1;
    }
    beginning
}

/// The header of a source file: principles, deviations, cost, references, as Markdown.
pub fn page(header: &str) -> String {
    let header = header.lines().map_while(|line| line.strip_prefix("//!"));
    header.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Names of a spec type for messages and the schema.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Noun for an entry: "discipline".
    pub noun: &'static str,
    /// Name of the definition in a JSON Schema: "Discipline".
    pub definition: &'static str,
    /// Description of that definition.
    pub description: &'static str,
    /// A valid spec with a parameter: "fifo limit 100p".
    pub example: &'static str,
    /// A spec as a parameter of another: "child (fq_codel limit 100p)". `None` if there are no such
    /// parameters.
    pub inside: Option<&'static str>,
}

impl About {
    /// The noun with its indefinite article: "a discipline", "an arbiter".
    pub fn one(&self) -> String {
        let article = if self.noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {}", self.noun)
    }
}

/// A registry: the entries of a spec type.
pub struct Catalogue<S: 'static> {
    /// Names for messages and the schema.
    pub about: About,
    /// The entries in the order of lists.
    pub entries: &'static [Entry<S>],
    schemas: OnceLock<Vec<OnceLock<Value>>>,
}

/// A spec type. [`spec_type!`](crate::spec_type) implements it.
pub trait SpecType:
    Clone + PartialEq + fmt::Display + FromStr<Err = SpecError> + DeserializeOwned + 'static
{
    /// The registry of the type.
    fn catalogue() -> &'static Catalogue<Self>;
    /// Name of its entry.
    fn name(&self) -> &'static str;
    /// All its parameters, as a table.
    fn parameters(&self) -> Value;
}

impl<S> Catalogue<S> {
    /// A catalogue of these entries. Use it in a `static`, since it caches the schemas.
    pub const fn new(about: About, entries: &'static [Entry<S>]) -> Catalogue<S> {
        Catalogue { about, entries, schemas: OnceLock::new() }
    }

    /// Finds an entry by name.
    ///
    /// # Errors
    /// A message and a suggestion, if there is no entry of this name.
    pub fn entry(&self, name: &str) -> Result<&'static Entry<S>, (String, Option<String>)> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let help = match nearest(name, self.names()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("there are {}", listed(self.names())),
            };
            (format!("unknown {} \"{name}\"", self.about.noun), Some(help))
        })
    }

    /// Names of all entries.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<S> {
        self.entries.iter().map(|entry| entry.name)
    }

    /// Schema of the parameters of an entry, made when it is first asked for. It does not describe the
    /// entries that may be inside it: a schema of all takes as long as a short simulation.
    pub(crate) fn schema(&self, entry: &Entry<S>) -> &Value {
        let schemas = self.schemas.get_or_init(|| self.entries.iter().map(|_| OnceLock::new()).collect());
        let at = self.entries.iter().position(|other| other.name == entry.name);
        schemas[at.expect("an entry is in its catalogue")].get_or_init(|| {
            let mut generator = SchemaGenerator::default();
            // The generator does not make a definition that it has.
            generator.definitions_mut().insert(self.about.definition.to_owned(), true.into());
            let mut schema = (entry.schema_within)(&mut generator).to_value();
            schema["$defs"] = Value::Object(generator.take_definitions(false));
            schema
        })
    }

    /// The parameters of an entry.
    pub(crate) fn scope(&self, entry: &Entry<S>) -> Scope<'_> {
        let schema = self.schema(entry);
        Scope {
            root: schema,
            table: schema,
            name: entry.name,
            catalogue: self.about.definition,
            as_tc: entry.as_tc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_what_is_before_the_code() {
        const FILE: &str = "//! # One\n//!\n//! Of \u{3b1}.\n\n//! no header\nfn code() {}\n";
        assert_eq!(crate::header!(FILE), "//! # One\n//!\n//! Of \u{3b1}.\n");
        assert_eq!(crate::header!("//! All"), "//! All");
        assert_eq!(crate::header!("fn code() {}"), "");
        // The page is the same as that of the whole file.
        assert_eq!(page(crate::header!(FILE)), page(FILE));
        assert_eq!(page(FILE), "# One\n\nOf \u{3b1}.");
    }
}
