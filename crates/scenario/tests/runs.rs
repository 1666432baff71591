//! Networks that scenarios describe: their ports, their traffic and their runs.

use std::path::{Path, PathBuf};

use giveway_qdisc::{Meta, Probe, Span, Time};
use giveway_scenario::{Draft, Network, Scenario};
use giveway_sim::Segment;

const DUMBBELL: &str = r#"
duration = "2 s"
warmup = "500 ms"
seeds = [3, 9]
disciplines = ["fifo limit 100p", "fifo limit 10p"]

[[link]]
from = "s[1-3]"
to = "left"
rate = "1 Gbit/s"
delay = "1 ms"

[[link]]
from = "left"
to = "right"
rate = "5 Mbit/s"
delay = "8 ms"
qdisc = "compare"
loss = "1%"
cost = 2
[link.back]
rate = "20 Mbit/s"

[[link]]
from = "right"
to = "d[1-3]"
rate = "1 Gbit/s"
delay = "1 ms"

[[traffic]]
kind = "bulk"
from = "s[1-3]"
to = "d[1-3]"
spread = "0 s"

[[traffic]]
kind = "cbr"
name = "call"
from = "s1"
to = "d2"
rate = "100 kbit/s"
"#;

fn dumbbell() -> Scenario {
    Scenario::parse(DUMBBELL, ".").expect("it is valid")
}

fn network(scenario: &Scenario) -> &Network {
    scenario.network().expect("the backend is a network")
}

#[test]
fn links_have_two_directions_and_ranges_have_many() {
    let scenario = dumbbell();
    let network = network(&scenario);
    let ports: Vec<String> = network
        .ports
        .iter()
        .map(|port| format!("{} {} {} {} {}", port.name, port.rate, port.delay, port.loss, port.cost))
        .collect();
    insta::assert_snapshot!(ports.join("\n"), @r#"
    s1->left 1gbit 1ms 0 1
    left->s1 1gbit 1ms 0 1
    s2->left 1gbit 1ms 0 1
    left->s2 1gbit 1ms 0 1
    s3->left 1gbit 1ms 0 1
    left->s3 1gbit 1ms 0 1
    left->right 5mbit 8ms 0.01 2
    right->left 20mbit 8ms 0 2
    right->d1 1gbit 1ms 0 1
    d1->right 1gbit 1ms 0 1
    right->d2 1gbit 1ms 0 1
    d2->right 1gbit 1ms 0 1
    right->d3 1gbit 1ms 0 1
    d3->right 1gbit 1ms 0 1
    "#);
    assert_eq!(network.nodes.join(" "), "s1 left s2 s3 right d1 d2 d3");
    let measured: Vec<&str> =
        network.measured.iter().map(|port| network.ports[port.0 as usize].name.as_str()).collect();
    assert_eq!(measured, ["left->right"]);
    assert_eq!(network.sample, giveway_qdisc::Span::ms(2), "a thousandth of the duration");
}

#[test]
fn nodes_are_paired_and_the_default_name_is_the_kind() {
    let scenario = dumbbell();
    let network = network(&scenario);
    let named = |(from, to): &(u16, u16)| {
        format!("{}->{}", network.nodes[usize::from(*from)], network.nodes[usize::from(*to)])
    };
    let traffic: Vec<String> = network
        .traffic
        .iter()
        .map(|stream| {
            format!("{}: {}", stream.name, stream.pairs.iter().map(named).collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(traffic, ["bulk: s1->d1 s2->d2 s3->d3", "call: s1->d2"]);
}

#[test]
fn names_of_nodes_can_be_numbers() {
    let text = DUMBBELL.replace("s[1-3]", "[1-3]").replace("\"s1\"", "\"1\"");
    let scenario = Scenario::parse(&text, ".").expect("it is valid");
    let network = network(&scenario);
    assert_eq!(network.nodes[..4], ["1", "left", "2", "3"]);
    assert_eq!(network.ports[0].name, "1->left");
    assert_eq!(network.traffic[0].pairs.len(), 3);
}

#[test]
fn every_discipline_runs_with_every_seed() {
    let names: Vec<String> =
        dumbbell().trials().iter().map(|trial| format!("{} #{}", trial.name, trial.seed)).collect();
    assert_eq!(names, ["fifo limit 100p #3", "fifo limit 100p #9", "fifo limit 10p #3", "fifo limit 10p #9"]);
    let five: Vec<u64> = dumbbell().with_seeds(2).trials().iter().map(|trial| trial.seed).collect();
    assert_eq!(five, [1, 2, 1, 2]);
}

/// The sent datagrams and the delivered packets of a run.
#[derive(Default, PartialEq, Debug)]
struct Received {
    /// The times at which datagrams were sent.
    datagrams: Vec<Time>,
    /// The number of delivered packets, and the time of the last one.
    delivered: (u64, Time),
}

impl Probe<Segment> for Received {
    fn on_emission(&mut self, _: u16, _: &Meta, segment: &Segment, now: Time) {
        if segment.has(Segment::DATAGRAM) {
            self.datagrams.push(now);
        }
    }
    fn on_delivery(&mut self, _: u16, _: &Meta, _: &Segment, now: Time) {
        self.delivered = (self.delivered.0 + 1, now);
    }
}

fn run(scenario: &Scenario, trial: usize) -> Received {
    let mut received = Received::default();
    network(scenario)
        .run(&scenario.trials()[trial], &mut received, &|_| true)
        .expect("the run is not stopped");
    received
}

#[test]
fn arrivals_depend_on_the_seed_and_not_on_the_discipline() {
    let scenario = dumbbell();
    let [long, other_seed, short] = [0, 1, 2].map(|trial| run(&scenario, trial));
    assert!(long.datagrams.len() > 20, "the call sent too few datagrams");
    assert_eq!(long.datagrams, short.datagrams, "the same seed with another discipline");
    assert_ne!(long.delivered, short.delivered, "TCP depends on the discipline");
    assert_ne!(long.datagrams, other_seed.datagrams);
    assert_eq!(run(&scenario, 0), long, "a run can be repeated");
}

/// The dumbbell has a round trip of 20 ms.
#[test]
fn seeds_sample_the_starts_of_traffic_within_a_round_trip() {
    let starts = |phase: &str| -> Vec<Time> {
        let scenario = Draft::parse(DUMBBELL, ".").set(phase).set("traffic.call.start=\"1 s\"");
        let scenario = scenario.set("seeds=8").finish().unwrap();
        let network = network(&scenario);
        let start = |trial| network.plan(trial).sources[1].start;
        scenario.trials().iter().filter(|trial| trial.discipline == 0).map(start).collect()
    };
    assert!(starts("phase=\"exact\"").iter().all(|start| *start == Time::s(1)));
    let sampled = starts("phase=\"sampled\"");
    assert!(sampled.iter().all(|start| (Time::s(1)..=Time::ms(1020)).contains(start)), "{sampled:?}");
    assert!(sampled.windows(2).all(|two| two[0] != two[1]), "{sampled:?}");
    let (first, last) = (sampled.iter().min().unwrap(), sampled.iter().max().unwrap());
    assert!(last.since(*first) > Span::ms(5), "{sampled:?}");
}

#[test]
fn arrivals_do_not_depend_on_other_traffic() {
    let less = DUMBBELL.replace("spread = \"0 s\"", "flows = 3");
    let less = Scenario::parse(&less, ".").expect("it is valid");
    assert_eq!(run(&less, 0).datagrams, run(&dumbbell(), 0).datagrams);
}

#[test]
fn a_stopped_run_has_no_result() {
    let scenario = dumbbell();
    let trial = &scenario.trials()[0];
    let shares = std::cell::RefCell::new(Vec::new());
    let keep_running = |share: f64| {
        shares.borrow_mut().push(share);
        share < 0.5
    };
    assert_eq!(network(&scenario).run(trial, &mut (), &keep_running), None);
    assert!(shares.borrow().is_sorted() && shares.borrow().last() == Some(&0.5));
}

#[test]
fn a_flag_changes_the_key_that_it_names() {
    let changed = |flags: &[&str]| {
        let draft = flags.iter().fold(Draft::parse(DUMBBELL, "."), |draft, flag| draft.set(flag));
        draft.finish().expect("it is valid")
    };
    assert_eq!(changed(&["duration=5s"]).duration, giveway_qdisc::Span::s(5));
    assert_eq!(network(&changed(&["link.1.rate = 7mbit"])).ports[6].rate, giveway_qdisc::Rate::mbit(7));
    assert_eq!(
        network(&changed(&["link.left->right.back.rate=1mbit"])).ports[7].rate,
        giveway_qdisc::Rate::mbit(1)
    );
    assert_eq!(network(&changed(&["tcp.congestion=reno"])).traffic[0].tcp.congestion.name(), "reno");
    assert_eq!(changed(&["traffic.call.packet=500b"]).trials().len(), 4);
    assert_eq!(network(&changed(&["disciplines=fifo"])).disciplines.len(), 1);
    assert_eq!(changed(&["seeds=[5]"]).seeds, [5]);
    assert_eq!(changed(&["disciplines.1=fifo limit 20p", "seeds=1"]).trials()[1].name, "fifo limit 20p");
}

#[test]
fn a_scenario_with_flags_can_be_written_and_read() {
    let scenario = Draft::parse(DUMBBELL, ".").set("link.1.rate=7mbit").finish().expect("it is valid");
    let again = Scenario::parse(&scenario.text(), ".").expect("the written scenario is valid");
    assert_eq!(run(&again, 0), run(&scenario, 0));
    assert!(scenario.text().starts_with("# Changed by flags:\n# --set link.1.rate=7mbit\n"));
    assert_eq!(dumbbell().text(), DUMBBELL, "without flags the text is the file");
}

/// The flags are written as a comment. A comment of TOML ends with its line, and has no control characters.
#[test]
fn a_flag_of_several_lines_is_written_in_one_line() {
    let flag = "title=\"\"\"two\nduration = 7\"\"\"";
    for flag in [flag, "title=a\u{2}b"] {
        let scenario =
            Draft::parse(DUMBBELL, ".").set(flag).finish().unwrap_or_else(|error| panic!("{error}"));
        let again = Scenario::parse(&scenario.text(), ".").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((again.title, again.duration), (scenario.title.clone(), scenario.duration));
    }
}

#[test]
fn the_warm_up_of_a_quick_check_is_in_proportion() {
    let long = DUMBBELL.replace("\"2 s\"", "\"100 s\"").replace("\"500 ms\"", "\"20 s\"");
    let short = Scenario::parse(&long, ".").unwrap().short().unwrap();
    assert_eq!((short.duration, short.warmup), (giveway_qdisc::Span::s(5), giveway_qdisc::Span::s(1)));
    assert_eq!(short.seeds, [1]);
    let own = format!("{long}\n[short]\nduration = \"3 s\"\nwarmup = \"2 s\"\nseeds = 4");
    let own = Scenario::parse(&own, ".").unwrap().short().unwrap();
    assert_eq!(
        (own.duration, own.warmup, own.seeds.len()),
        (giveway_qdisc::Span::s(3), giveway_qdisc::Span::s(2), 4)
    );
    let already = dumbbell().short().unwrap();
    assert_eq!((already.duration, already.warmup), (giveway_qdisc::Span::s(2), giveway_qdisc::Span::ms(500)));
}

#[test]
fn a_scenario_without_comparison_measures_all_ports() {
    let text =
        DUMBBELL.replace("qdisc = \"compare\"", "qdisc = \"fifo limit 50p\"").replace("disciplines", "#");
    let scenario = Scenario::parse(&text, ".").expect("it is valid");
    assert_eq!(network(&scenario).measured.len(), network(&scenario).ports.len());
    let named = Scenario::parse(&format!("{text}\n[record]\nport = \"left->right\""), ".").unwrap();
    assert_eq!(network(&named).disciplines[0].to_string(), "fifo limit 50p");
}

#[test]
fn the_scenarios_of_the_repository_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = scenarios(&root);
    assert!(files.len() >= 2 + giveway_disciplines::ALL.len(), "{files:?}");
    for file in files {
        let scenario = Draft::load(&file)
            .expect("the file can be read")
            .finish()
            .unwrap_or_else(|error| panic!("{error}"));
        // The parameters of benchmarks and papers are given, and a scenario of one discipline may show an
        // effect that a lint warns of. The scenarios of the top folder are for a first run: no warnings.
        if file.parent() == Some(&root) {
            let diagnostics = scenario.warnings.clone();
            let warnings = giveway_scenario::ScenarioError { origin: scenario.origin().clone(), diagnostics };
            assert_eq!(warnings.to_string(), "", "{}", file.display());
        }
        scenario.short().unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Every scenario in a folder. The folder also contains the golden fingerprints.
fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path());
    let found = entries.flat_map(|path| if path.is_dir() { scenarios(&path) } else { vec![path] });
    let is_one = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
    found.filter(is_one).collect()
}

/// The samples of senders, and the bytes that their flows delivered.
#[derive(Default)]
struct Senders {
    /// For each sample the flow, the time and the acknowledged bytes.
    samples: Vec<(u64, Time, u64)>,
    /// For each flow its number and its delivered bytes.
    delivered: Vec<(u64, u64)>,
}

impl Probe<Segment> for Senders {
    fn on_sender(&mut self, sample: &giveway_qdisc::SenderSample) {
        self.samples.push((sample.id, sample.now, sample.acked));
    }
    fn on_flow(&mut self, report: &giveway_qdisc::FlowReport) {
        self.delivered.push((report.id, report.delivered));
    }
}

/// With `senders = true` the acknowledged bytes of senders are sampled. They never decrease and never exceed
/// the delivered bytes. At the end of the run the difference is at most the acknowledgements in flight.
#[test]
fn samples_have_the_acknowledged_bytes_of_senders() {
    let sampled = |keys: &str| {
        let scenario = Scenario::parse(&format!("{DUMBBELL}\n[record]\n{keys}"), ".").expect("it is valid");
        let mut senders = Senders::default();
        network(&scenario)
            .run(&scenario.trials()[0], &mut senders, &|_| true)
            .expect("the run is not stopped");
        (senders, network(&scenario).episodes)
    };
    let (quiet, episodes) = sampled("");
    assert!(quiet.samples.is_empty() && !episodes);
    let (senders, episodes) = sampled("senders = true\nsample = \"100 ms\"\nepisodes = true");
    assert!(episodes);
    for id in 0..3 {
        let samples: Vec<(Time, u64)> =
            senders.samples.iter().filter(|(of, ..)| *of == id).map(|(_, at, acked)| (*at, *acked)).collect();
        assert!(samples.len() == 20 && samples.is_sorted_by_key(|(_, acked)| *acked), "{samples:?}");
        let (at, acked) = samples[19];
        assert_eq!(at, Time::s(2));
        let delivered = senders.delivered.iter().find(|(of, _)| *of == id).expect("each flow is reported").1;
        assert!(acked > 50_000 && acked <= delivered, "{acked} of {delivered} bytes");
        // An acknowledgement takes 10 ms, in which 5 Mbit/s deliver 6,250 bytes. Every second segment is
        // acknowledged.
        assert!(delivered - acked <= 6_250 + 2 * 1_500, "{acked} of {delivered} bytes");
    }
}

/// By default outages apply to both directions. `back` can have others.
#[test]
fn an_outage_is_that_of_both_directions() {
    let outages = |text: &str| {
        let text = DUMBBELL.replace("cost = 2\n", &format!("cost = 2\noutages = {text}\n"));
        let scenario = Scenario::parse(&text, ".").expect("it is valid");
        [6, 7].map(|port: usize| network(&scenario).ports[port].outages.clone())
    };
    let second = [(Time::ms(500), Time::ms(1500))];
    assert_eq!(outages(r#"[{ at = "500 ms", lasts = "1 s" }]"#), [second.to_vec(), second.to_vec()]);
    let own = DUMBBELL.replace(
        "rate = \"20 Mbit/s\"",
        "rate = \"20 Mbit/s\"\noutages = [{ at = \"500 ms\", lasts = \"1 s\" }]",
    );
    let own = Scenario::parse(&own, ".").expect("it is valid");
    let ports = &network(&own).ports;
    assert!(ports[6].outages.is_empty() && ports[7].outages == second);
    // The only path is down for one of two seconds: fewer packets are delivered, and TCP recovers.
    let down = DUMBBELL.replace("cost = 2\n", "cost = 2\noutages = [{ at = \"500 ms\", lasts = \"1 s\" }]\n");
    let down = run(&Scenario::parse(&down, ".").expect("it is valid"), 0).delivered.0;
    let up = run(&dumbbell(), 0).delivered.0;
    assert!((up / 10..up * 7 / 10).contains(&down), "{down} of {up}");
}

/// Entries with the same name are one group in tables. Each uses its own random streams, which depend on
/// its nodes.
#[test]
fn entries_with_the_same_name_have_different_ids() {
    let text = |order: [&str; 3]| {
        let head = "duration = \"2 s\"\ndisciplines = [\"fifo\"]\n\
                    [[link]]\nfrom = \"[1-3]\"\nto = \"d\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqdisc = \"compare\"\n";
        let entry = |from: &str| {
            format!(
                "[[traffic]]\nkind = \"poisson\"\nname = \"rain\"\nfrom = \"{from}\"\nto = \"d\"\nrate = \"100kbit\"\n"
            )
        };
        format!("{head}{}", order.map(entry).concat())
    };
    let ids = |order| {
        let scenario =
            Scenario::parse(&text(order), "").unwrap_or_else(|error| panic!("{:?}", error.diagnostics));
        let network = scenario.network().expect("the backend is a network").clone();
        let named = network.traffic.iter().map(|stream| (stream.name.clone(), stream.id.clone()));
        named.collect::<Vec<_>>()
    };
    let named = |id: &str| ("rain".to_owned(), id.to_owned());
    assert_eq!(ids(["1", "2", "3"]), ["rain 1->d", "rain 2->d", "rain 3->d"].map(named));
    assert_eq!(ids(["3", "1", "1"]), ["rain 3->d", "rain 1->d", "rain 1->d #2"].map(named));
}
