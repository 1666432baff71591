//! The JSON Schema of a scenario file, generated from the types that read it and from the registries.

use giveway_disciplines::Spec;
use giveway_sim::{NodeOrigin, QuicConfig, SOURCES, TcpConfig};
use giveway_spec::Entry;
use schemars::generate::SchemaGenerator;
use schemars::{Schema, schema_for};
use serde_json::{Value as Json, json};

use crate::crossbar::{self, SwitchKeys};
use crate::file::{Short, Top};
use crate::network::{
    CONTEST_KEYS, ContestKeys, DirectionKeys, EndKeys, MediumKeys, Parts, RecordKeys, TOPOLOGIES, TimingKeys,
    TopologyKeys, TopologySpec, TrafficKeys,
};
use crate::sweep::SweepKeys;

/// JSON Schema of a scenario file, for completion and checks in editors.
pub fn schema() -> Schema {
    let mut top = plain(schema_for!(Top));
    // A key of both has the description of the network, which is adopted last.
    adopt(&mut top, &plain(schema_for!(crossbar::Parts)));
    adopt(&mut top, &plain(schema_for!(Parts)));
    put(&mut top, "tcp", json!({ "$ref": "#/$defs/Tcp" }));
    put(&mut top, "quic", json!({ "$ref": "#/$defs/Quic" }));
    let timing = plain(schema_for!(TimingKeys));
    put(&mut top, "timing", json!({ "anyOf": [{ "type": "string" }, timing] }));
    let mut medium = plain(schema_for!(MediumKeys));
    medium["required"] = json!(["name"]);
    put(&mut top, "medium", json!({ "type": "array", "minItems": 1, "items": medium }));
    put(&mut top, "contest", contest());
    put(&mut top, "link", json!({ "type": "array", "minItems": 1, "items": link() }));
    let topologies: Vec<Json> = TOPOLOGIES.iter().map(topology).collect();
    put(&mut top, "topology", json!({ "type": "array", "minItems": 1, "items": { "anyOf": topologies } }));
    let sources = SOURCES.iter().map(source).chain(giveway_switch::traffic::SOURCES.iter().map(of_switch));
    let sources: Vec<Json> = sources.collect();
    put(&mut top, "traffic", json!({ "type": "array", "minItems": 1, "items": { "anyOf": sources } }));
    put(&mut top, "switch", plain(schema_for!(SwitchKeys)));
    put(&mut top, "record", plain(schema_for!(RecordKeys)));
    put(&mut top, "short", plain(schema_for!(Short)));
    let mut sweep = plain(schema_for!(SweepKeys));
    put(&mut sweep, "over", json!({ "type": "object" }));
    put(&mut top, "sweep", sweep);
    top["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    top["title"] = "Giveway scenario".into();
    top["description"] = "A network, a switch or a test bed with its traffic, the disciplines to compare, and the measurements.".into();
    top["required"] = json!(["duration"]);
    top["if"] = json!({ "properties": { "backend": { "const": "switch" } }, "required": ["backend"] });
    top["then"] = json!({ "required": ["disciplines", "traffic"] });
    top["else"] = json!({ "anyOf": [
        { "required": ["link", "traffic"] }, { "required": ["topology", "traffic"] }, { "required": ["contest"] },
    ] });
    let mut generator = SchemaGenerator::default();
    generator.subschema_for::<Spec>();
    generator.subschema_for::<giveway_switch::Spec>();
    let mut definitions = generator.take_definitions(true);
    definitions.insert("Tcp".into(), plain(schema_for!(TcpConfig)));
    definitions.insert("Quic".into(), plain(schema_for!(QuicConfig)));
    top["$defs"] = Json::Object(definitions);
    top.try_into().expect("a schema is an object")
}

/// JSON Schema of the keys that all traffic of a network has. `from` and `to` are required, except for
/// sources that read their nodes from a file or draw them among hosts ([`giveway_sim::NodeOrigin`]).
pub fn traffic_keys() -> Schema {
    let mut keys = common();
    keys["required"] = json!(["kind", "from", "to"]);
    keys.try_into().expect("a schema is an object")
}

/// The keys that all traffic of a network has.
fn common() -> Json {
    let mut keys = plain(schema_for!(TrafficKeys));
    put(&mut keys, "tcp", json!({ "$ref": "#/$defs/Tcp" }));
    put(&mut keys, "quic", json!({ "$ref": "#/$defs/Quic" }));
    keys
}

/// The keys of a link.
fn link() -> Json {
    let mut direction = plain(schema_for!(DirectionKeys));
    put(&mut direction, "qdisc", discipline());
    let mut link = plain(schema_for!(EndKeys));
    adopt(&mut link, &direction);
    put(&mut link, "back", json!({ "anyOf": [{ "const": false }, direction] }));
    link["required"] = json!(["from", "to", "rate", "delay"]);
    link["description"] = "A link between two nodes, both directions.".into();
    link
}

/// The keys of a contest: its own, and the keys of its links.
fn contest() -> Json {
    let link = link();
    let mut contest = plain(schema_for!(ContestKeys));
    for (key, schema) in link["properties"].as_object().into_iter().flatten() {
        if !CONTEST_KEYS.contains(&key.as_str()) && !["from", "to"].contains(&key.as_str()) {
            contest["properties"][key] = schema.clone();
        }
    }
    let sender = json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] });
    put(&mut contest, "senders", json!({ "type": "array", "minItems": 1, "items": sender }));
    contest["required"] = json!(["senders", "rate", "delay"]);
    contest
}

/// The keys of one kind of topology, with those that all kinds share.
fn topology(entry: &Entry<TopologySpec>) -> Json {
    kind(entry, &shared_by_topologies(), &[])
}

/// JSON Schema of the keys that all kinds of topology have.
pub fn topology_keys() -> Schema {
    shared_by_topologies().try_into().expect("a schema is an object")
}

/// The keys that all kinds of topology have.
fn shared_by_topologies() -> Json {
    let mut keys = plain(schema_for!(TopologyKeys));
    for key in ["qdisc", "host_qdisc"] {
        put(&mut keys, key, discipline());
    }
    keys["required"] = json!(["kind"]);
    keys
}

/// A discipline, or "compare".
fn discipline() -> Json {
    json!({ "anyOf": [{ "const": "compare" }, { "$ref": "#/$defs/Discipline" }] })
}

/// The keys of one kind of traffic on a network, with those that all kinds share.
fn source(source: &giveway_sim::TrafficEntry) -> Json {
    let ends: &[&str] = match source.placed {
        NodeOrigin::Scenario => &["from", "to"],
        NodeOrigin::Among => &["hosts"],
        NodeOrigin::File | NodeOrigin::Either => &[],
    };
    kind(&source.entry, &common(), ends)
}

/// The keys of one kind of traffic on a switch, with those that all kinds share.
fn of_switch(entry: &Entry<giveway_switch::traffic::TrafficSpec>) -> Json {
    kind(entry, &plain(schema_for!(crossbar::TrafficKeys)), &[])
}

/// The keys of one kind of traffic or topology, with the keys that it shares with others. `required` are keys
/// of
/// `common`.
fn kind<S>(entry: &Entry<S>, common: &Json, required: &[&str]) -> Json {
    let mut kind = plain((entry.schema)());
    adopt(&mut kind, common);
    put(&mut kind, "kind", json!({ "const": entry.name }));
    let mut all = kind["required"].as_array().cloned().unwrap_or_default();
    all.extend(["kind"].iter().chain(required).map(|key| Json::from(*key)));
    kind["required"] = Json::Array(all);
    kind["description"] = entry.summary.into();
    kind
}

/// The schema of a table that allows no other keys. It has no title, and all definitions are inlined except
/// disciplines and arbiters.
fn plain(schema: Schema) -> Json {
    let mut schema = schema.to_value();
    let definitions = schema.get("$defs").cloned().unwrap_or_default();
    inline(&mut schema, &definitions);
    without_null(&mut schema);
    let object = schema.as_object_mut().expect("the schema of a table is an object");
    for key in ["$schema", "$defs", "title"] {
        object.remove(key);
    }
    object.insert("additionalProperties".into(), false.into());
    schema
}

/// Replaces references by their definitions.
fn inline(schema: &mut Json, definitions: &Json) {
    let name = schema.get("$ref").and_then(Json::as_str).and_then(|target| target.strip_prefix("#/$defs/"));
    if let Some(definition) =
        name.filter(|name| !["Discipline", "Arbiter"].contains(name)).and_then(|name| definitions.get(name))
    {
        let mut definition = definition.clone();
        inline(&mut definition, definitions);
        let object = schema.as_object_mut().expect("a reference is an object");
        object.remove("$ref");
        for (key, value) in definition.as_object().into_iter().flatten() {
            // The description at the place of use takes precedence.
            object.entry(key).or_insert_with(|| value.clone());
        }
        return;
    }
    match schema {
        Json::Object(object) => {
            object
                .iter_mut()
                .filter(|(key, _)| *key != "$defs")
                .for_each(|(_, value)| inline(value, definitions));
        }
        Json::Array(items) => items.iter_mut().for_each(|item| inline(item, definitions)),
        _ => {}
    }
}

/// Removes null from a schema. TOML has no null; an optional key is one that is not required.
fn without_null(schema: &mut Json) {
    match schema {
        Json::Object(object) => {
            if object.get("default").is_some_and(Json::is_null) {
                object.remove("default");
            }
            if let Some(Json::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = types.as_slice() {
                    object["type"] = one.clone();
                }
            }
            if let Some(Json::Array(options)) = object.get_mut("anyOf") {
                options.retain(|option| option.get("type") != Some(&Json::from("null")));
            }
            object.values_mut().for_each(without_null);
        }
        Json::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Replaces the schema of one key, and keeps its description.
fn put(table: &mut Json, key: &str, mut schema: Json) {
    if let Some(description) = table["properties"][key].get("description") {
        schema["description"] = description.clone();
    }
    table["properties"][key] = schema;
}

/// Adds the keys of another table; those that are in both get the schema of the other.
fn adopt(table: &mut Json, other: &Json) {
    for (key, schema) in other["properties"].as_object().into_iter().flatten() {
        table["properties"][key] = schema.clone();
    }
}
