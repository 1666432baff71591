//! Every kept input passes: the seeds, and what a fuzzer once found. Without a fuzzer, on every change.

use std::path::Path;

use giveway_fuzzing::{TARGETS, kept, smoke};

#[test]
fn every_kept_input_passes() {
    for target in TARGETS {
        let inputs = kept::inputs(target);
        assert!(!inputs.is_empty(), "{} has no seed: put a valid example into fuzz/seeds/{0}/", target.name);
        for input in inputs {
            // The name stands before the panic in the output of a test that fails.
            println!("{}: {}", target.name, input.name);
            (target.run)(&input.bytes);
        }
    }
}

/// What nobody reads rots: a folder or dictionary without a target.
#[test]
fn what_is_kept_belongs_to_a_target() {
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

/// A panic in a target is what the smoke test is for: it reaches the caller.
#[test]
#[should_panic(expected = "a find")]
fn a_find_is_found() {
    let target = giveway_fuzzing::Target { name: "planted", run: planted, reads: "", smoke: 10_000 };
    let kept = [kept::Input { name: "seed".to_owned(), bytes: b"GIVE".to_vec() }];
    smoke::inputs(&target, &kept, target.smoke, target.run);
}

/// Fails when a bit of a certain byte of the seed is another one.
fn planted(input: &[u8]) {
    assert!(!input.starts_with(b"GAVE") && !input.starts_with(b"GIVD"), "a find");
}
