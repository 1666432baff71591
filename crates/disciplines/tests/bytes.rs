//! The fuzz targets, run on random bytes from a fixed seed, without a fuzzer.

use giveway_disciplines::ALL;
use giveway_qdisc::Streams;

#[test]
fn any_bytes_keep_the_contract() {
    let mut rng = Streams::new(11).within("bytes").rng();
    let tested = crate::tested();
    let all = ALL.iter().enumerate();
    for (discipline, entry) in all.filter(|(_, entry)| tested.iter().any(|one| one.name == entry.name)) {
        for variant in 0..entry.default().variants().len() {
            for _ in 0..40 {
                let mut input = vec![discipline as u8, variant as u8, rng.word() as u8];
                input.extend((0..4 * rng.below(300)).map(|_| rng.word() as u8));
                if let Err(violation) = crate::byte_input::contract(&input) {
                    panic!("{}", violation.0);
                }
            }
        }
    }
    assert!(crate::byte_input::contract(&[]).is_ok() && crate::byte_input::contract(&[0, 0]).is_ok());
}

#[test]
fn any_words_are_read_or_refused() {
    let mut rng = Streams::new(12).within("words").rng();
    let mut words: Vec<String> = ALL.iter().map(|entry| entry.name.to_owned()).collect();
    for entry in ALL {
        words.extend(
            entry
                .default()
                .variants()
                .iter()
                .flat_map(|spec| spec.to_string().split(' ').map(str::to_owned).collect::<Vec<_>>()),
        );
    }
    words.extend(
        [
            "(",
            ")",
            "[",
            "]",
            "",
            " ",
            "child",
            "children",
            "bandwidth",
            "delay",
            "loss",
            "gemodel",
            "slot",
            "priomap",
            "perturb",
            "unlimited",
            "seed",
            "split_gso",
            "tc",
            "qdisc",
            "add",
            "dev",
            "root",
            "handle",
            "1:",
            "refcnt",
            "p",
            "10",
            "25%",
            "no",
            "ü",
            "0",
            "-1",
            "1e9",
            "99999999999999999999p",
        ]
        .map(str::to_owned),
    );
    for _ in 0..20_000 {
        let text: Vec<&str> =
            (0..1 + rng.below(8)).map(|_| words[rng.below(words.len() as u64) as usize].as_str()).collect();
        crate::byte_input::spec(text.join(if rng.below(8) == 0 { "" } else { " " }).as_bytes());
    }
    crate::byte_input::spec(&[0xff, 0xfe]);
}

/// The depth of disciplines inside each other is limited, and deep nesting is refused quickly.
#[test]
fn deep_nesting_is_refused() {
    let nested = |depth: usize| format!("{}fifo{}", "tbf child (".repeat(depth), ")".repeat(depth));
    assert!(nested(16).parse::<giveway_disciplines::Spec>().is_ok());
    let error = nested(17).parse::<giveway_disciplines::Spec>().unwrap_err();
    assert_eq!(error.to_string(), "more than 16 disciplines inside each other");
    crate::byte_input::spec(nested(16).as_bytes());
    crate::byte_input::spec(nested(10_000).as_bytes());
}
