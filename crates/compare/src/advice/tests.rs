use giveway_measure::{Estimate, Fingerprint};
use giveway_qdisc::Span;

use super::*;

const UP: Direction = Direction::Up;
const DOWN: Direction = Direction::Down;

/// The metrics of a row, with their values under three seeds.
#[derive(Clone)]
struct Row(DisciplineRow);

impl Row {
    /// Thirty transfers of a direction with queues, of which the median takes so long.
    fn new(qdisc: &str) -> Row {
        let row = DisciplineRow { qdisc: qdisc.to_owned(), seeds: vec![1, 2, 3], metrics: Vec::new() };
        Row(row).with(DOWN, "sojourn_p99_s", 0.4)
    }

    fn with(self, direction: Direction, metric: &str, value: f64) -> Row {
        self.over(direction, metric, [value; 3])
    }

    fn over(mut self, direction: Direction, metric: &str, values: [f64; 3]) -> Row {
        let name = format!("at.{}.{metric}", Link::port(direction));
        self.0.metrics.retain(|(known, _)| *known != name);
        self.0.metrics.push((name, Estimate::over(values.map(Some).to_vec())));
        self
    }

    /// Thirty downloads with this median and 95th percentile, and a call with this delay.
    fn downloads(self, median: [f64; 3], slow: f64, call: f64) -> Row {
        self.with(DOWN, "flows_completed", 30.0)
            .with(DOWN, "flows_incomplete", 0.0)
            .over(DOWN, "fct_p50_s", median)
            .with(DOWN, "fct_p95_s", slow)
            .with(DOWN, "voice_delay_p99_s", call)
    }

    /// One upload that takes this long.
    fn upload(self, time: f64) -> Row {
        self.with(UP, "flows_completed", 1.0).with(UP, "fct_p50_s", time)
    }
}

fn fifo() -> Row {
    Row::new("fifo limit 100p").downloads([1.0, 1.1, 0.9], 4.0, 0.4)
}

fn good(qdisc: &str) -> Row {
    Row::new(qdisc).downloads([0.5, 0.6, 0.4], 1.0, 0.01)
}

/// The advice for these rows. A setup has the metrics of its row.
fn advice(rows: &[Row], target: Target) -> Advice {
    let of = rows.to_vec();
    let same = |shaped: &Shaped<'_>| {
        of.iter().find(|row| row.0.qdisc == shaped.pair.name()).map(|row| row.0.clone())
    };
    deploying(rows, target, &same)
}

fn deploying(rows: &[Row], target: Target, deploy: &dyn Fn(&Shaped<'_>) -> Option<DisciplineRow>) -> Advice {
    let options = AdviceOptions { target, wan: Some("eth0".to_owned()), ..AdviceOptions::default() };
    asked(rows, rows.len() * 3, &options, deploy)
}

fn asked(
    rows: &[Row],
    planned: usize,
    options: &AdviceOptions,
    deploy: &dyn Fn(&Shaped<'_>) -> Option<DisciplineRow>,
) -> Advice {
    asked_with(rows, planned, options, deploy, None)
}

fn asked_with(
    rows: &[Row],
    planned: usize,
    options: &AdviceOptions,
    deploy: &dyn Fn(&Shaped<'_>) -> Option<DisciplineRow>,
    rethink: Option<&Rethink<'_>>,
) -> Advice {
    let pairs: Vec<Pair> = rows.iter().map(|row| Pair::same(row.0.qdisc.parse().unwrap())).collect();
    let rows = rows.iter().map(|row| row.0.clone()).collect();
    let table = Table { rows, fingerprint: Fingerprint::EMPTY, events: 0, bottleneck_packets: None };
    let link = Link { up: Rate::mbit(2), down: Rate::mbit(16), rtt: None, resample: None, hours: None };
    let situation = Situation { missing: 0.0, measured: Span::s(40), resample: None, overhead: None };
    let question = Question {
        table: &table,
        pairs: &pairs,
        planned,
        link: &link,
        situation: &situation,
        options,
        deploy,
        rethink,
    };
    of(&question).expect("there are rows")
}

fn discipline(advice: &Advice) -> Option<&str> {
    advice.setup.as_ref().map(|setup| setup.discipline.as_str())
}

fn sides(advice: &Advice) -> Option<Sides> {
    advice.setup.as_ref().map(|setup| setup.sides)
}

fn reason<'a>(advice: &'a Advice, of: &str) -> &'a str {
    &advice.reasons.iter().find(|(what, _)| *what == of).expect("there is this reason").1
}

/// Summary, effects, reasons and commands, a line each.
fn written(advice: &Advice) -> String {
    let Recommendation { summary, effects, reasons, commands } = advice.recommendation();
    let effects = effects.unwrap_or_default();
    let effects = [effects.head].into_iter().chain(effects.rows).map(|row| row.join(" | "));
    let reasons = reasons.into_iter().map(|(what, text)| format!("{what}: {text}"));
    let commands = commands.into_iter().map(|block| format!("{}: {}", block.title, block.lines.join("; ")));
    let lines =
        [format!("Recommendation: {summary}.")].into_iter().chain(effects).chain(reasons).chain(commands);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn cake_is_recommended_with_its_effects_and_commands() {
    let rows =
        [fifo(), good("fq_codel"), good("cake"), Row::new("efd limit 100p").downloads([0.3; 3], 0.5, 0.005)];
    let advice = advice(&rows, Target::Tc);
    assert_eq!(discipline(&advice), Some("cake"), "as good as fq_codel, with one command");
    assert_eq!(sides(&advice), Some(Sides::Down), "upstream has no queue");
    insta::assert_snapshot!(written(&advice));
}

/// The call is delayed upstream only. A shaper downstream would make the pages slower.
#[test]
fn one_direction_is_recommended_if_the_other_one_loses() {
    let both = |row: Row| row.with(UP, "sojourn_p99_s", 0.7);
    let pages = |row: Row, pages: f64, call: f64| {
        row.with(DOWN, "pages_completed", 30.0).with(DOWN, "page_load_p50_s", pages).with(
            UP,
            "voice_delay_p99_s",
            call,
        )
    };
    let rows = [
        both(pages(Row::new("fifo limit 100p"), 1.0, 0.682)),
        both(pages(Row::new("fq_codel"), 1.0, 0.0135)),
    ];
    let deploy = |shaped: &Shaped<'_>| {
        let call = if shaped.rates[0].is_some() { 0.0135 } else { 0.682 };
        let time = if shaped.rates[1].is_some() { 1.5 } else { 1.0 };
        Some(pages(Row::new("fq_codel"), time, call).0)
    };
    let advice = deploying(&rows, Target::Tc, &deploy);
    assert_eq!(sides(&advice), Some(Sides::Up));
    assert_eq!(advice.summary, "fq_codel at 1.9 Mbit/s upstream; change nothing downstream");
    assert!(
        reason(&advice, "Not chosen")
            .contains("In both directions: the median page load time downstream is 1.50 s instead of 1.00 s"),
        "{}",
        reason(&advice, "Not chosen")
    );
    let commands = &advice.commands[0].lines;
    assert!(commands.iter().all(|line| !line.contains("ifb")), "{commands:?}");
}

/// Only one upload is in the capture, and it is much longer.
#[test]
fn the_loss_of_a_single_large_transfer_disqualifies() {
    let rows = [fifo().upload(20.5), good("fq_codel").upload(29.8)];
    let advice = advice(&rows, Target::Tc);
    assert_eq!(discipline(&advice), None);
    assert_eq!(advice.summary, "Change nothing, unless you accept the losses of fq_codel downstream only");
    assert!(advice.commands[0].title.starts_with("If you accept the losses: "));
    let why = reason(&advice, "Why");
    assert!(why.contains("upstream is 29.8 s instead of 20.5 s"), "{why}");
    assert!(why.ends_with("and a loss disqualifies."), "{why}");
    let tried = advice.tried.expect("the best setup is shown");
    let upload = tried.effects.iter().find(|effect| effect.direction == UP).expect("it is an effect");
    assert_eq!(upload.verdict, Verdict::Worse);
}

/// A shaper at 95 % makes a transfer that fills the line 5 % longer, and a queue that runs empty a little
/// more.
#[test]
fn the_price_of_the_shaper_is_shown_and_does_not_disqualify() {
    let with = |time| advice(&[fifo().upload(20.0), good("fq_codel").upload(time)], Target::Tc);
    for time in [21.05, 22.2] {
        assert_eq!(discipline(&with(time)), Some("fq_codel"), "{time} s");
    }
    let advice = with(21.05);
    let cost = reason(&advice, "Cost");
    assert!(cost.contains("upstream is 21.1 s instead of 20.0 s"), "{cost}");
    assert_eq!(discipline(&with(22.8)), None);
}

/// The pages that are no longer delayed upstream come downstream in less time, where they delay a call a
/// little.
#[test]
fn a_few_milliseconds_of_a_call_do_not_disqualify() {
    let with = |after: f64| {
        let calls = |row: Row, delay: f64| row.with(UP, "voice_delay_p99_s", delay);
        let rows = [calls(fifo(), 0.021), calls(good("fq_codel"), after)];
        discipline(&advice(&rows, Target::Tc)).map(str::to_owned)
    };
    assert_eq!(with(0.0235).as_deref(), Some("fq_codel"));
    assert_eq!(with(0.0275), None);
}

#[test]
fn loss_of_calls_disqualifies() {
    let lossy = |row: Row, loss| row.with(DOWN, "voice_loss", loss);
    let with = |loss| {
        discipline(&advice(&[lossy(fifo(), 0.001), lossy(good("cake"), loss)], Target::Tc)).map(str::to_owned)
    };
    assert_eq!(with(0.001).as_deref(), Some("cake"));
    assert_eq!(with(0.0015).as_deref(), Some("cake"), "one packet in two thousand is not audible");
    assert_eq!(with(0.05), None);
}

/// Of two disciplines with a gain, the better one loses something, so the second one is recommended.
#[test]
fn the_next_discipline_is_tried() {
    let rows = [
        fifo().upload(20.0),
        Row::new("fq_codel").downloads([0.2; 3], 0.5, 0.01).upload(40.0),
        Row::new("codel").downloads([0.5; 3], 1.0, 0.01).upload(20.0),
    ];
    assert_eq!(discipline(&advice(&rows, Target::Tc)), Some("codel"));
}

#[test]
fn a_part_of_the_runs_is_no_reason() {
    let rows = [fifo(), good("cake")];
    let never = |_: &Shaped<'_>| panic!("there is no simulation");
    let advice = asked(&rows, 10, &AdviceOptions::default(), &never);
    assert_eq!((discipline(&advice), advice.summary.as_str()), (None, "None yet"));
    assert!(reason(&advice, "Why").starts_with("6 of 10 runs"), "{}", reason(&advice, "Why"));
    let stopped = deploying(&rows, Target::Tc, &|_| None);
    assert_eq!(stopped.summary, "None yet");
}

/// Think times that the capture leaves open are played both ways, for the setup that is recommended.
#[test]
fn the_gain_depends_on_open_think_times() {
    let rows = [fifo(), good("cake")];
    let same = |shaped: &Shaped<'_>| {
        rows.iter().find(|row| row.0.qdisc == shaped.pair.name()).map(|row| row.0.clone())
    };
    let slower = |row: Row, by: f64| row.over(DOWN, "fct_p50_s", [by; 3]).with(DOWN, "fct_p95_s", by);
    let rethink = |_: &Shaped<'_>, think: &'static str| {
        let by = if think == "most" { 100.0 } else { 1.0 };
        Some([slower(fifo(), by + 1.0).0, slower(good("cake"), by).0])
    };
    let advice = asked_with(&rows, 6, &AdviceOptions::default(), &same, Some(&rethink));
    let text = reason(&advice, "Think times");
    assert!(text.contains("With the least possible ones the times that users wait for are 19 %"), "{text}");
    assert!(text.contains("with the greatest 30 %"), "{text}");
}

/// Small packets of one direction with these waits: median, 95th and 99th percentile.
fn small(qdisc: &str, packets: f64, waits: [f64; 3]) -> Row {
    Row::new(qdisc)
        .with(UP, "small_sojourn_packets", packets)
        .with(UP, "small_sojourn_p50_s", waits[0])
        .with(UP, "small_sojourn_p95_s", waits[1])
        .with(UP, "small_sojourn_p99_s", waits[2])
        .with(UP, "sojourn_p99_s", 0.6)
        .with(DOWN, "sojourn_p99_s", 0.0)
}

/// The highest quantile of the sojourn times of small packets decides that enough of them are behind.
#[test]
fn few_small_packets_are_a_reason_to_change() {
    let advice = |packets, waits| {
        advice(&[small("fifo", packets, [0.3, 0.4, 0.5]), small("fq_codel", packets, waits)], Target::Tc)
    };
    for (packets, label) in [
        (99.0, "95th percentile of the sojourn times of small packets"),
        (100.0, "99th percentile of the sojourn times of small packets"),
        (20.0, "95th percentile of the sojourn times of small packets"),
        (19.0, "median sojourn time of small packets"),
    ] {
        let advice = advice(packets, [0.01, 0.02, 0.03]);
        assert_eq!(discipline(&advice), Some("fq_codel"), "{packets}");
        let why = reason(&advice, "Why");
        assert!(why.contains(&format!("the {label} upstream is")), "{why}");
    }
    assert_eq!(discipline(&advice(99.0, [0.3, 0.4, 0.1])), None, "the 99th percentile is one packet");
    assert_eq!(discipline(&advice(4.0, [0.01, 0.02, 0.03])), None, "four packets say nothing");
}

#[test]
fn another_target_has_other_disciplines() {
    let efd = || Row::new("efd limit 100p").downloads([0.3; 3], 0.5, 0.005);
    let rows = [fifo(), good("cake"), efd()];
    assert_eq!(discipline(&advice(&rows, Target::Openwrt)), Some("cake"));
    assert_eq!(discipline(&advice(&rows, Target::Giveway)), Some("efd limit 100p"));
    assert_eq!(discipline(&advice(&rows, Target::Any)), Some("efd limit 100p"));
    let tc = advice(&rows, Target::Tc);
    assert!(reason(&tc, "Not chosen").contains("efd would be better, but tc does not have it."));
}

/// A discipline that needs to know the future, or a reservation, is never recommended.
#[test]
fn what_nobody_can_have_is_not_recommended() {
    let rows = [fifo(), good("srpt"), good("wf2q")];
    assert_eq!(advice(&rows, Target::Any).summary, "Change nothing");
}

#[test]
fn a_link_that_is_no_bottleneck_is_left_alone() {
    let rows = [fifo().with(DOWN, "sojourn_p99_s", 0.004), good("cake")];
    let advice = advice(&rows, Target::Tc);
    assert_eq!((discipline(&advice), advice.commands.as_slice()), (None, [].as_slice()));
    assert!(reason(&advice, "Why").starts_with("The link is not the bottleneck."));
}

/// Differences of both signs are chance.
#[test]
fn chance_changes_nothing() {
    let rows = [fifo(), Row::new("cake").downloads([1.2, 0.8, 0.9], 4.0, 0.4)];
    assert_eq!(advice(&rows, Target::Tc).summary, "Change nothing");
}

#[test]
fn a_discipline_that_leaves_transfers_unfinished_is_not_chosen() {
    let rows = [
        fifo(),
        Row::new("cake").downloads([0.1; 3], 0.1, 0.001).with(DOWN, "flows_incomplete", 3.0),
        good("fq_codel"),
    ];
    assert_eq!(discipline(&advice(&rows, Target::Tc)), Some("fq_codel"));
}

/// The figures are those that `deploy` returns.
#[test]
fn the_figures_are_those_of_the_deployed_discipline() {
    let rows = [fifo(), good("cake")];
    let deploy = |shaped: &Shaped<'_>| {
        assert_eq!(shaped.rates, [None, Some(Rate::kbit(15_200))]);
        assert!(shaped.by_itself, "cake has a bandwidth");
        assert_eq!(shaped.line.name(), "fifo limit 100p");
        Some(Row::new("cake").downloads([0.625, 0.75, 0.5], 1.25, 0.02).0)
    };
    let advice = deploying(&rows, Target::Tc, &deploy);
    let text = written(&advice);
    assert!(
        text.contains("the 99th percentile of the delay of calls downstream is 20.0 ms instead of 400 ms"),
        "{text}"
    );
    let json = advice.to_json();
    assert_eq!(json["deployed"]["metrics"]["at.far->local.fct_p95_s"]["mean"], 1.25);
    assert_eq!(json["directions"], "downstream");
    assert_eq!(json["rate_upstream_bps"], Value::Null);
}
