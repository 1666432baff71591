//! The page of run folders from outside: its contents, escaping, and the errors of folders without a report.

use std::fs;
use std::path::Path;

use crate::support::transfer;
use giveway_measure::{
    DelaySummary, Layout, Metrics, Packets, QueueRow, Record, Recorder, SojournRow, Summary, Trial,
};
use giveway_qdisc::{
    Backlog, DropReason, FlowKey, FlowReport, FlowTable, Meta, PortId, Probe, Rate, Span, Streams, Time,
};
use giveway_record::report::{self, Report};
use giveway_record::{Commands, Conclusion, Effects, Manifest, Recommendation, RunFolder};

const PORT: PortId = PortId(0);
const HOSTILE: &str = "<script>alert(1)</script> & \"friends\" <!--";

fn layout() -> Layout {
    Layout {
        measured: vec![PORT],
        rates: vec![(PORT, Rate::mbit(8))],
        port_names: vec![(PORT, "uplink".into())],
        source_names: vec!["web".into(), HOSTILE.into()],
        from: Time::s(1),
        until: Time::s(3),
        keep_series: true,
        ..Layout::default()
    }
}

fn manifest() -> Manifest {
    Manifest {
        scenario: "quick".into(),
        version: "0.1.0".into(),
        disciplines: ["fifo limit 5p", "efd"].map(giveway_measure::Discipline::named).into(),
        seeds: vec![1, 2],
        created_by: "giveway run quick".into(),
        title: HOSTILE.into(),
        description: "One\nparagraph.\n\nAnd another.".into(),
        layout: layout(),
        ..Manifest::default()
    }
}

/// The record of a run. Packets of 100 bytes of the first source have a sojourn time of `wait`, and packets
/// of 1,000 bytes of the second source ten times as much. One in ten is dropped. There are transfers of
/// several sizes.
fn record(wait: Span) -> Record {
    let mut recorder = Recorder::new(layout()).with_sources(|source: &u16| *source);
    for number in 0..200_u64 {
        let (source, bytes, waits) = if number % 2 == 0 { (0, 100, 1) } else { (1, 1_000, 10) };
        let arrived = Time::ms(900 + number * 10);
        let meta = Meta { bytes, arrived, flow: FlowKey(number), ..Meta::default() };
        recorder.on_arrival(PORT, &meta, arrived);
        if number % 10 == 5 {
            recorder.on_drop(PORT, &meta, &source, DropReason::Early, arrived);
        } else {
            recorder.on_transmission(PORT, &meta, &source, arrived + wait.scale(waits, 1));
        }
        recorder.on_sample(PORT, Backlog { packets: number % 7, bytes: 0 }, &FlowTable::NONE, &[], arrived);
    }
    for id in 0..60 {
        let start = Time::ms(1_000 + id * 10);
        recorder.on_flow(&FlowReport {
            start,
            end: start + wait.scale(id + 1, 1),
            bytes: 1_000 * (id % 7 + 1),
            ..transfer(id)
        });
    }
    recorder.finish()
}

/// A folder with two disciplines and two seeds.
fn folder(dir: &Path) -> RunFolder {
    let folder = RunFolder::create(dir, HOSTILE, manifest()).unwrap();
    let mut runs: Vec<(Trial, Summary)> = Vec::new();
    for (qdisc, wait) in [("fifo limit 5p", Span::ms(8)), ("efd", Span::us(100))] {
        for seed in [1, 2] {
            let trial = Trial { qdisc: qdisc.into(), seed };
            let record = record(wait + Span::us(seed));
            folder.write(&trial, &record).unwrap();
            runs.push((trial, record.summary));
        }
    }
    folder.finish(&runs).unwrap();
    folder
}

fn page(dirs: &[&Path]) -> String {
    Report::read(dirs).unwrap().html().unwrap()
}

/// The charts of the page by their anchors: the specifications of their plots, and their data.
fn charts(page: &str) -> serde_json::Value {
    let begin = "<script type=\"application/json\" id=\"charts\">";
    let (_, after) = page.split_once(begin).expect("the page has data");
    let text = after.split_once("</script>").expect("the data end").0;
    let all: serde_json::Value = serde_json::from_str(text).expect("the data are JSON");
    let mut charts = serde_json::Map::new();
    for (id, plot) in all["charts"].as_object().expect("it has plots") {
        let name = id.rsplit_once("-panel").expect("a plot is a panel of a chart").0;
        let tables = plot["data"].as_str().expect("a name of tables");
        let chart = charts
            .entry(name.to_owned())
            .or_insert_with(|| serde_json::json!({ "data": all["data"][tables], "panels": [] }));
        chart["panels"].as_array_mut().expect("it is a list").push(plot["spec"].clone());
    }
    charts.into()
}

#[test]
fn a_page_is_complete_and_loads_nothing() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let page = page(&[dir.path()]);
    for part in [
        "Key figures",
        "Flow completion time by size",
        "Sojourn time of small packets",
        "Queue length over time",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["Throughput by source over time", "Drops by reason", "All metrics", "Scenario", "Provenance"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("efd has the lowest median flow completion time"), "the finding is there");
    assert!(
        page.contains(
            "<p class=\"description\">One paragraph.</p>\n<p class=\"description\">And another.</p>"
        )
    );
    assert!(page.contains("default-src &#x27;none&#x27;") || page.contains("default-src 'none'"));
    assert!(!page.contains("src=\"http") && !page.contains("url(http"));
    assert_eq!(charts(&page).as_object().unwrap().len(), 7, "each chart has its data");
    assert_eq!(page, self::page(&[dir.path()]), "the same folder gives the same page");
}

/// The record of a switch: short packets wait `short` slots, long ones 60, and a share of slots is blocked.
fn of_switch(layout: &Layout, offered: f64, short: f64, blocked: f64) -> Record {
    let mut record = Recorder::<()>::new(layout.clone()).finish();
    let mut metrics = Metrics::default();
    for (name, value) in [
        ("offered", offered),
        ("throughput", offered),
        ("short_wait_mean_slots", short),
        ("short_wait_p99_slots", 6.0 * short),
        ("long_wait_mean_slots", 60.0),
        ("output_long", offered),
        ("output_blocked", blocked),
        ("output_idle", 1.0 - offered - blocked),
        ("backlog_cells", 900.0),
    ] {
        metrics.push(name, Some(value));
    }
    record.summary = Summary { metrics, ..record.summary };
    let slot_s = layout.slot.expect("a switch has slots").as_s();
    let waits = [(Packets::Small, short), (Packets::Large, 60.0), (Packets::All, 30.0)];
    record.sojourn_times = waits
        .iter()
        .flat_map(|(what, mean)| {
            let row = move |percent: u32| {
                let share = f64::from(percent) / 100.0;
                SojournRow { port: PORT, what: *what, share, sojourn_s: 2.0 * share * mean * slot_s }
            };
            (0..=100).map(row)
        })
        .collect();
    let held = |at: u64| QueueRow {
        time: Time::ms(at),
        port: PORT,
        backlog: None,
        gauge: Some(("backlog_cells", 900.0 + at as f64)),
    };
    record.queue = (1_100..3_000).step_by(100).map(held).collect();
    record
}

/// The folder of a run on a switch with two arbiters, at this load.
fn folder_of_switch(dir: &Path, offered: f64) {
    let layout = Layout {
        slot: Some(Span::us(1)),
        port_names: vec![(PORT, "output 0".into())],
        source_names: vec!["onoff".into()],
        ..layout()
    };
    let manifest = Manifest {
        disciplines: ["islip", "p_spf"].map(giveway_measure::Discipline::named).into(),
        layout: layout.clone(),
        title: "A switch".into(),
        ..manifest()
    };
    let folder = RunFolder::create(dir, "", manifest).unwrap();
    let mut runs: Vec<(Trial, Summary)> = Vec::new();
    for (qdisc, short, blocked) in [("islip", 65.0, 0.0), ("p_spf", 0.05, 0.037)] {
        for seed in [1, 2] {
            let trial = Trial { qdisc: qdisc.into(), seed };
            let record = of_switch(&layout, offered, short * (1.0 + seed as f64 / 100.0), blocked);
            folder.write(&trial, &record).unwrap();
            runs.push((trial, record.summary));
        }
    }
    folder.finish(&runs).unwrap();
}

/// A switch has waits by class, the use of slots and the backlog. It has no flows and no sources over time,
/// and the page does not say that no cell crossed.
#[test]
fn a_switch_has_its_own_report() {
    let dir = tempfile::tempdir().unwrap();
    folder_of_switch(dir.path(), 0.8);
    let page = page(&[dir.path()]);
    assert!(!page.contains("No packet was sent") && !page.contains("None of the key figures"));
    assert!(page.contains("p_spf has the lowest mean wait of short packets"), "findings in sentences");
    assert!(page.contains("2 arbiters, 2 seeds, 0.800 cells per slot and input offered"));
    let titles =
        ["Wait of short packets", "Wait of long packets", "Use of the outputs&#x27; slots", "Backlog"];
    for title in titles {
        assert!(page.contains(title), "{title}");
    }
    for title in ["Flow completion time by size", "Throughput by source", "Drops by reason", "Queue length"] {
        assert!(!page.contains(title), "{title}");
    }
    let waits = &charts(&page)["run1-chart2"]["data"]["delay"]["median"];
    assert_eq!(
        waits.as_array().unwrap().last().unwrap(),
        120.0,
        "the longest wait of long packets, in slots"
    );
}

/// Folders with several loads have the waits against the load; with one load there is no such chart.
#[test]
fn loads_of_a_switch_are_drawn_together() {
    let dir = tempfile::tempdir().unwrap();
    let folders = [("half", 0.5), ("more", 0.8), ("same", 0.8)].map(|(name, load)| {
        let folder = dir.path().join(name);
        folder_of_switch(&folder, load);
        folder
    });
    let by_load = |page: &str| {
        charts(page).as_object().unwrap().values().any(|chart| chart["data"]["loads"].is_object())
    };
    assert!(by_load(&page(&[&folders[0], &folders[1]])));
    assert!(!by_load(&page(&[&folders[1], &folders[2]])));
}

/// Titles, names and scenarios come from users. They are shown as text, and not interpreted as HTML.
#[test]
fn texts_of_users_are_escaped() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let page = page(&[dir.path()]);
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert(1)"), "the text is shown");
    let chart = charts(&page)["run1-chart5"]["data"].to_string();
    assert!(chart.contains("alert(1)"), "the chart shows the name");
    // The page has only its own scripts: watch.js, the data, three libraries, draw.js and copy.js.
    assert_eq!(page.matches("<script").count(), 7);
    assert_eq!(page.matches("</script").count(), 7);
}

#[test]
fn several_folders_share_a_table_and_have_their_charts() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("before"), dir.path().join("after"));
    folder(&one);
    folder(&two);
    let page = page(&[&one, &two]);
    assert!(page.contains("2 runs side by side"));
    assert_eq!(page.matches("<h2 id=\"metrics\">").count(), 1);
    assert_eq!(page.matches("<h2 class=\"run\"").count(), 2);
    assert_eq!(charts(&page).as_object().unwrap().len(), 1 + 2 * 6);
    // Folders with the same name are shown with their paths.
    let same = dir.path().join("elsewhere/before");
    folder(&same);
    let page = self::page(&[&one, &same]);
    assert!(page.contains("elsewhere&#x2f;before"));
}

/// A recording has one discipline. What changed is on the page, and the load says whether waits compare.
#[test]
fn two_recordings_are_compared_in_sentences() {
    let dir = tempfile::tempdir().unwrap();
    let recording = |name: &str, qdisc: &str, wait: Span| {
        let dir = dir.path().join(name);
        let folder = RunFolder::create(&dir, "", manifest()).unwrap();
        let trial = Trial { qdisc: qdisc.into(), seed: 1 };
        let record = record(wait);
        folder.write(&trial, &record).unwrap();
        folder.finish(&[(trial, record.summary)]).unwrap();
        dir
    };
    let before = recording("before", "fifo limit 5p", Span::ms(8));
    let after = recording("after", "efd", Span::us(100));
    let report = Report::read(&[&before, &after]).unwrap();
    let sentences = report.difference();
    assert!(
        sentences[0]
            .starts_with("uplink: the median sojourn time of small packets is 100 µs instead of 8.00 ms"),
        "{sentences:?}"
    );
    assert!(
        sentences.iter().any(|one| one.contains("changed by less than 2 %: number of drops")),
        "{sentences:?}"
    );
    assert!(sentences.last().unwrap().ends_with("so the load was alike."), "{sentences:?}");
    assert!(report.html().unwrap().contains("after compared with before"));
    folder(&dir.path().join("two"));
    let two = Report::read(&[&before, &dir.path().join("two")]).unwrap();
    assert_eq!(two.difference(), [""; 0], "two disciplines are no recording");
}

/// One-way delays have a chart with a panel for each discipline, and the rate of the link behind each. A
/// source that never sent has no line and no entry in the legend.
#[test]
fn delays_over_time_are_drawn_over_the_rate() {
    let dir = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", manifest()).unwrap();
    let mut runs: Vec<(Trial, Summary)> = Vec::new();
    for (qdisc, factor) in [("fifo limit 5p", 1.0), ("efd", 0.001)] {
        let mut record = record(Span::ms(8));
        for row in &mut record.delays {
            row.one_way = (row.source == "web").then_some(DelaySummary {
                packets: 2,
                mean_s: row.time.as_s() * factor,
                max_s: 5.0,
            });
            row.rate = Some(Rate::kbit(if row.time < Time::s(2) { 8_000 } else { 500 }));
        }
        let trial = Trial { qdisc: qdisc.into(), seed: 1 };
        folder.write(&trial, &record).unwrap();
        runs.push((trial, record.summary));
    }
    folder.finish(&runs).unwrap();
    drop(folder);
    let page = page(&[dir.path()]);
    assert!(
        page.contains("One-way delay over time") && page.contains("The grey area is the rate of the link")
    );
    let chart = &charts(&page)["run1-chart3"];
    let panels = chart["panels"].as_array().unwrap();
    assert_eq!(panels.len(), 2);
    for name in ["fifo", "efd"] {
        assert!(page.contains(&format!("<div class=\"panel\" data-discipline=\"{name}\">\n<h4>{name}</h4>")));
    }
    let lines = &panels[0]["layer"][1]["layer"][1]["encoding"];
    let figure = page.split_once("<figure id=\"run1-chart3\">").unwrap().1.split_once("</figure>").unwrap().0;
    assert_eq!(figure.matches("data-column=\"source\"").count(), 1);
    assert!(figure.contains("data-column=\"source\" data-name=\"web\""));
    assert_eq!(
        (lines["y"]["title"].as_str(), lines["y"]["scale"]["type"].as_str()),
        (Some("one-way delay (ms)"), Some("log"))
    );
    let (rates, delays) = (&chart["data"]["rates"], &chart["data"]["delays"]);
    let ends = |column: &serde_json::Value| {
        let all = column.as_array().unwrap();
        (all[0].as_f64(), all[all.len() - 1].as_f64())
    };
    assert_eq!(
        (ends(&rates["time"]), ends(&rates["rate"])),
        ((Some(1.0), Some(3.0)), (Some(8.0), Some(0.5)))
    );
    // The middle of the first stretch of 20 ms; the source `HOSTILE` has rows without values.
    assert_eq!((ends(&delays["time"]).0, ends(&delays["mean"])), (Some(1.01), (Some(1_000.0), None)));
    assert_eq!(ends(&delays["most"]).0, Some(5_000.0));
}

/// Without a way to know the send times, the chart shows sojourn times, which fit a linear axis here.
#[test]
fn sojourn_times_are_drawn_if_there_are_no_one_way_delays() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let page = page(&[dir.path()]);
    assert!(
        page.contains("Sojourn time over time") && !page.contains("The grey area is the rate of the link")
    );
    let chart = &charts(&page)["run1-chart3"];
    assert!(chart["data"].get("rates").is_none());
}

/// Findings of the caller replace the report's own.
#[test]
fn findings_of_the_caller_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let runs: Vec<(Trial, Summary)> =
        vec![(Trial { qdisc: "efd".into(), seed: 1 }, record(Span::us(101)).summary)];
    let reported = folder(dir.path())
        .with_conclusion(Conclusion { findings: vec!["It <depends>.".into()], ..Conclusion::default() });
    reported.finish(&runs).unwrap();
    drop(reported);
    let page = page(&[dir.path()]);
    assert!(page.contains("<li>It &lt;depends&gt;.</li>") && !page.contains("has the lowest"));
    assert!(page.contains("This run is unfinished: 1 of 4 trials are finished."));
}

/// Commands are shown line by line, ready to paste, and titles of ports replace their names.
#[test]
fn a_recommendation_has_its_commands_and_ports_their_titles() {
    let dir = tempfile::tempdir().unwrap();
    let runs: Vec<(Trial, Summary)> =
        vec![(Trial { qdisc: "efd".into(), seed: 1 }, record(Span::us(101)).summary)];
    let commands = Commands {
        title: "Set up, as root".into(),
        lines: vec!["tc qdisc replace dev <WAN> root cake".into(), "ip link set ifb0 up".into()],
    };
    let conclusion = Conclusion {
        findings: vec!["Cake is better.".into()],
        recommendation: Some(Recommendation {
            summary: "cake at 1.9 Mbit/s".into(),
            effects: Some(Effects {
                head: ["", "fifo", "cake", "change", "certain"].map(str::to_owned),
                rows: vec![["page load", "2 s", "1 s", "1 s less", "better"].map(str::to_owned)],
            }),
            reasons: vec![("Cost".into(), "5 % of the rate.".into())],
            commands: vec![commands],
        }),
        port_titles: [("uplink".to_owned(), "upstream".to_owned())].into(),
    };
    let folder = folder(dir.path()).with_conclusion(conclusion);
    folder.finish(&runs).unwrap();
    drop(folder);
    let page = page(&[dir.path()]);
    assert!(page.contains("<h2>Recommendation: cake at 1.9 Mbit&#x2f;s</h2>"));
    assert!(page.contains("<dt>Cost</dt><dd>5 % of the rate.</dd>"));
    assert!(page.contains("<th scope=\"row\" class=\"name\">page load</th><td>2 s</td><td>1 s</td>"));
    assert!(page.contains("<pre>tc qdisc replace dev &lt;WAN&gt; root cake\nip link set ifb0 up</pre>"));
    assert!(page.contains("<button type=\"button\" class=\"copy\" hidden>Copy</button>"));
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("<td class=\"good\">better</td>") < place("<li>Cake is better.</li>"), "a table is first");
    assert!(place("<li>Cake is better.</li>") < place("<summary>Contents</summary>"));
    assert!(page.contains("<a href=\"#recommendation\">Recommendation</a>"));
    assert!(page.contains("measured from 1 s to 3 s, upstream") && !page.contains("at uplink"));
}

/// Both directions of a link have their own figures, and so have the transfers in each.
#[test]
fn directions_are_apart() {
    const BACK: PortId = PortId(1);
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout {
        measured: vec![PORT, BACK],
        rates: vec![(PORT, Rate::mbit(8)), (BACK, Rate::mbit(8))],
        port_names: vec![(PORT, "home->isp".into()), (BACK, "isp->home".into())],
        node_names: vec!["home".into(), "isp".into()],
        source_names: vec!["web".into()],
        ..layout()
    };
    let folder =
        RunFolder::create(dir.path(), "", Manifest { layout: layout.clone(), ..manifest() }).unwrap();
    let mut recorder = Recorder::new(layout).with_sources(|source: &u16| *source);
    for id in 0..40 {
        let (start, back) = (Time::ms(1_100 + id * 10), id >= 10);
        let ends = if back { (1, 0) } else { (0, 1) };
        let flow = FlowReport {
            start,
            end: start + Span::ms(50),
            from: ends.0,
            to: ends.1,
            bytes: 1_000 + id,
            ..transfer(id)
        };
        recorder.on_flow(&flow);
    }
    let (trial, record) = (Trial { qdisc: "efd".into(), seed: 1 }, recorder.finish());
    folder.write(&trial, &record).unwrap();
    folder.finish(&[(trial, record.summary)]).unwrap();
    drop(folder);
    let page = page(&[dir.path()]);
    for direction in ["home-&gt;isp", "isp-&gt;home"] {
        assert!(page.contains(&format!("Flow completion time by size at {direction} ")), "{direction}");
    }
    let transfers = |chart: &str| charts(&page)[chart]["data"]["points"]["size"].as_array().unwrap().len();
    assert_eq!((transfers("run1-chart1"), transfers("run1-chart2")), (10, 30));
}

/// The key figures are a table at the beginning, in which the best values stand out. The page has one key of
/// the disciplines; the keys of the figures are printed only.
#[test]
fn the_answer_is_first_and_there_is_one_legend() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let page = page(&[dir.path()]);
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("<caption>At a glance") < place("id=\"findings\""));
    assert!(place("id=\"findings\"") < place("<summary>Contents</summary>"));
    assert!(page.contains("<td class=\"best\">"));
    let keys = page.matches("<ul class=\"key\"").count();
    let of_sources =
        page.matches("data-column=\"source\"").count() / 2 + page.matches("data-column=\"reason\"").count();
    assert_eq!(keys, 1 + of_sources, "one of the disciplines");
    assert!(page.contains("<ul class=\"key repeated\""));
}

/// A table that is wider than the page is divided between its groups, with the names in each part.
#[test]
fn wide_tables_are_divided() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let page = page(&[dir.path()]);
    let (_, metrics) = page.split_once("<h2 id=\"metrics\">").unwrap();
    let bands: Vec<&str> = metrics.split("<div class=\"wide band\">").skip(1).collect();
    assert!(bands.len() > 1, "it has many columns");
    for band in &bands {
        let head = band.split_once("</thead>").unwrap().0;
        let columns = head.matches("<small>").count();
        assert!((1..=14).contains(&columns), "{columns} columns of eight characters fit: {head}");
        assert_eq!(band.matches("fifo limit 5p</th>").count(), 1);
    }
}

/// The times of transfers of a few sizes are a table, and not a plane with points.
#[test]
fn a_handful_of_sizes_is_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", manifest()).unwrap();
    let mut recorder = Recorder::new(layout()).with_sources(|source: &u16| *source);
    for id in 0..4 {
        let start = Time::ms(1_100 + id * 10);
        let flow =
            FlowReport { start, end: start + Span::ms(50), bytes: 1_000 * (id % 2 + 1), ..transfer(id) };
        recorder.on_flow(&flow);
    }
    let (trial, record) = (Trial { qdisc: "efd".into(), seed: 1 }, recorder.finish());
    folder.write(&trial, &record).unwrap();
    folder.finish(&[(trial, record.summary)]).unwrap();
    drop(folder);
    let page = page(&[dir.path()]);
    let (_, figure) = page.split_once("Flow completion time by size <a").unwrap();
    let figure = figure.split_once("</figure>").unwrap().0;
    assert!(figure.contains("50.0 ms (2)") && !figure.contains("class=\"plot\""), "{figure}");
    assert!(charts(&page).get("run1-chart1").is_none());
}

/// Every discipline has its row in the chart of drops, also one without drops.
#[test]
fn drops_name_every_discipline() {
    let dir = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", manifest()).unwrap();
    let mut runs: Vec<(Trial, Summary)> = Vec::new();
    for qdisc in ["fifo limit 5p", "efd"] {
        let mut record = record(Span::ms(1));
        if qdisc == "efd" {
            record.links.iter_mut().for_each(|link| link.drops_measured = Some(Default::default()));
        }
        let trial = Trial { qdisc: qdisc.into(), seed: 1 };
        folder.write(&trial, &record).unwrap();
        runs.push((trial, record.summary));
    }
    folder.finish(&runs).unwrap();
    drop(folder);
    let charts = charts(&page(&[dir.path()]));
    let drops =
        charts.as_object().unwrap().values().find(|chart| chart["data"]["drops"].is_object()).unwrap();
    assert_eq!(
        drops["panels"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"],
        serde_json::json!(["fifo", "efd"])
    );
    assert_eq!(drops["data"]["totals"]["packets"][1], 0);
}

/// Every chart has a key whose entries hide rows, tooltips, and an entry in the contents.
#[test]
fn every_chart_has_a_key_tooltips_and_an_anchor() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    let page = page(&[dir.path()]);
    let all = charts(&page);
    assert_eq!(all.as_object().unwrap().len(), 7);
    for (id, chart) in all.as_object().unwrap() {
        let begin = format!("<figure id=\"{id}\">");
        let figure = page.split_once(&begin).expect("it is there").1.split_once("</figure>").unwrap().0;
        let column = figure.split_once("data-column=\"").expect("it has a key").1.split_once('"').unwrap().0;
        let tables = chart["data"].as_object().unwrap().values();
        assert!(tables.into_iter().any(|table| table[column].is_array()), "{id}: {column}");
        let tooltips =
            chart["panels"].as_array().unwrap().iter().all(|spec| spec.to_string().contains("\"tooltip\""));
        assert!(tooltips, "{id}");
        assert!(page.contains(&format!("<a href=\"#{id}\">")), "{id} is in the contents");
    }
}

/// A run with measured bursts shows two more charts: the burstiness of arrivals and departures, and the
/// self-similarity of the sources, which needs a long run.
#[test]
fn burstiness_is_drawn_if_it_was_measured() {
    let page_of = |until| {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout { bursts: true, until, ..layout() };
        let manifest = Manifest {
            disciplines: ["efd"].map(giveway_measure::Discipline::named).into(),
            seeds: vec![1],
            layout,
            ..manifest()
        };
        let folder = RunFolder::create(dir.path(), "", manifest.clone()).unwrap();
        let mut recorder = Recorder::new(manifest.layout).with_sources(|source: &u16| *source);
        let mut rng = Streams::new(1).rng();
        let mut now = Time::ZERO;
        while now < until {
            now += Span::from_s_f64(rng.exponential(0.002));
            let meta = Meta { bytes: 500, arrived: now, ..Meta::default() };
            recorder.on_emission(0, &meta, &0, now);
            recorder.on_arrival(PORT, &meta, now);
            recorder.on_transmission(PORT, &meta, &0, now);
        }
        let (trial, record) = (Trial { qdisc: "efd".into(), seed: 1 }, recorder.finish());
        folder.write(&trial, &record).unwrap();
        folder.finish(&[(trial, record.summary)]).unwrap();
        drop(folder);
        page(&[dir.path()])
    };
    let long = page_of(Time::s(90));
    let charts = charts(&long);
    let named = |title: &str| {
        let (before, _) = long.split_once(&format!("<h3>{title} <a")).expect("the page has this chart");
        before.rsplit_once("<figure id=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
    };
    let dispersion = &charts[named("Burstiness")]["data"]["dispersion"];
    assert_eq!(dispersion["window"], serde_json::json!([0.001, 0.01, 0.1, 1, 0.001, 0.01, 0.1, 1]));
    for index in dispersion["index"].as_array().unwrap() {
        assert!((index.as_f64().unwrap() - 1.0).abs() < 0.5, "Poisson arrivals: {dispersion}");
    }
    let hurst = &charts[named("Self-similarity of the traffic")]["data"]["hurst"];
    assert_eq!(hurst["source"], serde_json::json!(["web", "web", "web"]));
    assert!(long.contains("rescaled range over 0.64 s to 5.12 s, variance-time over 0.08 s to 0.64 s"));
    assert!(long.contains("Hurst parameter</th>") && long.contains("runs to a next hop</th>"));

    let short = page_of(Time::s(3));
    assert!(short.contains("too short to estimate the self-similarity of the traffic, which needs 81.92 s."));
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path());
    assert!(!page(&[dir.path()]).contains("Burstiness"), "bursts were not measured");
}

/// Nothing was transferred, sent or dropped, so a sentence replaces each chart.
/// The contents and the headings of a run without packets: no chart has any data.
#[test]
fn parts_without_data_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", manifest()).unwrap();
    let trial = Trial { qdisc: "efd".into(), seed: 1 };
    let nothing = Recorder::<()>::new(layout()).finish();
    folder.write(&trial, &nothing).unwrap();
    folder.finish(&[(trial, nothing.summary)]).unwrap();
    drop(folder);
    let page = page(&[dir.path()]);
    for title in ["Key figures", "Flow completion time", "Sojourn time", "Queue length", "Drops by reason"] {
        assert!(!page.contains(title), "{title}");
    }
    assert_eq!(page.matches("<figure").count(), 0);
    assert_eq!(charts(&page), serde_json::json!({}));
}

#[test]
fn folders_without_a_report_have_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let error = || {
        let error = Report::read(&[&path]).and_then(|report| report.html()).unwrap_err();
        error.to_string().replace(&path.display().to_string(), "RUN")
    };
    let mut reported = vec![error()];
    fs::create_dir(&path).unwrap();
    reported.push(error());

    RunFolder::create(&path, HOSTILE, manifest()).unwrap();
    reported.push(error());

    let manifest = path.join("manifest.json");
    folder(&path);
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"format\": 10", "\"formerly\": 8")).unwrap();
    reported.push(error());

    fs::write(&manifest, text).unwrap();
    let trial = fs::read_dir(path.join("trials")).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    fs::remove_file(trial.join("seed-1/sojourn.parquet")).unwrap();
    reported.push(error().replace(&trial.file_name().unwrap().to_string_lossy().into_owned(), "EFD"));

    fs::write(&manifest, "{").unwrap();
    reported.push(error());
    insta::assert_snapshot!(reported.join("\n"), @r"
    the folder RUN does not exist
    RUN is not a run folder: it has no manifest.json. `giveway run SCENARIO --out RUN` makes one
    RUN is unfinished: none of its 4 trials is finished. It was made by `giveway run quick`. Run this command again with --out RUN
    RUN was written by Giveway 0.1.0 in format 1, and this version reads format 10. It was made by `giveway run quick`. Run this command again with another --out, or with --out RUN --force
    RUN/trials/EFD/seed-1/sojourn.parquet is damaged: it is missing. It was made by `giveway run quick`. Run this command again with --out RUN
    RUN/manifest.json is damaged: EOF while parsing an object at line 1 column 1. Run the command that made it again, with --out RUN
    ");
}

#[test]
fn a_page_is_written_completely_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("report.html");
    report::write(&place, "old").unwrap();
    report::write(&place, "new").unwrap();
    assert_eq!(fs::read_to_string(&place).unwrap(), "new");
    let blocked = report::write(&dir.path().join("report.html/report.html"), "x").unwrap_err();
    assert!(blocked.to_string().starts_with("cannot write "), "{blocked}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file remains");
}
