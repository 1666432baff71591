//! Candidates for the values of flags.

use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;
use giveway_kernel_plan::plan::Kind;
use giveway_papers::{Paper, SHIPPED, Shipped};
use serde_json::Value;

use crate::registries::{self, RegistryKind};

/// A candidate with its description.
fn candidate(name: &str, help: &str) -> CompletionCandidate {
    let help = (!help.is_empty()).then(|| help.to_owned().into());
    CompletionCandidate::new(name).help(help)
}

/// The entries of some registries.
fn of(wanted: impl Fn(RegistryKind) -> bool) -> Vec<CompletionCandidate> {
    let registries = registries::all();
    let things =
        registries.iter().filter(|registry| wanted(registry.kind)).flat_map(|registry| &registry.things);
    things.map(|thing| candidate(thing.name, thing.summary)).collect()
}

/// Queue disciplines.
pub fn disciplines() -> Vec<CompletionCandidate> {
    of(|kind| kind == RegistryKind::Disciplines)
}

/// Queue disciplines, and the word for all of them.
pub fn compared() -> Vec<CompletionCandidate> {
    let mut all = disciplines();
    all.push(candidate("all", "every discipline"));
    all
}

/// Arbiters of a switch.
pub fn arbiters() -> Vec<CompletionCandidate> {
    of(|kind| kind == RegistryKind::Arbiters)
}

/// All names that `giveway explain` explains.
pub fn explained() -> Vec<CompletionCandidate> {
    let mut all = of(|_| true);
    all.extend([
        candidate("units", "the units of times, rates and sizes"),
        candidate("tcp", "the parameters of TCP"),
        candidate("quic", "the parameters of QUIC"),
    ]);
    all
}

/// Disciplines for the kernel.
pub fn for_the_kernel() -> Vec<CompletionCandidate> {
    let registries = registries::all();
    let things = || registries.iter().flat_map(|registry| &registry.things);
    let one = |kind: Kind| {
        let thing = things().find(|thing| thing.name == kind.discipline());
        candidate(kind.name(), thing.map_or("", |thing| thing.summary))
    };
    Kind::ALL.into_iter().map(one).collect()
}

/// Papers that are shipped with the program.
pub fn papers() -> Vec<CompletionCandidate> {
    let one = |shipped: &Shipped| {
        let title = Paper::shipped(shipped).map_or(String::new(), |paper| paper.title().to_owned());
        candidate(shipped.id, &title)
    };
    SHIPPED.iter().map(one).collect()
}

/// Network interfaces of this machine.
pub fn interfaces() -> Vec<CompletionCandidate> {
    let Ok(interfaces) = nix::net::if_::if_nameindex() else { return Vec::new() };
    let names = interfaces.iter().map(|interface| interface.name().to_string_lossy().into_owned());
    names.map(|name| candidate(&name, "")).collect()
}

/// The keys of scenarios that start with `current`, each with its equals sign. A number or a name that stands
/// for an entry of an array, as in `traffic.upload.flows`, is kept as it was typed.
pub fn keys(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let schema = giveway_scenario::schema().to_value();
    let entry = match current.split('.').collect::<Vec<_>>().as_slice() {
        [_, entry, _, ..] if !entry.is_empty() => (*entry).to_owned(),
        _ => "0".to_owned(),
    };
    let mut all = Vec::new();
    collect(&Collected { schema: &schema, entry: &entry, current }, &schema, "", DEEPEST, &mut all);
    all.retain(|(key, _): &(String, String)| key.starts_with(current));
    all.sort();
    all.dedup_by(|one, other| one.0 == other.0);
    all.iter().map(|(key, help)| candidate(&format!("{key}="), help)).collect()
}

/// Tables within tables that are followed, as in `link.0.back.rate`.
const DEEPEST: usize = 3;

/// The schema whose keys are collected.
struct Collected<'a> {
    schema: &'a Value,
    /// The entry of arrays.
    entry: &'a str,
    /// The beginning that was typed.
    current: &'a str,
}

/// Collects the keys of a part of the schema, with their descriptions.
fn collect(of: &Collected<'_>, part: &Value, prefix: &str, depth: usize, all: &mut Vec<(String, String)>) {
    for part in alternatives(of.schema, part) {
        let properties = part["properties"].as_object().into_iter().flatten();
        for (name, value) in properties {
            let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let rows = alternatives(of.schema, value).into_iter().map(|kind| &kind["items"]);
            let rows: Vec<&Value> = rows.filter(|row| is_table(of, row)).collect();
            // A value that can be written as one text is offered as one, unless more was typed.
            let one = [value].iter().chain(&rows).any(|part| is_text(of, part));
            let whole = one || !is_table(of, value) && rows.is_empty();
            if whole {
                let help = value["description"].as_str().unwrap_or_default();
                all.push((key.clone(), help.lines().next().unwrap_or_default().to_owned()));
            }
            if depth > 0 && (!whole || of.current.starts_with(&format!("{key}."))) {
                collect(of, value, &key, depth - 1, all);
                for row in rows {
                    collect(of, row, &format!("{key}.{}", of.entry), depth - 1, all);
                }
            }
        }
    }
}

/// True if a part of the schema has keys.
fn is_table(of: &Collected<'_>, part: &Value) -> bool {
    alternatives(of.schema, part).iter().any(|kind| kind["properties"].is_object())
}

/// True if a part of the schema can be a text.
fn is_text(of: &Collected<'_>, part: &Value) -> bool {
    alternatives(of.schema, part).iter().any(|kind| kind["type"] == "string")
}

/// A part of the schema, with its references followed, and each of its alternatives.
fn alternatives<'a>(schema: &'a Value, part: &'a Value) -> Vec<&'a Value> {
    let mut all = vec![part];
    if let Some(name) = part["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        all.extend(alternatives(schema, &schema["$defs"][name]));
    }
    for several in ["anyOf", "oneOf", "allOf"] {
        for one in part[several].as_array().into_iter().flatten() {
            all.extend(alternatives(schema, one));
        }
    }
    all
}
