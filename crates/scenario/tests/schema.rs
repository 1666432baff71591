//! The JSON schema of scenarios.

use giveway_scenario::schema;
use giveway_sim::SOURCES;
use serde_json::Value as Json;

fn references(schema: &Json, found: &mut Vec<String>) {
    match schema {
        Json::Object(object) => {
            found.extend(object.get("$ref").and_then(Json::as_str).map(str::to_owned));
            object.values().for_each(|value| references(value, found));
        }
        Json::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn every_reference_has_a_definition() {
    let schema = schema().to_value();
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(found.iter().any(|target| target == "#/$defs/Discipline"));
    for target in found {
        assert!(schema.pointer(target.trim_start_matches('#')).is_some(), "{target} is not defined");
    }
}

#[test]
fn every_source_is_a_kind_of_traffic() {
    let schema = schema().to_value();
    let kinds = schema["properties"]["traffic"]["items"]["anyOf"].as_array().unwrap();
    let names: Vec<&str> =
        kinds.iter().map(|kind| kind["properties"]["kind"]["const"].as_str().unwrap()).collect();
    let network = SOURCES.iter().map(|source| source.entry.name);
    let of_switch = giveway_switch::traffic::SOURCES.iter().map(|source| source.name);
    assert_eq!(names, network.chain(of_switch).collect::<Vec<_>>());
    let network = &kinds[..SOURCES.len()];
    assert!(network.iter().all(|kind| kind["properties"]["start"]["description"].is_string()));
    assert!(kinds.iter().all(|kind| kind["properties"]["name"]["description"].is_string()));
}
