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
use crate::kind::Kind;

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
    /// Text of its source file, whose header is its documentation.
    pub source: &'static str,
    /// JSON Schema of its `Config`.
    pub schema: fn() -> Schema,
    /// JSON Schema of its `Config` inside a larger schema, whose definitions it shares.
    pub schema_within: fn(&mut SchemaGenerator) -> Schema,
    /// Its spec from parameters by name.
    pub from_json: fn(Value) -> Result<S, serde_json::Error>,
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
    pub const fn of<C>(name: &'static str, summary: &'static str, source: &'static str) -> Entry<S>
    where
        C: Into<S> + DeserializeOwned + JsonSchema,
    {
        Entry {
            name,
            family: None,
            summary,
            source,
            schema: || schema_for!(C),
            schema_within: C::json_schema,
            from_json: |value| serde_json::from_value::<C>(value).map(C::into),
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

/// The header of a source file: principles, deviations, cost, references, as Markdown.
pub fn page(source: &str) -> String {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
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
    schemas: OnceLock<Vec<Value>>,
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

    /// Schema of the parameters of an entry. Schemas are cached, because an entry with children describes all
    /// others, too.
    pub(crate) fn schema(&self, entry: &Entry<S>) -> &Value {
        let schemas =
            self.schemas.get_or_init(|| self.entries.iter().map(|each| (each.schema)().to_value()).collect());
        let at = self.entries.iter().position(|other| other.name == entry.name);
        &schemas[at.expect("an entry is in its catalogue")]
    }

    /// Schema of a parameter.
    pub(crate) fn property(&self, entry: &Entry<S>, name: &str) -> Option<Value> {
        let schema = self.schema(entry);
        let mut property = schema.get("properties")?.get(name)?.clone();
        self.follow(schema, &mut property);
        // The schema of an optional parameter is "this or null", and may refer to a definition, too.
        let options = property.get_mut("anyOf").and_then(Value::as_array_mut);
        options.into_iter().flatten().for_each(|option| self.follow(schema, option));
        Some(property)
    }

    /// The switch that `word` turns off. tc has pairs of words such as "overflow" and "drop_on_overload"; the
    /// schema of the switch names the other word as `x-opposite`.
    pub(crate) fn opposite(&self, entry: &Entry<S>, word: &str) -> Option<String> {
        let properties = self.schema(entry).get("properties")?.as_object()?;
        let switch = properties.iter().find(|(_, property)| {
            property.get("x-opposite").and_then(Value::as_str).is_some_and(|opposite| opposite == word)
        });
        switch.map(|(name, _)| name.clone())
    }

    /// The parameter and the value that `word` stands for without a name before it. tc writes some choices
    /// alone, such as "besteffort" or "unlimited". The schema of the parameter has `x-words`: true if each of
    /// its choices may be alone, or a table of words and their values.
    pub(crate) fn alone(&self, entry: &Entry<S>, word: &str) -> Option<(String, Value)> {
        let properties = self.schema(entry).get("properties")?.as_object()?;
        properties.iter().find_map(|(name, property)| match property.get("x-words")? {
            Value::Object(words) => words.get(word).map(|value| (name.clone(), value.clone())),
            _ => {
                let choices = self.choices(entry, name);
                choices.iter().any(|choice| choice == word).then(|| (name.clone(), Value::from(word)))
            }
        })
    }

    /// True if each choice of a parameter is written without the name of the parameter.
    pub(crate) fn stands_alone(&self, entry: &Entry<S>, name: &str) -> bool {
        let property = self.schema(entry).get("properties").and_then(|properties| properties.get(name));
        property.and_then(|property| property.get("x-words")) == Some(&Value::Bool(true))
    }

    fn choices(&self, entry: &Entry<S>, name: &str) -> Vec<String> {
        match self.property(entry, name).map(|property| self.kind(&property)) {
            Some(Kind::Choice(choices)) => choices,
            _ => Vec::new(),
        }
    }

    /// All words that may stand at the place of a parameter's name, except negated switches.
    fn words(&self, entry: &Entry<S>) -> Vec<String> {
        let mut words = Vec::new();
        let properties = self.schema(entry).get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if property.get("x-hidden") != Some(&Value::Bool(true)) {
                words.push(name.clone());
            }
            words.extend(property.get("x-opposite").and_then(Value::as_str).map(str::to_owned));
            match property.get("x-words") {
                Some(Value::Object(alone)) => words.extend(alone.keys().cloned()),
                Some(_) => words.extend(self.choices(entry, name)),
                None => {}
            }
        }
        words
    }

    /// Replaces a reference by its definition, except a reference to the catalogue itself.
    fn follow(&self, schema: &Value, property: &mut Value) {
        let target = property.get("$ref").and_then(Value::as_str).map(str::to_owned);
        if let Some(target) = target
            && !self.refers(&target)
            && let Some(definition) = schema.pointer(target.trim_start_matches('#'))
        {
            *property = definition.clone();
        }
    }

    /// True if a reference in a schema is to the catalogue itself.
    fn refers(&self, target: &str) -> bool {
        target.rsplit_once('/').is_some_and(|(_, name)| name == self.about.definition)
    }

    /// Kind of the values that a schema accepts.
    pub(crate) fn kind(&self, schema: &Value) -> Kind {
        Kind::of(schema, &|target| self.refers(target))
    }

    /// True if the value of a parameter is a spec of the catalogue, or a list of them.
    pub(crate) fn is_spec(&self, entry: &Entry<S>, name: &str) -> bool {
        let Some(property) = self.property(entry, name) else { return false };
        let items = property.get("items");
        self.kind(&property) == Kind::Spec || items.is_some_and(|items| self.kind(items) == Kind::Spec)
    }

    pub(crate) fn unknown_parameter(&self, entry: &Entry<S>, name: &str) -> (String, String) {
        let properties = self.schema(entry).get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flatten().map(|(known, _)| known.as_str()).collect();
        let words = self.words(entry);
        let help = match nearest(name, words.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if known.is_empty() => format!("{} has no parameters", entry.name),
            None => format!("{} has {}", entry.name, listed(known.iter().copied())),
        };
        (format!("unknown parameter \"{name}\" of {}", entry.name), help)
    }
}
