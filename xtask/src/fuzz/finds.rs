//! Failing inputs: keeps one for each location of a panic, minimised.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::libfuzzer::Fuzzer;

/// Number of attempts to minimise an input.
const STEPS: &str = "-runs=20000";
/// Time limit for minimising an input, in seconds.
const SECONDS: &str = "-max_total_time=30";

/// Stores the failing inputs that libFuzzer wrote, one for each location, and removes its files. Returns the
/// paths of the stored inputs.
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
        if let Some(location) = location(fuzzer, path) {
            smallest.entry(location).or_insert_with(|| path.clone());
        }
    }
    let mut kept = Vec::new();
    for (location, artifact) in smallest {
        println!("{}: {location}", fuzzer.target);
        fs::create_dir_all(&fuzzer.finds).map_err(|error| explain(&fuzzer.finds, error))?;
        let bytes = smaller(fuzzer, &artifact, &location);
        let path = fuzzer.finds.join(name(&artifact));
        fs::write(&path, bytes).map_err(|error| explain(&path, error))?;
        kept.push(path);
    }
    fs::remove_dir_all(&fuzzer.artifacts).map_err(|error| explain(&fuzzer.artifacts, error))?;
    Ok(kept)
}

/// Location of the panic of a target on an input, or the kind of another failure. `None` if the target passes
/// and the input was a crash.
fn location(fuzzer: &Fuzzer, input: &Path) -> Option<String> {
    let output = fuzzer.command(&[]).arg(input).output().ok()?;
    if output.status.success() {
        // It was too slow or too large while other inputs ran in parallel: worth an inspection.
        return (kind(input) != "crash").then(|| kind(input).to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Some(panic_in(&errors).unwrap_or_else(|| kind(input).to_owned()))
}

/// Location in a message such as `thread 'main' (7) panicked at crates/a/src/b.rs:1:2:`.
fn panic_in(errors: &str) -> Option<String> {
    let (_, rest) = errors.split_once("panicked at ")?;
    Some(rest.lines().next()?.trim_end_matches(':').to_owned())
}

/// Kind of a failure, from the name of its file: `crash` of `crash-0a1b...`.
fn kind(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit_once('-').map_or(name, |(kind, _)| kind)
}

/// Name of an artifact, with twelve digits of its hash.
fn name(artifact: &Path) -> String {
    let name = artifact.file_name().unwrap_or_default().to_string_lossy();
    name.chars().take(kind(artifact).len() + 13).collect()
}

/// Returns the input, or a smaller one that fails at the same location.
fn smaller(fuzzer: &Fuzzer, artifact: &Path, expected: &str) -> Vec<u8> {
    let whole = fs::read(artifact).unwrap_or_default();
    if kind(artifact) != "crash" {
        return whole;
    }
    let small = artifact.with_extension("small");
    let exact = format!("-exact_artifact_path={}", small.display());
    let mut minimise = fuzzer.command(&["-minimize_crash=1", STEPS, SECONDS, &exact]);
    // The output is not needed: the result is the file.
    let _ = minimise.arg(artifact).output();
    let same = small.is_file() && location(fuzzer, &small).as_deref() == Some(expected);
    match fs::read(&small) {
        Ok(bytes) if same => bytes,
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_are_distinguished_by_their_location() {
        let errors =
            "thread '<unnamed>' (12) panicked at crates/sim/src/net.rs:7:9:\nattempt to add with overflow\n";
        assert_eq!(panic_in(errors).as_deref(), Some("crates/sim/src/net.rs:7:9"));
        assert_eq!(panic_in("ALARM: working on the last Unit for 11 seconds"), None);
        let path = Path::new("fuzz/artifacts/a/slow-unit-0123456789abcdef");
        assert_eq!((kind(path), name(path).as_str()), ("slow-unit", "slow-unit-0123456789ab"));
        assert_eq!(kind(Path::new("oom-00")), "oom");
    }
}
