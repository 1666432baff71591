//! Honest disciplines pass.

use giveway_judge::{BuiltIn, Observed, Request, Stores, judge, judge_with, text};
use giveway_record::FolderError;
use giveway_record::dataset::Row;
use giveway_trials::{Memory, Silent, Store, processors};

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

/// Counts the judgements in which an honest discipline is rejected, over many secrets, and prints them.
/// Public runs and runs of the baseline are shared, so a judgement takes a few seconds:
/// `GIVEWAY_SECRETS=0..200 cargo test --release -p giveway-judge -- --ignored --nocapture false_rejections`.
/// `GIVEWAY_DISCIPLINES` has some of them, with commas.
#[test]
#[ignore = "it takes hours"]
fn false_rejections() {
    let given = |name: &str, other: &str| std::env::var(name).unwrap_or_else(|_| other.to_owned());
    let secrets = given("GIVEWAY_SECRETS", "0..3");
    let (first, end) = secrets.split_once("..").expect("a range of numbers");
    let secrets = first.parse::<u32>().unwrap()..end.parse::<u32>().unwrap();
    let specs = given("GIVEWAY_DISCIPLINES", &ALL.join(","));
    let (candidate, baseline) = (Shown(Memory::default()), Memory::default());
    let (mut judged, mut rejected) = (0, 0);
    for secret in secrets {
        for spec in specs.split(',') {
            let stores = Stores { candidate: &candidate, baseline: &baseline };
            let request = Request {
                seeds: 1,
                secret: format!("secret {secret}"),
                jobs: given("GIVEWAY_JOBS", "1").parse().unwrap(),
                ..Request::default()
            };
            let judgement = judge_with(&BuiltIn::new(spec), &request, stores, &Silent).unwrap();
            judged += 1;
            if let Some(reason) = &judgement.rejected {
                rejected += 1;
                println!("{secret} {spec}: {}", reason.sentence);
            }
        }
        println!("{judged} judgements until secret {secret}, {rejected} rejected");
    }
    // The rule of three: none of n shows a rate below 3 / n with a confidence of 95 %.
    println!(
        "{rejected} of {judged} judgements rejected; at 95 % below {:.2e} if none",
        3.0 / f64::from(judged)
    );
    assert_eq!(rejected, 0);
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

/// A store that prints how long acknowledgements wait, if they wait longer than other packets.
struct Shown(Memory<Observed>);

impl Store<Observed> for Shown {
    fn find(&self, trial: &Row<()>) -> Option<Observed> {
        self.0.find(trial)
    }

    fn keep(&self, row: Row<Observed>) -> Result<(), FolderError> {
        for seen in &row.result.seen {
            let (acks, others) = (&seen.acks, &seen.others);
            let behind = seen.acks_behind().unwrap_or_default();
            let (waited, held) = (acks.sojourn_mean_s(), acks.held_mean_s());
            let is_shown = (behind > 1.5 && waited > 0.01) || held > 0.001;
            if is_shown && acks.packets.min(others.packets) >= 50 {
                println!(
                    "  behind {behind:.2}: acks {} {waited:.4} s held {held:.5} s, others {} {:.4} s held {:.5} s",
                    acks.packets,
                    others.packets,
                    others.sojourn_mean_s(),
                    others.held_mean_s()
                );
            }
        }
        self.0.keep(row)
    }
}
