//! The metrics: their text, and its validity according to OpenMetrics 1.0.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{snapshot, two};
use giveway_watch::Fragments;
use giveway_watch::openmetrics::render;
use giveway_wire::fragment::{Counts, Lost};
use proptest::prelude::*;

#[test]
fn two_directions() {
    let text = render(&two());
    check(&text).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn without_a_port_there_are_only_families() {
    assert!(check(&render(&[])).unwrap().is_empty());
}

/// A direction without reservations has no samples of them.
#[test]
fn only_a_direction_with_reservations_has_their_metrics() {
    let mut snapshots = two();
    assert!(!render(&snapshots).contains("reserv"));
    snapshots[1].reservations = Some(giveway_watch::Reservations {
        capacity: giveway_qdisc::Rate::kbit(9500),
        reserved: giveway_qdisc::Rate::mbit(2),
        flows: 3,
        open: giveway_watch::OpenShare {
            capacity: giveway_qdisc::Rate::kbit(4750),
            reserved: giveway_qdisc::Rate::mbit(1),
            flows: 2,
            owners: 1,
        },
        messages: vec![("granted", 7)],
        malformed: vec![("forged", 0)],
    });
    let samples = check(&render(&snapshots)).unwrap();
    let found = |name: &str, outcome: &str| -> Vec<String> {
        let wanted = samples.iter().filter(|((family, labels), _)| {
            family == name && labels.get("outcome").map_or("", |label| label) == outcome
        });
        wanted.map(|(_, value)| value.clone()).collect()
    };
    assert_eq!(found("giveway_reservable_bits_per_second", ""), ["9500000"]);
    assert_eq!(found("giveway_reserved_bits_per_second", ""), ["2000000"]);
    assert_eq!(found("giveway_reservations", ""), ["3"]);
    assert_eq!(found("giveway_open_reservable_bits_per_second", ""), ["4750000"]);
    assert_eq!(found("giveway_open_reserved_bits_per_second", ""), ["1000000"]);
    assert_eq!(found("giveway_open_reservations", ""), ["2"]);
    assert_eq!(found("giveway_open_reservation_owners", ""), ["1"]);
    assert_eq!(found("giveway_reservation_messages_total", "granted"), ["7"]);
    assert_eq!(found("giveway_reservation_messages_total", "forged"), ["0"]);
}

/// The samples carry the numbers of the snapshot.
#[test]
fn samples_have_the_numbers_of_the_snapshot() {
    let samples = check(&render(&two())).unwrap();
    let uplink = [("direction", "forward"), ("handle", "1:"), ("interface", "eth1"), ("kind", "fq_codel")];
    let value = |name: &str, more: &[(&str, &str)]| {
        let labels = uplink.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let key = (name.to_owned(), labels.collect::<BTreeMap<_, _>>());
        samples.get(&key).unwrap_or_else(|| panic!("{key:?}")).clone()
    };
    assert_eq!(value("giveway_arrived_bytes_total", &[]), "9876543210");
    assert_eq!(value("giveway_dropped_packets_total", &[("reason", "overlimit")]), "1234");
    assert_eq!(value("giveway_dropped_packets_total", &[("reason", "early")]), "0");
    assert_eq!(value("giveway_sojourn_seconds", &[("quantile", "1")]), "0.020000125");
    assert_eq!(value("giveway_sojourn_seconds_sum", &[]), "9875.4528");
    assert_eq!(value("giveway_uptime_seconds", &[]), "274353.25");
    assert_eq!(value("giveway_gauge", &[("name", "none")]), "NaN");
    assert_eq!(
        value("giveway_discipline_info", &[("from", "eth0"), ("spec", "fq_codel limit 300p target 5ms")]),
        "1"
    );
    let reverse =
        samples.keys().find(|(name, labels)| name == "giveway_stalls_total" && labels["handle"] == "2:");
    assert_eq!(reverse.unwrap().1["interface"], "a \"strange\" \\ name\n", "escaped text is read again");
}

/// Families of fragments exist only if a direction uses fragmentation or reassembly.
#[test]
fn only_a_direction_with_fragments_has_their_metrics() {
    let mut both = two();
    let mut joined = Counts { joined: 12, packets: 6, ..Counts::default() };
    joined.lost[Lost::Expired as usize] = 3;
    both[0].status.fragments =
        Fragments { cut: 7, pieces: 15, spared: 2, whole: 1, joined, ..Fragments::default() };
    let samples = check(&render(&both)).unwrap();
    let value = |name: &str, reason: Option<&str>| {
        let found = samples
            .iter()
            .filter(|((of, labels), _)| of == name && labels.get("reason").map(String::as_str) == reason);
        found.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    for (name, expected) in [
        ("giveway_cut_frames_total", "7"),
        ("giveway_cut_fragments_total", "15"),
        ("giveway_spared_fragments_total", "2"),
        ("giveway_whole_frames_total", "1"),
        ("giveway_joined_fragments_total", "12"),
        ("giveway_joined_frames_total", "6"),
    ] {
        assert_eq!(value(name, None), [expected], "{name}, of one direction only");
    }
    assert_eq!(value("giveway_lost_fragments_total", Some("expired")), ["3"]);
    assert_eq!(value("giveway_lost_fragments_total", Some("malformed")), ["0"]);
}

proptest! {
    #[test]
    fn the_text_is_always_valid(one in snapshot(1), other in snapshot(2)) {
        let text = render(&[one, other]);
        if let Err(error) = check(&text) {
            panic!("{error}\n{text}");
        }
    }
}

#[test]
fn the_checker_finds_each_mistake() {
    let valid = "# TYPE a_bytes counter\n# UNIT a_bytes bytes\n# HELP a_bytes Help.\na_bytes_total{x=\"1\"} 5\n# EOF\n";
    assert_eq!(check(valid).map(|samples| samples.len()), Ok(1));
    for (from, to, message) in [
        ("# EOF\n", "", "does not end with EOF"),
        ("# EOF\n", "# EOF\n\n", "does not end with EOF"),
        ("a_bytes_total{x", "a_bytes{x", "is not a sample of a counter"),
        ("} 5", "} -5", "a counter is negative"),
        ("} 5", "} 5.", "is not a number"),
        ("} 5", "}  5", "is not a number"),
        ("x=\"1\"", "x=\"1", "label without an end"),
        ("x=\"1\"", "x=\"\\d\"", "unknown escape"),
        ("x=\"1\"", "1x=\"1\"", "is not a name"),
        ("x=\"1\"", "x=\"1\",x=\"2\"", "label twice"),
        ("x=\"1\"", "quantile=\"1\"", "quantile"),
        ("a_bytes bytes", "a_bytes seconds", "does not end with its unit"),
        ("# HELP", "# TYPE a_bytes counter\n# HELP", "twice"),
        ("# EOF", "a_bytes_total{x=\"1\"} 6\n# EOF", "twice"),
        ("# EOF", "\n# EOF", "empty line"),
        ("# EOF", "b 1\n# EOF", "no family"),
        ("# EOF", "# TYPE b gauge\nb 1\na_bytes_total{x=\"2\"} 6\n# EOF", "is not of the current family"),
    ] {
        let invalid = valid.replacen(from, to, 1);
        assert_ne!(invalid, valid);
        let error = check(&invalid).expect_err(&invalid);
        assert!(error.contains(message), "{error} for {invalid}");
    }
}

/// A sample: its name and labels.
type Series = (String, BTreeMap<String, String>);

/// Parses a text. Returns its samples, or the first rule that it breaks, of the rules of OpenMetrics 1.0,
/// sections 4 and 5, that these metrics need.
fn check(text: &str) -> Result<BTreeMap<Series, String>, String> {
    let Some(body) = text.strip_suffix("# EOF\n") else { return Err("does not end with EOF".to_owned()) };
    let mut families: BTreeSet<String> = BTreeSet::new();
    let mut samples = BTreeMap::new();
    // The current family: its name, its type, and its comments so far.
    let mut family = (String::new(), String::new(), BTreeSet::new());
    // The samples of one port in a summary must be adjacent.
    let mut groups: BTreeSet<(String, Vec<(String, String)>)> = BTreeSet::new();
    let mut group = None;
    for line in body.split_inclusive('\n') {
        let at = |mistake: &str| Err(format!("{mistake}: {line}"));
        let Some(line) = line.strip_suffix('\n') else { return at("line without an end") };
        if line.is_empty() {
            return at("empty line");
        }
        if let Some(rest) = line.strip_prefix("# ") {
            let mut parts = rest.splitn(3, ' ');
            let (keyword, name, text) =
                (parts.next().unwrap(), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            if !is_name(name) {
                return at("is not a name");
            }
            match keyword {
                "TYPE" => {
                    if !families.insert(name.to_owned()) {
                        return at("family twice");
                    }
                    if !["counter", "gauge", "summary", "info"].contains(&text) {
                        return at("unknown type");
                    }
                    family = (name.to_owned(), text.to_owned(), BTreeSet::new());
                }
                "UNIT" | "HELP" => {
                    if name != family.0 || !family.2.insert(keyword.to_owned()) {
                        return at("is twice, or of another family");
                    }
                    if keyword == "UNIT" && !name.ends_with(&format!("_{text}")) {
                        return at("does not end with its unit");
                    }
                    if keyword == "HELP" && unescaped(text).is_none() {
                        return at("unknown escape");
                    }
                }
                _ => return at("unknown comment"),
            }
            continue;
        }
        let end = line.find(['{', ' ']).ok_or("sample without a value")?;
        let (name, rest) = line.split_at(end);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest).map_err(|mistake| format!("{mistake}: {line}"))?,
            None => (BTreeMap::new(), rest),
        };
        let Some(value) = value.strip_prefix(' ') else { return at("sample without a value") };
        let (of, kind, _) = &family;
        if of.is_empty() {
            return at("no family");
        }
        let Some(ending) = name.strip_prefix(of.as_str()) else {
            return at(if families.iter().any(|family| name.starts_with(family.as_str())) {
                "is not of the current family"
            } else {
                "no family"
            });
        };
        let allowed: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "summary" => &["", "_count", "_sum"],
            "info" => &["_info"],
            _ => &[""],
        };
        if !allowed.contains(&ending) {
            return at(&format!("is not a sample of a {kind}"));
        }
        let number = match value {
            "NaN" => f64::NAN,
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            value if is_number(value) => value.parse().map_err(|_| format!("is not a number: {line}"))?,
            _ => return at("is not a number"),
        };
        if (kind == "counter" || kind == "summary") && !(number >= 0.0 && number.is_finite()) {
            return at("a counter is negative");
        }
        if kind == "info" && value != "1" {
            return at("an info is 1");
        }
        match labels.get("quantile") {
            Some(share) if kind == "summary" && ending.is_empty() => {
                let share: f64 = share.parse().map_err(|_| format!("is not a quantile: {line}"))?;
                if !(0.0..=1.0).contains(&share) {
                    return at("is not a quantile");
                }
            }
            Some(_) => return at("quantile of something else"),
            None if kind == "summary" && ending.is_empty() => return at("summary without quantile"),
            None => {}
        }
        let mut own: Vec<_> = labels.clone().into_iter().collect();
        own.retain(|(name, _)| name != "quantile");
        let this = Some((of.clone(), own));
        if group != this {
            if !groups.insert(this.clone().unwrap()) {
                return at("is twice, or away from its metric");
            }
            group = this;
        }
        if samples.insert((name.to_owned(), labels), value.to_owned()).is_some() {
            return at("sample twice");
        }
    }
    Ok(samples)
}

/// The labels up to the closing brace, and the text after it.
fn labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut labels = BTreeMap::new();
    loop {
        let (name, behind) = rest.split_once("=\"").ok_or("label without a value")?;
        if !is_name(name) || name.contains(':') {
            return Err(format!("\"{name}\" is not a name"));
        }
        let mut escape = false;
        let end = behind.find(|c| {
            let ends = c == '"' && !escape;
            escape = c == '\\' && !escape;
            ends
        });
        let end = end.ok_or("label without an end")?;
        let value = unescaped(&behind[..end]).ok_or("unknown escape")?;
        if labels.insert(name.to_owned(), value).is_some() {
            return Err("label twice".to_owned());
        }
        match behind[end + 1..].split_at_checked(1) {
            Some((",", more)) => rest = more,
            Some(("}", behind)) => return Ok((labels, behind)),
            _ => return Err("label without an end".to_owned()),
        }
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(match chars.next()? {
                '\\' => '\\',
                'n' => '\n',
                '"' => '"',
                _ => return None,
            }),
            '"' | '\n' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == ':')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// True for digits with an optional sign and an optional decimal part.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    match text.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(text),
    }
}
