//! The registry of one kind of thing, and what is known about each of them.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use giveway_qdisc::units::nearest;
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::SpecError;
use crate::kind::Kind;

/// A group of a registry, for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, which is also the folder of its sources.
    pub name: &'static str,
    /// The purpose of everything in it, in one sentence.
    pub summary: &'static str,
}

/// One thing of a registry.
pub struct Entry<S> {
    /// How it is written.
    pub name: &'static str,
    /// The group in which lists show it, in a registry that has groups.
    pub family: Option<Family>,
    /// One line about it.
    pub summary: &'static str,
    /// Its source file, whose header explains it.
    pub source: &'static str,
    /// Its parameters: JSON Schema of its `Config`.
    pub schema: fn() -> Schema,
    /// The same inside a larger schema, whose definitions it shares.
    pub schema_within: fn(&mut SchemaGenerator) -> Schema,
    /// It, with every parameter at its default.
    pub default: fn() -> S,
    /// It, from named parameters.
    pub from_json: fn(Value) -> Result<S, serde_json::Error>,
    /// Configurations that tests and benchmarks try.
    pub variants: fn() -> Vec<S>,
}

// Derived, they would ask it of S, of which there is none inside.
impl<S> Clone for Entry<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Entry<S> {}

impl<S> Entry<S> {
    /// The header of its source file: principles, deviations, cost, references, as Markdown.
    pub fn page(&self) -> String {
        let header = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        header.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

/// What the things of a registry are called, for messages and the schema.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// One of them: "discipline".
    pub noun: &'static str,
    /// The name of their definition in a JSON Schema: "Discipline".
    pub definition: &'static str,
    /// What that definition says.
    pub description: &'static str,
    /// One that can be read, with a parameter: "fifo limit 100p".
    pub example: &'static str,
    /// How one is written inside another: "child (fq_codel limit 100p)". None where that cannot be.
    pub inside: Option<&'static str>,
}

impl About {
    /// The noun with its indefinite article: "a discipline", "an arbiter".
    pub fn one(&self) -> String {
        let article = if self.noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {}", self.noun)
    }
}

/// A registry: everything of one kind that can be written, read and listed.
pub struct Catalogue<S: 'static> {
    /// What its things are called.
    pub about: About,
    /// Its things, in the order in which they are listed.
    pub entries: &'static [Entry<S>],
    schemas: OnceLock<Vec<Value>>,
}

/// What has a catalogue: [`spelled!`](crate::spelled) makes it so.
pub trait Spelled:
    Clone + PartialEq + fmt::Display + FromStr<Err = SpecError> + DeserializeOwned + 'static
{
    /// The registry to which it belongs.
    fn catalogue() -> &'static Catalogue<Self>;
    /// The name of its entry.
    fn name(&self) -> &'static str;
    /// All its parameters, a table.
    fn parameters(&self) -> Value;
}

impl<S> Catalogue<S> {
    /// A catalogue of these. It belongs into a `static`: schemas are made once.
    pub const fn new(about: About, entries: &'static [Entry<S>]) -> Catalogue<S> {
        Catalogue { about, entries, schemas: OnceLock::new() }
    }

    /// Finds one by name.
    ///
    /// # Errors
    /// That there is none of this name, and which one is near.
    pub fn entry(&self, name: &str) -> Result<&'static Entry<S>, (String, Option<String>)> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let help = match nearest(name, self.names()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("there are {}", listed(self.names())),
            };
            (format!("unknown {} \"{name}\"", self.about.noun), Some(help))
        })
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<S> {
        self.entries.iter().map(|entry| entry.name)
    }

    /// The schema of the parameters of one. Made once: one with children describes all the others, too.
    pub(crate) fn schema(&self, entry: &Entry<S>) -> &Value {
        let schemas =
            self.schemas.get_or_init(|| self.entries.iter().map(|each| (each.schema)().to_value()).collect());
        let at = self.entries.iter().position(|other| other.name == entry.name);
        &schemas[at.expect("an entry is in its catalogue")]
    }

    /// The schema of one parameter.
    pub(crate) fn property(&self, entry: &Entry<S>, name: &str) -> Option<Value> {
        let schema = self.schema(entry);
        let mut property = schema.get("properties")?.get(name)?.clone();
        self.follow(schema, &mut property);
        // "This or null": what is optional may be defined elsewhere, too.
        let options = property.get_mut("anyOf").and_then(Value::as_array_mut);
        options.into_iter().flatten().for_each(|option| self.follow(schema, option));
        Some(property)
    }

    /// Follows a reference to a definition next to it, except to one of the catalogue, which is known by its name.
    fn follow(&self, schema: &Value, property: &mut Value) {
        let target = property.get("$ref").and_then(Value::as_str).map(str::to_owned);
        if let Some(target) = target
            && !self.refers(&target)
            && let Some(definition) = schema.pointer(target.trim_start_matches('#'))
        {
            *property = definition.clone();
        }
    }

    /// Whether a reference in a schema leads to the definition of the catalogue.
    fn refers(&self, target: &str) -> bool {
        target.rsplit_once('/').is_some_and(|(_, name)| name == self.about.definition)
    }

    /// What kind of value a schema takes.
    pub(crate) fn kind(&self, schema: &Value) -> Kind {
        Kind::of(schema, &|target| self.refers(target))
    }

    /// Whether a parameter takes something of the catalogue, or several.
    pub(crate) fn is_spec(&self, entry: &Entry<S>, name: &str) -> bool {
        let Some(property) = self.property(entry, name) else { return false };
        let items = property.get("items");
        self.kind(&property) == Kind::Spec || items.is_some_and(|items| self.kind(items) == Kind::Spec)
    }

    pub(crate) fn unknown_parameter(&self, entry: &Entry<S>, name: &str) -> (String, String) {
        let properties = self.schema(entry).get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flatten().map(|(known, _)| known.as_str()).collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if known.is_empty() => format!("{} has no parameters", entry.name),
            None => format!("{} has {}", entry.name, listed(known.iter().copied())),
        };
        (format!("unknown parameter \"{name}\" of {}", entry.name), help)
    }
}

/// Names, with commas between them.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
