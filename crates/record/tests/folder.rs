//! A run folder after kills, changes and full disks.

use std::fs::{self, File};
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use qdisc::{
    Backlog, Ending, FlowKey, FlowKind, FlowReport, Meta, PortId, Probe, Rate, SenderSample, Span, Time,
};
use record::{Cell, Fingerprint, FolderError, Layout, Manifest, Record, Recorder, RunFolder, Summary, Table};

const SCENARIO: &str = "duration = \"2 s\"\n";

fn manifest(version: &str) -> Manifest {
    Manifest {
        scenario: "quick".into(),
        version: version.into(),
        disciplines: vec!["fifo limit 300p".into(), "efd".into()],
        seeds: vec![1, 2],
        machine: "two cores".into(),
        created_by: "giveway run quick.toml".into(),
        created: None,
        ..Manifest::default()
    }
}

fn cell(qdisc: &str, seed: u64) -> Cell {
    Cell { qdisc: qdisc.into(), seed }
}

fn plan() -> Vec<Cell> {
    let m = manifest("0.1.0");
    m.disciplines.iter().flat_map(|qdisc| m.seeds.iter().map(|seed| cell(qdisc, *seed))).collect()
}

/// A run with as many flows as its seed, two samples, and one third as a metric.
fn record(seed: u64) -> Record {
    let mut recorder = Recorder::new(Layout {
        measured: vec![PortId(0)],
        rates: vec![(PortId(0), Rate::mbit(1))],
        port_names: vec![(PortId(0), "uplink".into())],
        until: Time::s(3),
        keep_series: true,
        ..Layout::default()
    });
    for id in 0..seed {
        let flow = FlowReport {
            id,
            source: 0,
            kind: FlowKind::Transfer,
            from: 0,
            to: 1,
            start: Time::ZERO,
            end: Time::s(1),
            bytes: 1,
            delivered: 1,
            delivered_measured: 1,
            packets: 1,
            retransmitted: 0,
            lost: 0,
            timeouts: 0,
            delay_mean: Span::ZERO,
            delay_p99: Span::ZERO,
            delay_max: Span::ZERO,
            longest_pause: Span::ZERO,
            paused: Span::ZERO,
            ending: Ending::Completed,
        };
        Probe::<()>::flow(&mut recorder, &flow);
    }
    for ms in [0, 10] {
        Probe::<()>::sample(&mut recorder, PortId(0), Backlog::ZERO, &[("flow_table", 1.0)], Time::ms(ms));
    }
    let mut record = recorder.finish();
    record.summary.events = 100 + seed;
    record.summary.metrics.push("third", Some(1.0 / 3.0));
    record
}

fn create(dir: &Path) -> RunFolder {
    RunFolder::create(dir, SCENARIO, manifest("0.1.0")).expect("a folder that can be written")
}

/// Runs what is not finished; returns all summaries in order, and how many had to run.
fn run_all(folder: &RunFolder) -> (Vec<(Cell, Summary)>, usize) {
    let mut ran = 0;
    let runs = plan().into_iter().map(|cell| {
        let summary = folder.finished(&cell).unwrap_or_else(|| {
            ran += 1;
            let fresh = record(cell.seed);
            folder.write(&cell, &fresh).expect("a cell that can be written");
            fresh.summary
        });
        (cell, summary)
    });
    (runs.collect(), ran)
}

/// Column names, and how many rows.
fn table(path: &Path) -> (Vec<String>, usize) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    (names, reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum())
}

/// Every file below a folder, hidden ones included, with its content.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
            } else {
                let name = entry.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The tables that must be asked for are there when they were, and only then; and a folder knows when they are missing.
#[test]
fn tables_that_were_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout {
        measured: vec![PortId(0)],
        rates: vec![(PortId(0), Rate::mbit(1))],
        port_names: vec![(PortId(0), "uplink".into())],
        until: Time::s(3),
        senders: true,
        episodes: true,
        bursts: true,
        ..Layout::default()
    };
    let manifest = Manifest { layout: layout.clone(), ..manifest("0.1.0") };
    let folder = RunFolder::create(dir.path(), SCENARIO, manifest).unwrap();
    let mut recorder = Recorder::new(layout);
    let meta = Meta { bytes: 1_000, flow: FlowKey(255), ..Meta::default() };
    Probe::<()>::arrived(&mut recorder, PortId(0), &meta, Time::ZERO);
    Probe::<()>::sent(&mut recorder, PortId(0), &meta, &(), Time::ZERO);
    Probe::<()>::sender(
        &mut recorder,
        &SenderSample {
            id: 7,
            now: Time::ms(1),
            window: 2_920,
            threshold: 0,
            flight: 0,
            acked: 1_460,
            rtt: Span::ZERO,
        },
    );
    let (run, record) = (cell("efd", 1), recorder.finish());
    folder.write(&run, &record).unwrap();
    folder.finish(&[(run.clone(), record.summary.clone())]).unwrap();

    let (columns, rows) = table(&dir.path().join("senders.parquet"));
    assert_eq!((columns.join(" ").as_str(), rows), ("qdisc seed time_s id acked window", 1));
    let (columns, rows) = table(&dir.path().join("episodes.parquet"));
    assert_eq!(
        (columns.join(" ").as_str(), rows),
        ("qdisc seed port flow packets bytes data_packets episodes", 1)
    );
    let (columns, rows) = table(&dir.path().join("bursts.parquet"));
    assert_eq!(
        (columns.join(" ").as_str(), rows),
        (
            "qdisc seed port onward packets runs run_longest run_weighted idc_1ms idc_10ms idc_100ms idc_1s peakedness",
            1
        )
    );
    assert_eq!(folder.finished(&run), Some(record.summary));
    let gone = files(dir.path()).into_iter().find(|(name, _)| name.ends_with("seed-1/episodes.parquet"));
    fs::remove_file(dir.path().join(gone.expect("it is there").0)).unwrap();
    assert_eq!(folder.finished(&run), None);
    // Another question has another answer, and these are not part of it.
    RunFolder::create(dir.path(), "duration = \"3 s\"\n", self::manifest("0.1.0")).unwrap();
    assert!(
        ["senders", "episodes", "bursts"]
            .iter()
            .all(|name| !dir.path().join(format!("{name}.parquet")).exists())
    );
}

#[test]
fn a_whole_run() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let (runs, ran) = run_all(&folder);
    assert_eq!(ran, 4);
    let total = folder.finish(&runs).unwrap();
    assert_eq!(total, Table::new(&runs).fingerprint);

    let names: Vec<String> = files(dir.path()).into_iter().map(|(name, _)| name).collect();
    let short = |qdisc: &str| Fingerprint::of(qdisc).to_string()[..16].to_owned();
    let efd = format!("cells/efd-{}/seed-2/summary.json", short("efd"));
    let fifo = format!("cells/fifo-limit-300p-{}/seed-1/flows.parquet", short("fifo limit 300p"));
    assert!(names.contains(&efd) && names.contains(&fifo), "{names:?}");
    assert_eq!(names.len(), 4 * 6 + 8, "nothing is left over: {names:?}");

    // Flows: 1 + 2 under each discipline. Queue: two samples with a gauge each, four times. Links: one port.
    let (flows, queue) = (table(&dir.path().join("flows.parquet")), table(&dir.path().join("queue.parquet")));
    assert_eq!((flows.0[..3].join(" "), flows.1), ("qdisc seed id".to_owned(), 6));
    assert_eq!(
        (queue.0.join(" "), queue.1),
        ("qdisc seed time_s port packets bytes gauge value".to_owned(), 16)
    );
    assert_eq!(table(&dir.path().join("links.parquet")).1, 4);
    let (columns, rows) = table(&dir.path().join("summary.parquet"));
    assert_eq!((columns[..4].join(" "), rows), ("qdisc seed fingerprint utilization".to_owned(), 4));
    assert_eq!(columns.last().unwrap(), "third");

    let text = fs::read_to_string(dir.path().join("manifest.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["complete"], true);
    assert_eq!(told["fingerprint"], total.to_string());
    assert_eq!(told["scenario_hash"], Fingerprint::of(SCENARIO).to_string());
    assert_eq!(told["cells"][3]["seed"], 2);
    assert_eq!(fs::read_to_string(dir.path().join("scenario.toml")).unwrap(), SCENARIO);
}

/// Killed in the middle: two cells whole, one half-written beside its place, a table half-written. The second attempt
/// runs the other two, and the folder ends up as if nothing had happened, to the byte.
#[test]
fn a_killed_run_resumes() {
    let undisturbed = tempfile::tempdir().unwrap();
    let folder = create(undisturbed.path());
    folder.finish(&run_all(&folder).0).unwrap();

    let dir = tempfile::tempdir().unwrap();
    let killed = create(dir.path());
    let cells = plan();
    for cell in &cells[..2] {
        killed.write(cell, &record(cell.seed)).unwrap();
    }
    let efd = dir.path().join(format!("cells/efd-{}", &Fingerprint::of("efd").to_string()[..16]));
    fs::create_dir_all(efd.join(".seed-1.tmp")).unwrap();
    fs::write(efd.join(".seed-1.tmp/flows.parquet"), b"PAR1 half").unwrap();
    fs::write(dir.path().join(".flows.parquet.tmp"), b"PAR1 half").unwrap();

    let resumed = create(dir.path());
    assert_eq!(resumed.finished(&cells[1]), Some(record(2).summary), "to the last bit of one third");
    assert_eq!(resumed.finished(&cells[2]), None, "a half-written cell is none");
    let (runs, ran) = run_all(&resumed);
    assert_eq!(ran, 2);
    resumed.finish(&runs).unwrap();
    assert_eq!(files(dir.path()), files(undisturbed.path()));
}

/// Cut short: what there is is merged, and the manifest says that it is not all.
#[test]
fn an_interrupted_run_is_valid_as_far_as_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let first = plan().remove(0);
    folder.write(&first, &record(1)).unwrap();
    folder.finish(&[(first, record(1).summary)]).unwrap();
    assert_eq!(table(&dir.path().join("flows.parquet")).1, 1);
    assert!(fs::read_to_string(dir.path().join("manifest.json")).unwrap().contains("\"complete\": false"));
}

/// Another scenario text or another version: no old cell is taken for an answer, and no old table is left to be read
/// as one. A new cell takes the place of the outdated one.
#[test]
fn outdated_cells_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    folder.finish(&run_all(&folder).0).unwrap();
    let first = &plan()[0];

    let changed = RunFolder::create(dir.path(), "duration = \"9 s\"\n", manifest("0.1.0")).unwrap();
    assert_eq!(changed.finished(first), None);
    assert!(!dir.path().join("flows.parquet").exists());
    assert_eq!(
        create(dir.path()).finished(first),
        Some(record(1).summary),
        "the old question has its old answer"
    );

    let newer = RunFolder::create(dir.path(), SCENARIO, manifest("0.2.0")).unwrap();
    assert_eq!(newer.finished(first), None);
    newer.write(first, &record(5)).unwrap();
    assert_eq!(newer.finished(first), Some(record(5).summary));
    let hidden = files(dir.path()).into_iter().filter(|(name, _)| name.contains("/."));
    assert_eq!(hidden.count(), 0);
}

/// A cell that lost a file is not finished.
#[test]
fn a_damaged_cell_runs_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let (runs, _) = run_all(&folder);
    let path = dir.path().join(format!("cells/efd-{}/seed-1", &Fingerprint::of("efd").to_string()[..16]));
    fs::remove_file(path.join("links.parquet")).unwrap();
    assert_eq!(folder.finished(&cell("efd", 1)), None);
    let error = folder.finish(&runs).unwrap_err().to_string();
    assert!(error.contains("links.parquet") && error.contains("seed-1"), "{error}");
    assert!(!dir.path().join("links.parquet").exists() && !dir.path().join(".links.parquet.tmp").exists());
    fs::write(path.join("summary.json"), b"{ half").unwrap();
    assert_eq!(folder.finished(&cell("efd", 1)), None);
}

/// A file where a folder must be: refused even to the superuser, whom permissions do not stop.
#[test]
fn an_unwritable_folder_is_told_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("results");
    fs::write(&blocked, b"a file").unwrap();
    let error = RunFolder::create(&blocked, SCENARIO, manifest("0.1.0")).unwrap_err();
    assert!(matches!(&error, FolderError::Write { path, .. } if path.starts_with(&blocked)));
    assert!(error.to_string().starts_with(&format!("cannot write {}", blocked.display())), "{error}");
}

/// The place of a cell is taken by a file: the error names it, and nothing half-written stays.
#[test]
fn a_cell_that_cannot_be_written_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let blocked = dir.path().join(format!("cells/efd-{}", &Fingerprint::of("efd").to_string()[..16]));
    fs::write(&blocked, b"a file").unwrap();
    let before = files(dir.path());
    let error = folder.write(&cell("efd", 1), &record(1)).unwrap_err();
    assert!(error.to_string().contains(&blocked.display().to_string()), "{error}");
    assert_eq!(files(dir.path()), before);
}
