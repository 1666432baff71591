//! TCP as real stacks implement it: state machines that receive segments and the time, and return segments.
//!
//! A connection has two [`Endpoint`]s. An endpoint has a [`Receiver`] and, once it sends
//! data, a [`Sender`] with a [`Scoreboard`] and a congestion [`Controller`]. Acknowledgements are packets and
//! are queued like all others.
//!
//! Lines that implement a sentence of an RFC cite it by number and section. A test lists all of them.

mod config;
pub mod controller;
mod delivery;
mod ecn_mode;
mod endpoint;
mod hystart;
mod marks;
mod negotiation;
mod outlet;
mod pacer;
mod preset;
mod prr;
mod rack;
mod ranges;
mod receiver;
mod reports;
mod right_sizing;
mod rtt;
mod scoreboard;
mod sender;
mod slow_start;
mod validation;

pub use config::TcpConfig;
pub use controller::{Ack, CONTROLLERS, Congestion, Controller, Counting, Feedback, Needs, Phase};
pub(crate) use delivery::Delivery;
pub use ecn_mode::EcnMode;
pub use endpoint::{Arriving, Endpoint, Outcome};
pub use outlet::Identity;
pub(crate) use pacer::{Bursts, Pacer, Ratios, gap as pacing_gap, rates as pacing_rates};
pub use preset::Preset;
pub use receiver::Receiver;
pub use rtt::RttEstimator;
pub(crate) use rtt::Smoothed;
pub use scoreboard::Scoreboard;
pub(crate) use scoreboard::{Deliveries, Received};
pub use sender::{Counts, Sender};
pub use slow_start::HyStartRule;
pub use validation::WindowValidation;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Every RFC that the files of this module cite, with its title and the sections cited. The sections
    /// exist: check a new one before you add it.
    const CITED: &[(u32, &str, &[&str])] = &[
        (2018, "TCP Selective Acknowledgment Options", &["3", "4"]),
        (2883, "An Extension to the Selective Acknowledgement (SACK) Option for TCP", &["4", "4.1", "5"]),
        (3042, "Enhancing TCP's Loss Recovery Using Limited Transmit", &["2"]),
        (
            3168,
            "The Addition of Explicit Congestion Notification (ECN) to IP",
            &["6.1.1", "6.1.1.1", "6.1.2", "6.1.3", "6.1.5"],
        ),
        (3465, "TCP Congestion Control with Appropriate Byte Counting (ABC)", &["2.1", "2.3"]),
        (5681, "TCP Congestion Control", &["2", "3.1", "3.2", "4.1", "4.2"]),
        (5682, "Forward RTO-Recovery (F-RTO)", &["3.1"]),
        (6298, "Computing TCP's Retransmission Timer", &["2", "3", "4", "5"]),
        (6582, "The NewReno Modification to TCP's Fast Recovery Algorithm", &["3.2"]),
        (6675, "A Conservative Loss Recovery Algorithm Based on SACK for TCP", &["2", "4", "5", "5.1"]),
        (6817, "Low Extra Delay Background Transport (LEDBAT)", &["2", "3"]),
        (7661, "Updating TCP to Support Rate-Limited Traffic", &["4", "4.2", "4.3", "4.4.1", "4.4.3"]),
        (8257, "Data Center TCP (DCTCP)", &["3.2", "3.3", "3.4", "4.2"]),
        (
            8985,
            "The RACK-TLP Loss Detection Algorithm for TCP",
            &["5", "6.2", "6.3", "7", "7.2", "7.3", "7.4", "7.4.2"],
        ),
        (
            9293,
            "Transmission Control Protocol (TCP)",
            &["3.4", "3.5", "3.7.1", "3.8.3", "3.8.6.3", "3.10.7.4"],
        ),
        (9331, "The Explicit Congestion Notification (ECN) Protocol for L4S", &["4.1", "4.3"]),
        (9406, "HyStart++: Modified Slow Start for TCP", &["4.2", "4.3"]),
        (
            9438,
            "CUBIC for Fast and Long-Distance Networks",
            &["4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8", "4.9", "4.10", "5.1", "5.8"],
        ),
        (
            9768,
            "More Accurate Explicit Congestion Notification (AccECN) Feedback in TCP",
            &[
                "3.1",
                "3.1.4.1",
                "3.1.4.2",
                "3.1.5",
                "3.2",
                "3.2.1",
                "3.2.2",
                "3.2.2.4",
                "3.2.2.5.2",
                "3.2.3",
                "3.2.3.3",
            ],
        ),
        (9937, "Proportional Rate Reduction (PRR)", &["6.1", "6.2"]),
    ];

    /// All source files of the module.
    fn sources() -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tcp");
        let mut files = Vec::new();
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path);
                }
            }
        }
        files.sort();
        files
    }

    /// The words of a file, with its comments joined to running text.
    fn words(text: &str) -> Vec<String> {
        let lines = text.lines().map(|line| {
            let line = line.trim_start();
            ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
        });
        lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
    }

    /// A section number without the punctuation around it; `None` for any other word.
    fn section(word: &str) -> Option<&str> {
        let number = word.trim_matches(|c: char| !c.is_ascii_digit());
        let starts = word.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit());
        (starts && number.split('.').all(|part| part.parse::<u32>().is_ok())).then_some(number)
    }

    /// The sections cited in a text as "RFC n, section m" or "RFC n, sections m, m and m". Whatever else
    /// follows the word "section" is a citation without its RFC, and the test fails.
    fn citations(name: &str, text: &str) -> BTreeSet<(u32, String)> {
        let words = words(text);
        let mut cited = BTreeSet::new();
        for (at, word) in words.iter().enumerate() {
            if !matches!(word.to_lowercase().as_str(), "section" | "sections") {
                continue;
            }
            let context = words[at.saturating_sub(2)..(at + 2).min(words.len())].join(" ");
            assert!(at >= 2 && words[at - 2].ends_with("RFC"), "{name}: \"{context}\" names no RFC");
            let rfc = words[at - 1].strip_suffix(',').and_then(|number| number.parse().ok());
            let rfc = rfc.unwrap_or_else(|| panic!("{name}: \"{context}\" is not \"RFC n, section m\""));
            let mut listed = 0;
            for next in &words[at + 1..] {
                match section(next) {
                    Some(number) => {
                        cited.insert((rfc, number.to_owned()));
                        listed += 1;
                        if !next.ends_with(',') && word == "section" {
                            break;
                        }
                    }
                    None if next == "and" || next == "to" => {}
                    None => break,
                }
            }
            assert!(listed > 0, "{name}: \"{context}\" names no section");
        }
        cited
    }

    #[test]
    fn every_cited_section_is_in_the_list() {
        let mut cited = BTreeSet::new();
        for path in sources() {
            cited.extend(citations(&path.display().to_string(), &fs::read_to_string(&path).unwrap()));
        }
        let listed: BTreeSet<(u32, String)> = CITED
            .iter()
            .flat_map(|(rfc, _, sections)| sections.iter().map(|section| (*rfc, (*section).to_owned())))
            .collect();
        assert_eq!(cited.difference(&listed).collect::<Vec<_>>(), Vec::<&(u32, String)>::new(), "not listed");
        assert_eq!(listed.difference(&cited).collect::<Vec<_>>(), Vec::<&(u32, String)>::new(), "not cited");
    }

    #[test]
    fn citations_are_found_across_lines() {
        let text = "//! see RFC 1, sections 2.1, 3 and 4. Then\n    // (RFC 5, section\n    // 6.7, step 2)";
        let expected = [(1, "2.1"), (1, "3"), (1, "4"), (5, "6.7")].map(|(rfc, at)| (rfc, at.to_owned()));
        assert_eq!(citations("text", text), BTreeSet::from(expected));
    }
}
