//! The assertions of the fuzz target, tested without a fuzzer on its seeds and on mutations of them.

use std::path::PathBuf;

use giveway_qdisc::{Label, Streams};
use giveway_wire::WireError;

/// Every seed with its name.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/label");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the seeds are there").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().expect("a file").to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

/// Packets with labels, without, and some that are refused.
#[test]
fn the_names_of_seeds_match_their_contents() {
    let corpus = corpus();
    assert!(corpus.len() > 10, "{}", corpus.len());
    for (name, packet) in corpus {
        let found = crate::byte_input::label(&packet);
        match &name[..] {
            "ipv4-two-labels" => assert_eq!(found, Err(WireError::Twice { first: 20, second: 24 })),
            "ipv6-jumbo" => assert!(matches!(found, Err(WireError::Malformed { at: 4, .. })), "{found:?}"),
            _ => assert_eq!(found.unwrap() != Label::NONE, name.contains("label"), "{name}"),
        }
    }
}

/// A packet that is truncated within the headers up to the label is refused. Truncated behind them, it has
/// the label of the whole packet.
#[test]
fn every_truncation_of_every_seed() {
    for (name, packet) in corpus() {
        let whole = crate::byte_input::label(&packet);
        let mut refused = 0;
        for length in 0..packet.len() {
            match crate::byte_input::label(&packet[..length]) {
                Err(WireError::CutOff { bytes, .. }) => refused += usize::from(bytes == length),
                Err(WireError::NotIp(version)) => assert_eq!((length, version), (0, None)),
                found => assert_eq!(found, whole, "{name}, {length} bytes of it"),
            }
        }
        assert!(refused >= 19, "{name}: {refused}");
    }
}

/// Bytes are changed, removed and inserted.
#[test]
fn mutations_of_seeds() {
    let corpus = corpus();
    let mut rng = Streams::new(13).within("labels").rng();
    let (mut labelled, mut refused) = (0, 0);
    for round in 0..50_000 {
        let mut packet = corpus[round % corpus.len()].1.clone();
        for _ in 0..=rng.below(4) {
            // Options and lengths are in the first 60 bytes.
            let at = (rng.below(60) as usize).min(packet.len() - 1);
            match rng.below(4) {
                0 => packet[at] ^= 1 << rng.below(8),
                1 => packet[at] = [0, 1, 2, 4, 0x3e, 0x9e, 0xff][rng.below(7) as usize],
                2 if packet.len() > 1 => drop(packet.remove(at)),
                _ => packet.insert(at, rng.below(256) as u8),
            }
        }
        match crate::byte_input::label(&packet) {
            Ok(Label::NONE) => {}
            Ok(_) => labelled += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(labelled > 5_000 && refused > 5_000, "{labelled} with a label, {refused} refused");
}
