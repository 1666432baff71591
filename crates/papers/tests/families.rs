//! A small paper with a family of experiments, from its files to its verdicts and its page.

use giveway_papers::{Judged, Paper, PaperError, Results, Scope, Study, Verdict, document, judge};
use tempfile::TempDir;

use crate::chain;

const PAPER: &str = r#"
title = "One against many"
authors = "N. N."
published = "nowhere, 2026"
doi = "10.0/0"
about = "A TCP transfer against streams that do not yield."
seeds = 3

[disciplines]
fifo = "fifo limit {limit}"
drr = "drr limit {limit}"

[[variant]]
id = "as-it-is"
name = "as it is"
short = "as is"
[[variant]]
id = "short"
name = "with small packets"
short = "small"
set = ["traffic.udp.packet=200b"]

[[variant]]
id = "pages"
name = "pages are counted, not objects"
short = "pages"
set = ["traffic.web.report=pages"]

[[experiment]]
id = "web"
name = "web"
scenario = "web.toml"
limit = "30kb"
disciplines = ["fifo"]
variants = ["as-it-is", "pages"]
quick = "10 s"

[[experiment]]
id = "tcp-udp"
name = "{at} streams"
place = "{at} streams against TCP"
scenario = "small.toml"
set = ["traffic.udp.flows={at}"]
limit = "30kb"
disciplines = ["fifo", "drr"]
variants = ["as-it-is", "short"]
quick = "3 s"
ideal = "500 kbit/s"
[[experiment.point]]
at = 1
[[experiment.point]]
at = 3
ideal = "250 kbit/s"
[[experiment.point]]
at = 4
ideal = "200 kbit/s"
set = ["traffic.udp.rate=400 kbit/s"]
limit = "20kb"

[[figure]]
id = "1"
title = "Bandwidth of TCP"
caption = "Good is 1."
[[figure.panel]]
title = "over streams"
experiments = ["tcp-udp"]
disciplines = ["fifo", "drr"]
curve = { kind = "over", measure = { kind = "normalized", source = "tcp" }, axis = "normalised bandwidth", log_x = true }
[[figure.panel]]
title = "side by side"
experiments = ["tcp-udp"]
disciplines = ["fifo", "drr"]
curve = { kind = "bars", measure = { kind = "metric", name = "backlog_mean_bytes" }, axis = "queue (kB)", log_y = true }
[[figure.panel]]
title = "by packet"
experiments = ["tcp-udp-3"]
variants = ["as-it-is", "short"]
disciplines = ["fifo", "drr"]
curve = { kind = "bars", measure = { kind = "goodput", source = "tcp" }, axis = "goodput (Mbit/s)" }

[[figure]]
id = "2"
title = "Each flow, and the queue"
caption = "With 3 streams."
[[figure.panel]]
title = "flows"
experiments = ["tcp-udp-3"]
disciplines = ["fifo", "drr"]
curve = { kind = "flow_rates", source = "udp" }
[[figure.panel]]
title = "queue"
experiments = ["tcp-udp-3"]
disciplines = ["fifo"]
curve = { kind = "queue" }
[[figure.panel]]
title = "state"
experiments = ["tcp-udp-3"]
disciplines = ["drr"]
curve = { kind = "gauge", name = "flow_table" }
[[figure.panel]]
title = "fairness against state"
experiments = ["tcp-udp"]
disciplines = ["fifo", "drr"]
curve = { kind = "trade", x = { kind = "metric", name = "flow_table_bytes" }, y = { kind = "jain" } }

[[section]]
title = "As it is"
text = "What the paper shows."
variant = "as-it-is"
figures = ["1", "2"]
"#;

const CLAIMS: &str = r#"
[[claim]]
id = "each"
figure = "1"
source = "section 1"
statement = "DRR gives TCP its share, whatever there is beside it"
paper = "1"
each = { experiment = ["tcp-udp"], of = ["drr"] }
[[claim.test]]
measure = { kind = "normalized", source = "tcp" }
at_least = 0.6

[[claim]]
id = "mean"
figure = "1"
source = "section 1"
statement = "FIFO does not, on average"
paper = "less"
[[claim.test]]
across = ["tcp-udp-3", "tcp-udp-4"]
fold = "mean"
measure = { kind = "normalized", source = "tcp" }
of = "fifo"
over = { of = "drr" }
at_most = 0.5
[[claim.test]]
across = ["tcp-udp"]
fold = "max"
measure = { kind = "normalized", source = "tcp" }
of = "fifo"
minus = { experiment = "tcp-udp-1", of = "drr" }
at_most = 0.5

[[claim]]
id = "slope"
figure = "2"
source = "section 2"
statement = "The more streams, the less goodput of TCP"
paper = "falls"
[[claim.test]]
across = ["tcp-udp"]
fold = "slope"
measure = { kind = "goodput", source = "tcp" }
of = "drr"
at_most = 0.0

[[claim]]
id = "state"
figure = "2"
source = "section 2"
statement = "DRR remembers TCP and the three streams, and uses the link"
paper = "4"
[[claim.test]]
experiment = "tcp-udp-3"
measure = { kind = "gauge", name = "flow_table" }
of = "drr"
at_least = 3.9
at_most = 4.0
[[claim.test]]
experiment = "tcp-udp-3"
measure = { kind = "utilization_min" }
of = "drr"
at_least = 0.95

[[claim]]
id = "web"
source = "section 3"
statement = "A page of four objects takes longer than each of them"
paper = "longer"
[[claim.test]]
variant = "pages"
experiment = "web"
measure = { kind = "response", source = "web" }
of = "fifo"
over = { variant = "as-it-is" }
at_least = 2.0
at_most = 4.1
[[claim.test]]
experiment = "web"
measure = { kind = "completed", source = "web", from = 6, to = 7 }
of = "fifo"
at_least = 0.9
"#;

const SCENARIO: &str = r#"
duration = "8 s"
warmup = "2 s"
disciplines = ["fifo limit 30kb"]
[[link]]
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "5 ms"
qdisc = "compare"
[[traffic]]
kind = "bulk"
name = "tcp"
from = "a"
to = "b"
[[traffic]]
kind = "cbr"
name = "udp"
from = "a"
to = "b"
rate = "500 kbit/s"
packet = "500b"
"#;

/// Pages of four objects of 9 kB, one after another.
const WEB: &str = r#"
duration = "20 s"
disciplines = ["fifo limit 30kb"]
[[link]]
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "5 ms"
qdisc = "compare"
[[traffic]]
kind = "web"
from = "b"
to = "a"
think = "500 ms"
objects = { fixed = 4 }
object = { fixed = "9000b" }
parallel = 1
connections = "per_object"
report = "objects"
"#;

fn folder(paper: &str, claims: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in
        [("paper.toml", paper), ("claims.toml", claims), ("small.toml", SCENARIO), ("web.toml", WEB)]
    {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn read(paper: &str, claims: &str) -> Result<Study, PaperError> {
    let folder = folder(paper, claims);
    Study::new(Paper::in_folder(folder.path())?, Scope::default())
}

fn all(study: &Study) -> (Results, Vec<Judged>) {
    let jobs = study.jobs();
    let observed = jobs.iter().map(|job| study.run(job, &|_| true)).collect();
    let results = study.finish(&jobs, observed);
    let judged = judge(study, &results);
    (results, judged)
}

#[test]
fn a_family_is_replaced_by_its_points() {
    let study = read(PAPER, CLAIMS).unwrap();
    let (results, judged) = all(&study);
    // Three points under two variants with two disciplines, web under two with one; three seeds each.
    assert_eq!((results.finished, results.planned), (42, 42));
    let verdicts: Vec<(&str, Verdict)> =
        judged.iter().map(|claim| (claim.id.as_str(), claim.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            ("each", Verdict::Reproduces),
            ("mean", Verdict::Reproduces),
            ("slope", Verdict::Reproduces),
            ("state", Verdict::Reproduces),
            ("web", Verdict::Reproduces),
        ]
    );
    let what: Vec<&str> =
        judged.iter().flat_map(|claim| &claim.tests).map(|test| test.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "normalised bandwidth of tcp, drr, at 1 streams against TCP",
            "normalised bandwidth of tcp, drr, at 3 streams against TCP",
            "normalised bandwidth of tcp, drr, at 4 streams against TCP",
            "normalised bandwidth of tcp, fifo over drr, mean at 3 and 4 streams against TCP",
            "normalised bandwidth of tcp, fifo less drr, at 1 streams against TCP, largest at 1 to 4 streams against TCP",
            "goodput of tcp, drr, slope along 1 to 4 streams against TCP",
            "flow table, mean, drr, at 3 streams against TCP",
            "utilization of the least used link, drr, at 3 streams against TCP",
            "mean completion time of web, fifo over as it is, at web, pages are counted, not objects",
            "share completed of web of 6 to 7 segments, fifo, at web",
        ]
    );
    // A variant is judged if all points have it.
    let otherwise: Vec<&str> = judged.iter().map(|claim| claim.otherwise[0].0.as_str()).collect();
    assert_eq!(otherwise[..4], ["with small packets"; 4]);
}

#[test]
fn figures_draw_families() {
    let study = read(PAPER, CLAIMS).unwrap();
    let (results, judged) = all(&study);
    let page = document(&study, &results, &judged).html();
    for drawn in [
        "normalised bandwidth",
        "fair share",
        "throughput (Mbit/s)",
        "queue (kB)",
        "flow table",
        "maximum memory of the flow table (kB)",
        "Jain's index",
        // The axes of bars: points of the family, and variants.
        "\"1 streams\",\"3 streams\",\"4 streams\"",
        "\"as is\",\"small\"",
    ] {
        assert!(page.contains(drawn), "{drawn}");
    }
    assert!(!page.contains("There is nothing to draw here."));
}

/// The spec of a discipline may contain the number of the point, if the experiment has points.
#[test]
fn the_number_of_a_point_may_be_in_the_spec_of_a_discipline() {
    let wide = PAPER.replacen("drr limit {limit}", "drr limit {limit} quantum {at}500b", 1);
    assert!(read(&wide, CLAIMS).is_ok());
    let half = PAPER.replacen("drr limit {limit}", "drr limit {limit} quantum {at}q", 1);
    let error = chain(&read(&half, CLAIMS).unwrap_err());
    assert!(error.contains("experiment \"tcp-udp-1\"") && error.contains("\"q\" is not a unit"), "{error}");
    let none = PAPER.replacen("[[figure]]", &format!("{ALONE}[[figure]]"), 1);
    assert!(read(&none, CLAIMS).is_ok());
    let error = read(&none.replacen("drr limit {limit}", "drr limit {limit} quantum {at}500b", 1), CLAIMS);
    let error = chain(&error.unwrap_err());
    assert!(
        error.contains("experiment \"alone\" has no points, but the discipline \"drr\" contains {at}"),
        "{error}"
    );
}

/// An experiment without points.
const ALONE: &str = r#"
[[experiment]]
id = "alone"
name = "TCP and one stream"
scenario = "small.toml"
limit = "30kb"
disciplines = ["drr"]
variants = ["as-it-is"]
quick = "3 s"
"#;

#[test]
fn mistakes_are_reported_with_their_place() {
    let paper = |from: &str, to: &str| {
        assert!(PAPER.contains(from), "{from}");
        chain(&read(&PAPER.replacen(from, to, 1), CLAIMS).unwrap_err())
    };
    let claims = |from: &str, to: &str| {
        assert!(CLAIMS.contains(from), "{from}");
        chain(&read(PAPER, &CLAIMS.replacen(from, to, 1)).unwrap_err())
    };
    let says = |error: String, expected: &str| assert!(error.contains(expected), "{error}");
    says(paper("at = 3", "at = 1"), "there are two experiments \"tcp-udp-1\"");
    says(paper("at = 3", "at = nan"), "at = NaN is not a position on an axis");
    says(paper("experiments = [\"tcp-udp\"]", "experiments = [\"tcp-up\"]"), "unknown experiment \"tcp-up\"");
    let none = &PAPER[PAPER.find("[[experiment.point]]").unwrap()..PAPER.find("[[figure]]").unwrap()];
    says(paper(none, ""), "experiment \"tcp-udp\" has {at} in \"{at} streams\", but no points");
    says(
        paper("ideal = \"500 kbit/s\"", ""),
        "figure 1, panel \"over streams\": experiment \"tcp-udp-1\" has no ideal, which \"normalised bandwidth of tcp\"",
    );
    says(
        paper("experiments = [\"tcp-udp-3\"]\ndisciplines", "experiments = [\"tcp-udp\"]\ndisciplines"),
        "figure 2, panel \"flows\": a panel needs one experiment; bars, over and trade may have several",
    );
    says(
        paper("variants = [\"as-it-is\", \"short\"]\ndisciplines", "variants = [\"shot\"]\ndisciplines"),
        "experiment \"tcp-udp-3\" has no variant \"shot\"",
    );
    says(
        paper("title = \"queue\"", "title = \"queue\"\nvariants = [\"short\"]"),
        "figure 2, panel \"queue\": only bars of one experiment may have variants",
    );
    says(
        paper(
            "curve = { kind = \"flow_rates\", source = \"udp\" }",
            "curve = { kind = \"flow_rates\", source = \"upd*\" }",
        ),
        "experiment \"tcp-udp-3\", variant \"as-it-is\": unknown traffic \"upd*\"; there are: tcp, udp",
    );
    says(claims("fold = \"mean\"", ""), "across needs fold: \"mean\", \"max\", \"min\" or \"slope\"");
    says(
        claims("across = [\"tcp-udp-3\", \"tcp-udp-4\"]", "experiment = \"tcp-udp-3\""),
        "fold needs across",
    );
    says(claims("across = [\"tcp-udp\"]", "across = []"), "across names no experiment");
    says(
        claims("fold = \"slope\"", "fold = \"slope\"\nexperiment = \"tcp-udp-1\""),
        "a test has experiment or across, not both",
    );
    says(
        claims("experiment = \"tcp-udp-1\"", "experiment = \"tcp-udp\""),
        "names the family \"tcp-udp\": name one of its points",
    );
    says(
        claims("across = [\"tcp-udp\"]\nfold = \"slope\"", "across = [\"tcp-udp-1\"]\nfold = \"slope\""),
        "a slope needs two points or more",
    );
}

#[test]
fn a_figure_has_its_data() {
    let study = read(PAPER, CLAIMS).unwrap();
    let (results, judged) = all(&study);
    let figure = study.figure_data(&results, "1").unwrap();
    assert_eq!((&*figure.id, &*figure.heading), ("1", "Figure 1: Bandwidth of TCP"));
    let ids: Vec<&str> = figure.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, ["each", "mean"]);
    assert_eq!(figure.claims[0], judged[0]);

    let [over, beside, variants] = &figure.panels[..] else { panic!("there are three panels") };
    assert_eq!(
        (over.curve, over.mark, &*over.variant, &*over.section),
        ("over", "line", "as-it-is", "As it is")
    );
    assert!(over.x.logarithmic && !over.y.logarithmic && over.x.categories.is_empty());
    let drr = &over.series[1];
    assert_eq!(
        (&*drr.name, drr.discipline.as_deref(), drr.kind),
        ("drr", Some("drr limit {limit}"), "measured")
    );
    assert_eq!(drr.x, [1.0, 3.0, 4.0]);
    assert!(drr.half_width.iter().flatten().any(|width| *width > 0.0), "there are three seeds");
    // The claim "each" has a test at each point; "mean" combines several points, and is at none of them.
    let stated: Vec<_> =
        over.stated.iter().map(|one| (&*one.claim, &*one.series, one.x, one.at_least)).collect();
    assert_eq!(stated, [1.0, 3.0, 4.0].map(|x| ("each", "drr", x, Some(0.6))));
    for (one, (y, width)) in over.stated.iter().zip(drr.y.iter().zip(&drr.half_width)) {
        assert_eq!((one.ours, one.paper.as_str(), one.holds), (Some(*y), "1", Some(true)));
        assert!((one.half_width.unwrap() - width.unwrap_or(0.0)).abs() < 1e-9);
    }

    assert_eq!((beside.mark, beside.y.unit.as_deref()), ("bars", Some("kB")));
    assert_eq!(beside.x.categories, ["1 streams", "3 streams", "4 streams"]);
    assert!(beside.stated.is_empty(), "no claim is about the queue");
    assert_eq!(variants.x.categories, ["as is", "small"]);

    let other = study.figure_data(&results, "2").unwrap();
    let curves: Vec<(&str, &str)> = other.panels.iter().map(|panel| (panel.curve, panel.mark)).collect();
    assert_eq!(curves, [("flow_rates", "line"), ("queue", "line"), ("gauge", "line"), ("trade", "points")]);
    let share = other.panels[0].series.last().unwrap();
    assert_eq!((&*share.name, share.kind, share.discipline.as_deref()), ("fair share", "reference", None));
    assert_eq!(study.figure_data(&results, "9"), None);

    // It is plain data.
    let value = serde_json::to_value(&figure).unwrap();
    assert_eq!(value["panels"][0]["stated"][0]["at_least"], 0.6);
    assert_eq!(value["panels"][0]["series"][1]["x"][2], 4.0);
    assert_eq!(value["claims"][1]["paper"], "less");
}
