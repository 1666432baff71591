//! A run folder after kills, changes and full disks.

use std::fs::{self, File};
use std::path::Path;

use crate::support::transfer;
use giveway_measure::{Fingerprint, Layout, Record, Recorder, Summary, Table, Trial};
use giveway_qdisc::{
    Backlog, FlowKey, FlowReport, FlowTable, Meta, PortId, Probe, Rate, SenderSample, Span, Time,
};
use giveway_record::report::Report;
use giveway_record::{Existing, FolderError, Kept, LOCK, Manifest, RunFolder};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const SCENARIO: &str = "duration = \"2 s\"\n";

fn manifest(version: &str) -> Manifest {
    Manifest {
        scenario: "quick".into(),
        version: version.into(),
        disciplines: ["fifo limit 300p", "efd"].map(giveway_measure::Discipline::named).into(),
        seeds: vec![1, 2],
        machine: "two cores".into(),
        created_by: "giveway run quick.toml".into(),
        created: None,
        ..Manifest::default()
    }
}

fn trial(qdisc: &str, seed: u64) -> Trial {
    Trial { qdisc: qdisc.into(), seed }
}

fn plan() -> Vec<Trial> {
    let m = manifest("0.1.0");
    m.disciplines.iter().flat_map(|one| m.seeds.iter().map(|seed| trial(&one.qdisc, *seed))).collect()
}

/// The record of a run with `seed` flows, two samples, and a third as a metric.
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
            start: Time::ZERO,
            end: Time::s(1),
            bytes: 1,
            delivered: 1,
            goodput_bytes: 1,
            ..transfer(id)
        };
        Probe::<()>::on_flow(&mut recorder, &flow);
    }
    for ms in [0, 10] {
        let table = FlowTable { flows: 1, ..FlowTable::NONE };
        Probe::<()>::on_sample(&mut recorder, PortId(0), Backlog::ZERO, &table, &[], Time::ms(ms));
    }
    let mut record = recorder.finish();
    record.summary.events = 100 + seed;
    record.summary.metrics.push("third", Some(1.0 / 3.0));
    record
}

fn create(dir: &Path) -> RunFolder {
    RunFolder::create(dir, SCENARIO, manifest("0.1.0")).expect("a folder that can be written")
}

/// Runs the trials that are not finished. Returns all summaries in order, and the number of trials that ran.
fn run_all(folder: &RunFolder) -> (Vec<(Trial, Summary)>, usize) {
    let mut ran = 0;
    let runs = plan().into_iter().map(|trial| {
        let summary = folder.finished(&trial).unwrap_or_else(|| {
            ran += 1;
            let fresh = record(trial.seed);
            folder.write(&trial, &fresh).expect("a trial that can be written");
            fresh.summary
        });
        (trial, summary)
    });
    (runs.collect(), ran)
}

/// The names of the columns of a table, and the number of its rows.
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

/// Optional tables are written on request only, and a trial without one of them counts as damaged.
#[test]
fn optional_tables_are_written_on_request() {
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
    Probe::<()>::on_arrival(&mut recorder, PortId(0), &meta, Time::ZERO);
    Probe::<()>::on_transmission(&mut recorder, PortId(0), &meta, &(), Time::ZERO);
    Probe::<()>::on_sender(
        &mut recorder,
        &SenderSample {
            source: 0,
            id: 7,
            now: Time::ms(1),
            window: 2_920,
            threshold: 0,
            flight: 0,
            acked: 1_460,
            rtt: Span::ZERO,
            pacing_rate: Rate::default(),
            delivery_rate: Rate::default(),
        },
    );
    let (run, record) = (trial("efd", 1), recorder.finish());
    folder.write(&run, &record).unwrap();
    folder.finish(&[(run.clone(), record.summary.clone())]).unwrap();

    let (columns, rows) = table(&dir.path().join("senders.parquet"));
    assert_eq!(
        (columns.join(" ").as_str(), rows),
        (
            "qdisc seed time_s source flow acked_bytes cwnd_bytes inflight_bytes rtt_s pacing_bps delivery_bps",
            1
        )
    );
    let (columns, rows) = table(&dir.path().join("episodes.parquet"));
    assert_eq!(
        (columns.join(" ").as_str(), rows),
        ("qdisc seed port flow_key packets bytes data_packets episodes", 1)
    );
    let (columns, rows) = table(&dir.path().join("bursts.parquet"));
    assert_eq!(
        (columns.join(" ").as_str(), rows),
        (
            "qdisc seed port next_node packets runs run_longest_packets run_weighted_packets idc_1ms idc_10ms \
             idc_100ms idc_1s peakedness",
            1
        )
    );
    assert_eq!(folder.finished(&run), Some(record.summary));
    let gone = files(dir.path()).into_iter().find(|(name, _)| name.ends_with("seed-1/episodes.parquet"));
    fs::remove_file(dir.path().join(gone.expect("the table was written").0)).unwrap();
    assert_eq!(folder.finished(&run), None);
    drop(folder);
    // A run of another scenario replaces the folder, and does not have these tables.
    let replace = Existing::Replace(&|_| ());
    RunFolder::open(dir.path(), "duration = \"3 s\"\n", self::manifest("0.1.0"), replace).unwrap();
    assert!(
        ["senders", "episodes", "bursts"]
            .iter()
            .all(|name| !dir.path().join(format!("{name}.parquet")).exists())
    );
}

#[test]
fn a_complete_run_has_all_files() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let (runs, ran) = run_all(&folder);
    assert_eq!(ran, 4);
    let total = folder.finish(&runs).unwrap();
    assert_eq!(total, Table::new(&runs).fingerprint);

    let names: Vec<String> = files(dir.path()).into_iter().map(|(name, _)| name).collect();
    let short = |qdisc: &str| Fingerprint::of(qdisc).to_string()[..16].to_owned();
    let efd = format!("trials/efd-{}/seed-2/summary.json", short("efd"));
    let fifo = format!("trials/fifo-limit-300p-{}/seed-1/flows.parquet", short("fifo limit 300p"));
    assert!(names.contains(&efd) && names.contains(&fifo), "{names:?}");
    assert_eq!(names.len(), 4 * 8 + 12, "nothing is left over: {names:?}");
    assert!(fs::read(dir.path().join(LOCK)).unwrap().starts_with(b"process "), "it is locked");
    drop(folder);
    assert_eq!(fs::read(dir.path().join(LOCK)).unwrap(), b"", "and it is not any more");

    // Flows: 1 + 2 for each discipline. Queue: two samples with a gauge each, in four trials. Links: one
    // port.
    let (flows, queue) = (table(&dir.path().join("flows.parquet")), table(&dir.path().join("queue.parquet")));
    assert_eq!((flows.0[..3].join(" "), flows.1), ("qdisc seed source".to_owned(), 6));
    assert_eq!(
        (queue.0.join(" "), queue.1),
        ("qdisc seed time_s port backlog_packets backlog_bytes".to_owned(), 8)
    );
    let gauges = table(&dir.path().join("gauges.parquet"));
    assert_eq!((gauges.0.join(" "), gauges.1), ("qdisc seed time_s port gauge value".to_owned(), 8 * 4));
    assert_eq!(table(&dir.path().join("links.parquet")).1, 4);
    let (columns, rows) = table(&dir.path().join("summary.parquet"));
    assert_eq!((columns[..4].join(" "), rows), ("qdisc discipline seed fingerprint".to_owned(), 4));
    assert_eq!(columns.last().unwrap(), "third");
    // The long form has a row for each number of the wide form.
    let (columns, rows) = table(&dir.path().join("metrics.parquet"));
    assert_eq!(columns.join(" "), "qdisc seed source port class metric value unit");
    let numbers = runs.iter().flat_map(|(_, run)| run.metrics.iter()).filter(|(_, value)| value.is_some());
    assert_eq!(rows, numbers.count());

    let text = fs::read_to_string(dir.path().join("manifest.json")).unwrap();
    let reported: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(reported["complete"], true);
    assert_eq!(reported["fingerprint"], total.to_string());
    assert_eq!(reported["scenario_hash"], Fingerprint::of(SCENARIO).to_string());
    assert_eq!(reported["trials"][3]["seed"], 2);
    assert_eq!(fs::read_to_string(dir.path().join("scenario.toml")).unwrap(), SCENARIO);
}

/// A run is killed with two complete trials, one incomplete trial next to its place, and an incomplete table.
/// The second attempt runs the other two trials, and the folder is equal to the folder of an undisturbed run,
/// byte for byte.
#[test]
fn a_killed_run_resumes() {
    let undisturbed = tempfile::tempdir().unwrap();
    let folder = create(undisturbed.path());
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);

    let dir = tempfile::tempdir().unwrap();
    let killed = create(dir.path());
    let trials = plan();
    for trial in &trials[..2] {
        killed.write(trial, &record(trial.seed)).unwrap();
    }
    let efd = dir.path().join(format!("trials/efd-{}", &Fingerprint::of("efd").to_string()[..16]));
    fs::create_dir_all(efd.join(".seed-1.tmp")).unwrap();
    fs::write(efd.join(".seed-1.tmp/flows.parquet"), b"PAR1 half").unwrap();
    fs::write(dir.path().join(".flows.parquet.tmp"), b"PAR1 half").unwrap();
    // The run was killed after a trial was renamed to its place, and before the outdated one was removed.
    fs::create_dir_all(efd.join(".seed-9.old")).unwrap();
    drop(killed);

    let resumed = create(dir.path());
    assert_eq!(resumed.finished(&trials[1]), Some(record(2).summary), "to the last bit of one third");
    assert_eq!(resumed.finished(&trials[2]), None, "a half-written trial is none");
    let (runs, ran) = run_all(&resumed);
    assert_eq!(ran, 2);
    resumed.finish(&runs).unwrap();
    drop(resumed);
    assert_eq!(files(dir.path()), files(undisturbed.path()));
    assert!(!efd.join(".seed-9.old").exists());
}

/// An interrupted run merges its finished trials, and its manifest is marked as incomplete.
#[test]
fn an_interrupted_run_has_valid_tables_of_its_finished_trials() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let first = plan().remove(0);
    folder.write(&first, &record(1)).unwrap();
    folder.finish(&[(first, record(1).summary)]).unwrap();
    assert_eq!(table(&dir.path().join("flows.parquet")).1, 1);
    assert!(fs::read_to_string(dir.path().join("manifest.json")).unwrap().contains("\"complete\": false"));
}

/// Another version of Giveway uses no trial of the old version, removes the old tables, and replaces outdated
/// trials.
#[test]
fn outdated_trials_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    let first = &plan()[0];

    let newer = RunFolder::create(dir.path(), SCENARIO, manifest("0.2.0")).unwrap();
    assert_eq!(newer.look(first), Kept::Outdated("0.1.0".into()));
    assert!(!dir.path().join("flows.parquet").exists());
    newer.write(first, &record(5)).unwrap();
    assert_eq!(newer.finished(first), Some(record(5).summary));
    drop(newer);
    let again = RunFolder::create(dir.path(), SCENARIO, manifest("0.2.0")).unwrap();
    assert_eq!(run_all(&again).1, 3, "the same version has one of four");
    let hidden = files(dir.path()).into_iter().filter(|(name, _)| name.contains("/."));
    assert_eq!(hidden.count(), 0);
}

/// A folder with a run of another scenario does not change, unless the user allows it to be replaced.
#[test]
fn a_run_of_another_scenario_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    fs::write(dir.path().join("trials/notes.txt"), "mine, too").unwrap();
    let before = files(dir.path());

    let other = "duration = \"9 s\"\n";
    let error = RunFolder::create(dir.path(), other, manifest("0.1.0")).unwrap_err();
    assert!(error.is_refusal());
    let text = error.to_string();
    for part in
        ["contains another experiment", "(scenario quick)", "`giveway run quick.toml`", " UTC by ", "--force"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(files(dir.path()), before, "nothing was changed");

    let reported = std::cell::RefCell::new(Vec::new());
    let removing = |thing: &str| reported.borrow_mut().push(thing.to_owned());
    let folder = RunFolder::open(dir.path(), other, manifest("0.1.0"), Existing::Replace(&removing)).unwrap();
    let reported: Vec<String> = reported.into_inner();
    let name = |thing: &String| thing.strip_prefix(&format!("{}/", dir.path().display())).unwrap().to_owned();
    assert_eq!(
        reported.iter().map(name).collect::<Vec<_>>(),
        [
            "flows.parquet",
            "queue.parquet",
            "gauges.parquet",
            "sojourn.parquet",
            "shares.parquet",
            "delays.parquet",
            "links.parquet",
            "summary.parquet",
            "metrics.parquet",
            "scenario.toml",
            "trials (4 runs)",
            "manifest.json"
        ]
    );
    assert_eq!(folder.look(&plan()[0]), Kept::Missing);
    drop(folder);
    let names: Vec<String> = files(dir.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [LOCK, "manifest.json", "notes.txt", "scenario.toml", "trials/notes.txt"]);
    assert_eq!(fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "mine");
}

/// A folder with other content is refused, whatever the content is, and does not change.
#[test]
fn a_folder_with_other_content_is_refused() {
    for (file, text) in [
        ("scenario.toml", "title = \"mine\""),
        ("manifest.json", "{}"),
        ("manifest.json", "not JSON"),
        ("manifest.json", "{\"giveway\": \"no manifest of ours\", \"format\": 5}"),
        (".hidden", ""),
        ("report.html", "<html>"),
        ("trials/eukaryotes.csv", "a,b"),
        ("trials/x/seed-1/notes", "mine"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let before = files(dir.path());
        let error = RunFolder::create(dir.path(), SCENARIO, manifest("0.1.0")).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("--force"), "{file}: {error}");
        assert_eq!(files(dir.path()), before, "{file}");
        // With permission, only files with names of Giveway's files are removed.
        RunFolder::open(dir.path(), SCENARIO, manifest("0.1.0"), Existing::Replace(&|_| ())).unwrap();
        let ours = ["scenario.toml", "manifest.json", "report.html"].contains(&file);
        assert_eq!(ours, !path.exists() || fs::read_to_string(&path).unwrap() != text, "{file}");
    }
}

/// A link to a run folder is used like the folder. Links inside the folder are not followed when they are
/// removed.
#[test]
#[cfg(unix)]
fn links_are_not_followed_into_other_places() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let folder = create(&link);
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    assert_eq!(run_all(&create(&real)).1, 0);

    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("seed-1")).unwrap();
    fs::write(elsewhere.join("seed-1/flows.parquet"), "mine").unwrap();
    fs::write(dir.path().join("table"), "mine").unwrap();
    std::os::unix::fs::symlink(&elsewhere, real.join("trials/linked")).unwrap();
    fs::remove_file(real.join("flows.parquet")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("table"), real.join("flows.parquet")).unwrap();
    RunFolder::open(&real, "another", manifest("0.1.0"), Existing::Replace(&|_| ())).unwrap();
    assert_eq!(fs::read_to_string(elsewhere.join("seed-1/flows.parquet")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(dir.path().join("table")).unwrap(), "mine");

    let dangling = dir.path().join("dangling");
    std::os::unix::fs::symlink(dir.path().join("nowhere"), &dangling).unwrap();
    let error = RunFolder::create(&dangling, SCENARIO, manifest("0.1.0")).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write {}", dangling.display())), "{error}");
}

/// A run was killed right after it created the folder. The next run uses the folder without a message. A
/// folder may come from another person, with links to folders with the names of trials.
#[test]
#[cfg(unix)]
fn no_part_of_a_folder_may_be_a_link() {
    use std::os::unix::fs::symlink;
    let top = tempfile::tempdir().unwrap();
    let (own, other) = (top.path().join("own"), top.path().join("other"));
    let open = |existing| RunFolder::open(&own, SCENARIO, manifest("0.1.0"), existing);
    let refused = |why: &str| {
        for existing in [Existing::Keep, Existing::Replace(&|_| ())] {
            let error = open(existing).unwrap_err();
            assert!(error.is_refusal(), "{error}");
            assert!(error.to_string().contains(&format!("{why} is a link")), "{error}");
        }
    };
    let discipline = {
        let (runs, _) = run_all(&create(&own));
        create(&own).finish(&runs).unwrap();
        fs::read_dir(own.join("trials")).unwrap().next().unwrap().unwrap().file_name()
    };
    // The runs of another person, with the names of ours.
    fs::rename(own.join("trials"), &other).unwrap();
    fs::write(other.join(&discipline).join("seed-1/notes.txt"), "theirs").unwrap();
    let before = files(&other);
    symlink(&other, own.join("trials")).unwrap();
    refused("trials");
    assert!(page(&own).unwrap_err().contains("is a link, which is not followed"), "on reading, too");
    // One level below.
    fs::remove_file(own.join("trials")).unwrap();
    fs::create_dir(own.join("trials")).unwrap();
    symlink(other.join(&discipline), own.join("trials").join(&discipline)).unwrap();
    let folder = open(Existing::Keep).unwrap();
    let written = plan().iter().map(|trial| folder.write(trial, &record(trial.seed))).collect::<Vec<_>>();
    let cause =
        |error: &FolderError| std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let errors: Vec<String> = written.iter().filter_map(|one| one.as_ref().err()).map(cause).collect();
    assert!(errors.len() == 2 && errors.iter().all(|error| error.contains("is a link, which")), "{errors:?}");
    drop(folder);
    // A trial itself runs again, in place of the link.
    fs::remove_file(own.join("trials").join(&discipline)).unwrap();
    fs::create_dir(own.join("trials").join(&discipline)).unwrap();
    symlink(other.join(&discipline).join("seed-1"), own.join("trials").join(&discipline).join("seed-1"))
        .unwrap();
    let folder = open(Existing::Keep).unwrap();
    let (runs, ran) = run_all(&folder);
    assert_eq!(ran, 2, "two were written before");
    folder.finish(&runs).unwrap();
    drop(folder);
    page(&own).unwrap();
    assert!(files(&other) == before, "nothing of theirs has changed");
    // A manifest that names a folder outside.
    let text = fs::read_to_string(own.join("manifest.json")).unwrap();
    let inside = format!("trials/{}/seed-1", discipline.to_string_lossy());
    let text = text.replacen(&inside, &format!("../other/{}/seed-1", discipline.to_string_lossy()), 1);
    let end = text.find(",\n  \"sha256\": \"").unwrap();
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&text.as_bytes()[..end]);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(own.join("manifest.json"), format!("{},\n  \"sha256\": \"{hex}\"\n}}\n", &text[..end]))
        .unwrap();
    let error = page(&own).unwrap_err();
    assert!(error.contains("is not a path inside the folder"), "{error}");
}

#[test]
fn remains_of_a_run_without_a_manifest_are_reused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(LOCK), "process 1, since 2026-01-01 00:00:00 UTC").unwrap();
    fs::write(dir.path().join(".manifest.json.tmp"), "{").unwrap();
    let folder = create(dir.path());
    assert!(dir.path().join("manifest.json").exists(), "it is the first file of a folder");
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    let fresh = tempfile::tempdir().unwrap();
    let folder = create(fresh.path());
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    assert_eq!(files(dir.path()), files(fresh.path()));
}

/// Recordings of a live bridge have no scenario that could be repeated, so a new recording replaces an old
/// one.
#[test]
fn a_recording_replaces_only_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let live = || Manifest { created_by: "giveway live".into(), ..manifest("0.1.0") };
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    let folder = RunFolder::create(&old, "# rate 1mbit", live()).unwrap();
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    let folder = RunFolder::create(&old, "# rate 2mbit", live()).unwrap();
    assert_eq!(folder.look(&plan()[0]), Kept::Missing, "the trials of the old one are removed");
    drop(folder);
    assert!(RunFolder::create(&old, SCENARIO, manifest("0.1.0")).unwrap_err().is_refusal());
    drop(create(&new));
    assert!(RunFolder::create(&new, "# rate 2mbit", live()).unwrap_err().is_refusal());
}

/// One process writes at a time. A second process gets an error with the number of the first.
#[test]
fn a_folder_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let first = create(dir.path());
    let error = RunFolder::create(dir.path(), SCENARIO, manifest("0.1.0")).unwrap_err();
    assert!(matches!(error, FolderError::Busy { .. }) && !error.is_refusal());
    let text = error.to_string();
    assert!(text.contains(&format!("process {}, since 20", std::process::id())), "{text}");
    first.finish(&run_all(&first).0).unwrap();
    let reading = Report::read(&[dir.path()]).err().expect("it is being written").to_string();
    assert!(reading.contains("is being written by process "), "{reading}");
    Report::of(&first).and_then(|report| report.html()).expect("the writer itself may read");
    drop(first);
    let report = Report::read(&[dir.path()]).unwrap();
    report.html().unwrap();
    // A reader does not block a writer, but notices it.
    let second = create(dir.path());
    let reading = report.html().unwrap_err().to_string();
    assert!(reading.contains("is being written by process "), "{reading}");
    drop(second);
    let reading = report.html().unwrap_err().to_string();
    assert!(reading.contains("is being written by another process"), "{reading}");
}

/// A trial with a missing or incomplete file does not count as finished, and its damage is reported.
#[test]
fn a_damaged_trial_runs_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let (runs, _) = run_all(&folder);
    folder.finish(&runs).unwrap();
    let undamaged = files(dir.path());
    let path = dir.path().join(format!("trials/efd-{}/seed-1", &Fingerprint::of("efd").to_string()[..16]));
    let run = trial("efd", 1);
    let damage = |folder: &RunFolder| match folder.look(&run) {
        Kept::Damaged(damage) => damage.to_string(),
        other => panic!("it is {other:?}"),
    };
    let table = fs::read(path.join("flows.parquet")).unwrap();
    fs::write(path.join("flows.parquet"), &table[..table.len() / 2]).unwrap();
    let text = damage(&folder);
    assert!(
        text.contains("seed-1/flows.parquet is damaged: it has ") && text.contains(" were written"),
        "{text}"
    );
    fs::remove_file(path.join("flows.parquet")).unwrap();
    assert!(damage(&folder).ends_with("seed-1/flows.parquet is damaged: it is missing"));
    let error = folder.finish(&runs).unwrap_err();
    let cause = std::error::Error::source(&error).expect("the table of a trial is the cause").to_string();
    assert!(error.to_string().contains("flows.parquet") && cause.contains("seed-1"), "{error}: {cause}");
    assert!(!files(dir.path()).iter().any(|(name, _)| name.ends_with(".tmp")), "temporary files are removed");

    fs::write(path.join("summary.json"), b"{ half").unwrap();
    assert!(damage(&folder).contains("seed-1/summary.json is damaged: its content does not match"));
    let error = folder.finish(&runs).unwrap_err();
    assert!(format!("{error:?}").contains("seed-1"), "{error:?}");
    let (runs, ran) = run_all(&folder);
    assert_eq!(ran, 1);
    folder.finish(&runs).unwrap();
    assert_eq!(files(dir.path()), undamaged);
}

/// Two trials with exchanged folders are undamaged, but each is at the place of the other.
#[test]
fn exchanged_trials_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    let undamaged = files(dir.path());
    let efd = dir.path().join(format!("trials/efd-{}", &Fingerprint::of("efd").to_string()[..16]));
    let change = |a: &str, b: &str| {
        fs::rename(efd.join(a), efd.join("aside")).unwrap();
        fs::rename(efd.join(b), efd.join(a)).unwrap();
        fs::rename(efd.join("aside"), efd.join(b)).unwrap();
    };
    change("seed-1", "seed-2");
    let error = Report::read(&[dir.path()]).err().expect("the report is refused").to_string();
    assert!(
        error.contains("it is not the one that the manifest lists") && error.contains("--out"),
        "{error}"
    );
    let folder = create(dir.path());
    assert!(
        matches!(folder.look(&trial("efd", 1)), Kept::Damaged(damage) if damage.why.contains("efd with seed 2"))
    );
    let (runs, ran) = run_all(&folder);
    assert_eq!(ran, 2);
    folder.finish(&runs).unwrap();
    drop(folder);
    assert_eq!(files(dir.path()), undamaged);
}

/// The page of a folder, or the error.
fn page(dir: &Path) -> Result<String, String> {
    let page = Report::read(&[dir]).and_then(|report| report.html());
    page.map_err(|error| match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

/// One bit of one file is flipped, for bits in all parts of each file of a small folder. No report is made of
/// a damaged file, no damaged trial counts as finished, and the same command repairs the folder or names the
/// file that prevents it.
#[test]
fn a_flipped_bit_is_always_detected() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    let undamaged = files(dir.path());
    let right = page(dir.path()).unwrap();
    let listed = || undamaged.iter().filter(|(_, content)| !content.is_empty());
    // Sixteen bits of each file, spread from its first byte to its last, at different positions in the byte.
    let flip = |name: &str, content: &[u8], number: usize| {
        let mut bytes = content.to_vec();
        bytes[number * (content.len() - 1) / 15] ^= 1 << (number % 8);
        fs::write(dir.path().join(name), bytes).unwrap();
    };
    let restore = |name: &str, content: &[u8]| fs::write(dir.path().join(name), content).unwrap();

    let (mut flips, mut refused) = (0, 0);
    for (name, content) in listed() {
        for number in 0..16 {
            flip(name, content, number);
            flips += 1;
            match page(dir.path()) {
                Ok(page) => assert!(page == right, "bit {number} of {name} changes the report"),
                Err(error) => {
                    assert!(error.contains(name) || name == "manifest.json", "{name}: {error}");
                    refused += 1;
                }
            }
        }
        restore(name, content);
    }
    assert!(flips > 500, "{flips}");
    assert_eq!(refused, flips, "every flipped bit is detected");

    let folder = create(dir.path());
    for (name, content) in listed().filter(|(name, _)| name.starts_with("trials/")) {
        for number in 0..16 {
            flip(name, content, number);
            let looked: Vec<Kept> = plan().iter().map(|trial| folder.look(trial)).collect();
            let damaged = looked.iter().filter(|kept| matches!(kept, Kept::Damaged(_))).count();
            let finished = looked.iter().filter(|kept| matches!(kept, Kept::Finished(_))).count();
            assert_eq!((damaged, finished), (1, 3), "bit {number} of {name}");
        }
        restore(name, content);
    }
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);

    for (number, (name, content)) in listed().enumerate() {
        flip(name, content, number % 16);
        match RunFolder::create(dir.path(), SCENARIO, manifest("0.1.0")) {
            Ok(folder) => {
                let (runs, ran) = run_all(&folder);
                assert_eq!(ran, usize::from(name.starts_with("trials/")), "{name}");
                folder.finish(&runs).unwrap();
                drop(folder);
                assert!(files(dir.path()) == undamaged, "bit {} of {name} is not repaired", number % 16);
            }
            // The flipped bit is in the number of the format, so the folder looks like one of another
            // version.
            Err(error) => {
                assert!(name == "manifest.json" && error.is_refusal(), "{name}: {error}");
                restore(name, content);
            }
        }
    }
}

/// A report does not show results that were edited by hand.
#[test]
fn an_edited_metric_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    folder.finish(&run_all(&folder).0).unwrap();
    drop(folder);
    let summary = dir
        .path()
        .join(format!("trials/efd-{}/seed-1/summary.json", &Fingerprint::of("efd").to_string()[..16]));
    let text = fs::read_to_string(&summary).unwrap();
    let edited = text.replace("\"third\": 0.3", "\"third\": 0.9");
    assert_ne!(text, edited);
    fs::write(&summary, edited).unwrap();
    let error = page(dir.path()).unwrap_err();
    assert!(error.contains("seed-1/summary.json is damaged") && error.contains("--out"), "{error}");
    assert_eq!(run_all(&create(dir.path())).1, 1);
}

/// A file in place of a folder is an error for the superuser as well, to whom permissions do not apply.
#[test]
fn an_error_of_an_unwritable_folder_names_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("results");
    fs::write(&blocked, b"a file").unwrap();
    let error = RunFolder::create(&blocked, SCENARIO, manifest("0.1.0")).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot write {}", blocked.display())), "{error}");
    let FolderError::Write { path, source } = error else { panic!("{error}") };
    assert!(path.starts_with(&blocked) && source.to_string().contains("it is a file"), "{source}");
}

/// A file is at the place of a trial. The error names the file, and no temporary file remains.
#[test]
fn a_trial_that_cannot_be_written_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let blocked = dir.path().join(format!("trials/efd-{}", &Fingerprint::of("efd").to_string()[..16]));
    fs::write(&blocked, b"a file").unwrap();
    let before = files(dir.path());
    let error = folder.write(&trial("efd", 1), &record(1)).unwrap_err();
    assert!(error.to_string().contains(&blocked.display().to_string()), "{error}");
    assert_eq!(files(dir.path()), before);
}

/// Measures the cost of digests: writes a run with a table of 100 MB of flows, and reads it with a check.
#[test]
#[ignore = "a measurement, best with --release"]
#[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn cost_of_digests() {
    let mut recorder = Recorder::new(Layout { until: Time::s(3), ..Layout::default() });
    let mut rng = giveway_qdisc::Streams::new(1).rng();
    for id in 0..2_000_000 {
        let mut number = || rng.below(1 << 40);
        Probe::<()>::on_flow(
            &mut recorder,
            &FlowReport {
                start: Time::us(number() % 1_000_000),
                end: Time::us(1_000_000 + number() % 1_000_000),
                bytes: number(),
                delivered: number(),
                goodput_bytes: number(),
                packets: number(),
                ..transfer(id)
            },
        );
    }
    let record = recorder.finish();
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let run = trial("efd", 1);
    let time = |what: &str, work: &mut dyn FnMut()| {
        let begin = std::time::Instant::now();
        work();
        println!("{what}: {:.3} s", begin.elapsed().as_secs_f64());
    };
    time("written and hashed", &mut || folder.write(&run, &record).unwrap());
    time("checked", &mut || assert!(folder.finished(&run).is_some()));
    time("merged and hashed", &mut || {
        folder.finish(&[(run.clone(), record.summary.clone())]).unwrap();
    });
    drop(folder);
    time("read for a report, with both copies checked", &mut || drop(Report::read(&[dir.path()]).unwrap()));
    let bytes: usize = files(dir.path()).iter().map(|(_, content)| content.len()).sum();
    println!("{bytes} bytes in the folder");
}
