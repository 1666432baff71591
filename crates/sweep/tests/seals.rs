//! A sweep's folder is read back as it was written, or refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use giveway_files::Dir;
use giveway_record::{Lock, dataset, seal};
use giveway_sweep::{
    Data, Manifest, Plan, Remote, Shard, SweepError, SweepFolder, Task, failed_parts_of, merge, metric_names,
    page, parts_of, run, work,
};
use giveway_trials::{Reuse, Silent};
use tempfile::TempDir;

use crate::support::{Watched, bytes, plan, sweep};

const AXES: [&str; 1] = ["link.0.rate=5mbit,10mbit"];
const METRIC: &str = "fct_mean_s";
/// The only part of a small sweep.
const PART: &str = "trials/part-00000000.parquet";

/// A complete sweep of twelve trials.
fn complete() -> (TempDir, Plan) {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan(&AXES, "grid"));
    assert!(sweep(&plan, dir.path(), 2, &Watched::new()).unwrap().complete);
    (dir, plan)
}

fn part(dir: &Path) -> PathBuf {
    dir.join(PART)
}

/// All ways in which a program reads a sweep back, without changing it. `elsewhere` is a new folder.
fn readings(dir: &Path, elsewhere: &Path) -> Vec<Result<(), SweepError>> {
    let report =
        |dir: &Path| Data::read(dir, METRIC).map(|data| assert!(page(&[data]).html().contains("</html>")));
    vec![
        report(dir),
        metric_names(dir).map(drop),
        parts_of(dir).map(drop),
        merge(elsewhere, &[dir.to_owned()]).map(drop),
    ]
}

/// Checks that every reading is refused with the name of the file, and that the refusal changed nothing.
fn all_refuse(dir: &Path, named: &str) {
    let elsewhere = tempfile::tempdir().unwrap();
    for (way, read) in readings(dir, &elsewhere.path().join("all")).into_iter().enumerate() {
        let error = read.unwrap_err();
        assert!(error.is_refusal(), "way {way}: {error}");
        assert!(error.to_string().contains(named), "way {way}: {error}");
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn no_part_of_a_sweep_may_be_a_link() {
    let (dir, plan) = complete();
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("outside");
    for name in ["manifest.json", "scenario.toml", "trials", PART] {
        // The link leads to the very content that the sweep wrote, and that somebody else may change later.
        let place = dir.path().join(name);
        fs::rename(&place, &outside).unwrap();
        symlink(&outside, &place).unwrap();
        let before = bytes_of_tree(&outside);
        let mut refused = readings(dir.path(), &elsewhere.path().join("all"));
        if name == "scenario.toml" {
            // Only a merge reads it.
            refused.drain(..3).for_each(|read| read.unwrap());
        }
        for read in refused {
            let error = read.unwrap_err().to_string();
            assert!(error.contains("is a link"), "{name}: {error}");
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1, "{name}: nothing was merged");
        match sweep(&plan, dir.path(), 1, &Watched::new()) {
            // A part is moved aside, and a scenario is replaced: the link itself, never what it leads to.
            Ok(done) => assert!(done.complete && [PART, "scenario.toml"].contains(&name), "{name}"),
            Err(error) => assert!(error.is_refusal() && error.to_string().contains("is a link"), "{error}"),
        }
        assert_eq!(bytes_of_tree(&outside), before, "{name}");
        if fs::symlink_metadata(&place).unwrap().is_symlink() {
            fs::remove_file(&place).unwrap();
            fs::rename(&outside, &place).unwrap();
        } else {
            fs::remove_file(&outside).unwrap();
        }
    }
    readings(dir.path(), &elsewhere.path().join("all")).into_iter().for_each(|read| read.unwrap());
}

#[test]
fn links_in_a_new_folder_lead_nowhere() {
    let plan = plan(&AXES, "grid");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("theirs")).unwrap();
    fs::write(elsewhere.path().join("theirs/part-00000000.parquet"), "theirs").unwrap();
    let before = bytes_of_tree(elsewhere.path());
    for name in ["trials", "failed", "earlier", "trials.new", "trials.old", "manifest.json", ".giveway.lock"]
    {
        let dir = tempfile::tempdir().unwrap();
        symlink(elsewhere.path().join("theirs"), dir.path().join(name)).unwrap();
        let error = sweep(&plan, dir.path(), 1, &Watched::new()).unwrap_err();
        let text = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
        let foreign = text.contains("is not empty and is not the folder of a sweep");
        assert!(text.contains("is a link") || foreign, "{name}: {text}");
    }
    assert_eq!(bytes_of_tree(elsewhere.path()), before);
}

/// The files below a path with their content.
fn bytes_of_tree(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    if !path.is_dir() {
        return vec![(path.to_owned(), fs::read(path).unwrap())];
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| bytes_of_tree(entry)).collect()
}

#[test]
fn an_edited_metric_is_detected() {
    let (dir, plan) = complete();
    for read in readings(dir.path(), &dir.path().join("shard-1-of-1")) {
        read.unwrap();
    }
    // A better result, in a valid file of the same columns.
    let parts = parts_of(dir.path()).unwrap();
    let mut rows = dataset::read(&parts[0], plan.columns()).unwrap();
    let at = rows[0].result.names.iter().position(|name| name == METRIC).unwrap();
    rows[0].result.values[at] = Some(0.001);
    let folder = Dir::open(dir.path()).unwrap();
    dataset::write(&folder, PART, plan.columns(), &rows).unwrap();
    all_refuse(dir.path(), "part-00000000.parquet is damaged");
    let error = Data::read(dir.path(), METRIC).unwrap_err().to_string();
    assert!(error.contains("It was made by `giveway sweep`; run this again"), "{error}");
}

#[test]
fn a_flipped_bit_of_a_part_is_always_detected() {
    let (dir, _) = complete();
    let whole = fs::read(part(dir.path())).unwrap();
    // A prime step reaches each bit of a byte, and every part of the file.
    for bit in (0..whole.len() * 8).step_by(101) {
        let mut content = whole.clone();
        content[bit / 8] ^= 1 << (bit % 8);
        fs::write(part(dir.path()), content).unwrap();
        assert!(parts_of(dir.path()).is_err() && Data::read(dir.path(), METRIC).is_err(), "bit {bit}");
    }
    for length in (0..whole.len()).step_by(501) {
        fs::write(part(dir.path()), &whole[..length]).unwrap();
        assert!(parts_of(dir.path()).is_err(), "cut to {length} bytes");
    }
    fs::remove_file(part(dir.path())).unwrap();
    all_refuse(dir.path(), "is missing");
}

#[test]
fn a_flipped_bit_of_the_manifest_is_always_detected() {
    let (dir, plan) = complete();
    let place = dir.path().join("manifest.json");
    let whole = fs::read(&place).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut content = whole.clone();
        content[bit / 8] ^= 1 << (bit % 8);
        fs::write(&place, &content).unwrap();
        assert!(Data::read(dir.path(), METRIC).is_err(), "bit {bit}");
        if bit % 97 == 0 {
            // A process that would go on refuses the folder as well, and leaves it as it is.
            let error = sweep(&plan, dir.path(), 1, &Watched::new()).unwrap_err();
            assert!(error.is_refusal() && error.to_string().contains("another folder"), "bit {bit}: {error}");
            assert_eq!(fs::read(&place).unwrap(), content);
        }
    }
}

#[test]
fn a_changed_part_runs_again_and_gives_the_same_bytes() {
    let (dir, plan) = complete();
    let before = bytes(dir.path());
    let mut content = fs::read(part(dir.path())).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(part(dir.path()), &content).unwrap();
    let watched = Watched::new();
    let done = sweep(&plan, dir.path(), 2, &watched).unwrap();
    assert_eq!((done.had, done.ran, done.complete), (0, 12, true));
    assert!(watched.texts()[0].contains("its SHA-256 does not match"), "{:?}", watched.texts());
    assert_eq!(bytes(dir.path()), before);
}

/// A part of another sweep, or of the same one twice, is not in the manifest.
#[test]
fn a_part_that_the_manifest_does_not_have_is_not_read() {
    let (dir, plan) = complete();
    let stray = dir.path().join("trials/part-00000007.parquet");
    fs::copy(part(dir.path()), &stray).unwrap();
    assert_eq!(parts_of(dir.path()).unwrap().len(), 1);
    let watched = Watched::new();
    let done = sweep(&plan, dir.path(), 2, &watched).unwrap();
    assert_eq!((done.had, done.ran), (12, 0));
    assert!(watched.texts()[0].contains("the manifest does not have it"), "{:?}", watched.texts());
    assert!(!stray.exists());
}

#[test]
fn an_unsealed_folder_of_an_older_version_says_what_to_do() {
    let (dir, plan) = complete();
    let place = dir.path().join("manifest.json");
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
    let fields = old.as_object_mut().unwrap();
    fields.insert("giveway_sweep".to_owned(), 1.into());
    for new in ["files", "sha256"] {
        fields.remove(new);
    }
    fs::write(&place, old.to_string()).unwrap();
    all_refuse(dir.path(), "has format 1 of sweeps, and this version reads format 2, which has a SHA-256");
    let error = sweep(&plan, dir.path(), 1, &Watched::new()).unwrap_err().to_string();
    assert!(error.contains("made by `giveway sweep`; run this again with another folder"), "{error}");
}

#[test]
fn a_folder_that_is_written_is_busy_and_not_damaged() {
    let (dir, _) = complete();
    fs::remove_file(part(dir.path())).unwrap();
    let lock = Lock::take(dir.path()).unwrap();
    let error = Data::read(dir.path(), METRIC).unwrap_err().to_string();
    assert!(error.contains("is being written by"), "{error}");
    drop(lock);
}

/// The files of a sweep that was killed at a moment of its last steps.
#[test]
fn a_kill_while_files_are_renamed_loses_no_trial() {
    let (dir, plan) = complete();
    let (trials, manifest) = (dir.path().join("trials"), dir.path().join("manifest.json"));
    let (sorted, before) = (bytes(dir.path()), fs::read(&manifest).unwrap());
    // The same rows in parts, as they are before the end.
    let cut = tempfile::tempdir().unwrap();
    let mut folder = SweepFolder::open(cut.path(), &plan, Shard::WHOLE, "giveway sweep", &Silent).unwrap();
    let rows = dataset::read(&parts_of(dir.path()).unwrap()[0], plan.columns()).unwrap();
    for rows in rows.chunks(5) {
        folder.add(rows).unwrap();
    }
    drop(folder);
    let mut between = Manifest::read(cut.path()).unwrap().unwrap();
    let parts = between.files.clone();
    between.next = Manifest::read(dir.path()).unwrap().unwrap().files;
    assert_eq!((parts.len(), between.next.len()), (3 + 1, 1 + 1));
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    };
    let moments: [&[(&Path, &str)]; 4] = [
        &[(&cut.path().join("trials"), "trials"), (&trials, "trials.new")],
        &[(&cut.path().join("trials"), "trials.old"), (&trials, "trials.new")],
        &[(&cut.path().join("trials"), "trials.old"), (&trials, "trials")],
        &[(&trials, "trials")],
    ];
    for (moment, folders) in moments.into_iter().enumerate() {
        let killed = tempfile::tempdir().unwrap();
        fs::write(killed.path().join("manifest.json"), seal(&between).0).unwrap();
        fs::copy(dir.path().join("scenario.toml"), killed.path().join("scenario.toml")).unwrap();
        for (from, to) in folders {
            copy(from, &killed.path().join(to));
        }
        if killed.path().join("trials").exists() {
            assert_eq!(Data::read(killed.path(), METRIC).unwrap().seeds.len(), 3, "moment {moment}");
        }
        let watched = Watched::new();
        let done = sweep(&plan, killed.path(), 2, &watched).unwrap();
        assert_eq!((done.had, done.ran, watched.texts()), (12, 0, Vec::new()), "moment {moment}");
        assert_eq!(bytes(killed.path()), sorted, "moment {moment}");
        assert_eq!(fs::read(killed.path().join("manifest.json")).unwrap(), before, "moment {moment}");
    }
}

/// A sweep that was killed after the first of three parts of another request was moved.
#[test]
fn a_kill_while_trials_are_set_aside_loses_none_and_mixes_none() {
    let narrow = plan(&["link.0.rate=10mbit,20mbit", "qdisc.threshold=20p"], "grid");
    let wide = plan(&["link.0.rate=5mbit,10mbit,20mbit", "qdisc.threshold=2p,20p"], "grid");
    let (whole, one, killed) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    sweep(&wide, whole.path(), 2, &Watched::new()).unwrap();
    sweep(&narrow, one.path(), 2, &Watched::new()).unwrap();
    let rows = dataset::read(&parts_of(one.path()).unwrap()[0], narrow.columns()).unwrap();
    let mut folder =
        SweepFolder::open(killed.path(), &narrow, Shard::WHOLE, "giveway sweep", &Silent).unwrap();
    for rows in rows.chunks(5) {
        folder.add(rows).unwrap();
    }
    drop(folder);
    let mut moving = Manifest::read(killed.path()).unwrap().unwrap();
    let moved =
        moving.files.iter().map(|(name, digest)| (name.replace("trials/", "earlier/"), digest.clone()));
    moving.next = moved.collect();
    fs::write(killed.path().join("manifest.json"), seal(&moving).0).unwrap();
    let (from, to) = (part(killed.path()), killed.path().join("earlier/part-00000000.parquet"));
    fs::create_dir(to.parent().unwrap()).unwrap();
    fs::rename(from, to).unwrap();
    let watched = Watched::new();
    let done = sweep(&wide, killed.path(), 2, &watched).unwrap();
    assert_eq!((done.reused, done.ran, watched.texts()), (12, 27 - 12, Vec::new()));
    assert_eq!(bytes(killed.path()), bytes(whole.path()));
}

#[test]
fn parts_of_workers_and_merged_folders_are_sealed() {
    let (dir, plan) = complete();
    // The workers of a cluster.
    let remote = tempfile::tempdir().unwrap();
    let shared = std::sync::Arc::new(self::plan(&AXES, "grid"));
    let folder = SweepFolder::open(remote.path(), &shared, Shard::WHOLE, "giveway sweep", &Silent).unwrap();
    let mut owner = Remote::begin(shared.clone(), folder, &Reuse::default(), &Silent).unwrap();
    let tasks: Vec<Task> = std::iter::from_fn(|| owner.next_task()).collect();
    owner.add(&work(&shared, &tasks)).unwrap();
    owner.finish().unwrap();
    // Two shards, of which each has trials that failed.
    let halves = tempfile::tempdir().unwrap();
    let failing = self::plan(&["warmup=0ms,250ms", "duration=300ms,200ms"], "grid");
    let dirs = [0, 1].map(|index| {
        let (shard, dir) = (Shard { index, of: 2 }, halves.path().join(format!("shard-{}-of-2", index + 1)));
        let mut folder = SweepFolder::open(&dir, &failing, shard, "giveway sweep", &Silent).unwrap();
        run(&failing, &mut folder, shard, 2, &Reuse::default(), &Silent).unwrap();
        dir
    });
    merge(halves.path(), &dirs).unwrap();
    let failed = failed_parts_of(halves.path()).unwrap();
    assert!(!failed.is_empty());
    for path in [part(remote.path()), part(halves.path()), failed[0].path().to_owned()] {
        let whole = fs::read(&path).unwrap();
        let mut content = whole.clone();
        content[whole.len() / 2] ^= 4;
        fs::write(&path, content).unwrap();
        let sweep = path.parent().and_then(Path::parent).unwrap();
        let read = parts_of(sweep).and_then(|_| failed_parts_of(sweep));
        assert!(read.unwrap_err().to_string().contains("is damaged"), "{}", path.display());
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(bytes(remote.path()), bytes(dir.path()));
    assert_eq!(sweep(&plan, remote.path(), 1, &Watched::new()).unwrap().ran, 0);
    // The scenario of a shard is in the merged folder, so it is checked as well.
    fs::write(dirs[0].join("scenario.toml"), "duration = \"9 s\"\n").unwrap();
    let error = merge(&halves.path().join("again"), &dirs).unwrap_err().to_string();
    assert!(error.contains("scenario.toml is damaged"), "{error}");
}
