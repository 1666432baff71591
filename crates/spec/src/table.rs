//! Reading from a table with a `kind`: `{ kind = "fq_codel", target = "5ms" }`.

use serde::de::{Deserializer, Error};
use serde_json::Value;

use crate::{Catalogue, SpecType};

impl<S: SpecType> Catalogue<S> {
    /// Parses a spec from text, or from a table with a `kind`.
    ///
    /// # Errors
    /// The mistake and a correction.
    pub fn deserialize<'de, D: Deserializer<'de>>(&'static self, deserializer: D) -> Result<S, D::Error> {
        let one = self.about.one();
        match serde::Deserialize::deserialize(deserializer)? {
            Value::String(text) => self.read(&text).map_err(Error::custom),
            Value::Object(mut table) => {
                let kind = match table.remove("kind") {
                    Some(Value::String(kind)) => kind,
                    _ => {
                        let example = self.example_name();
                        return Err(Error::custom(format!(
                            "{one} needs a kind, such as kind = \"{example}\""
                        )));
                    }
                };
                let entry = self.entry(&kind).map_err(|(message, help)| {
                    Error::custom(format!("{message}; {}", help.unwrap_or_default()))
                })?;
                let scope = self.scope(entry);
                for name in table.keys() {
                    if scope.property(name).is_none() {
                        let (message, help) = scope.unknown_parameter(name);
                        return Err(Error::custom(format!("{message}; {help}")));
                    }
                }
                (entry.from_json)(Value::Object(table)).map_err(Error::custom)
            }
            _ => Err(Error::custom(format!(
                "{one} is written as \"{}\" or {{ kind = \"{}\" }}",
                self.about.example,
                self.example_name()
            ))),
        }
    }

    fn example_name(&self) -> &'static str {
        self.about.example.split(' ').next().unwrap_or_default()
    }

    /// The example as a TOML table: `{ kind = "fifo", limit = "100p" }`.
    pub fn example_table(&'static self) -> String {
        let (entry, table) = self.named(self.about.example).expect("the example of a catalogue can be read");
        // Texts, numbers and switches look the same in JSON and TOML.
        let parameters = table.iter().map(|(name, value)| format!(", {name} = {value}"));
        format!("{{ kind = \"{}\"{} }}", entry.name, parameters.collect::<String>())
    }
}
