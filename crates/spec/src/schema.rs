//! The JSON Schema of everything that a catalogue can write.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::Catalogue;

impl<S> Catalogue<S> {
    /// The schema of any of them: as text, or as a table with a `kind`.
    pub fn json_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        // Children are of the same catalogue: the generator knows this schema by its name, so that their tables refer back
        // to it.
        let tables: Vec<Value> = self
            .entries
            .iter()
            .map(|entry| {
                let mut table = (entry.schema_within)(generator).to_value();
                // What has no parameters has no properties yet.
                table["properties"]["kind"] = json!({ "const": entry.name });
                table["required"] = json!(["kind"]);
                table["additionalProperties"] = false.into();
                table["description"] = entry.summary.into();
                table
            })
            .collect();
        let names = self.names().collect::<Vec<_>>().join("|");
        json_schema!({
            "description": self.about.description,
            "anyOf": [
                { "type": "string", "pattern": format!("^({names})( .*)?$") },
                { "oneOf": tables }
            ]
        })
    }
}
