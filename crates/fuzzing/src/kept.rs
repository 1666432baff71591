//! Stored inputs of the targets: valid examples (seeds), and inputs that once failed (finds).

use std::path::{Path, PathBuf};

use crate::Target;
use crate::targets::{admission, folder, reserve, sweep, trace, trials};

/// An input with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Path relative to the root of the repository, or a name for a generated input.
    pub name: String,
    /// Content of the input.
    pub bytes: Vec<u8>,
}

/// Folders outside of `fuzz/` whose files are inputs: target, folder, and extension of the files.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("scenario", "scenarios", "toml"),
    ("scenario", "papers", "toml"),
    ("switch_trace", "fuzz/seeds/capture", "pcap"),
];

/// Returns the stored inputs of a target: its finds, its seeds, files of other folders, and generated inputs.
///
/// # Panics
/// If a folder or file of the repository cannot be read.
pub fn inputs(target: &Target) -> Vec<Input> {
    let mut inputs = Vec::new();
    for kind in ["finds", "seeds"] {
        inputs.extend(files(&Path::new("fuzz").join(kind).join(target.name), ""));
    }
    for (_, folder, end) in ELSEWHERE.iter().filter(|(name, ..)| *name == target.name) {
        inputs.extend(files(Path::new(folder), end));
    }
    inputs.extend(generated(target));
    inputs
}

/// Inputs that are built by code, for targets whose input is more than one file.
fn generated(target: &Target) -> Vec<Input> {
    let all: Vec<Vec<u8>> = match target.name {
        "folder" => folder::seeds(),
        "sweep" => sweep::seeds(),
        "trials" => trials::seeds(),
        "admission" => admission::seeds(),
        "reserve" => reserve::seeds(),
        "trace" => trace::seeds(),
        "spec" => {
            giveway_disciplines::ALL.iter().flat_map(|entry| entry.default().variants()).map(text).collect()
        }
        "qdisc" => {
            // Three packets arrive, two depart, time passes, and the last one departs.
            let operations: Vec<u8> =
                [[0, 1, 232, 3], [0, 2, 100, 0], [16, 3, 220, 5], [8, 0, 0, 0], [8, 0, 0, 0]]
                    .into_iter()
                    .chain([[13, 0, 200, 0], [14, 0, 0, 0], [8, 0, 0, 0]])
                    .flatten()
                    .collect();
            let specs = giveway_disciplines::ALL.iter().flat_map(|entry| entry.default().variants());
            specs.map(|spec| [&text(spec)[..], b"\n\x01", &operations].concat()).collect()
        }
        _ => Vec::new(),
    };
    let name = |at: usize| format!("{} generated {at}", target.name);
    all.into_iter().enumerate().map(|(at, bytes)| Input { name: name(at), bytes }).collect()
}

/// A discipline as text, for example `fifo limit 20p`.
fn text(spec: giveway_disciplines::Spec) -> Vec<u8> {
    spec.to_string().into_bytes()
}

/// Returns the words of the input language of a target: from its dictionary, if it has one, and names from
/// the registries.
///
/// # Panics
/// If a line of the dictionary is invalid; libFuzzer would reject it as well.
pub fn dictionary(target: &Target) -> Vec<Vec<u8>> {
    let path = root().join("fuzz/dictionaries").join(format!("{}.dict", target.name));
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut words: Vec<Vec<u8>> =
        lines.map(|line| word(line).unwrap_or_else(|| panic!("{}: {line}", path.display()))).collect();
    words.extend(registered(target).into_iter().map(String::into_bytes));
    words
}

/// Dictionary of a target in libFuzzer's format.
pub fn dictionary_text(target: &Target) -> String {
    let quoted = |word: &Vec<u8>| word.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    dictionary(target).iter().map(|word| format!("\"{}\"\n", quoted(word))).collect()
}

/// Names and parameters of disciplines, arbiters and sources of traffic, for targets that parse them.
fn registered(target: &Target) -> Vec<String> {
    let mut words = std::collections::BTreeSet::new();
    let mut add = |name: &str, schema: Option<&serde_json::Value>| {
        words.insert(name.to_owned());
        let properties = schema.and_then(serde_json::Value::as_object).into_iter().flatten();
        words.extend(properties.map(|(key, _)| key.clone()));
    };
    if matches!(target.name, "spec" | "qdisc" | "scenario" | "set" | "settings" | "control_line") {
        giveway_disciplines::ALL.iter().for_each(|entry| add(entry.name, (entry.schema)().get("properties")));
    }
    if matches!(target.name, "scenario" | "set") {
        giveway_switch::ALL.iter().for_each(|entry| add(entry.name, (entry.schema)().get("properties")));
        giveway_sim::SOURCES
            .iter()
            .for_each(|source| add(source.entry.name, (source.entry.schema)().get("properties")));
        giveway_switch::traffic::SOURCES
            .iter()
            .for_each(|entry| add(entry.name, (entry.schema)().get("properties")));
    }
    words.into_iter().collect()
}

/// Parses a line of a dictionary: `"word"` or `name="word"`, with the escapes `\"`, `\\` and `\x0a`.
/// `None` if it is neither.
pub fn word(line: &str) -> Option<Vec<u8>> {
    let quoted = &line[line.find('"')?..];
    let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut word = Vec::new();
    while let [first, after @ ..] = rest {
        rest = after;
        match (*first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                word.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = after;
            }
            (b'\\', [quoted @ (b'"' | b'\\'), after @ ..]) => {
                word.push(*quoted);
                rest = after;
            }
            (b'\\', _) => return None,
            (plain, _) => word.push(plain),
        }
    }
    Some(word)
}

/// Root folder of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate is two folders below the root").to_owned()
}

/// Files with an extension (all files if it is empty) in a folder and its subfolders, sorted. A missing
/// folder has no files.
fn files(below: &Path, end: &str) -> Vec<Input> {
    let Ok(entries) = std::fs::read_dir(root().join(below)) else { return Vec::new() };
    let mut names: Vec<PathBuf> =
        entries.map(|entry| below.join(entry.expect("the repository can be read").file_name())).collect();
    names.sort();
    let mut found = Vec::new();
    for name in names {
        let path = root().join(&name);
        if path.is_dir() {
            found.extend(files(&name, end));
        } else if end.is_empty() || path.extension().is_some_and(|extension| extension == end) {
            let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            found.push(Input { name: name.display().to_string(), bytes });
        }
    }
    found
}
