//! Whole sweeps: their data sets, interruptions, changes and mistakes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use giveway_record::chain;
use giveway_record::{dataset, seal};
use giveway_sweep::{
    Data, Manifest, Plan, Remote, Shard, SweepError, SweepFolder, Task, answers, merge, page, parts_of, run,
    usual_metric, work,
};
use giveway_trials::{Reuse, Silent};

use crate::support::{Watched, bytes, plan, request, sweep};

const AXES: [&str; 2] = ["link.0.rate=5mbit,10mbit,20mbit", "qdisc.threshold=2p,20p"];

#[test]
fn each_trial_is_a_row_with_its_parameters() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&AXES, "grid");
    // The threshold does not concern fifo, which runs once for each rate.
    assert_eq!(plan.trials(), 3 * (3 + 6));
    let done = sweep(&plan, dir.path(), 2, &Watched::new()).unwrap();
    assert_eq!((done.ran, done.had, done.reused, done.failed, done.complete), (27, 0, 0, 0, true));
    let [part] = parts_of(dir.path()).unwrap().try_into().expect("a small sweep has one sorted file");
    let rows = dataset::read(&part, plan.columns()).unwrap();
    assert_eq!(rows.len(), 27);
    let columns: Vec<&str> = plan.columns().iter().map(|column| column.column.as_str()).collect();
    assert_eq!(columns, ["link_0_rate_bps", "qdisc_threshold_packets"]);
    let shown: Vec<String> = rows
        .iter()
        .filter(|row| row.seed == 1)
        .map(|row| format!("{} {} {:?}", row.point, row.qdisc, row.axes))
        .collect();
    insta_like(
        &shown[..4],
        &[
            "0 fifo limit 50p [Some(Number(5000000.0, \"bit/s\")), None]",
            "0 efd limit 50p threshold 2p [Some(Number(5000000.0, \"bit/s\")), Some(Number(2.0, \"packets\"))]",
            "1 efd limit 50p [Some(Number(5000000.0, \"bit/s\")), Some(Number(20.0, \"packets\"))]",
            "2 fifo limit 50p [Some(Number(10000000.0, \"bit/s\")), None]",
        ],
    );
    // A faster link sends more.
    let delay = |rate: f64| {
        let of_rate =
            rows.iter().filter(|row| row.axes[0] == Some(giveway_qdisc::Quantity::Number(rate, "bit/s")));
        let values: Vec<f64> = of_rate.filter_map(|row| row.result.value("fct_mean_s")).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    assert!(delay(5e6) > delay(20e6));
}

fn insta_like(shown: &[String], expected: &[&str]) {
    assert_eq!(shown, expected, "{shown:#?}");
}

#[test]
fn a_data_set_has_the_same_bytes_with_any_number_of_threads() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    sweep(&plan(&AXES, "grid"), one.path(), 1, &Watched::new()).unwrap();
    sweep(&plan(&AXES, "grid"), two.path(), 3, &Watched::new()).unwrap();
    assert_eq!(bytes(one.path()), bytes(two.path()));
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_stopped() {
    let (whole, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&AXES, "grid");
    sweep(&plan, whole.path(), 2, &Watched::new()).unwrap();
    let first = sweep(&plan, cut.path(), 2, &Watched::stopping_after(5)).unwrap();
    assert!(0 < first.ran && first.ran < 27 && !first.complete, "{first:?}");
    assert!(!Manifest::read(cut.path()).unwrap().unwrap().complete);
    let second = sweep(&plan, cut.path(), 2, &Watched::new()).unwrap();
    assert_eq!((second.had, second.ran), (first.ran, 27 - first.ran));
    assert_eq!(bytes(whole.path()), bytes(cut.path()));
    // Nothing is missing the third time.
    let third = sweep(&plan, cut.path(), 2, &Watched::new()).unwrap();
    assert_eq!((third.had, third.ran, third.complete), (27, 0, true));
}

#[test]
fn a_part_that_is_broken_runs_again() {
    let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&AXES, "grid");
    sweep(&plan, whole.path(), 2, &Watched::new()).unwrap();
    sweep(&plan, broken.path(), 2, &Watched::new()).unwrap();
    let [part] = parts_of(broken.path()).unwrap().try_into().unwrap();
    let mut content = fs::read(part.path()).unwrap();
    content.truncate(content.len() / 2);
    fs::write(part.path(), content).unwrap();
    let watched = Watched::new();
    let done = sweep(&plan, broken.path(), 2, &watched).unwrap();
    assert_eq!((done.had, done.ran), (0, 27));
    assert!(watched.texts()[0].contains("its trials run again"), "{:?}", watched.texts());
    assert_eq!(bytes(whole.path()), bytes(broken.path()));
}

#[test]
fn a_number_without_a_unit_counts_packets_where_the_parameter_does() {
    let (with, without) =
        (plan(&["qdisc.threshold=2p,20p"], "grid"), plan(&["qdisc.threshold=2,20"], "grid"));
    assert_eq!(with.columns(), without.columns());
    assert_eq!(without.columns()[0].column, "qdisc_threshold_packets");
    assert_eq!(with.request().axes, without.request().axes);
}

/// Runs a sweep whose folder takes no part. Returns the error, the number of rescued trials, and the folder
/// that has them.
fn without_room(plan: &Plan, dir: &Path, spoil: impl FnOnce(&Path)) -> (SweepError, u64, PathBuf) {
    let watched = Watched::new();
    let mut folder = SweepFolder::open(dir, plan, Shard::WHOLE, "giveway sweep", &watched).unwrap();
    spoil(dir);
    let error = run(plan, &mut folder, Shard::WHOLE, 2, &Reuse::default(), &watched).unwrap_err();
    let SweepError::Unwritten { rescued, .. } = &error else { panic!("{error:?}") };
    let (trials, at) = (rescued.trials, rescued.folder.clone().expect("there is a temporary folder"));
    (error, trials, at)
}

/// Everything that finished is in the folder of temporary files, and the sweep goes on from there.
fn goes_on_from(plan: &Plan, dir: &Path, rescued: &Path) {
    let whole = tempfile::tempdir().unwrap();
    sweep(plan, whole.path(), 2, &Watched::new()).unwrap();
    let watched = Watched::new();
    let mut folder = SweepFolder::open(dir, plan, Shard::WHOLE, "giveway sweep", &watched).unwrap();
    let done = run(
        plan,
        &mut folder,
        Shard::WHOLE,
        2,
        &Reuse::of_parts(parts_of(rescued).unwrap()).unwrap(),
        &watched,
    )
    .unwrap();
    assert_eq!((done.reused, done.ran, done.complete), (27, 0, true));
    assert_eq!(bytes(whole.path()), bytes(dir));
    fs::remove_dir_all(rescued).unwrap();
}

/// A disk in memory, mounted at a folder.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(at: &'a Path, options: &str) -> Option<Disk<'a>> {
        let disk = Disk(at);
        disk.set(options).then_some(disk)
    }
    /// Returns true if it succeeds.
    fn set(&self, options: &str) -> bool {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "giveway-test"]).arg(self.0);
        mount.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0).stderr(std::process::Stdio::null()).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_no_finished_trial() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&AXES, "grid");
    // Room for the manifest and the scenario, and not for a part.
    let Some(disk) = Disk::mount(dir.path(), "size=20k") else {
        println!("skipped: only root can mount a small disk");
        return;
    };
    let (error, trials, rescued) = without_room(&plan, dir.path(), |_| ());
    assert!(chain(&error).contains("No space left on device"), "{}", chain(&error));
    assert_eq!(trials, 27);
    assert!(parts_of(dir.path()).unwrap().is_empty());
    disk.set("remount,size=1m");
    goes_on_from(&plan, dir.path(), &rescued);
}

#[test]
fn a_lost_share_loses_no_finished_trial() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&AXES, "grid");
    let (error, trials, rescued) = without_room(&plan, dir.path(), |dir| fs::remove_dir_all(dir).unwrap());
    assert!(chain(&error).contains("No such file"), "{}", chain(&error));
    assert_eq!(trials, 27);
    goes_on_from(&plan, dir.path(), &rescued);
}

#[test]
fn a_changed_request_runs_only_what_is_new() {
    let (whole, grown) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wide = plan(&["link.0.rate=5mbit,10mbit,20mbit", "qdisc.threshold=2p,20p"], "grid");
    let narrow = plan(&["link.0.rate=10mbit,20mbit", "qdisc.threshold=20p"], "grid");
    sweep(&wide, whole.path(), 2, &Watched::new()).unwrap();
    let first = sweep(&narrow, grown.path(), 2, &Watched::new()).unwrap();
    assert_eq!(first.ran, 3 * 2 * 2);
    let second = sweep(&wide, grown.path(), 2, &Watched::new()).unwrap();
    assert_eq!((second.reused, second.ran), (12, 27 - 12));
    assert_eq!(bytes(whole.path()), bytes(grown.path()));
    assert!(!grown.path().join("earlier").exists());
}

#[test]
fn another_sweep_gives_its_trials() {
    let (rates, both) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    sweep(&plan(&["link.0.rate=5mbit,10mbit,20mbit"], "grid"), rates.path(), 2, &Watched::new()).unwrap();
    // 20p is the default of the threshold.
    let wide = plan(&["link.0.rate=10mbit,20mbit", "qdisc.threshold=2p,20p"], "grid");
    let mut folder = SweepFolder::open(both.path(), &wide, Shard::WHOLE, "giveway sweep", &Silent).unwrap();
    let others = Reuse::of(&[rates.path().to_owned()], &Silent).unwrap();
    let done = run(&wide, &mut folder, Shard::WHOLE, 2, &others, &Silent).unwrap();
    assert_eq!((done.reused, done.ran), (12, 6));
    let fresh = tempfile::tempdir().unwrap();
    sweep(&wide, fresh.path(), 2, &Watched::new()).unwrap();
    assert_eq!(bytes(both.path()), bytes(fresh.path()));
}

#[test]
fn shards_are_merged_into_the_same_bytes() {
    let (whole, merged) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(&AXES, "grid");
    sweep(&plan, whole.path(), 2, &Watched::new()).unwrap();
    let mut dirs = Vec::new();
    for index in 0..3 {
        let shard = Shard { index, of: 3 };
        let dir = merged.path().join(format!("shard-{}-of-3", index + 1));
        let mut folder = SweepFolder::open(&dir, &plan, shard, "giveway sweep", &Silent).unwrap();
        run(&plan, &mut folder, shard, 2, &Reuse::default(), &Silent).unwrap();
        dirs.push(dir);
    }
    // The folder above the parts is that of the whole sweep, as the book has it.
    let out = merged.path();
    let found = merge(out, &dirs).unwrap();
    assert_eq!((found.trials, found.missing), (27, Vec::new()));
    assert_eq!(bytes(whole.path()), bytes(out));
    // The whole command finds nothing to do in the merged folder.
    assert_eq!(sweep(&plan, out, 2, &Watched::new()).unwrap().ran, 0);

    let error = merge(&merged.path().join("part"), &dirs[..2]).unwrap_err();
    assert!(error.to_string().contains("shard 3 of 3 is missing"), "{error}");
    let mut other = Manifest::read(&dirs[1]).unwrap().unwrap();
    other.version = "0.0.9, sources 1234".to_owned();
    fs::write(dirs[1].join("manifest.json"), seal(&other).0).unwrap();
    let error = merge(&merged.path().join("mixed"), &dirs).unwrap_err().to_string();
    assert!(error.contains("shard-2-of-3") && error.contains("0.0.9, sources 1234"), "{error}");
}

#[test]
fn a_point_that_cannot_run_is_a_row_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    // A warm-up that leaves nothing to measure of the shorter duration only.
    let plan = plan(&["duration=300ms,200ms", "warmup=0ms,100ms,150ms"], "grid");
    let done = sweep(&plan, dir.path(), 2, &Watched::new()).unwrap();
    assert_eq!((done.failed, done.complete), (0, true));

    let dir = tempfile::tempdir().unwrap();
    // A limit below the threshold of EFD is valid alone, and invalid together.
    let plan = plan_of(&["warmup=0ms,250ms", "duration=300ms,200ms"]);
    let done = sweep(&plan, dir.path(), 2, &Watched::new()).unwrap();
    assert_eq!(done.failed, 6, "{done:?}");
    let failed = fs::read_dir(dir.path().join("failed")).unwrap().count();
    assert!(failed >= 1);
    assert_eq!(parts_of(dir.path()).unwrap().len(), 1);
}

fn plan_of(axes: &[&str]) -> Plan {
    plan(axes, "grid")
}

#[test]
fn a_precision_adds_seeds_only_where_they_are_needed() {
    let dir = tempfile::tempdir().unwrap();
    let mut asked = request(&["link.0.rate=5mbit,50mbit"], "grid");
    asked.scenario = asked.scenario.with_seeds(40);
    asked.until = Some("fct_mean within 10 %".parse().unwrap());
    let plan = Plan::new(asked).unwrap();
    let done = sweep(&plan, dir.path(), 2, &Watched::new()).unwrap();
    let [part] = parts_of(dir.path()).unwrap().try_into().unwrap();
    let rows = dataset::read(&part, plan.columns()).unwrap();
    assert_eq!(done.ran as usize, rows.len());
    let seeds = |point: u64| {
        let of_point: Vec<_> = rows.iter().filter(|row| row.point == point).collect();
        // Both disciplines have the same seeds, so that their differences are paired.
        let fifo = of_point.iter().filter(|row| row.discipline.starts_with("fifo")).count();
        assert_eq!(2 * fifo, of_point.len());
        fifo
    };
    // Transfers on a fast link take about the same time; on a slow one they meet queues.
    assert_eq!(seeds(1), 5);
    assert!(seeds(0) > 5, "{} seeds", seeds(0));
    let sentences = answers(&Data::read(dir.path(), "fct_mean_s").unwrap());
    let most = seeds(0);
    let needed = format!(
        "fct_mean_s within 10 %: points ran 5 to {most} seeds, with a median of {most}, and all reached it."
    );
    assert!(sentences.contains(&needed), "{sentences:?}");
    // An interruption does not change the number of seeds.
    let again = tempfile::tempdir().unwrap();
    assert!(!sweep(&plan, again.path(), 1, &Watched::stopping_after(5)).unwrap().complete);
    sweep(&plan, again.path(), 2, &Watched::new()).unwrap();
    assert_eq!(bytes(dir.path()), bytes(again.path()));
}

#[test]
fn a_folder_with_other_content_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    let refused = |error: SweepError| {
        assert!(error.is_refusal());
        error.to_string()
    };
    let error = refused(sweep(&plan(&AXES, "grid"), dir.path(), 1, &Watched::new()).unwrap_err());
    assert!(error.contains("contains thesis.tex; name another folder"), "{error}");

    let dir = tempfile::tempdir().unwrap();
    sweep(&plan(&["link.0.rate=5mbit"], "grid"), dir.path(), 1, &Watched::new()).unwrap();
    let error = refused(sweep(&plan(&AXES, "grid"), dir.path(), 1, &Watched::new()).unwrap_err());
    assert!(
        error.contains("contains another sweep (link.0.rate=5mbit)") && error.contains("--reuse"),
        "{error}"
    );
}

#[test]
fn wrong_requests_say_what_to_write() {
    let wrong = |axes: &[&str], design: &str| Plan::new(request(axes, design)).unwrap_err().to_string();
    for (axes, design, parts) in [
        (&[][..], "grid", ["nothing varies", "add for example --over"]),
        (&["link.0.rate=1mbit", "link.0.rate=2mbit"], "grid", ["link.0.rate", "given twice"]),
        (
            &["qdisc.treshold=5p"],
            "grid",
            ["no compared discipline has the parameter treshold", "did you mean qdisc.threshold?"],
        ),
        (&["link.0.rat=1mbit"], "grid", ["rat", "rate"]),
        (&["link.1.rate=1mbit"], "grid", ["has no element 1", "it has 1 elements"]),
        (&["link.0.rate=1mbit,fast"], "grid", ["--over link.0.rate=fast", "fast"]),
        (&["seeds=1,2"], "grid", ["--seeds 10", "every point"]),
        (&["link.0.rate=lin(1mbit,2mbit)"], "grid", ["a grid needs", "lhs:200"]),
        (
            &[
                "link.0.rate=lin(1mbit,9mbit,1000)",
                "link.0.delay=lin(1ms,9ms,1000)",
                "traffic.up.flows=1..1000",
            ],
            "grid",
            ["1000 x 1000 x 1000 = 1,000,000,000 points", "6,000,000,000 trials"],
        ),
    ] {
        let error = wrong(axes, design);
        assert!(parts.iter().all(|part| error.contains(part)), "{axes:?}: {error}");
    }
}

/// The names of metrics of a group of sources have dots, which Parquet uses for nested columns.
#[test]
fn a_metric_with_dots_in_its_name_is_read_and_its_better_end_is_known() {
    let dir = tempfile::tempdir().unwrap();
    sweep(&plan(&["link.0.rate=2mbit,20mbit"], "grid"), dir.path(), 2, &Watched::new()).unwrap();
    let data = Data::read(dir.path(), "src.up.flows_completed").unwrap();
    let sentences = answers(&data).join("\n");
    assert!(!sentences.contains("0 seeds"), "{sentences}");
    assert!(!sentences.contains("the lowest mean"), "more completed transfers are better: {sentences}");
    let dir = tempfile::tempdir().unwrap();
    let mut asked = request(&["link.0.rate=20mbit"], "grid");
    asked.until = Some("src.up.goodput within 50 %".parse().unwrap());
    let done = sweep(&Plan::new(asked).unwrap(), dir.path(), 1, &Watched::new()).unwrap();
    assert!(done.complete && Data::read(dir.path(), "src.up.goodput_bps").is_ok());
}

#[test]
fn the_report_has_answers_curves_maps_and_interactions() {
    let dir = tempfile::tempdir().unwrap();
    sweep(&plan(&AXES, "grid"), dir.path(), 2, &Watched::new()).unwrap();
    let metric = usual_metric(dir.path()).unwrap();
    assert_eq!(metric, "fct_p95_s");
    let page = page(&[Data::read(dir.path(), &metric).unwrap()]).html();
    for part in [
        "fct_p95_s by each key",
        "The best discipline by",
        "qdisc.threshold together",
        "Sobol indices of fct_p95_s",
        "Each point has 3 seeds",
        "sweep over link.0.rate=5mbit,10mbit,20mbit",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let error = Data::read(dir.path(), "fct_p59_s").unwrap_err().to_string();
    assert!(
        error.contains("has no metric fct_p59_s; did you mean fct_p50_s?") || error.contains("fct_p95_s"),
        "{error}"
    );
}

/// Workers that make their own plans give the same bytes as this process.
#[test]
fn a_sweep_whose_trials_run_elsewhere_has_the_same_bytes() {
    for until in [None, Some("fct_mean within 20 %")] {
        let asked = || {
            let mut asked = request(&AXES, "grid");
            asked.until = until.map(|until| until.parse().unwrap());
            if until.is_some() {
                asked.scenario = asked.scenario.with_seeds(12);
            }
            asked
        };
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let done = sweep(&Plan::new(asked()).unwrap(), here.path(), 2, &Watched::new()).unwrap();
        let plan = Arc::new(Plan::new(asked()).unwrap());
        let folder = SweepFolder::open(there.path(), &plan, Shard::WHOLE, "giveway sweep", &Silent).unwrap();
        let mut remote = Remote::begin(Arc::clone(&plan), folder, &Reuse::default(), &Silent).unwrap();
        let worker = Plan::new(asked()).unwrap();
        let mut answers = Vec::new();
        while !remote.is_done() {
            // Answers come in another order than the tasks, and one comes twice.
            let tasks: Vec<Task> = std::iter::from_fn(|| remote.next_task()).take(4).collect();
            for task in tasks.iter().rev() {
                let answer = work(&worker, std::slice::from_ref(task));
                remote.add(&answer).unwrap();
                answers.push(answer);
            }
            remote.add(answers.last().unwrap()).unwrap();
        }
        let found = remote.finish().unwrap();
        assert_eq!((found.ran, found.failed, found.complete), (done.ran, 0, true));
        assert_eq!(bytes(here.path()), bytes(there.path()));
    }
}

#[test]
fn a_worker_of_another_version_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Arc::new(plan(&AXES, "grid"));
    let folder = SweepFolder::open(dir.path(), &plan, Shard::WHOLE, "giveway sweep", &Silent).unwrap();
    let mut remote = Remote::begin(Arc::clone(&plan), folder, &Reuse::default(), &Silent).unwrap();
    let task = remote.next_task().unwrap();
    let answer = work(&plan, &[task]).replace(plan.version(), "0.0.9, sources 1234");
    let error = remote.add(&answer).unwrap_err().to_string();
    assert!(error.contains("a worker has Giveway 0.0.9, sources 1234"), "{error}");
    let task = remote.next_task().unwrap();
    let answer = work(&plan, &[task]).replace("\"discipline\":", "\"discipline\":9");
    assert!(remote.add(&answer).unwrap_err().to_string().contains("does not fit the sweep"));
    assert!(remote.add("[]").unwrap_err().to_string().contains("something else than rows"));
}
