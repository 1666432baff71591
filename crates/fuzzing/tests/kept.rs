//! Tests all stored inputs (seeds and finds) without a fuzzer.

use std::path::Path;

use giveway_fuzzing::{TARGETS, kept, smoke};

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
