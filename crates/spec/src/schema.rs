//! The JSON Schema of a spec.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::Catalogue;

impl<S> Catalogue<S> {
    /// Schema of a spec: text, or a table with a `kind`.
    pub fn json_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        // Children are specs of the same catalogue. The generator has this schema by name, so their tables
        // refer to it.
        let tables: Vec<Value> = self
            .entries
            .iter()
            .map(|entry| {
                let mut table = (entry.schema_within)(generator).to_value();
                // A configuration without parameters has no properties yet.
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
