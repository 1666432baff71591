//! The parameters that may be written at one place of a spec: the parameters of an entry, or of a record
//! inside it.

use giveway_qdisc::units::nearest;
use serde_json::Value;

use crate::error::listed;
use crate::kind::Kind;

/// The parameters of an entry or of a record, by their schema.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Schema with the definitions to which the others refer.
    pub root: &'a Value,
    /// Schema of the parameters.
    pub table: &'a Value,
    /// Name in messages.
    pub name: &'a str,
    /// Name of the definition of the catalogue itself.
    pub catalogue: &'a str,
    /// True if numbers without a unit have the unit of tc.
    pub as_tc: bool,
}

impl<'a> Scope<'a> {
    /// The parameters of a record with this schema, as messages name it.
    pub fn record(self, table: &'a Value, name: &'a str) -> Scope<'a> {
        Scope { table, name, ..self }
    }

    fn properties(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.table.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    /// Schema of a parameter.
    pub fn property(self, name: &str) -> Option<&'a Value> {
        self.table.get("properties")?.get(name)
    }

    /// Follows references to definitions, except those to the catalogue itself, and takes the first choice of
    /// "this or null".
    pub fn resolved(self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        loop {
            if let Some(options) = schema.get("anyOf").and_then(Value::as_array)
                && schema.get("format").is_none()
                && let Some(inner) =
                    options.iter().find(|option| option.get("type") != Some(&Value::from("null")))
            {
                schema = inner;
            } else if let Some(target) = schema.get("$ref").and_then(Value::as_str)
                && !self.refers(target)
                && let Some(definition) = self.root.pointer(target.trim_start_matches('#'))
            {
                schema = definition;
            } else {
                return schema;
            }
        }
    }

    /// True if a reference in a schema is to the catalogue itself.
    fn refers(self, target: &str) -> bool {
        target.rsplit_once('/').is_some_and(|(_, name)| name == self.catalogue)
    }

    /// Kind of the values that a schema accepts.
    pub fn kind(self, schema: &Value) -> Kind {
        Kind::of(self.resolved(schema), &|target| self.refers(target))
    }

    /// Kind of the values of a parameter; `None` for an unknown one.
    pub fn kind_of(self, name: &str) -> Option<Kind> {
        self.property(name).map(|property| self.kind(property))
    }

    /// Schema of the items of a list.
    pub fn items(self, schema: &'a Value) -> &'a Value {
        self.resolved(schema).get("items").map_or(&Value::Null, |items| self.resolved(items))
    }

    /// True if the value of a parameter is a spec of the catalogue, or a list of them.
    pub fn is_spec(self, name: &str) -> bool {
        let Some(property) = self.property(name) else { return false };
        self.kind(property) == Kind::Spec || self.kind(self.items(property)) == Kind::Spec
    }

    /// The switch that `word` turns off. tc has pairs of words such as "overflow" and "drop_on_overload"; the
    /// schema of the switch names the other word as `x-opposite`.
    pub fn opposite(self, word: &str) -> Option<String> {
        let switch = self.properties().find(|(_, property)| {
            property.get("x-opposite").and_then(Value::as_str).is_some_and(|opposite| opposite == word)
        });
        switch.map(|(name, _)| name.clone())
    }

    /// The parameter that tc also writes as `word`, such as "latency" for "lat". The schema of the parameter
    /// lists these words as `x-aliases`.
    pub fn alias(self, word: &str) -> Option<&'a str> {
        let named = self.properties().find(|(_, property)| {
            let aliases = property.get("x-aliases").and_then(Value::as_array);
            aliases.is_some_and(|aliases| aliases.iter().any(|alias| alias == word))
        });
        named.map(|(name, _)| name.as_str())
    }

    /// The unit of a number without one. The schema of a parameter names it as `x-bare`; otherwise it is that
    /// of tc(8), if tc has the entry.
    pub fn bare_unit(self, name: &str) -> Option<&'a str> {
        let property = self.property(name)?;
        if let Some(unit) = property.get("x-bare").and_then(Value::as_str) {
            return Some(unit);
        }
        let kind = match self.kind(property) {
            Kind::List => self.kind(self.items(property)),
            kind => kind,
        };
        match kind {
            Kind::Text(format) if format == "packets" => Some("p"),
            Kind::Text(format) if format == "bytes" => Some("b"),
            Kind::Text(format) if format == "span" && self.as_tc => Some("us"),
            Kind::Text(format) if format == "rate" && self.as_tc => Some("bit"),
            _ => None,
        }
    }

    /// The parameters whose values may follow the value of this one without their names, in this order, as in
    /// "delay 100ms 10ms 25%". The schema of the parameter lists them as `x-then`.
    pub fn followers(self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let listed = self.property(name).and_then(|property| property.get("x-then")?.as_array());
        listed.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The parameter that has the value if `word` is before it, as in "loss gemodel 1% 10%". The schema of
    /// the parameter `name` has these words as `x-forms`.
    pub fn form(self, name: &str, word: &str) -> Option<&'a str> {
        self.property(name)?.get("x-forms")?.get(word)?.as_str()
    }

    /// True if tc shows `word` before item `at` of this list, as in "gemodel p 1% r 10%". The schema of the
    /// parameter lists these words as `x-labels`.
    pub fn is_label(self, name: &str, at: usize, word: &str) -> bool {
        let labels = self.property(name).and_then(|property| property.get("x-labels")?.get(at)?.as_str());
        labels == Some(word)
    }

    /// Phrases of tc that change nothing here, each a list of words; "*" is any word. The schema of the
    /// parameters lists them as `x-idle`.
    pub fn idle(self) -> impl Iterator<Item = Vec<&'a str>> {
        let phrases = self.table.get("x-idle").and_then(Value::as_array).into_iter().flatten();
        phrases.filter_map(Value::as_str).map(|phrase| phrase.split(' ').collect())
    }

    /// The value that `word` stands for, with or without the name of the parameter before it.
    pub fn word_of(self, name: &str, word: &str) -> Option<&'a Value> {
        self.property(name)?.get("x-words")?.as_object()?.get(word)
    }

    /// The parameter and the value that `word` stands for without a name before it. tc writes some choices
    /// alone, such as "besteffort" or "unlimited". The schema of the parameter has `x-words`: true if each of
    /// its choices may be alone, or a table of words and their values.
    pub fn alone(self, word: &str) -> Option<(String, Value)> {
        self.properties().find_map(|(name, property)| match property.get("x-words")? {
            Value::Object(words) => words.get(word).map(|value| (name.clone(), value.clone())),
            _ => {
                let choices = self.choices(name);
                choices.iter().any(|choice| choice == word).then(|| (name.clone(), Value::from(word)))
            }
        })
    }

    /// True if each choice of a parameter is written without the name of the parameter.
    pub fn stands_alone(self, name: &str) -> bool {
        self.property(name).and_then(|property| property.get("x-words")) == Some(&Value::Bool(true))
    }

    fn choices(self, name: &str) -> Vec<String> {
        match self.kind_of(name) {
            Some(Kind::Choice(choices)) => choices,
            _ => Vec::new(),
        }
    }

    /// All words that may stand at the place of a parameter's name, except negated switches.
    fn words(self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, property) in self.properties() {
            if property.get("x-hidden") != Some(&Value::Bool(true)) {
                words.push(name.clone());
            }
            words.extend(property.get("x-opposite").and_then(Value::as_str).map(str::to_owned));
            match property.get("x-words") {
                Some(Value::Object(alone)) => words.extend(alone.keys().cloned()),
                Some(_) => words.extend(self.choices(name)),
                None => {}
            }
        }
        words
    }

    /// The message about an unknown parameter, and a correction.
    pub fn unknown_parameter(self, name: &str) -> (String, String) {
        let words = self.words();
        let help = match nearest(name, words.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if name.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("write the name of the parameter before the value; see giveway explain {}", self.name)
            }
            None if self.properties().next().is_none() => format!("{} has no parameters", self.name),
            None => {
                format!("{} has {}", self.name, listed(self.properties().map(|(known, _)| known.as_str())))
            }
        };
        (format!("unknown parameter \"{name}\" of {}", self.name), help)
    }
}
