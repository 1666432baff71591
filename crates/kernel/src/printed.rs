//! Parsers of the output of `bpftool`, `tc` and `ip`.
//!
//! Their output differs between versions, so a parser never panics: an item that it cannot read counts as
//! missing.

use serde_json::Value;

/// Parses JSON. Empty text is an empty list, because `tc` prints nothing for an empty list.
///
/// # Errors
/// If the text is not JSON.
pub fn json(text: &str) -> Result<Value, serde_json::Error> {
    if text.trim().is_empty() { Ok(Value::Array(Vec::new())) } else { serde_json::from_str(text) }
}

/// The qdisc at the root of an interface, from `tc -j qdisc show`.
pub fn root_qdisc(shown: &Value) -> Option<&Value> {
    shown.as_array()?.iter().find(|one| one["root"] == true)
}

/// True if an interface has a qdisc for filters at its ingress, from `tc -j qdisc show`.
pub fn has_ingress(shown: &Value) -> bool {
    let is = |one: &Value| ["clsact", "ingress"].iter().any(|kind| one["kind"] == *kind);
    shown.as_array().is_some_and(|all| all.iter().any(is))
}

/// True if an interface is promiscuous, from `ip -j link show`.
pub fn is_promiscuous(shown: &Value) -> bool {
    shown[0]["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "PROMISC"))
}

/// The number of the new object, from the output of `bpftool struct_ops register`.
pub fn registered(output: &str) -> Option<u64> {
    let mut lines = output.lines();
    lines.find_map(|line| line.starts_with("Registered").then(|| line.rsplit(' ').next()?.parse().ok())?)
}

/// The maps of an object with their numbers, and the number of entries of its map `slots`, from `bpftool -j
/// map show`.
pub fn maps(shown: &Value, object: u64) -> (Vec<(String, u64)>, u64) {
    let all = shown.as_array().map(Vec::as_slice).unwrap_or_default();
    // All maps of an object have the same `btf_id`.
    let types = all.iter().find(|map| map["id"] == object).map(|map| &map["btf_id"]);
    let mut maps = Vec::new();
    let mut capacity = 0;
    for map in all.iter().filter(|map| Some(&map["btf_id"]) == types) {
        let (Some(name), Some(id)) = (map["name"].as_str(), map["id"].as_u64()) else { continue };
        if name == "slots" {
            capacity = map["max_entries"].as_u64().unwrap_or_default();
        }
        maps.push((name.to_owned(), id));
    }
    (maps, capacity)
}

/// The counters of a discipline by name, from `bpftool -j map dump`.
pub fn counters(dump: &Value) -> Option<Vec<(String, u64)>> {
    let value = &dump[0]["formatted"]["value"][".data.counters"][0]["counters"];
    let counters = value.as_object()?;
    Some(counters.iter().filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect())
}

/// An object's qdisc name in `tc`, from `bpftool -j struct_ops dump`: the `id` of `struct Qdisc_ops`, which
/// is a string, unlike the `id` of a map. The output of bpftool 7.1 is JSON only in parts, so the text is
/// searched.
pub fn object_name(dump: &str) -> Option<String> {
    let (_, rest) = dump.split_once("\"id\":\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// The weights that the kernel gives to a new fq, as newer versions of `tc` show them. Version 6.15 expects
/// four numbers where it shows three, so it does not accept them.
const OWN_WEIGHTS: &str = "weights 589824 196608 65536 ";

/// Converts a line of `tc qdisc show` to arguments of `tc qdisc add dev DEVICE root`: "qdisc tbf 8001: root
/// refcnt 2 rate 1Mbit" becomes "handle 8001: tbf rate 1Mbit". Units that `tc` prints but does not accept are
/// removed.
pub fn as_typed(line: &str) -> String {
    let bare = line.replace(OWN_WEIGHTS, "");
    let mut words = bare.split_whitespace().skip(1);
    let (kind, handle) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut typed = vec!["handle", handle, kind];
    while let Some(word) = words.next() {
        match word {
            "root" => {}
            "refcnt" => drop(words.next()),
            // tc shows these values of pfifo_fast, but accepts none.
            "bands" if kind == "pfifo_fast" => break,
            "limit" | "flow_limit" | "quantum" | "initial_quantum" | "perturb" => {
                typed.push(word);
                typed.extend(words.next().map(without_unit));
            }
            word => typed.push(word),
        }
    }
    typed.join(" ")
}

/// A number of packets, bytes or seconds without its unit; larger units stay.
fn without_unit(number: &str) -> &str {
    let bare = ["p", "b", "sec"].iter().find_map(|unit| number.strip_suffix(unit)).unwrap_or(number);
    if bare.bytes().all(|byte| byte.is_ascii_digit()) { bare } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_qdisc_becomes_arguments_of_tc() {
        let line = "qdisc tbf 8001: root refcnt 2 rate 1Mbit burst 5Kb lat 50ms ";
        assert_eq!(as_typed(line), "handle 8001: tbf rate 1Mbit burst 5Kb lat 50ms");
        let line = "qdisc pfifo 8002: root refcnt 3 limit 100p";
        assert_eq!(as_typed(line), "handle 8002: pfifo limit 100");
        let line =
            "qdisc sfq 8003: root refcnt 2 limit 127p quantum 1514b depth 127 divisor 1024 perturb 10sec ";
        assert_eq!(
            as_typed(line),
            "handle 8003: sfq limit 127 quantum 1514 depth 127 divisor 1024 perturb 10"
        );
        let line = "qdisc bfifo 8005: root refcnt 2 limit 100Kb";
        assert_eq!(as_typed(line), "handle 8005: bfifo limit 100Kb");
        let line = "qdisc fq 8006: root refcnt 2 limit 500p flow_limit 100p buckets 1024 orphan_mask 1023 \
             bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 weights 589824 196608 65536 quantum 3028b";
        assert_eq!(
            as_typed(line),
            "handle 8006: fq limit 500 flow_limit 100 buckets 1024 orphan_mask 1023 \
             bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 quantum 3028"
        );
        let line = "qdisc pfifo_fast 8004: root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";
        assert_eq!(as_typed(line), "handle 8004: pfifo_fast");
    }

    // The output is from bpftool 7.1, shortened.
    #[test]
    fn the_name_of_an_object_is_found() {
        let dump = r#"{"bpf_map_info":{"type":26,"id":9}},{"bpf_struct_ops_Qdisc_ops":{"data":{"next":0,"id":"giveway_efd"}}}"#;
        assert_eq!(object_name(dump).as_deref(), Some("giveway_efd"));
        assert_eq!(object_name(r#"{"bpf_map_info":{"type":26,"id":9}}"#), None);
    }

    #[test]
    fn maps_of_one_object_have_the_same_types() {
        let shown = r#"[{"id":7,"name":"a","btf_id":1},{"id":8,"name":"slots","btf_id":2,"max_entries":64},{"id":9,"name":"b","btf_id":2}]"#;
        let shown = json(shown).unwrap();
        assert_eq!(maps(&shown, 9), (vec![("slots".to_owned(), 8), ("b".to_owned(), 9)], 64));
        assert_eq!(maps(&shown, 10), (Vec::new(), 0));
        assert_eq!(json(" \n").unwrap(), Value::Array(Vec::new()));
    }
}
