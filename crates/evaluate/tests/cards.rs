//! Whole cards over a few cells.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use giveway_evaluate::{
    Backend, Card, EvaluateError, Kept, OwnRuns, Question, Request, Verdict, axes, chosen, evaluate,
    evaluate_with, json, page, text,
};
use giveway_observe::observe;
use giveway_scenario::Trial;
use giveway_trials::{Bar, DataSet, Frontend, Reuse, Reusing, Silent, Unit};

pub fn request(candidate: &str, against: &[&str], cells: &[&str]) -> Request {
    let names: Vec<String> = cells.iter().map(|name| (*name).to_owned()).collect();
    Request {
        candidate: candidate.to_owned(),
        against: against.iter().map(|name| (*name).to_owned()).collect(),
        seeds: 4,
        first_seed: 1,
        cells: chosen(&names).unwrap(),
        short: true,
        timing: false,
        tune: 0,
        sensitivity: false,
        jobs: 2,
        bed: false,
        source: None,
    }
}

pub fn card(request: Request) -> Card {
    evaluate(request, Backend::Simulator, &Silent).unwrap()
}

/// The verdict in a cell and metric against the first baseline.
pub fn verdict(card: &Card, cell: &str, metric: &str) -> Verdict {
    let place = card.request.cells.iter().position(|one| one.name == cell);
    let line =
        card.lines.iter().find(|line| line.cell == place && line.metric == metric && line.baseline == 0);
    line.unwrap_or_else(|| panic!("{cell} has no {metric}")).compared.verdict
}

#[test]
fn fq_codel_keeps_a_ping_short_that_a_fifo_does_not() {
    let found = card(request("fq_codel", &["fifo limit 1000p"], &["rrul/tcp-8-down"]));
    assert_eq!(verdict(&found, "rrul/tcp-8-down", "src.ping.delay_p95_s"), Verdict::Better);
    let counts = found.counts(Question::Delay, 0);
    assert_eq!((counts.better, counts.worse, counts.label()), (1, 0, "better"));
    // The other way round.
    let found = card(request("fifo limit 1000p", &["fq_codel"], &["rrul/tcp-8-down"]));
    assert_eq!(verdict(&found, "rrul/tcp-8-down", "src.ping.delay_p95_s"), Verdict::Worse);
    // A packet of a fifo costs less.
    assert_eq!(found.counts(Question::Cost, 0).label(), "better");
}

#[test]
fn a_discipline_does_not_differ_from_itself() {
    let found =
        card(request("fq_codel", &["fq_codel limit 10241p"], &["rrul/tcp-8-down", "rfc7928/mix-light"]));
    assert!(found.lines.iter().all(|line| line.compared.verdict == Verdict::Same), "{}", text(&found));
    assert!(text(&found).contains("no difference"));
}

#[test]
fn a_card_has_the_same_bits_with_any_number_of_threads() {
    let asked = request("efd", &["fq_codel"], &["rfc7928/ecn-on", "short-flows/slow-uplink"]);
    let one = card(Request { jobs: 1, ..asked.clone() });
    let three = card(Request { jobs: 3, ..asked });
    assert_eq!(json(&one), json(&three));
    assert_eq!(page(&one).html(), page(&three).html());
}

#[test]
fn a_card_is_repeated_with_the_timing_of_real_machines() {
    let asked = request("fq_codel", &["fifo limit 1000p"], &["rrul/tcp-8-down"]);
    let found = card(Request { timing: true, ..asked });
    assert!(found.lines.iter().filter(|line| line.cell.is_some()).all(|line| line.measured.is_some()));
    assert!(text(&found).contains("Each verdict was repeated with the timing of real machines."));
}

/// With exact phases and the TCP of the RFCs, FQ-PIE has two states on a short path: two equal transfers
/// share the link, or one of them wins. Sampled phases and Linux's senders leave one.
#[test]
fn fq_pie_has_one_state_with_sampled_phases() {
    let asked = request("fq_pie", &["fq_codel"], &["rfc7928/range-short-path"]);
    let found = card(Request { seeds: 10, short: false, ..asked });
    assert!(found.unstable.is_empty(), "{}", text(&found));
}

#[test]
fn mistakes_are_named() {
    let fails = |request: Request| -> String {
        match evaluate(request, Backend::Simulator, &Silent) {
            Err(EvaluateError::Scenario(error)) => error.to_string(),
            Err(error) => error.to_string(),
            Ok(_) => panic!("it should be refused"),
        }
    };
    let cell = ["rrul/tcp-8-down"];
    assert!(fails(request("fq_codle", &["fifo"], &cell)).contains("fq_codel"));
    assert!(fails(request("efd", &[], &cell)).contains("--against"));
    assert!(fails(request("efd", &["efd"], &cell)).contains("compared twice"));
    assert!(fails(Request { seeds: 1, ..request("efd", &["fifo"], &cell) }).contains("two seeds"));
}

/// A request of a card with the own best and the sensitivity.
fn varied(candidate: &str, against: &[&str], cells: &[&str], tune: u32) -> Request {
    Request { tune, sensitivity: true, ..request(candidate, against, cells) }
}

#[test]
fn a_varied_card_has_the_same_bits_with_any_number_of_threads() {
    let asked = varied("efd", &["codel"], &["rfc7928/ecn-on", "short-flows/slow-uplink"], 6);
    let one = card(Request { jobs: 1, ..asked.clone() });
    let three = card(Request { jobs: 3, ..asked });
    assert_eq!(json(&one), json(&three));
    assert_eq!(text(&one), text(&three));
    assert_eq!(page(&one).html(), page(&three).html());
}

/// The runs behind both parts come from a card, so another card has the same verdicts.
#[test]
fn other_cards_reproduce_the_own_best_and_the_sensitivity() {
    let cells = ["rrul/tcp-8-down", "rfc7928/mix-light"];
    let found = card(varied("fifo limit 4p", &["codel", "fq_codel"], &cells, 6));
    let verdicts = |card: &Card| -> Vec<Verdict> {
        let lines = card.lines.iter().filter(|line| line.cell.is_some());
        lines.map(|line| line.compared.verdict).collect()
    };
    let best = found.best.as_ref().unwrap();
    let at_defaults: Vec<Verdict> = best.at_defaults.iter().map(|one| one.verdict).collect();
    assert_eq!(at_defaults, verdicts(&found), "the card is short itself");
    // Four packets are too few for a download of eight flows.
    let [mine, first, second] = &best.settings[..] else { panic!("{}", text(&found)) };
    assert!(mine.kept.is_none() && mine.tuned > 0.1 && mine.fresh > 0.1, "{}", text(&found));
    let again = card(request(&mine.spec, &[&first.spec, &second.spec], &cells));
    let at_best: Vec<Verdict> = best.at_best.iter().map(|one| one.verdict).collect();
    assert_eq!(at_best, verdicts(&again));

    let sensitivity = found.sensitivity.as_ref().unwrap();
    assert_eq!(sensitivity.verdicts as usize, at_defaults.len());
    let shown: Vec<&str> = sensitivity.rows.iter().map(|row| row.spec.as_str()).collect();
    assert_eq!(shown, ["fifo limit 3p", "fifo limit 5p"]);
    let row = &sensitivity.rows[0];
    let again = card(request(&row.spec, &["codel", "fq_codel"], &cells));
    let differ = verdicts(&again).iter().zip(&at_defaults).filter(|(one, other)| one != other).count();
    assert_eq!(row.changes.changed + row.changes.decided + row.changes.undecided, differ as u32);
    let moved = row.most.as_ref().expect("a shorter queue has shorter delays");
    let line = again.lines.iter().find(|line| line.cell == Some(moved.cell) && line.metric == moved.metric);
    assert_eq!(line.and_then(|line| line.compared.difference.as_ref()).unwrap().after, moved.after);
}

/// A card names the disciplines that it cannot vary.
#[test]
fn a_discipline_in_code_and_one_without_parameters_are_named() {
    let asked = varied("mine", &["fifo limit 20p", "prio"], &["rrul/tcp-8-down"], 4);
    // It does what the first baseline does.
    let own: &mut OwnRuns<'_> = &mut |scenario, seed| {
        let trial = Trial { discipline: 0, name: "mine".to_owned(), seed };
        Ok(observe(scenario, &trial, false, &|_| true).expect("nothing stops it").0)
    };
    let source = Some("class Mine: ...".to_owned());
    let found = evaluate(Request { source, ..asked }, Backend::Own(own), &Silent).unwrap();
    let best = found.best.as_ref().unwrap();
    let kept: Vec<Option<Kept>> = best.settings.iter().map(|setting| setting.kept).collect();
    assert_eq!(kept[0], Some(Kept::Unknown));
    assert_ne!(kept[1], Some(Kept::Unknown));
    assert!(text(&found).contains("the parameters of mine are not known"), "{}", text(&found));
    assert_eq!(json(&found)["sensitivity"]["parameters_known"], false);
    // The first measures do not differ from those of its twin at the default.
    assert!(best.at_defaults.iter().take(2).all(|one| one.verdict == Verdict::Same));
}

/// The number of metrics that a parameter changes in the mean.
fn moved(candidate: &str, request_of: &dyn Fn(&str) -> Request) -> f64 {
    let found = card(Request { sensitivity: true, ..request_of(candidate) }).sensitivity.unwrap();
    for row in &found.rows {
        println!("{}: {} better, {} worse, {:?}", row.spec, row.better, row.worse, row.changes);
    }
    found.mean_moved().unwrap()
}

/// RED is known to need other parameters for other links; CoDel was designed to need none. In all cells RED
/// has twice as many changed metrics; these are the cells with downloads and uploads.
#[test]
fn red_is_more_sensitive_than_codel() {
    let request_of = |candidate: &str| Request { seeds: 6, ..request(candidate, &["fifo"], &["rrul"]) };
    let (red, codel) = (moved("red", &request_of), moved("codel", &request_of));
    assert!(red > codel, "{red} {codel}");
}

/// PIE, too, was designed to need no other parameters for other links. This takes minutes: `cargo test
/// --release -p giveway-evaluate --test all -- red_is --ignored --nocapture`.
#[test]
#[ignore = "it takes minutes"]
fn red_is_more_sensitive_than_codel_and_pie_in_all_cells() {
    let request_of = |candidate: &str| Request { seeds: 10, ..request(candidate, &["fifo"], &[]) };
    let [red, codel, pie] = ["red", "codel", "pie"].map(|candidate| moved(candidate, &request_of));
    println!("red {red:.3}, codel {codel:.3}, pie {pie:.3} metrics");
    assert!(red > codel && red > pie, "{red} {codel} {pie}");
}

/// A front end that stops when a number of thousandths of runs are done.
struct Stopping {
    done: Arc<AtomicU64>,
    after: u64,
}

impl Frontend for Stopping {
    fn message(&self, _: &str) {}

    fn stopped(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.after
    }

    fn bar(&self, _: &str, _: u64, _: Unit) -> Box<dyn Bar> {
        struct Counting(Arc<AtomicU64>);
        impl Bar for Counting {
            fn advance(&self, steps: u64) {
                self.0.fetch_add(steps, Ordering::Relaxed);
            }
        }
        Box::new(Counting(self.done.clone()))
    }
}

/// A card that was stopped, or killed, resumes with the runs that its folder has. In the end it has the card
/// and the data set of an uninterrupted one. Another card takes the runs of its baseline from there.
#[test]
fn a_card_resumes_and_shares_its_runs() {
    let asked = Request { tune: 2, ..request("pie", &["fifo limit 1000p"], &["rrul/tcp-8-down"]) };
    let run = |dir: &Path, request: &Request, reuse: &Reuse, after: u64| {
        let data = DataSet::open(dir, &axes(), giveway_sources::SIMULATION, &Silent).unwrap();
        let before = data.count();
        let frontend = Stopping { done: Arc::default(), after };
        let store = Reusing::new(&data, reuse);
        let card = evaluate_with(request.clone(), Backend::Simulator, &store, &frontend);
        data.complete().unwrap();
        (card, before, data.count(), store.taken.load(Ordering::Relaxed))
    };
    let bytes = |dir: &Path| {
        let mut parts: Vec<_> =
            std::fs::read_dir(dir.join("trials")).unwrap().map(|entry| entry.unwrap().path()).collect();
        parts.sort();
        parts.iter().map(|part| std::fs::read(part).unwrap()).collect::<Vec<_>>()
    };
    let (none, whole, halves) =
        (Reuse::default(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (uninterrupted, _, all, _) = run(whole.path(), &asked, &none, u64::MAX);
    let (stopped, _, some, _) = run(halves.path(), &asked, &none, 5_000);
    assert!(matches!(stopped, Err(EvaluateError::Stopped)));
    assert!((2..all).contains(&some), "{some} of {all}");
    let (resumed, before, after, _) = run(halves.path(), &asked, &none, u64::MAX);
    assert_eq!((before, after), (some, all));
    assert_eq!(json(&resumed.unwrap()), json(&uninterrupted.unwrap()));
    assert_eq!(bytes(halves.path()), bytes(whole.path()));

    let other = Request { tune: 0, ..request("codel", &["fifo limit 1000p"], &["rrul/tcp-8-down"]) };
    let alone = tempfile::tempdir().unwrap();
    let reuse = Reuse::of(&[whole.path().to_owned()], &Silent).unwrap();
    let (shared, _, kept, taken) = run(alone.path(), &other, &reuse, u64::MAX);
    assert_eq!((kept, taken), (8, 4), "four of the eight runs are those of the fifo");
    assert_eq!(json(&shared.unwrap()), json(&card(other)));
}
