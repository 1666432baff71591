//! Every section of an RFC that the sources of CoDel, FQ-CoDel, PIE and PI2 cite is in a list.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The files that implement an RFC, below `crates`.
const FILES: [&str; 7] = [
    "qdisc/src/blocks/codel.rs",
    "disciplines/src/aqm/codel.rs",
    "disciplines/src/fair/fq_codel.rs",
    "disciplines/src/aqm/pie.rs",
    "qdisc/src/blocks/pi2.rs",
    "disciplines/src/aqm/pi2.rs",
    "disciplines/src/aqm/dualpi2.rs",
];

/// The RFCs, with their titles and the sections that are cited. Look up a section in the RFC before you add
/// it.
const CITED: &[(u32, &str, &[&str])] = &[
    (
        8033,
        "Proportional Integral Controller Enhanced (PIE)",
        &["4.1", "4.2", "4.3", "4.4", "5.1", "5.2", "5.3", "5.4", "5.5"],
    ),
    (8289, "Controlled Delay Active Queue Management", &["4", "5", "5.3", "5.4", "5.5", "5.6"]),
    (
        8290,
        "The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm",
        &["4.1", "4.2", "5.2"],
    ),
    (
        9332,
        "Dual-Queue Coupled Active Queue Management (AQM) for Low Latency, Low Loss, and Scalable Throughput (L4S)",
        &["2.1", "2.3", "4.2.2", "4.2.3"],
    ),
];

/// The words of a file, with its comments joined to running text.
fn words(text: &str) -> Vec<&str> {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!']));
    lines.flat_map(str::split_whitespace).collect()
}

/// A section number without the punctuation around it; `None` for any other word.
fn section(word: &str) -> Option<&str> {
    let number = word.trim_matches(|c: char| !c.is_ascii_digit());
    number.split('.').all(|part| part.parse::<u32>().is_ok()).then_some(number)
}

/// The sections cited in a text as "RFC n, section m" or "RFC n, sections m, m and m".
fn citations(name: &str, text: &str) -> BTreeSet<(u32, String)> {
    let words = words(text);
    let mut cited = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        if !matches!(word.to_lowercase().as_str(), "section" | "sections") {
            continue;
        }
        let context = words[at.saturating_sub(2)..(at + 2).min(words.len())].join(" ");
        let rfc = words[at - 1].strip_suffix(',').and_then(|number| number.parse().ok());
        let rfc = rfc.unwrap_or_else(|| panic!("{name}: \"{context}\" is not \"RFC n, section m\""));
        assert!(words[at - 2].ends_with("RFC"), "{name}: \"{context}\" names no RFC");
        let mut listed = 0;
        for next in &words[at + 1..] {
            match section(next) {
                Some(number) => {
                    cited.insert((rfc, number.to_owned()));
                    listed += 1;
                }
                None if *next == "and"
                    || next.starts_with('(')
                    || next.ends_with(')')
                    || next.ends_with("),") => {}
                None => break,
            }
            if *word == "section" {
                break;
            }
        }
        assert!(listed > 0, "{name}: \"{context}\" names no section");
    }
    cited
}

#[test]
fn every_cited_section_is_in_the_list() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut cited = BTreeSet::new();
    for name in FILES {
        cited.extend(citations(name, &fs::read_to_string(crates.join(name)).unwrap()));
    }
    let listed: BTreeSet<(u32, String)> = CITED
        .iter()
        .flat_map(|(rfc, _, sections)| sections.iter().map(|section| (*rfc, (*section).to_owned())))
        .collect();
    assert_eq!(cited, listed);
}

#[test]
fn citations_are_found_across_lines() {
    let text =
        "//! in RFC 1, sections 2.1, 3 (enqueue) and 4. Then\n    // (RFC 5, section\n    // 6.7, step 2)";
    let expected = [(1, "2.1"), (1, "3"), (1, "4"), (5, "6.7")].map(|(rfc, at)| (rfc, at.to_owned()));
    assert_eq!(citations("text", text), BTreeSet::from(expected));
}
