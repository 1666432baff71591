//! The metrics: what they style like, and that they are what OpenMetrics 1.0 allows.

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
fn without_a_port_there_are_families_only() {
    assert!(check(&render(&[])).unwrap().is_empty());
}

/// Reservations are there for the direction that keeps them, and nowhere otherwise.
#[test]
fn reservations_of_one_direction() {
    let mut snapshots = two();
    assert!(!render(&snapshots).contains("reserv"));
    snapshots[1].reservations = Some(giveway_watch::Reservations {
        capacity: giveway_qdisc::Rate::kbit(9500),
        reserved: giveway_qdisc::Rate::mbit(2),
        flows: 3,
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
    assert_eq!(found("giveway_reservation_messages_total", "granted"), ["7"]);
    assert_eq!(found("giveway_reservation_messages_total", "forged"), ["0"]);
}

/// What is in the snapshot is in the text, number by number.
#[test]
fn numbers_arrive() {
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
        value("giveway_discipline_info", &[("from", "eth0"), ("spelling", "fq_codel limit 300p target 5ms")]),
        "1"
    );
    let back =
        samples.keys().find(|(name, labels)| name == "giveway_stalls_total" && labels["handle"] == "2:");
    assert_eq!(back.unwrap().1["interface"], "a \"strange\" \\ name\n", "what is escaped is read again");
}

/// Families that are there only where frames come in pieces.
#[test]
fn fragments_arrive() {
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
    fn it_is_always_right(one in snapshot(1), other in snapshot(2)) {
        let text = render(&[one, other]);
        if let Err(wrong) = check(&text) {
            panic!("{wrong}\n{text}");
        }
    }
}

#[test]
fn the_checker_checks() {
    let good = "# TYPE a_bytes counter\n# UNIT a_bytes bytes\n# HELP a_bytes Help.\na_bytes_total{x=\"1\"} 5\n# EOF\n";
    assert_eq!(check(good).map(|samples| samples.len()), Ok(1));
    for (from, to, said) in [
        ("# EOF\n", "", "does not end with EOF"),
        ("# EOF\n", "# EOF\n\n", "does not end with EOF"),
        ("a_bytes_total{x", "a_bytes{x", "is no sample of a counter"),
        ("} 5", "} -5", "a counter is negative"),
        ("} 5", "} 5.", "is no number"),
        ("} 5", "}  5", "is no number"),
        ("x=\"1\"", "x=\"1", "label without an end"),
        ("x=\"1\"", "x=\"\\d\"", "unknown escape"),
        ("x=\"1\"", "1x=\"1\"", "is no name"),
        ("x=\"1\"", "x=\"1\",x=\"2\"", "label twice"),
        ("x=\"1\"", "quantile=\"1\"", "quantile"),
        ("a_bytes bytes", "a_bytes seconds", "does not end with its unit"),
        ("# HELP", "# TYPE a_bytes counter\n# HELP", "twice"),
        ("# EOF", "a_bytes_total{x=\"1\"} 6\n# EOF", "twice"),
        ("# EOF", "\n# EOF", "empty line"),
        ("# EOF", "b 1\n# EOF", "no family"),
        ("# EOF", "# TYPE b gauge\nb 1\na_bytes_total{x=\"2\"} 6\n# EOF", "is not of the family at hand"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        let wrong = check(&bad).expect_err(&bad);
        assert!(wrong.contains(said), "{wrong} for {bad}");
    }
}

/// A sample: its name and labels.
type Series = (String, BTreeMap<String, String>);

/// What is in a text, or which rule it breaks: OpenMetrics 1.0, sections 4 and 5, as far as they are used
/// here.
fn check(text: &str) -> Result<BTreeMap<Series, String>, String> {
    let Some(body) = text.strip_suffix("# EOF\n") else { return Err("does not end with EOF".to_owned()) };
    let mut families: BTreeSet<String> = BTreeSet::new();
    let mut samples = BTreeMap::new();
    // The family at hand: name, type, unit, and which of its lines were seen.
    let mut family = (String::new(), String::new(), BTreeSet::new());
    // A summary's samples of one port stand together.
    let mut groups: BTreeSet<(String, Vec<(String, String)>)> = BTreeSet::new();
    let mut group = None;
    for line in body.split_inclusive('\n') {
        let at = |wrong: &str| Err(format!("{wrong}: {line}"));
        let Some(line) = line.strip_suffix('\n') else { return at("line without an end") };
        if line.is_empty() {
            return at("empty line");
        }
        if let Some(rest) = line.strip_prefix("# ") {
            let mut parts = rest.splitn(3, ' ');
            let (what, name, said) =
                (parts.next().unwrap(), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            if !is_name(name) {
                return at("is no name");
            }
            match what {
                "TYPE" => {
                    if !families.insert(name.to_owned()) {
                        return at("family twice");
                    }
                    if !["counter", "gauge", "summary", "info"].contains(&said) {
                        return at("unknown type");
                    }
                    family = (name.to_owned(), said.to_owned(), BTreeSet::new());
                }
                "UNIT" | "HELP" => {
                    if name != family.0 || !family.2.insert(what.to_owned()) {
                        return at("is twice, or of another family");
                    }
                    if what == "UNIT" && !name.ends_with(&format!("_{said}")) {
                        return at("does not end with its unit");
                    }
                    if what == "HELP" && unescaped(said).is_none() {
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
            Some(rest) => labels(rest).map_err(|wrong| format!("{wrong}: {line}"))?,
            None => (BTreeMap::new(), rest),
        };
        let Some(value) = value.strip_prefix(' ') else { return at("sample without a value") };
        let (of, kind, _) = &family;
        if of.is_empty() {
            return at("no family");
        }
        let Some(ending) = name.strip_prefix(of.as_str()) else {
            return at(if families.iter().any(|family| name.starts_with(family.as_str())) {
                "is not of the family at hand"
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
            return at(&format!("is no sample of a {kind}"));
        }
        let number = match value {
            "NaN" => f64::NAN,
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            value if is_number(value) => value.parse().map_err(|_| format!("is no number: {line}"))?,
            _ => return at("is no number"),
        };
        if (kind == "counter" || kind == "summary") && !(number >= 0.0 && number.is_finite()) {
            return at("a counter is negative");
        }
        if kind == "info" && value != "1" {
            return at("an info is 1");
        }
        match labels.get("quantile") {
            Some(share) if kind == "summary" && ending.is_empty() => {
                let share: f64 = share.parse().map_err(|_| format!("is no quantile: {line}"))?;
                if !(0.0..=1.0).contains(&share) {
                    return at("is no quantile");
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

/// The labels up to the closing brace, and what follows.
fn labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut labels = BTreeMap::new();
    loop {
        let (name, behind) = rest.split_once("=\"").ok_or("label without a value")?;
        if !is_name(name) || name.contains(':') {
            return Err(format!("\"{name}\" is no name"));
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

/// Digits, perhaps with a sign in front, and a point with digits behind it.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    match text.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(text),
    }
}
