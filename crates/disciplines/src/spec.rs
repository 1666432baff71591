//! Reading and writing a discipline with its parameters, as `tc` would: `fq_codel limit 10240p target 5ms ecn`.
//!
//! The grammar: the discipline's name, then parameter names each followed by a value. A switch stands alone
//! (`ecn`), or negated (`noecn`), or takes `on`/`off`. A parameter that is a discipline itself takes it in
//! parentheses: `tbf rate 1mbit child (fq_codel limit 100p)`; several of them in brackets: `[(fifo) (fifo limit 10p)]`.
//! Counts without a unit are taken where `tc` takes them (`quantum 1514`, `limit 10240` of a discipline that only
//! counts packets); where a number could mean two things, its unit must be written.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::OnceLock;

use qdisc::units::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{ALL, Entry, Spec};

/// Why a discipline could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Which bytes of the text are wrong.
    pub span: Range<usize>,
    /// What is wrong with them.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}
impl std::error::Error for SpecError {}

/// Finds a discipline by name.
///
/// # Errors
/// That there is none of this name, and which one is near.
pub(crate) fn entry(name: &str) -> Result<&'static Entry, (String, Option<String>)> {
    ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let help = match nearest(name, ALL.iter().map(|entry| entry.name)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("there are {}", names(ALL.iter().map(|entry| entry.name))),
        };
        (format!("unknown discipline \"{name}\""), Some(help))
    })
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        let mut words = Words { text, at: 0, depth: 0 };
        let spec = words.spec()?;
        match words.next()? {
            Some(Word { span, .. }) => Err(SpecError {
                message: format!("\"{}\" is left over", &text[span.clone()]),
                span,
                help: None,
            }),
            None => Ok(spec),
        }
    }
}

impl fmt::Display for Spec {
    /// As it would be typed: the name, and the parameters that differ from their defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let entry = entry(self.name()).expect("a discipline is in its registry");
        let defaults = (entry.default)().parameters();
        let Value::Object(parameters) = self.parameters() else { return Ok(()) };
        for (name, value) in parameters {
            if defaults.get(&name) == Some(&value) {
                continue;
            }
            match value {
                Value::Bool(true) => write!(f, " {name}")?,
                Value::Bool(false) => write!(f, " no{name}")?,
                Value::String(text) if is_spec(entry, &name) => write!(f, " {name} ({text})")?,
                Value::String(text) => write!(f, " {name} {text}")?,
                Value::Array(items) => {
                    write!(f, " {name} [")?;
                    for (i, item) in items.iter().enumerate() {
                        let gap = if i == 0 { "" } else { " " };
                        match item {
                            Value::String(text) if text.contains(' ') || is_spec(entry, &name) => {
                                write!(f, "{gap}({text})")?;
                            }
                            Value::String(text) => write!(f, "{gap}{text}")?,
                            other => write!(f, "{gap}{other}")?,
                        }
                    }
                    f.write_str("]")?;
                }
                Value::Null => {}
                other => write!(f, " {name} {other}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Spec {
    /// From text, or from a table `{ kind = "fq_codel", target = "5ms" }`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spec, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => text.parse().map_err(de::Error::custom),
            Value::Object(mut table) => {
                let kind = match table.remove("kind") {
                    Some(Value::String(kind)) => kind,
                    _ => return Err(de::Error::custom("a discipline needs a kind, such as kind = \"fifo\"")),
                };
                let entry = entry(&kind).map_err(|(message, help)| {
                    de::Error::custom(format!("{message}; {}", help.unwrap_or_default()))
                })?;
                for name in table.keys() {
                    if property(entry, name).is_none() {
                        let (message, help) = unknown_parameter(entry, name);
                        return Err(de::Error::custom(format!("{message}; {help}")));
                    }
                }
                (entry.from_json)(Value::Object(table)).map_err(de::Error::custom)
            }
            _ => Err(de::Error::custom(
                "a discipline is written as \"fifo limit 100p\" or { kind = \"fifo\" }",
            )),
        }
    }
}

impl JsonSchema for Spec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Discipline".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // Children are disciplines too: the generator knows this schema by its name, so that their tables refer back to it.
        let tables: Vec<Value> = ALL
            .iter()
            .map(|entry| {
                let mut table = (entry.schema_within)(generator).to_value();
                if let Some(properties) = table.pointer_mut("/properties").and_then(Value::as_object_mut) {
                    properties.insert("kind".into(), serde_json::json!({ "const": entry.name }));
                }
                table["required"] = serde_json::json!(["kind"]);
                table["additionalProperties"] = false.into();
                table["description"] = entry.summary.into();
                table
            })
            .collect();
        let names = ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join("|");
        json_schema!({
            "description": "A queue discipline with its parameters, as tc would write it: \"fq_codel limit 1000p target 5ms\"",
            "anyOf": [
                { "type": "string", "pattern": format!("^({names})( .*)?$") },
                { "oneOf": tables }
            ]
        })
    }
}

// ---------------------------------------------------------------------------------------------------
// Words
// ---------------------------------------------------------------------------------------------------

struct Words<'a> {
    text: &'a str,
    at: usize,
    /// How many disciplines enclose the one that is being read.
    depth: usize,
}

/// Disciplines inside disciplines: more than these is a mistake, and a bound keeps hostile text from the stack's end.
const DEEPEST: usize = 16;

struct Word<'a> {
    text: &'a str,
    span: Range<usize>,
}

impl<'a> Words<'a> {
    /// The next word, without consuming it; parentheses and brackets are words of their own.
    fn peek(&self) -> Option<Word<'a>> {
        let start = self.text.len() - self.text[self.at..].trim_start().len();
        let rest = &self.text[start..];
        let first = rest.chars().next()?;
        let len = if "()[]".contains(first) {
            1
        } else {
            rest.find(|c: char| c.is_whitespace() || "()[]".contains(c)).unwrap_or(rest.len())
        };
        Some(Word { text: &rest[..len], span: start..start + len })
    }

    fn next(&mut self) -> Result<Option<Word<'a>>, SpecError> {
        let word = self.peek();
        if let Some(word) = &word {
            self.at = word.span.end;
        }
        Ok(word)
    }

    fn expect(&mut self, wanted: &str, after: &str) -> Result<(), SpecError> {
        match self.next()? {
            Some(word) if word.text == wanted => Ok(()),
            other => Err(SpecError {
                span: other.map_or(self.text.len()..self.text.len(), |word| word.span),
                message: format!("expected \"{wanted}\" after {after}"),
                help: Some(
                    "a discipline inside another is written as \"child (fq_codel limit 100p)\"".into(),
                ),
            }),
        }
    }

    /// A name and its parameters, up to the end or a closing parenthesis.
    fn spec(&mut self) -> Result<Spec, SpecError> {
        self.named().map(|(_, _, spec)| spec)
    }

    /// The same, with the discipline's entry and its parameters as they were written.
    fn named(&mut self) -> Result<(&'static Entry, Map<String, Value>, Spec), SpecError> {
        let Some(name) = self.next()? else {
            return Err(SpecError {
                span: self.text.len()..self.text.len(),
                message: "expected a discipline".into(),
                help: Some(format!("such as {}", names(ALL.iter().map(|entry| entry.name)))),
            });
        };
        let entry = entry(name.text).map_err(|(message, help)| SpecError {
            span: name.span.clone(),
            message,
            help,
        })?;
        let start = name.span.start;
        let mut table = Map::new();
        while let Some(word) = self.peek() {
            if word.text == ")" || word.text == "]" {
                break;
            }
            self.at = word.span.end;
            let (parameter, value) = self.parameter(entry, &word)?;
            if table.insert(parameter, value).is_some() {
                return Err(SpecError {
                    message: format!("\"{}\" is given twice", word.text),
                    span: word.span,
                    help: None,
                });
            }
        }
        let spec = (entry.from_json)(Value::Object(table.clone())).map_err(|error| SpecError {
            span: start..self.at,
            message: error.to_string(),
            help: None,
        })?;
        Ok((entry, table, spec))
    }

    /// One parameter: its name is `word`, its value is what follows.
    fn parameter(&mut self, entry: &Entry, word: &Word<'a>) -> Result<(String, Value), SpecError> {
        if let Some(schema) = property(entry, word.text) {
            let value = self.value(entry, word, &schema)?;
            return Ok((word.text.to_owned(), value));
        }
        // tc negates a switch by "no".
        if let Some(positive) = word.text.strip_prefix("no")
            && property(entry, positive).is_some_and(|schema| kind(&schema) == Kind::Switch)
        {
            return Ok((positive.to_owned(), Value::Bool(false)));
        }
        let (message, help) = unknown_parameter(entry, word.text);
        Err(SpecError { span: word.span.clone(), message, help: Some(help) })
    }

    fn value(&mut self, entry: &Entry, name: &Word<'a>, schema: &Value) -> Result<Value, SpecError> {
        let kind = kind(schema);
        if kind == Kind::Switch {
            let explicit = self.peek().and_then(|word| match word.text {
                "on" | "true" => Some((word.span.end, true)),
                "off" | "false" => Some((word.span.end, false)),
                _ => None,
            });
            return Ok(match explicit {
                Some((end, value)) => {
                    self.at = end;
                    Value::Bool(value)
                }
                None => Value::Bool(true),
            });
        }
        if kind == Kind::Spec {
            return self.child(name.text);
        }
        let Some(word) = self.next()? else {
            return Err(SpecError {
                span: name.span.clone(),
                message: format!("\"{}\" needs a value", name.text),
                help: Some(example(entry, name.text, schema)),
            });
        };
        if word.text == "[" {
            let items = schema.get("items").cloned().unwrap_or(Value::Null);
            let mut list = Vec::new();
            while self.peek().is_some_and(|next| next.text != "]") {
                list.push(match self::kind(&items) {
                    Kind::Spec => self.child(name.text)?,
                    of_items => {
                        let item = self.next()?.expect("it was just seen");
                        scalar(&of_items, &item, name.text)?
                    }
                });
            }
            self.expect("]", "the list")?;
            return Ok(Value::Array(list));
        }
        scalar(&kind, &word, name.text)
    }

    /// A discipline in parentheses, as a table. It was read once here, so that mistakes inside are pointed at.
    fn child(&mut self, name: &str) -> Result<Value, SpecError> {
        self.expect("(", &format!("\"{name}\""))?;
        if self.depth == DEEPEST {
            return Err(SpecError {
                span: self.at - 1..self.at,
                message: format!("more than {DEEPEST} disciplines inside each other"),
                help: None,
            });
        }
        self.depth += 1;
        let (entry, mut table, _) = self.named()?;
        self.depth -= 1;
        self.expect(")", "the discipline inside")?;
        table.insert("kind".into(), entry.name.into());
        Ok(Value::Object(table))
    }
}

/// What kind of value a parameter takes, from its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Switch,
    Integer,
    Number,
    Spec,
    List,
    Choice(Vec<String>),
    /// A quantity by its format, or other text.
    Text(String),
}

fn kind(schema: &Value) -> Kind {
    // Optional parameters are written as "this or null".
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array)
        && schema.get("format").is_none()
        && let Some(inner) = options.iter().find(|option| option.get("type") != Some(&Value::from("null")))
    {
        return kind(inner);
    }
    let refers = |target: &Value| target.as_str().is_some_and(|target| target.ends_with("/Discipline"));
    if schema.get("$ref").is_some_and(refers) {
        return Kind::Spec;
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return Kind::Choice(choices.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let names = choices.iter().filter_map(|choice| choice.get("const")?.as_str());
        return Kind::Choice(names.map(str::to_owned).collect());
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    match types.iter().find(|name| **name != "null") {
        Some(&"boolean") => Kind::Switch,
        Some(&"integer") => Kind::Integer,
        Some(&"number") => Kind::Number,
        Some(&"array") => Kind::List,
        _ => Kind::Text(format.to_owned()),
    }
}

fn scalar(kind: &Kind, word: &Word<'_>, name: &str) -> Result<Value, SpecError> {
    let wrong = |message: String, help: Option<String>| SpecError { span: word.span.clone(), message, help };
    let bare = word.text.bytes().all(|b| b.is_ascii_digit());
    match kind {
        Kind::Integer => word.text.parse::<u64>().map(Value::from).map_err(|_| {
            wrong(
                format!("{name}: \"{}\" is not a whole number", word.text),
                Some(format!("write for example \"{name} 1024\"")),
            )
        }),
        Kind::Number => match word.text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::from(number)),
            _ => Err(wrong(
                format!("{name}: \"{}\" is not a number", word.text),
                Some(format!("write for example \"{name} 0.5\"")),
            )),
        },
        Kind::Choice(choices) if choices.iter().any(|choice| choice == word.text) => {
            Ok(Value::from(word.text))
        }
        Kind::Choice(choices) => Err(wrong(
            format!("{name}: unknown choice \"{}\"", word.text),
            Some(match nearest(word.text, choices.iter().map(String::as_str)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("there are {}", names(choices.iter().map(String::as_str))),
            }),
        )),
        Kind::List => Err(wrong(
            format!("{name}: expected a list"),
            Some(format!("write it in brackets: \"{name} [... ...]\"")),
        )),
        // tc's own bare numbers: packets where only packets are counted, bytes where only bytes are.
        Kind::Text(format) if format == "packets" && bare => Ok(Value::from(format!("{}p", word.text))),
        Kind::Text(format) if format == "bytes" && bare => Ok(Value::from(format!("{}b", word.text))),
        Kind::Text(format) => {
            // Read it here, so that the error points at the word.
            let read = match format.as_str() {
                "span" => word.text.parse::<qdisc::Span>().err(),
                "rate" => word.text.parse::<qdisc::Rate>().err(),
                "bytes" => word.text.parse::<qdisc::Bytes>().err(),
                "packets" => word.text.parse::<qdisc::Packets>().err(),
                "limit" => word.text.parse::<qdisc::Limit>().err(),
                "share" => word.text.parse::<qdisc::Share>().err(),
                _ => None,
            };
            match read {
                Some(error) => Err(wrong(format!("{name}: {error}"), None)),
                None => Ok(Value::from(word.text)),
            }
        }
        Kind::Switch | Kind::Spec => unreachable!("these are read before their value"),
    }
}

/// The schema of a discipline's parameters. Made once: a discipline with children describes all the others, too.
fn schema(entry: &Entry) -> &'static Value {
    static SCHEMAS: OnceLock<Vec<Value>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| ALL.iter().map(|each| (each.schema)().to_value()).collect());
    let at = ALL.iter().position(|other| other.name == entry.name).expect("a discipline is in its registry");
    &schemas[at]
}

/// The schema of one parameter.
fn property(entry: &Entry, name: &str) -> Option<Value> {
    let schema = schema(entry);
    let mut property = schema.get("properties")?.get(name)?.clone();
    // Follow a reference to a definition next to it, except to a discipline, which is known by its name.
    let target = property.get("$ref").and_then(Value::as_str).map(str::to_owned);
    if let Some(target) = target
        && !target.ends_with("/Discipline")
        && let Some(definition) = schema.pointer(target.trim_start_matches('#'))
    {
        property = definition.clone();
    }
    Some(property)
}

fn is_spec(entry: &Entry, name: &str) -> bool {
    let Some(property) = property(entry, name) else { return false };
    kind(&property) == Kind::Spec || property.get("items").is_some_and(|items| kind(items) == Kind::Spec)
}

fn unknown_parameter(entry: &Entry, name: &str) -> (String, String) {
    let properties = schema(entry).get("properties").and_then(Value::as_object);
    let known: Vec<&str> = properties.into_iter().flatten().map(|(known, _)| known.as_str()).collect();
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if known.is_empty() => format!("{} has no parameters", entry.name),
        None => format!("{} has {}", entry.name, names(known.iter().copied())),
    };
    (format!("unknown parameter \"{name}\" of {}", entry.name), help)
}

fn example(entry: &Entry, name: &str, schema: &Value) -> String {
    match schema.get("default") {
        Some(Value::String(text)) => format!("write for example \"{} {name} {text}\"", entry.name),
        Some(Value::Null) | None => format!("see giveway explain {}", entry.name),
        Some(other) => format!("write for example \"{} {name} {other}\"", entry.name),
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (String, String) {
        let error = text.parse::<Spec>().unwrap_err();
        (text[error.span.clone()].to_owned(), error.to_string())
    }

    #[test]
    fn reads_and_writes_what_tc_would() {
        for text in ["fifo", "fifo limit 20p", "fifo limit 64kb drop head"] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        assert_eq!(
            "fifo limit 1000p".parse::<Spec>().unwrap().to_string(),
            "fifo",
            "defaults are not repeated"
        );
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let cases = [
            ("fivo", "fivo", "unknown discipline \"fivo\"; did you mean \"fifo\"?"),
            ("fifo lmit 3p", "lmit", "unknown parameter \"lmit\" of fifo; did you mean \"limit\"?"),
            ("fifo limit", "limit", "\"limit\" needs a value; write for example \"fifo limit 1000p\""),
            (
                "fifo limit 3",
                "3",
                "limit: \"3\" needs a unit: \"300p\" counts packets, \"64kb\" counts bytes",
            ),
            ("fifo drop haed", "haed", "drop: unknown choice \"haed\"; did you mean \"head\"?"),
            ("fifo limit 3p limit 4p", "limit", "\"limit\" is given twice"),
            ("fifo )", ")", "\")\" is left over"),
        ];
        for (text, at, message) in cases {
            assert_eq!(error(text), (at.to_owned(), message.to_owned()), "{text}");
        }
        assert_eq!(error("").1.split(';').next(), Some("expected a discipline"));
    }

    /// Disciplines contain disciplines: the schema ends all the same, and every reference in it leads somewhere.
    #[test]
    fn schemas_are_closed() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => map.iter().for_each(|(key, inner)| match inner {
                    Value::String(target) if key == "$ref" => found.push(target.clone()),
                    _ => references(inner, found),
                }),
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let of_spec = schemars::schema_for!(Spec).to_value();
        for root in ALL.iter().map(|entry| schema(entry).clone()).chain([of_spec]) {
            let mut found = Vec::new();
            references(&root, &mut found);
            for target in found {
                let leads = target == "#" || root.pointer(target.trim_start_matches('#')).is_some();
                assert!(leads, "{target} leads nowhere");
            }
        }
    }

    #[test]
    fn children_are_written_in_parentheses() {
        let cases = [
            (
                "prio children (fifo)",
                "(",
                "children: expected a list; write it in brackets: \"children [... ...]\"",
            ),
            ("prio children [fifo]", "fifo", "expected \"(\" after \"children\""),
            ("tbf child fifo", "fifo", "expected \"(\" after \"child\""),
            ("tbf child (fivo)", "fivo", "unknown discipline \"fivo\"; did you mean \"fifo\"?"),
            (
                "tbf child (fifo limit 3)",
                "3",
                "limit: \"3\" needs a unit: \"300p\" counts packets, \"64kb\" counts bytes",
            ),
        ];
        for (text, at, message) in cases {
            let (place, said) = error(text);
            assert_eq!(
                (place.as_str(), said.split("; a discipline inside").next().unwrap()),
                (at, message),
                "{text}"
            );
        }
    }
}
