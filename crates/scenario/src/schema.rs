//! The JSON Schema of a scenario file, put together from the types that read it and from the registries.

use std::borrow::Cow;

use disciplines::Spec;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value as Json, json};
use sim::{SOURCES, TcpConfig};

use crate::file::{Common, Ends, Record, Short, Top, Way};

/// JSON Schema of a scenario file: editors complete and check by it.
pub fn schema() -> Schema {
    let mut definitions = Map::new();
    let mut discipline = SchemaGenerator::default();
    let reference = Spec::json_schema(&mut discipline);
    definitions.insert(Spec::schema_name().into_owned(), reference.to_value());
    definitions.insert("Tcp".into(), whole::<TcpConfig>(&mut definitions_of()));
    let mut top = whole::<Top>(&mut definitions);
    let mut link = whole::<Ends>(&mut definitions);
    let way = way(&mut definitions, "One direction of a link.");
    let back = json!({ "description": "The other direction: what differs there, or false where there is none.", "anyOf": [{ "const": false }, way.clone()] });
    extend(&mut link, &way);
    link["properties"]["back"] = back;
    link["required"] = json!(["from", "to", "rate", "delay"]);
    link["description"] = "A link between two nodes, both directions.".into();
    let properties = top["properties"].as_object_mut().expect("the top level has keys");
    let described = |old: &Json, new: Json| {
        let mut new = new;
        if let (Some(text), Some(object)) = (old.get("description"), new.as_object_mut()) {
            object.insert("description".into(), text.clone());
        }
        new
    };
    let parts = [
        ("tcp", json!({ "$ref": "#/$defs/Tcp" })),
        ("link", json!({ "type": "array", "minItems": 1, "items": link })),
        ("traffic", json!({ "type": "array", "minItems": 1, "items": { "oneOf": sources(&mut definitions) } })),
        ("record", whole::<Record>(&mut definitions)),
        ("short", whole::<Short>(&mut definitions)),
    ];
    for (key, part) in parts {
        let old = properties[key].take();
        properties.insert(key.to_owned(), described(&old, part));
    }
    top["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    top["title"] = "Giveway scenario".into();
    top["description"] = "What is simulated, with which disciplines, and what is measured.".into();
    top["required"] = json!(["duration", "link", "traffic"]);
    definitions.remove("Part");
    top["$defs"] = Json::Object(definitions);
    top.try_into().expect("it is an object")
}
