//! Tests all stored inputs (seeds and finds) without a fuzzer.

use std::path::Path;

use giveway_fuzzing::{TARGETS, kept, smoke, targets};

#[path = "../../reserve/tests/support/bytes.rs"]
mod bytes;

#[test]
fn every_stored_input_passes() {
    for target in TARGETS {
        let inputs = kept::inputs(target);
        assert!(!inputs.is_empty(), "{} has no seed: add a valid example to fuzz/seeds/{0}/", target.name);
        for input in inputs {
            // In the output of a failing test, the name precedes the panic.
            println!("{}: {}", target.name, input.name);
            (target.run)(&input.bytes);
        }
    }
}

/// A folder or dictionary without a target would never be used.
#[test]
fn every_stored_file_belongs_to_a_target() {
    for folder in ["seeds", "finds", "dictionaries"] {
        let entries = std::fs::read_dir(kept::root().join("fuzz").join(folder)).into_iter().flatten();
        for path in
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension() != Some("py".as_ref()))
        {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(TARGETS.iter().any(|target| target.name == name), "{} has no target", path.display());
        }
    }
}

#[test]
fn seeds_and_finds_are_small() {
    let total: usize = TARGETS
        .iter()
        .flat_map(kept::inputs)
        .filter(|input| Path::new(&input.name).starts_with("fuzz"))
        .map(|input| input.bytes.len())
        .sum();
    assert!(total < 1_000_000, "{total} bytes");
}

#[test]
fn targets_are_in_the_order_of_their_names_and_their_dictionaries_can_be_read() {
    assert!(TARGETS.is_sorted_by(|a, b| a.name < b.name));
    for target in TARGETS {
        let words = kept::dictionary(target);
        assert!(words.iter().all(|word| !word.is_empty()), "{}", target.name);
    }
}

/// The smoke test passes the panic of a target to its caller.
#[test]
#[should_panic(expected = "a find")]
fn the_smoke_test_finds_a_planted_error() {
    let target = giveway_fuzzing::Target { name: "planted", run: planted, reads: "", smoke: 10_000 };
    let kept = [kept::Input { name: "seed".to_owned(), bytes: b"GIVE".to_vec() }];
    smoke::inputs(&target, &kept, target.smoke, target.run);
}

/// Panics if one of two particular bits of the seed is flipped.
fn planted(input: &[u8]) {
    assert!(!input.starts_with(b"GAVE") && !input.starts_with(b"GIVD"), "a find");
}

#[test]
fn inputs_are_the_same_in_every_run() {
    let target = &TARGETS[0];
    let kept = [kept::Input { name: "a".to_owned(), bytes: b"some bytes that are mutated".to_vec() }];
    let all = || {
        let mut all = Vec::new();
        smoke::inputs(target, &kept, 500, |input| all.push(input.to_vec()));
        all
    };
    let first = all();
    assert_eq!(first, all());
    assert_eq!(first.len(), 502);
    let different = first.iter().filter(|input| **input != kept[0].bytes).count();
    assert!(different > 450, "{different} inputs are mutated");
}

/// Seeds with an obsolete format would be rejected, and nothing after the parser would be tested.
#[test]
fn seeds_are_accepted() {
    for seed in targets::reserve::seeds() {
        assert_eq!(bytes::messages(&seed), 2);
    }
}

#[test]
fn words_of_a_dictionary_are_parsed_as_by_libfuzzer() {
    assert_eq!(kept::word(r#""rate""#), Some(b"rate".to_vec()));
    assert_eq!(kept::word(r#"quote="a\"b\\c\x0a""#), Some(b"a\"b\\c\n".to_vec()));
    assert_eq!(kept::word("rate"), None);
    assert_eq!(kept::word(r#""\n""#), None);
}
