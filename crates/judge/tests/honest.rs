//! Honest disciplines pass.

use giveway_judge::{BuiltIn, Request, judge, text};
use giveway_trials::{Silent, processors};

/// Disciplines of every family, with and without state for each flow, and with randomness.
const SOME: &[&str] = &["fifo", "red", "pie", "fq_codel", "cake", "efd", "las", "trr_sound"];

/// All that need neither labels, hops nor classes, and have no shaper.
const ALL: &[&str] = &[
    "fifo",
    "pfifo_fast",
    "prio",
    "drr",
    "sfq",
    "fq",
    "fq_codel",
    "fq_pie",
    "cake",
    "red",
    "ared",
    "gred",
    "choke",
    "sfb",
    "codel",
    "pie",
    "dualpi2",
    "qfq",
    "wrr",
    "srr",
    "scfq",
    "stfq",
    "afd",
    "efd",
    "run2c",
    "xprotect",
    "pias",
    "las",
    "lars",
    "srpt",
    "cobalt",
    "pi2",
    "pip",
    "vc",
    "wfq",
    "wf2q",
    "tss",
    "trr_sound",
    "vtrr",
    "ets",
];

fn accepted(specs: &[&str], secret: &str, seeds: u32) {
    let mut wrong = Vec::new();
    for spec in specs {
        let request = Request { seeds, secret: secret.to_owned(), jobs: processors(), ..Request::default() };
        let judgement = judge(&BuiltIn::new(spec), &request, &Silent).unwrap();
        if judgement.rejected.is_some() {
            wrong.push(text(&judgement));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_disciplines_of_every_family_are_accepted() {
    accepted(SOME, "a secret", 1);
}

/// With more seeds and secrets, which takes minutes: `cargo test --release -p giveway-judge -- --ignored`.
#[test]
#[ignore = "it takes minutes"]
fn all_disciplines_are_accepted() {
    for secret in ["one", "two", "three"] {
        accepted(ALL, secret, 2);
    }
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_the_same_secret_gives_the_same_judgement() {
    let judged = |secret: &str, jobs: usize| {
        let request = Request { seeds: 1, secret: secret.to_owned(), jobs, ..Request::default() };
        judge(&BuiltIn::new("sfq"), &request, &Silent).unwrap()
    };
    let one = judged("one", 1);
    assert_eq!(one, judged("one", 3));
    let two = judged("two", 2);
    // Public cells do not depend on the secret, and held-out ones do.
    assert_eq!(one.public, two.public);
    assert_ne!(one.held_out, two.held_out);
}
