//! A small paper, from its files to its verdicts.

use std::path::Path;

use giveway_papers::{
    Judged, KeptRun, Observed, Paper, Results, SHIPPED, Scope, Study, Verdict, counted, document, json,
    judge, markdown,
};
use tempfile::TempDir;

use crate::chain;

const PAPER: &str = r#"
title = "Small flows first"
authors = "N. N."
published = "nowhere, 2026"
doi = "10.0/0"
about = "EFD against FIFO."
seeds = 3

[[decision]]
what = "Sizes"
chosen = "30 kB"
why = "The paper is silent."

[disciplines]
fifo = "fifo limit {limit}"
efd = "efd limit {limit}"
drr = "drr limit {limit}"

[[variant]]
id = "as-it-is"
name = "as it is"
short = "as is"
[[variant]]
id = "calm"
name = "with little load"
short = "calm"
set = ["traffic.ftp.load=500 kbit/s"]

[[experiment]]
id = "busy"
name = "3 Mbit/s"
scenario = "small.toml"
limit = "50p"
disciplines = ["fifo", "efd"]
beyond = ["drr"]
variants = ["as-it-is", "calm"]
few = ["calm"]
quick = "5 s"

[[figure]]
id = "1"
title = "Completion times"
caption = "Good is low."
[[figure.panel]]
title = "3 Mbit/s"
experiments = ["busy"]
disciplines = ["fifo", "efd"]
curve = { kind = "response" }
[[figure]]
id = "2"
title = "Table"
caption = "Good is low."
[[figure.panel]]
title = "3 Mbit/s"
experiments = ["busy"]
disciplines = ["efd"]
curve = { kind = "flow_table_histogram" }
[[figure.panel]]
title = "mean"
experiments = ["busy"]
disciplines = ["efd"]
curve = { kind = "bars", axis = "flows", measure = { kind = "metric", name = "flow_table_mean" } }

[[section]]
title = "As it is"
text = "What the paper shows."
variant = "as-it-is"
figures = ["1", "2"]
[[section]]
title = "With little load"
text = "Also with a discipline that the paper does not compare."
variant = "calm"
figures = ["1"]
beyond = true
"#;

const CLAIMS: &str = r#"
[[claim]]
id = "faster"
figure = "1"
source = "section 1"
statement = "EFD is faster than FIFO for small transfers"
paper = "faster"
[[claim.test]]
experiment = "busy"
measure = { kind = "response", to = 20 }
of = "efd"
over = { of = "fifo" }
at_most = 1.0

[[claim]]
id = "slower"
figure = "1"
source = "section 2"
statement = "EFD is a hundred times slower"
paper = "100"
why = "It is not."
[[claim.test]]
experiment = "busy"
measure = { kind = "response", to = 20 }
of = "efd"
over = { of = "fifo" }
at_least = 100.0
[[claim.shown]]
says = "with little load the ratio is"
variant = "calm"
experiment = "busy"
measure = { kind = "response", to = 20 }
of = "efd"
over = { of = "fifo" }

[[claim]]
id = "bounded"
figure = "2"
source = "section 3"
statement = "Both use the link, and the table is small"
paper = "small"
each = { experiment = ["busy"], of = ["fifo", "efd"] }
[[claim.test]]
measure = { kind = "metric", name = "flow_table_max" }
at_most = 50.0

[[claim]]
id = "better-life"
source = "conclusion"
statement = "Life is better with EFD"
paper = "better"
not_testable = "We have no measure for it."

[[claim]]
id = "of-nothing"
source = "conclusion"
statement = "Transfers of a gigabyte are fast"
paper = "fast"
[[claim.test]]
experiment = "busy"
measure = { kind = "response", from = 700000 }
of = "efd"
at_most = 1.0
"#;

const SCENARIO: &str = r#"
duration = "20 s"
disciplines = ["fifo limit 50p"]
[[link]]
from = "a"
to = "b"
rate = "3 Mbit/s"
delay = "5 ms"
qdisc = "compare"
[[traffic]]
kind = "transfers"
name = "ftp"
from = "a"
to = "b"
load = "2700 kbit/s"
size = { fixed = "29200b" }
[[traffic]]
kind = "bulk"
from = "a"
to = "b"
"#;

fn folder(claims: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in [("paper.toml", PAPER), ("claims.toml", claims), ("small.toml", SCENARIO)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn study(scope: Scope) -> Study {
    let folder = folder(CLAIMS);
    Study::new(Paper::find(&folder.path().to_string_lossy()).unwrap(), scope).unwrap()
}

fn all(study: &Study) -> (Results, Vec<Judged>) {
    let jobs = study.jobs();
    let observed = jobs.iter().map(|job| study.run(job, &|_| true)).collect();
    let results = study.finish(&jobs, observed);
    let judged = judge(study, &results);
    (results, judged)
}

fn claim<'a>(judged: &'a [Judged], id: &str) -> &'a Judged {
    judged.iter().find(|claim| claim.id == id).unwrap()
}

#[test]
fn every_claim_gets_its_verdict() {
    let study = study(Scope::default());
    let (results, judged) = all(&study);
    // Three seeds of two disciplines, and of three with little load, where few would be three as well.
    assert_eq!((results.finished, results.planned), (15, 15));
    let verdicts: Vec<(&str, Verdict)> =
        judged.iter().map(|claim| (claim.id.as_str(), claim.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            ("faster", Verdict::Reproduces),
            ("slower", Verdict::Differs),
            ("bounded", Verdict::Reproduces),
            ("better-life", Verdict::NotTestable),
            ("of-nothing", Verdict::NotTestable),
        ]
    );
    let slower = claim(&judged, "slower");
    assert!(slower.why.starts_with("It is not. Measured: with little load the ratio is: "), "{}", slower.why);
    assert!(slower.ours.ends_with("(at least 100; 0 of 3 seeds)"), "{}", slower.ours);
    assert_eq!(slower.otherwise, [("with little load".to_owned(), Verdict::Differs)]);
    assert_eq!(claim(&judged, "better-life").why, "We have no measure for it.");
    assert_eq!(claim(&judged, "bounded").tests.len(), 2, "one for each discipline");
    assert_eq!(claim(&judged, "of-nothing").why, "The event that it is about did not occur in any run.");
    // The answer is the table of verdicts; after it comes the decisive test of each claim with its band.
    let page = document(&study, &results, &judged).html();
    let (forest, table) =
        (page.find("Claims at a glance").unwrap(), page.find("The claims in our words").unwrap());
    assert!(table < forest && page.contains("data-column=\"group\" data-name=\"differs\""));
}

#[test]
fn a_quick_look_leaves_the_variants_out() {
    let study = study(Scope { quick: true, ..Scope::default() });
    let (results, judged) = all(&study);
    assert_eq!(results.planned, 6);
    assert!(judged.iter().all(|claim| claim.otherwise.is_empty()));
    assert_eq!(claim(&judged, "slower").why, "It is not.");
}

#[test]
fn one_figure_has_its_claims_and_no_others() {
    let study = study(Scope { figure: Some("2".into()), seeds: Some(1), ..Scope::default() });
    let (_, judged) = all(&study);
    let ids: Vec<&str> = judged.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, ["bounded"]);
    assert_eq!(claim(&judged, "bounded").tests[0].seeds, 1);
    let paper = Paper::find(&folder(CLAIMS).path().to_string_lossy()).unwrap();
    let error = Study::new(paper, Scope { figure: Some("9".into()), ..Scope::default() }).unwrap_err();
    assert_eq!(error.to_string(), "unknown figure 9; there are: 1, 2");
}

/// Claims whose runs did not finish have no verdict, and are not counted as untestable. The others count.
#[test]
fn a_stopped_study_judges_what_it_has() {
    let study = study(Scope { quick: true, ..Scope::default() });
    let jobs = study.jobs();
    let observed =
        jobs.iter().enumerate().map(|(at, job)| if at == 1 { None } else { study.run(job, &|_| true) });
    let results = study.finish(&jobs, observed.collect());
    let judged = judge(&study, &results);
    assert_eq!((results.finished, claim(&judged, "faster").tests[0].seeds), (5, 2));
    assert_eq!(claim(&judged, "faster").verdict, Verdict::NotRun);
    assert_eq!(claim(&judged, "faster").why, "1 of its 6 runs did not finish.");
    assert_eq!(results.missing, [study.name(&jobs[1])]);
    let nothing = study.finish(&jobs, jobs.iter().map(|_| None).collect());
    let judged = judge(&study, &nothing);
    let verdicts = judged.iter().map(|claim| claim.verdict);
    assert!(verdicts.into_iter().all(|verdict| matches!(verdict, Verdict::NotRun | Verdict::NotTestable)));
    assert_eq!(
        counted(&judged),
        "0 reproduce, 0 differ, 1 could not be tested, 4 were not run, of 5 claims."
    );
    let page = document(&study, &nothing, &judged).html();
    assert!(page.contains("This study is incomplete: 6 of 6 runs did not finish."));
    assert!(page.contains("The same command resumes") && !page.contains("Claims at a glance"));
    assert!(!page.contains("Good is low."), "no stated result under an empty figure");
}

/// A first look has no runs of some experiments of the shipped papers. Their claims have no verdict.
#[test]
fn a_first_look_gives_no_verdict_where_nothing_ran() {
    let mut without_runs = 0;
    for shipped in SHIPPED {
        let paper = Paper::shipped(shipped).unwrap();
        let id = paper.id.clone();
        let study = Study::new(paper, Scope { quick: true, ..Scope::default() }).unwrap();
        let nothing = study.finish(&[], Vec::new());
        for claim in judge(&study, &nothing) {
            let needs_a_run = claim.verdict == Verdict::NotRun;
            let explained =
                claim.why == "A first look leaves out its experiment. Without --quick it is tested.";
            assert_eq!(needs_a_run, explained, "{id}: {}", claim.id);
            assert!(!needs_a_run || claim.ours == "-", "{id}: {}: {}", claim.id, claim.ours);
            without_runs += usize::from(needs_a_run);
        }
    }
    assert!(without_runs > 100, "{without_runs}");
}

/// Every difference in the book is explained.
#[test]
fn every_difference_is_explained() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/papers");
    let mut pages = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let Some((_, after)) = text.split_once("## Differences and their reasons") else { continue };
        pages += 1;
        let differs = text.lines().filter(|line| line.starts_with("| ") && line.ends_with("| **differs** |"));
        for line in differs {
            // The first table has the figure, and the claim with its place in brackets.
            let Some(cell) = line.split(" | ").nth(1) else { continue };
            let mut claims = cell.match_indices(" (").map(|(at, _)| &cell[..at]);
            let explained = claims.any(|claim| after.contains(&format!("- {claim}. ")));
            assert!(explained || !cell.contains(" ("), "{}: {cell}", path.display());
        }
        assert!(!text.contains("No reason is recorded"), "{}", path.display());
    }
    assert!(pages >= 5, "{pages}");
}

/// Runs that were written and read give a resumed study the results of an uninterrupted one.
#[test]
fn a_study_resumes() {
    let study = study(Scope { quick: true, ..Scope::default() });
    let jobs = study.jobs();
    let run = |job| study.run(job, &|_| true).unwrap();
    let kept = |place: usize| -> Observed {
        let text = serde_json::to_string(&KeptRun::of(&run(&jobs[place]))).unwrap();
        serde_json::from_str::<KeptRun>(&text).unwrap().into()
    };
    let mut resumed = vec![Some(kept(0)), Some(kept(1))];
    resumed.extend(jobs[2..].iter().map(|job| Some(run(job))));
    let resumed = study.finish(&jobs, resumed);
    let (uninterrupted, judged) = all(&study);
    assert_eq!(judge(&study, &resumed), judged);
    let page = |results| document(&study, results, &judged).html();
    assert_eq!(page(&resumed), page(&uninterrupted));
    let other = self::study(Scope { quick: true, seeds: Some(2), ..Scope::default() });
    assert_ne!(other.identity(), study.identity());
}

#[test]
fn a_study_has_the_same_result_each_time() {
    let study = study(Scope { quick: true, ..Scope::default() });
    let ((one, judged), (other, again)) = (all(&study), all(&study));
    assert_eq!(judged, again);
    assert_eq!(document(&study, &one, &judged).html(), document(&study, &other, &again).html());
    assert_eq!(counted(&judged), "2 reproduce, 1 differ, 2 could not be tested, of 5 claims.");
    let as_json = json(&study, &one, &judged);
    for key in ["id", "source", "statement", "paper", "ours", "verdict", "why"] {
        assert!(as_json["claims"][1][key].is_string(), "{key}");
    }
    assert!(markdown(&study, &judged).contains("| 1 | EFD is a hundred times slower (section 2) | 100 |"));
}

#[test]
fn mistakes_in_claims_are_reported() {
    let wrong = |from: &str, to: &str| {
        let folder = folder(&CLAIMS.replacen(from, to, 1));
        chain(&Paper::in_folder(Path::new(folder.path())).unwrap_err())
    };
    assert!(wrong("at_most = 1.0", "").ends_with("claim \"faster\": a test needs at_least or at_most"));
    assert!(wrong("experiment = \"busy\"", "experiment = \"bsy\"").contains("unknown experiment \"bsy\""));
    assert!(wrong("variant = \"calm\"", "variant = \"clam\"").contains("has no variant \"clam\""));
    assert!(wrong("kind = \"response\"", "kind = \"respond\"").contains("unknown variant `respond`"));
    assert!(wrong("id = \"slower\"", "id = \"faster\"").contains("two claims \"faster\""));
    assert!(wrong("figure = \"1\"", "figure = \"7\"").contains("about figure 7, which does not exist"));
}

/// The figures with a panel that has data to draw. All numbers are finite.
fn has_data(study: &Study, results: &Results) -> Vec<String> {
    let mut figures = Vec::new();
    for id in study.figure_ids() {
        let figure = study.figure_data(results, id).unwrap();
        if figure.panels.iter().any(|panel| !panel.series.is_empty()) {
            figures.push(id.to_owned());
        }
        for panel in &figure.panels {
            let what = format!("{}, figure {id}, {}", study.id(), panel.title);
            for series in &panel.series {
                assert!(!series.x.is_empty(), "{what}: {}", series.name);
                assert_eq!(series.x.len(), series.y.len(), "{what}: {}", series.name);
                assert_eq!(series.x.len(), series.half_width.len(), "{what}: {}", series.name);
                let numbers = series.x.iter().chain(&series.y).chain(series.half_width.iter().flatten());
                assert!(numbers.into_iter().all(|number| number.is_finite()), "{what}: {}", series.name);
            }
        }
    }
    figures
}

#[test]
fn figures_of_a_study_have_data() {
    let study = study(Scope::default());
    let (results, _) = all(&study);
    assert_eq!(has_data(&study, &results), ["1", "2"]);
    let first = study.figure_data(&results, "1").unwrap();
    let drawn: Vec<(&str, &str)> =
        first.panels.iter().map(|panel| (&*panel.variant, &*panel.section)).collect();
    assert_eq!(drawn, [("as-it-is", "As it is"), ("calm", "With little load")]);
    let names: Vec<&str> = first.panels[1].series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["fifo", "efd", "drr"], "with the discipline beyond the paper");
    assert_eq!(first.panels[0].x.unit.as_deref(), Some("segments"));
    // Ratios to another discipline are no points of a panel.
    assert!(first.panels.iter().all(|panel| panel.stated.is_empty()) && first.claims.len() == 2);
}

/// Table 1 of BSQ has numbers of packets in two minutes. A first look has 12 s of them.
#[test]
fn a_total_of_a_first_look_has_no_verdict() {
    let bsq = SHIPPED.iter().find(|shipped| shipped.id == "bsq").expect("it is shipped");
    let paper = Paper::shipped(bsq).unwrap();
    let scope = Scope { quick: true, seeds: Some(1), figure: Some("tables".to_owned()) };
    let study = Study::new(paper, scope).unwrap();
    let (_, judged) = all(&study);
    let total = claim(&judged, "table1-drop-tail-dropped");
    assert_eq!((total.verdict, &*total.ours), (Verdict::NotRun, "-"));
    assert!(total.why.starts_with("It is about a total"), "{}", total.why);
    let ratio = claim(&judged, "table1-drr-dropped");
    assert_ne!(ratio.verdict, Verdict::NotRun, "{}", ratio.why);
}

/// The quick study of a shipped paper, with one seed.
#[test]
fn figures_of_a_shipped_paper_have_data() {
    let efd = SHIPPED.iter().find(|shipped| shipped.id == "efd").expect("it is shipped");
    let paper = Paper::shipped(efd).unwrap();
    let study = Study::new(paper, Scope { quick: true, seeds: Some(1), ..Scope::default() }).unwrap();
    let (results, _) = all(&study);
    assert_eq!(has_data(&study, &results), study.figure_ids());
    let figures = study.figure_ids().into_iter().map(|id| study.figure_data(&results, id).unwrap());
    let stated = figures.flat_map(|figure| figure.panels).flat_map(|panel| panel.stated);
    assert!(stated.filter(|one| one.ours.is_some()).count() > 10);
}
