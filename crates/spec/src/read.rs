//! The parser of specs, word by word. Each error states its position in the text.

use serde_json::{Map, Value};

use crate::error::listed;
use crate::kind::Kind;
use crate::scope::Scope;
use crate::word::Word;
use crate::{Catalogue, Entry, SpecError};

/// Largest depth of specs inside each other. It protects the stack from hostile text.
const DEEPEST: usize = 16;

impl<S> Catalogue<S> {
    /// Parses a spec.
    ///
    /// # Errors
    /// The mistake, its position, and a correction.
    pub fn read(&'static self, text: &str) -> Result<S, SpecError> {
        self.whole(text).map(|(_, _, spec)| spec)
    }

    /// Entry and parameters of a text, the parameters as written.
    pub(crate) fn named(
        &'static self,
        text: &str,
    ) -> Result<(&'static Entry<S>, Map<String, Value>), SpecError> {
        self.whole(text).map(|(entry, table, _)| (entry, table))
    }

    fn whole(&'static self, text: &str) -> Result<Named<S>, SpecError> {
        let mut words = Words { catalogue: self, text, at: 0, depth: 0 };
        let printed = words.command()?;
        let named = words.named(printed)?;
        match words.next() {
            Some(Word { text, span }) => {
                Err(SpecError { message: format!("\"{text}\" is left over"), span, help: None })
            }
            None => Ok(named),
        }
    }
}

/// A way to write a parameter.
fn example(scope: Scope<'_>, name: &str) -> String {
    match scope.property(name).and_then(|schema| schema.get("default")) {
        Some(Value::String(text)) => format!("write for example \"{} {name} {text}\"", scope.name),
        Some(Value::Null) | None => format!("see giveway explain {}", scope.name),
        Some(other) => format!("write for example \"{} {name} {other}\"", scope.name),
    }
}

/// Adds a parameter; `word` is where its value comes from.
fn insert(
    table: &mut Map<String, Value>,
    parameter: String,
    value: Value,
    word: Word<'_>,
) -> Result<(), SpecError> {
    if table.contains_key(&parameter) {
        let message = match word.text == parameter {
            true => format!("\"{parameter}\" is given twice"),
            false => format!("\"{parameter}\" is given twice, here as \"{}\"", word.text),
        };
        return Err(SpecError { message, span: word.span, help: None });
    }
    table.insert(parameter, value);
    Ok(())
}

/// True if a word is a number, with or without a unit.
fn is_numeric(word: &Word<'_>) -> bool {
    word.text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
}

/// An entry, its parameters as written, and the resulting spec.
type Named<S> = (&'static Entry<S>, Map<String, Value>, S);

struct Words<'a, S: 'static> {
    catalogue: &'static Catalogue<S>,
    text: &'a str,
    at: usize,
    /// Number of specs and records that enclose the current one.
    depth: usize,
}

impl<'a, S> Words<'a, S> {
    /// The next word, without consuming it.
    fn peek(&self) -> Option<Word<'a>> {
        Word::first(self.text, self.at)
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.peek();
        if let Some(word) = &word {
            self.at = word.span.end;
        }
        word
    }

    fn expect(&mut self, wanted: &str, after: &str) -> Result<(), SpecError> {
        match self.next() {
            Some(word) if word.text == wanted => Ok(()),
            other => {
                let about = self.catalogue.about;
                let help = about
                    .inside
                    .map(|inside| format!("{} inside another is written as \"{inside}\"", about.one()));
                Err(SpecError {
                    span: other.map_or(self.text.len()..self.text.len(), |word| word.span),
                    message: format!("expected \"{wanted}\" after {after}"),
                    help,
                })
            }
        }
    }

    /// Skips the beginning of a line for tc, "tc qdisc add dev eth0 root handle 1:", or of one that it
    /// prints, "qdisc". True if the line is printed.
    fn command(&mut self) -> Result<bool, SpecError> {
        if !self.catalogue.entries.iter().any(|entry| entry.as_tc) {
            return Ok(false);
        }
        self.skip(&["sudo"], &[]);
        if !self.skip(&["tc"], &[]) {
            return Ok(self.skip(&["qdisc"], &[]));
        }
        while self.peek().is_some_and(|word| word.text.starts_with('-')) {
            self.next();
        }
        let about = self.catalogue.about;
        let other = |word: Option<Word<'a>>, wanted: &str| SpecError {
            span: word.map_or(self.text.len()..self.text.len(), |word| word.span),
            message: format!("only a line of \"tc qdisc {wanted}\" has {}", about.one()),
            help: Some(format!("write it alone, such as \"{}\"", about.example)),
        };
        if self.peek().is_none_or(|word| word.text != "qdisc") {
            return Err(other(self.peek(), "add"));
        }
        self.next();
        if !self.skip(&["add", "replace", "change", "link"], &[]) {
            return Err(other(self.peek(), "add"));
        }
        while self.skip(&["root"], &["dev", "parent", "handle"]) {}
        Ok(false)
    }

    /// Skips a word that is one of `alone`, or one of `named` with the word behind it. False if there is
    /// neither.
    fn skip(&mut self, alone: &[&str], named: &[&str]) -> bool {
        let Some(word) = self.peek() else { return false };
        let is_named = named.contains(&word.text);
        let known = is_named || alone.contains(&word.text);
        if known {
            self.next();
        }
        if is_named {
            self.next();
        }
        known
    }

    /// Skips a phrase that changes nothing here. False if there is none.
    fn skip_idle(&mut self, scope: Scope<'_>) -> bool {
        let start = self.at;
        for phrase in scope.idle() {
            if phrase.iter().all(|part| {
                self.next().is_some_and(|word| *part == "*" && !word.is_sign() || *part == word.text)
            }) {
                return true;
            }
            self.at = start;
        }
        false
    }

    /// A name and its parameters, up to the end or a closing parenthesis. tc prints between them where the
    /// discipline is: "fq_codel 8001: dev eth0 root refcnt 2 limit 10240p".
    fn named(&mut self, printed: bool) -> Result<Named<S>, SpecError> {
        let Some(name) = self.next() else {
            return Err(SpecError {
                span: self.text.len()..self.text.len(),
                message: format!("expected {}", self.catalogue.about.one()),
                help: Some(format!("such as {}", listed(self.catalogue.names()))),
            });
        };
        let entry = self.catalogue.entry(name.text).map_err(|(message, help)| SpecError {
            span: name.span.clone(),
            message,
            help,
        })?;
        let start = name.span.start;
        if printed {
            if self.peek().is_some_and(|word| word.text.ends_with(':')) {
                self.next();
            }
            while self.skip(&["root"], &["dev", "parent", "refcnt"]) {}
        }
        let table = self.parameters(self.catalogue.scope(entry))?;
        let spec = (entry.from_json)(Value::Object(table.clone())).map_err(|error| SpecError {
            span: start..self.at,
            message: error.to_string(),
            help: None,
        })?;
        Ok((entry, table, spec))
    }

    /// Parameters with their values, up to the end or a closing parenthesis.
    fn parameters(&mut self, scope: Scope<'_>) -> Result<Map<String, Value>, SpecError> {
        let mut table = Map::new();
        while let Some(word) = self.peek() {
            if word.text == ")" || word.text == "]" {
                break;
            }
            if self.skip_idle(scope) {
                continue;
            }
            self.at = word.span.end;
            let (parameter, value) = self.parameter(scope, &word)?;
            let mut followers = scope.followers(&parameter);
            insert(&mut table, parameter, value, word)?;
            while let Some(word) = self.peek().filter(is_numeric)
                && let Some(follower) = followers.next()
            {
                let property = scope.property(follower).expect("a parameter that follows another one exists");
                let value = scope.kind(property).scalar(&word, follower, scope.bare_unit(follower))?;
                self.at = word.span.end;
                insert(&mut table, follower.to_owned(), value, word)?;
            }
        }
        Ok(table)
    }

    /// Parses a parameter. `word` is its name; the value follows.
    fn parameter(&mut self, scope: Scope<'_>, word: &Word<'a>) -> Result<(String, Value), SpecError> {
        if let Some(form) = self.peek()
            && let Some(name) = scope.form(word.text, form.text)
        {
            self.at = form.span.end;
            let value = self.value(scope, &Word { text: name, span: form.span })?;
            return Ok((name.to_owned(), value));
        }
        if scope.property(word.text).is_some() {
            let value = self.value(scope, word)?;
            return Ok((word.text.to_owned(), value));
        }
        if let Some(name) = scope.alias(word.text) {
            let value = self.value(scope, &Word { text: name, span: word.span.clone() })?;
            return Ok((name.to_owned(), value));
        }
        // tc negates a switch with the prefix "no".
        if let Some(positive) = word.text.strip_prefix("no")
            && scope.kind_of(positive) == Some(Kind::Switch)
        {
            return Ok((positive.to_owned(), Value::Bool(false)));
        }
        if let Some(positive) = scope.opposite(word.text) {
            return Ok((positive, Value::Bool(false)));
        }
        if let Some(alone) = scope.alone(word.text) {
            return Ok(alone);
        }
        let (message, help) = scope.unknown_parameter(word.text);
        Err(SpecError { span: word.span.clone(), message, help: Some(help) })
    }

    /// Parses the value of a parameter of this scope.
    fn value(&mut self, scope: Scope<'_>, name: &Word<'_>) -> Result<Value, SpecError> {
        let schema = scope.property(name.text).unwrap_or(&Value::Null);
        let kind = scope.kind(schema);
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
        if kind == Kind::Record {
            return self.record(scope.record(scope.resolved(schema), name.text));
        }
        let of_items = scope.kind(scope.items(schema));
        let is_scalar = !matches!(of_items, Kind::Spec | Kind::Record | Kind::Switch);
        if scope.as_tc && kind == Kind::List && is_scalar && self.is_item(scope, name.text, 0) {
            return self.bare_list(scope, name.text, &of_items);
        }
        let Some(word) = self.next() else {
            return Err(SpecError {
                span: name.span.clone(),
                message: format!("\"{}\" needs a value", name.text),
                help: Some(example(scope, name.text)),
            });
        };
        if word.text == "[" {
            let items = scope.items(schema);
            let mut list = Vec::new();
            while self.peek().is_some_and(|next| next.text != "]") {
                list.push(match of_items {
                    Kind::Spec => self.child(name.text)?,
                    Kind::Record => self.record(scope.record(items, name.text))?,
                    _ => {
                        let item = self.next().expect("the word was just peeked");
                        of_items.scalar(&item, name.text, scope.bare_unit(name.text))?
                    }
                });
            }
            self.expect("]", "the list")?;
            return Ok(Value::Array(list));
        }
        match scope.word_of(name.text, word.text) {
            Some(value) => Ok(value.clone()),
            None => kind.scalar(&word, name.text, scope.bare_unit(name.text)),
        }
    }

    /// True if the next word is item `at` of a list without brackets, or its label.
    fn is_item(&self, scope: Scope<'_>, name: &str, at: usize) -> bool {
        self.peek().is_some_and(|word| is_numeric(&word) || scope.is_label(name, at, word.text))
    }

    /// Parses a list of numbers as tc writes it, without brackets.
    fn bare_list(&mut self, scope: Scope<'_>, name: &str, of_items: &Kind) -> Result<Value, SpecError> {
        let mut list = Vec::new();
        while self.is_item(scope, name, list.len()) {
            if self.peek().is_some_and(|word| scope.is_label(name, list.len(), word.text)) {
                self.next();
            }
            let Some(item) = self.next() else { break };
            list.push(of_items.scalar(&item, name, scope.bare_unit(name))?);
        }
        Ok(Value::Array(list))
    }

    /// Parses a record: parameters in parentheses.
    fn record(&mut self, scope: Scope<'_>) -> Result<Value, SpecError> {
        self.expect("(", &format!("\"{}\"", scope.name))?;
        self.deeper()?;
        let table = self.parameters(scope)?;
        self.depth -= 1;
        self.expect(")", &format!("the parameters of {}", scope.name))?;
        Ok(Value::Object(table))
    }

    /// Parses a spec in parentheses into a table. It is built here once, so that errors inside have their
    /// position.
    fn child(&mut self, name: &str) -> Result<Value, SpecError> {
        self.expect("(", &format!("\"{name}\""))?;
        let noun = self.catalogue.about.noun;
        self.deeper()?;
        let (entry, mut table, _) = self.named(false)?;
        self.depth -= 1;
        self.expect(")", &format!("the {noun} inside"))?;
        table.insert("kind".into(), entry.name.into());
        Ok(Value::Object(table))
    }

    /// Enters a parenthesis.
    fn deeper(&mut self) -> Result<(), SpecError> {
        if self.depth == DEEPEST {
            return Err(SpecError {
                span: self.at - 1..self.at,
                message: format!("more than {DEEPEST} {}s inside each other", self.catalogue.about.noun),
                help: None,
            });
        }
        self.depth += 1;
        Ok(())
    }
}
