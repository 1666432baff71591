//! Every parameter of every discipline at its extremes: each is refused with an error, or gives a discipline
//! with bounded memory and bounded work per packet that keeps the contract.
//!
//! Parameters and their kinds come from the registry, so a new discipline is tested without a change here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use giveway_disciplines::Spec;
use giveway_qdisc::contract::{Op, drive, ops_from_bytes};
use giveway_qdisc::{Bytes, LinkContext, Rate, Streams};
use serde_json::{Map, Value, json};

/// Largest memory of a discipline with the packets of the test, in bytes.
const MEMORY: i64 = 256 << 20;
/// Largest processor time of a case, in nanoseconds, for a few thousand calls. Only this thread counts, so a
/// busy machine has no effect.
const WORK: u64 = 5_000_000_000;

/// Processor time of this thread in nanoseconds on Linux; 0 on other systems, which disables the check.
fn worked() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// The extremes of a kind of parameter.
fn extremes(schema: &Value, whole: &Value) -> Vec<Value> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let definition = whole.pointer(target.trim_start_matches('#')).cloned().unwrap_or_default();
        return if definition.get("anyOf").is_some() { Vec::new() } else { extremes(&definition, whole) };
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let texts = |all: &[&str]| all.iter().map(|text| Value::from(*text)).collect();
    match format {
        "limit" => {
            return texts(&["0p", "1p", "18446744073709551615p", "0b", "1b", "17179869183gb", "4294967295p"]);
        }
        "packets" => return texts(&["0p", "1p", "4294967295p", "18446744073709551615p"]),
        "bytes" => return texts(&["0b", "1b", "4294967295b", "17179869183gb"]),
        "span" => return texts(&["0s", "1ps", "1ns", "1h", "5124h"]),
        "depth" => return texts(&["0s", "1ps", "5124h", "0p", "18446744073709551615p"]),
        "rate" => return texts(&["0bit", "1bit", "18446744tbit"]),
        "share" => return vec![json!(0.0), json!(1e-300), json!(1.0)],
        _ => {}
    }
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        return options.iter().flat_map(|option| extremes(option, whole)).collect();
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match kinds.first() {
        Some(&"integer") => {
            [0, 1, 2, u64::from(u8::MAX), u64::from(u16::MAX), 1 << 20, u64::from(u32::MAX), u64::MAX]
                .map(Value::from)
                .to_vec()
        }
        Some(&"number") => [0.0, 1e-300, 1.0, 1e300, -1.0].map(Value::from).to_vec(),
        Some(&"boolean") => vec![json!(true), json!(false)],
        Some(&"array") => {
            let items = schema.get("items").map(|items| extremes(items, whole)).unwrap_or_default();
            let lists = items
                .iter()
                .flat_map(|item| [json!([item]), json!(vec![item; 3]), json!(vec![item; 70_000])]);
            std::iter::once(json!([])).chain(lists).collect()
        }
        _ => Vec::new(),
    }
}

fn operations() -> Vec<Op> {
    let mut rng = Streams::new(5).within("extremes").rng();
    let bytes: Vec<u8> = (0..4 * 1500).map(|_| rng.word() as u8).collect();
    ops_from_bytes(&bytes)
}

fn sites() -> Vec<LinkContext> {
    let context = |rate, mtu| LinkContext {
        mtu: Bytes(mtu),
        ..LinkContext::new(rate, Streams::new(1).within("extremes"))
    };
    vec![
        context(Rate::mbit(10), 1500),
        context(Rate::bit(1), 1500),
        context(Rate::bit(u64::MAX), 65_535),
        context(Rate::gbit(400), 68),
    ]
}

/// Checks a discipline on a link. The error is the violation, in words.
fn judge(spec: &Spec, context: &LinkContext, operations: &[Op]) -> Result<(), String> {
    let began = worked();
    let (most, result) = giveway_counting::most(|| {
        catch_unwind(AssertUnwindSafe(|| build_and_drive(spec, context, operations)))
    });
    let work = worked() - began;
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
    });
    match result {
        Ok(()) if most > MEMORY => Err(format!("takes {} MB", most >> 20)),
        Ok(()) if work > WORK => Err(format!("takes {:.1} s of processor time", work as f64 / 1e9)),
        other => other,
    }
}

/// Builds a discipline and applies the operations. A configuration that cannot be built passes the test.
fn build_and_drive(spec: &Spec, context: &LinkContext, operations: &[Op]) -> Result<(), String> {
    let (built, qdisc) = giveway_counting::most(|| spec.build_numbered(context));
    let Ok(mut qdisc) = qdisc else { return Ok(()) };
    if built > MEMORY {
        return Err(format!("takes {} MB before the first packet", built >> 20));
    }
    let _ = spec.warnings(context);
    drive(&mut qdisc, spec.properties(context), operations).map(drop).map_err(|violation| violation.0)
}

#[test]
fn extreme_parameters_are_refused_or_bounded() {
    let (operations, sites) = (operations(), sites());
    let mut wrong = Vec::new();
    let mut tried = 0;
    for entry in crate::tested() {
        for spec in entry.default().variants() {
            for context in &sites {
                tried += 1;
                if let Err(why) = judge(&spec, context, &operations) {
                    wrong.push(format!("{spec} at {} with {}: {why}", context.rate, context.mtu));
                }
            }
        }
        let schema = (entry.schema)().to_value();
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, property) in &properties {
            for value in extremes(property, &schema) {
                let Ok(spec) =
                    (entry.from_json)(Value::Object(Map::from_iter([(name.clone(), value.clone())])))
                else {
                    continue;
                };
                tried += 1;
                if std::env::var_os("GIVEWAY_SHOW_EXTREMES").is_some() {
                    eprintln!(
                        "{} {name} {}",
                        entry.name,
                        value.to_string().chars().take(60).collect::<String>()
                    );
                }
                if let Err(why) = judge(&spec, &sites[0], &operations) {
                    let value: String = value.to_string().chars().take(60).collect();
                    wrong.push(format!("{} {name} {value}: {why}", entry.name));
                }
            }
        }
    }
    assert!(tried > 10 * crate::tested().len(), "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}
