//! Inputs that fail: one for each place where they do, made as small as it gets, and kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::libfuzzer::Fuzzer;

/// Steps in which an input is made smaller.
const STEPS: &str = "-runs=20000";
/// Limit of that, in seconds.
const SECONDS: &str = "-max_total_time=30";

/// Keeps what libFuzzer found, and returns where. What it wrote is removed.
///
/// # Errors
/// If a file cannot be read or written.
pub fn keep(fuzzer: &Fuzzer) -> Result<Vec<PathBuf>, String> {
    let mut smallest: BTreeMap<String, PathBuf> = BTreeMap::new();
    let explain = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let entries = fs::read_dir(&fuzzer.artifacts).map_err(|error| explain(&fuzzer.artifacts, error))?;
    let mut artifacts: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    artifacts.sort_by_key(|path| (fs::metadata(path).map_or(0, |about| about.len()), path.clone()));
    for path in artifacts.iter().filter(|path| kind(path) != "slow-unit") {
        if let Some(place) = place(fuzzer, path) {
            smallest.entry(place).or_insert_with(|| path.clone());
        }
    }
    let mut kept = Vec::new();
    for (place, artifact) in smallest {
        println!("{}: {place}", fuzzer.target);
        fs::create_dir_all(&fuzzer.finds).map_err(|error| explain(&fuzzer.finds, error))?;
        let bytes = smaller(fuzzer, &artifact, &place);
        let path = fuzzer.finds.join(name(&artifact));
        fs::write(&path, bytes).map_err(|error| explain(&path, error))?;
        kept.push(path);
    }
    fs::remove_dir_all(&fuzzer.artifacts).map_err(|error| explain(&fuzzer.artifacts, error))?;
    Ok(kept)
}

/// Place of the panic of a target on an input, or another kind of failure. `None` when it
/// passes now.
fn place(fuzzer: &Fuzzer, input: &Path) -> Option<String> {
    let output = fuzzer.command(&[]).arg(input).output().ok()?;
    if output.status.success() {
        // It was too slow or too large once, among others: that is worth a look.
        return (kind(input) != "crash").then(|| kind(input).to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Some(panic_in(&said).unwrap_or_else(|| kind(input).to_owned()))
}

/// `thread 'main' (7) panicked at crates/a/src/b.rs:1:2:` and the line behind it.
fn panic_in(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("panicked at ")?;
    Some(rest.lines().next()?.trim_end_matches(':').to_owned())
}

/// `crash` of `crash-0a1b...`.
fn kind(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit_once('-').map_or(name, |(kind, _)| kind)
}

/// The name of an artifact, shortened.
fn name(artifact: &Path) -> String {
    let name = artifact.file_name().unwrap_or_default().to_string_lossy();
    name.chars().take(kind(artifact).len() + 13).collect()
}

/// The input, or a smaller one that fails at the same place.
fn smaller(fuzzer: &Fuzzer, artifact: &Path, place_of_it: &str) -> Vec<u8> {
    let whole = fs::read(artifact).unwrap_or_default();
    if kind(artifact) != "crash" {
        return whole;
    }
    let small = artifact.with_extension("small");
    let exact = format!("-exact_artifact_path={}", small.display());
    let mut minimise = fuzzer.command(&["-minimize_crash=1", STEPS, SECONDS, &exact]);
    // What it says is of no use to anyone.
    let _ = minimise.arg(artifact).output();
    let same = small.is_file() && place(fuzzer, &small).as_deref() == Some(place_of_it);
    match fs::read(&small) {
        Ok(bytes) if same => bytes,
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_are_distinguished_by_their_place() {
        let said =
            "thread '<unnamed>' (12) panicked at crates/sim/src/net.rs:7:9:\nattempt to add with overflow\n";
        assert_eq!(panic_in(said).as_deref(), Some("crates/sim/src/net.rs:7:9"));
        assert_eq!(panic_in("ALARM: working on the last Unit for 11 seconds"), None);
        let path = Path::new("fuzz/artifacts/a/slow-unit-0123456789abcdef");
        assert_eq!((kind(path), name(path).as_str()), ("slow-unit", "slow-unit-0123456789ab"));
        assert_eq!(kind(Path::new("oom-00")), "oom");
    }
}
