//! Counters of the language that may only improve. `xtask/prose.toml` has the limit of each one.
//!
//! An *accent* is a word that is correct, but frequent here and rare in other projects. Its counter is the
//! number of occurrences per 1,000 words of doc comments in `crates` and `xtask`, and may only fall. The
//! number of comments in bodies, per 100 lines of code in `crates/*/src`, may only rise.

use std::collections::BTreeMap;

use crate::repository::{Done, Repository};

const FILE: &str = "xtask/prose.toml";

const HEADER: &str =
    "# Limits of `cargo xtask prose`, which `cargo xtask prose --accept` writes: occurrences per 100,000
# words of doc comments, and body comments per 10,000 lines of code.
";

/// Each counter of words: its key in the file, the words, and the remedy.
const ACCENTS: &[(&str, &[&str], &str)] = &[
    ("that_of", &["that of", "those of"], "repeat the noun, or write \"the same as\" or \"from\""),
    ("has", &["has", "have"], "use the verb of the action: shows, contains, needs, returns"),
    ("begin", &["begin", "begins", "began", "begun"], "write start"),
    ("beside", &["beside"], "write next to, with, in parallel, in addition to"),
    ("nothing", &["nothing", "nobody", "something"], "name the thing or the actor"),
];

/// The counter that may only rise.
const BODY: &str = "body_comments";

/// Occurrences, and what they are divided by.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// By the key of the counter.
    accents: BTreeMap<&'static str, u64>,
    words: u64,
    body_comments: u64,
    code: u64,
}

impl Counts {
    /// Adds the doc comments of a file and, if it belongs to a library or a program, its code without tests.
    fn add(&mut self, name: &str, text: &str) {
        let module = name.starts_with("crates/").then(|| name.split_once("/src/")).flatten();
        let mut in_src = module.is_some_and(|(_, module)| {
            !module.split(['/', '.', '_']).any(|part| ["tests", "testing"].contains(&part))
        });
        let mut fenced = false;
        let mut previous = String::new();
        for line in text.lines().map(str::trim_start) {
            in_src &= line != "mod tests {";
            let Some(doc) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
                (fenced, previous) = (false, String::new());
                if in_src && line.starts_with("//") {
                    self.body_comments += 1;
                } else if in_src && !line.is_empty() {
                    self.code += 1;
                }
                continue;
            };
            if doc.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                doc.split_whitespace().for_each(|word| self.add_word(word, &mut previous));
            }
        }
    }

    fn add_word(&mut self, word: &str, previous: &mut String) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if word.is_empty() {
            return;
        }
        let pair = format!("{previous} {word}");
        self.words += 1;
        for (key, words, _) in ACCENTS {
            if words.iter().any(|accent| [&word, &pair].iter().any(|found| found == accent)) {
                *self.accents.entry(key).or_default() += 1;
            }
        }
        *previous = word;
    }

    /// The counters as in the file. They are rounded against the limit, so that a limit holds for the state
    /// from which it was written.
    fn rates(&self) -> BTreeMap<String, u64> {
        let accents = ACCENTS.iter().map(|(key, ..)| {
            let count = self.accents.get(key).copied().unwrap_or_default();
            ((*key).to_owned(), (count * 100_000).div_ceil(self.words.max(1)))
        });
        accents.chain([(BODY.to_owned(), self.body_comments * 10_000 / self.code.max(1))]).collect()
    }
}

/// Prints each counter with its limit.
///
/// # Errors
/// When a counter is beyond its limit.
pub fn check(repository: &Repository) -> Done {
    let (rates, limits) = (count(repository)?.rates(), read(repository)?);
    for (key, rate) in &rates {
        let limit = limits.get(key).map_or("no limit".to_owned(), |limit| decimal(*limit));
        let (unit, bound) = if key == BODY { ("lines of code", "minimum") } else { ("doc words", "maximum") };
        let per = if key == BODY { "100" } else { "1,000" };
        println!("{:>6}  {key} per {per} {unit}, {bound} {limit}", decimal(*rate));
    }
    let failures = failures(&rates, &limits);
    if !failures.is_empty() {
        return Err(failures.join("\n"));
    }
    if tightened(&rates, &limits) != limits {
        println!("the counters have improved: `cargo xtask prose --accept` writes new limits");
    }
    Ok(())
}

/// Writes the limits of all counters that have improved, or are new.
///
/// # Errors
/// If a file cannot be read, or the limits cannot be written.
pub fn accept(repository: &Repository) -> Done {
    let limits = tightened(&count(repository)?.rates(), &read(repository)?);
    let lines = toml::to_string(&limits).map_err(|error| error.to_string())?;
    std::fs::write(repository.root.join(FILE), format!("{HEADER}{lines}"))
        .map_err(|error| format!("{FILE} cannot be written: {error}"))
}

/// A sentence for each counter beyond its limit.
fn failures(rates: &BTreeMap<String, u64>, limits: &BTreeMap<String, u64>) -> Vec<String> {
    let limited = rates.iter().filter_map(|(key, rate)| Some((key, *rate, *limits.get(key)?)));
    // One sentence changes a counter by less than a hundredth of most limits, and must not fail the gate.
    let beyond = limited.filter(|(key, rate, limit)| {
        let slack = (limit / 100).max(1);
        improved(key, *rate, *limit) != *rate && rate.abs_diff(*limit) > slack
    });
    let sentence = |(key, rate, limit): (&String, u64, u64)| {
        let (rate, limit) = (decimal(rate), decimal(limit));
        match ACCENTS.iter().find(|(accent, ..)| accent == key) {
            Some((_, words, remedy)) => {
                let pattern = words.join("|");
                format!(
                    "{key} is {rate} per 1,000 words of doc comments, above its limit of {limit}: {remedy}; \
                     git grep -nwE '//[/!].*({pattern})' -- crates xtask"
                )
            }
            None => format!(
                "comments in bodies are {rate} per 100 lines of code, below their limit of {limit}: \
                 give the reason for surprising lines, as CONTRIBUTING.md describes"
            ),
        }
    };
    beyond.map(sentence).collect()
}

/// The limits that hold now and are never looser than before.
fn tightened(rates: &BTreeMap<String, u64>, limits: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let limit = |key: &str, rate: u64| limits.get(key).map_or(rate, |limit| improved(key, rate, *limit));
    rates.iter().map(|(key, rate)| (key.clone(), limit(key, *rate))).collect()
}

/// The better one of two values of a counter.
fn improved(key: &str, one: u64, other: u64) -> u64 {
    if key == BODY { one.max(other) } else { one.min(other) }
}

fn count(repository: &Repository) -> Result<Counts, String> {
    let mut counts = Counts::default();
    for name in repository.output("git", &["ls-files", "--", "crates/*.rs", "xtask/*.rs"])?.lines() {
        // A file may be deleted and not yet committed.
        let Ok(text) = std::fs::read_to_string(repository.root.join(name)) else { continue };
        counts.add(name, &text);
    }
    Ok(counts)
}

fn read(repository: &Repository) -> Result<BTreeMap<String, u64>, String> {
    let text = std::fs::read_to_string(repository.root.join(FILE)).unwrap_or_default();
    toml::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
}

/// A number of hundredths with two decimals.
fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(accents: u64, body: u64) -> BTreeMap<String, u64> {
        [("has", accents), (BODY, body)].map(|(key, rate)| (key.to_owned(), rate)).into()
    }

    #[test]
    fn words_of_docs_and_comments_of_bodies_are_counted() {
        let text = "/// The rate is that\n/// of a link, and has a unit.\n/// ```\n/// has\n/// ```\nfn a() {\n    // Why.\n}\n\nmod tests {\n    // Not this.\n}\n";
        let mut counts = Counts::default();
        counts.add("crates/sim/src/a.rs", text);
        assert_eq!(counts.accents, BTreeMap::from([("that_of", 1), ("has", 1)]));
        assert_eq!((counts.words, counts.body_comments, counts.code), (11, 1, 2));
        counts.add("xtask/src/a.rs", text);
        assert_eq!((counts.words, counts.body_comments, counts.code), (22, 1, 2));
        // 2 of 22 words are 9,090.9 of 100,000, and 1 line of 2 is 5,000 of 10,000.
        assert_eq!((counts.rates()["has"], counts.rates()[BODY]), (9091, 5000));
    }

    #[test]
    fn words_of_different_docs_are_not_a_phrase() {
        let mut counts = Counts::default();
        counts.add("xtask/src/a.rs", "/// This and that\na: u8,\n/// Of the rest.\n");
        assert!(counts.accents.is_empty());
    }

    #[test]
    fn accents_may_only_fall_and_comments_only_rise() {
        let limits = rates(890, 140);
        assert!(
            failures(&rates(890, 140), &limits).is_empty() && failures(&rates(800, 150), &limits).is_empty()
        );
        assert!(failures(&rates(898, 139), &limits).is_empty(), "a hundredth is allowed");
        let both = failures(&rates(899, 138), &limits);
        assert!(both[0].starts_with("comments in bodies are 1.38") && both[1].starts_with("has is 8.99"));
        assert_eq!(tightened(&rates(800, 150), &limits), rates(800, 150));
        assert_eq!(tightened(&rates(900, 100), &limits), limits);
    }
}
