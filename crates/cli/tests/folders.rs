//! Folders and files that the program writes. It must not replace foreign files or trust damaged ones, and
//! must leave a usable folder when it is killed, when the disk is full, and when several processes use the
//! folder.

#![expect(clippy::disallowed_methods, reason = "a skipped test says so past the capture of its output")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::programs::has_net;

const SCENARIO: &str = r#"
title = "Two queues"
duration = "400 ms"
seeds = 3
disciplines = ["fifo limit 20p", "fq_codel"]

[[link]]
from = "home"
to = "isp"
rate = "5 Mbit/s"
delay = "5 ms"
qdisc = "compare"

[[traffic]]
kind = "bulk"
from = "home"
to = "isp"
flows = 2
"#;

/// Creates a folder with a scenario.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    fs::write(folder.path().join("home.toml"), SCENARIO).expect("there is room for a file");
    folder
}

fn giveway(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.args(args).current_dir(folder).env("COLUMNS", "100").env("NO_COLOR", "1");
    // The time is fixed, so that folders of the same command are equal.
    command.env("SOURCE_DATE_EPOCH", "1770000000");
    command
}

/// Runs the program to its end. Returns its exit code and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } = giveway(folder, args).output().expect("the program starts");
    (status.code().expect("no signal ends it"), String::from_utf8(stderr).expect("it writes text"))
}

/// Runs the program, which must exit with code 0. Returns its standard error.
fn succeeds(folder: &Path, args: &[&str]) -> String {
    let (code, errors) = ran(folder, args);
    assert_eq!(code, 0, "{args:?}: {errors}");
    errors
}

/// The names and contents of all files below a folder, hidden files included.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("it is a folder").map(|entry| entry.expect("it can be read")) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("it is below").to_string_lossy().into_owned();
                found.push((name, fs::read(&path).expect("it can be read")));
            }
        }
    }
    found.sort();
    found
}

fn names(files: &[(String, Vec<u8>)]) -> Vec<&str> {
    files.iter().map(|(name, _)| name.as_str()).collect()
}

/// The files of a folder whose runs were not disturbed.
fn undisturbed(seeds: &str) -> Vec<(String, Vec<u8>)> {
    undisturbed_as(&["run", "home.toml", "--quiet", "--out", "kept", "--seeds", seeds], "kept")
}

/// Runs the command `run` undisturbed in a new folder, and returns the files below `kept`. A manifest
/// contains the command, so two folders are equal only if their commands are.
fn undisturbed_as(run: &[&str], kept: &str) -> Vec<(String, Vec<u8>)> {
    let folder = folder();
    fs::create_dir_all(folder.path().join(kept).parent().expect("it is in the folder")).unwrap();
    succeeds(folder.path(), run);
    files(&folder.path().join(kept))
}

#[test]
fn foreign_files_are_not_replaced() {
    let folder = folder();
    let path = folder.path();
    for (name, text) in [
        ("scenario.toml", SCENARIO),
        ("report.html", "<html>my own</html>"),
        ("flows.parquet", "my own"),
        ("notes.txt", "my own"),
    ] {
        fs::write(path.join(name), text).unwrap();
    }
    let before = files(path);
    let wrong = ["run", "scenario.toml", "--quiet", "--out", ".", "--export", "x.pcapng"];
    let (code, errors) = ran(path, &wrong);
    assert_eq!(code, 2, "{errors}");
    for part in [
        "is not a run folder",
        "flows.parquet, home.toml, notes.txt and 2 more",
        "Nothing was changed",
        "--force",
    ] {
        assert!(errors.contains(part), "{part} in {errors}");
    }
    assert!(files(path) == before, "nothing was changed");
    for args in [
        &["reproduce", "efd", "--quick", "--figure", "1b", "--seeds", "1", "--out", "."][..],
        &["report", ".", "--out", "home.toml"],
        &["report", "."],
        &["run", "home.toml", "--export", "notes.txt", "--set", "disciplines=fifo"],
        &["run", "home.toml", "--trace-port", "home->isp=notes.txt", "--set", "disciplines=fifo"],
        &["kernel", "build", "fifo", "--out", "notes.txt"],
    ] {
        if args[0] == "kernel" && !has_net() {
            continue;
        }
        let (code, errors) = ran(path, args);
        assert_eq!(code, 2, "{args:?}: {errors}");
        assert!(errors.contains("Nothing was changed") && errors.contains("--force"), "{args:?}: {errors}");
        assert!(files(path) == before, "{args:?}: nothing was changed");
    }

    // With --force, each removed file is named, and the other files stay.
    let (code, errors) = ran(path, &["run", "home.toml", "--quiet", "--out", ".", "--force"]);
    assert_eq!(code, 0, "{errors}");
    let lines: Vec<&str> = errors.lines().collect();
    let removing = |name: &str| format!("giveway: --force: removing ./{name}");
    assert_eq!(lines, ["flows.parquet", "report.html", "scenario.toml"].map(removing));
    assert_eq!(fs::read_to_string(path.join("notes.txt")).unwrap(), "my own");
    assert_eq!(fs::read_to_string(path.join("home.toml")).unwrap(), SCENARIO);
    // Now it is a run folder, and runs are resumed.
    succeeds(path, &["run", "home.toml", "--quiet", "--out", "."]);
}

#[test]
fn a_changed_scenario_needs_another_folder() {
    let folder = folder();
    let path = folder.path();
    succeeds(path, &["run", "home.toml", "--quiet", "--out", "kept"]);
    let before = files(&path.join("kept"));
    let changed = ["run", "home.toml", "--quiet", "--out", "kept", "--set", "link.0.rate=2mbit"];
    let (code, errors) = ran(path, &changed);
    assert_eq!(code, 2, "{errors}");
    for part in [
        "kept contains another experiment: \"Two queues\" (scenario home), made on 20",
        "`giveway run home.toml --quiet --out kept`",
        "--force",
    ] {
        assert!(errors.contains(part), "{part} in {errors}");
    }
    assert!(files(&path.join("kept")) == before, "nothing was changed");
    let (code, errors) = ran(path, &[&changed[..], &["--force"]].concat());
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("--force: removing kept/trials (6 runs)"), "{errors}");
    let after = files(&path.join("kept"));
    assert_eq!(names(&after), names(&before), "the same disciplines and seeds");
    // The folder is moved, and the path of the scenario is another one: it is still the same experiment.
    fs::rename(path.join("kept"), path.join("moved")).unwrap();
    fs::create_dir(path.join("elsewhere")).unwrap();
    let from = ["run", "../home.toml", "--quiet", "--out", "../moved", "--set", "link.0.rate=2mbit"];
    succeeds(&path.join("elsewhere"), &from);
    // The report contains the name of its folder, and the manifest contains the command.
    let tables = |files: Vec<(String, Vec<u8>)>| -> Vec<(String, Vec<u8>)> {
        let is_result = |name: &str| name != "report.html" && name != "manifest.json";
        files.into_iter().filter(|(name, _)| is_result(name)).collect()
    };
    assert!(tables(files(&path.join("moved"))) == tables(after));
}

#[test]
fn all_folders_are_checked_before_the_first_scenario_runs() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("other.toml"), SCENARIO.replace("5 Mbit/s", "4 Mbit/s")).unwrap();
    fs::create_dir_all(path.join("kept/other")).unwrap();
    fs::write(path.join("kept/other/notes.txt"), "mine").unwrap();
    let both = ["run", "home.toml", "other.toml", "--quiet", "--out", "kept"];
    let (code, errors) = ran(path, &both);
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("kept/other is not empty and is not a run folder: it contains notes.txt"),
        "{errors}"
    );
    assert!(!path.join("kept/home").exists(), "nothing ran");
    fs::remove_file(path.join("kept/other/notes.txt")).unwrap();
    succeeds(path, &both);
    assert!(path.join("kept/home/report.html").is_file() && path.join("kept/other/report.html").is_file());

    fs::create_dir(path.join("more")).unwrap();
    fs::write(path.join("more/home.toml"), SCENARIO).unwrap();
    let (code, errors) = ran(path, &["run", "home.toml", "more/home.toml", "--quiet", "--out", "twice"]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("two scenarios have the same name") && !path.join("twice").exists(), "{errors}");
}

#[test]
fn comparisons_and_papers_use_only_their_own_folders() {
    let folder = folder();
    let path = folder.path();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/home-uplink.pcapng");
    let example = example.to_str().expect("it is text");
    let compare = ["compare", example, "--qdisc", "fifo", "--seeds", "1", "--quiet", "--out", ".", "--rate"];
    fs::write(path.join("workload.jsonl"), "mine").unwrap();
    fs::write(path.join("report.html"), "mine").unwrap();
    let before = files(path);
    for rates in ["4mbit", "2mbit,4mbit"] {
        let (code, errors) = ran(path, &[&compare[..], &[rates]].concat());
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("Nothing was changed") && errors.contains("--force"), "{errors}");
        assert!(files(path) == before, "nothing was changed");
    }
    let paper =
        ["reproduce", "efd", "--quick", "--figure", "1b", "--seeds", "1", "--quiet", "--out", "paper"];
    succeeds(path, &paper);
    succeeds(path, &paper);
    let other = ["reproduce", "bsq", "--quick", "--seeds", "1", "--quiet", "--out", "paper"];
    let (code, errors) = ran(path, &other);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("paper holds the paper efd"), "{errors}");
    // The folder of a run cannot be used for a paper, nor the reverse.
    succeeds(path, &["run", "home.toml", "--quiet", "--out", "kept"]);
    assert_eq!(ran(path, &[&paper[..9], &["kept"]].concat()).0, 2);
    assert_eq!(ran(path, &["run", "home.toml", "--quiet", "--out", "paper"]).0, 2);
}

/// An output replaces a file of its kind. A file of another kind needs --force.
#[test]
fn outputs_replace_their_own_kind() {
    let folder = folder();
    let path = folder.path();
    let one = ["--set", "disciplines=fifo", "--seeds", "1", "--quiet"];
    for output in [["--export", "x.pcapng"], ["--trace-port", "home->isp=x.trace"]] {
        let args = [&["run", "home.toml"][..], &output, &one].concat();
        succeeds(path, &args);
        succeeds(path, &args);
        let file = output[1].rsplit('=').next().expect("it names a file");
        fs::write(path.join(file), "mine").unwrap();
        let (code, errors) = ran(path, &args);
        assert_eq!(code, 2, "{errors}");
        assert_eq!(fs::read_to_string(path.join(file)).unwrap(), "mine");
        let errors = succeeds(path, &[&args[..], &["--force"]].concat());
        assert_eq!(errors, format!("giveway: --force: replacing {file}\n"));
        assert!(fs::read(path.join(file)).unwrap().len() > 1000);
    }
    succeeds(path, &["run", "home.toml", "--quiet", "--out", "kept"]);
    succeeds(path, &["report", "kept", "--out", "page.html"]);
    succeeds(path, &["report", "kept", "--out", "page.html"]);
    fs::write(path.join("page.html"), "<!DOCTYPE html><p>mine").unwrap();
    assert_eq!(ran(path, &["report", "kept", "--out", "page.html"]).0, 2);
    succeeds(path, &["report", "kept", "--out", "page.html", "--force"]);
}

/// A bridge checks its output files before its interfaces.
#[test]
fn a_bridge_replaces_no_foreign_file() {
    if !has_net() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let live = ["live", "--in", "no-such-0", "--out", "no-such-1", "--rate", "1mbit"];
    for flag in ["--pcap", "--trace", "--ready"] {
        let (code, errors) = ran(path, &[&live[..], &[flag, "home.toml"]].concat());
        assert_eq!(code, 2, "{errors}");
        let begin = format!("giveway: {flag}: home.toml exists and is not a ");
        assert!(errors.starts_with(&begin) && errors.contains("add --force"), "{errors}");
        let (_, errors) = ran(path, &[&live[..], &[flag, "home.toml", "--force"]].concat());
        assert!(errors.contains("--force: replacing home.toml") && errors.contains("no-such-0"), "{errors}");
    }
    assert_eq!(
        fs::read_to_string(path.join("home.toml")).unwrap(),
        SCENARIO,
        "without an interface, nothing is written"
    );
    fs::write(path.join("ready"), "ready\n").unwrap();
    let (_, errors) = ran(path, &[&live[..], &["--ready", "ready"]].concat());
    assert!(errors.contains("no-such-0"), "the file of an earlier start is replaced: {errors}");
}

/// Bits are flipped everywhere in a folder. A report is refused, and the command that created the folder
/// repairs it.
#[test]
fn a_damaged_folder_is_detected_and_repaired() {
    damage(1);
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_a_folder_that_is_damaged_in_any_part_is_repaired() {
    damage(3);
}

/// Changes a bit in this many parts of each file of a folder, one after another.
fn damage(parts: usize) {
    let folder = folder();
    let path = folder.path();
    let run = ["run", "home.toml", "--quiet", "--seeds", "1", "--out", "kept"];
    succeeds(path, &run);
    let kept = path.join("kept");
    let right = files(&kept);
    let mut refused = 0;
    let listed = right.iter().filter(|(name, content)| !content.is_empty() && name != "report.html");
    for (number, (name, content)) in listed.enumerate() {
        for part in 0..parts {
            // A byte in the middle: tests of the record crate try the first and the last bytes.
            let byte = (content.len() - 1) * (part * 3 + number % 3) / 8;
            let mut bytes = content.clone();
            bytes[byte] ^= 1 << ((number + part) % 8);
            fs::write(kept.join(name), bytes).unwrap();
            let (code, errors) = ran(path, &["report", "kept", "--out", "page.html"]);
            assert_eq!(code, 2, "byte {byte} of {name}: {errors}");
            assert!(errors.contains(&format!("kept/{name}")) || name == "manifest.json", "{errors}");
            assert!(errors.contains("--out kept"), "{errors}");
            assert!(!path.join("page.html").exists());
            refused += 1;
            let (code, errors) = ran(path, &run);
            if code != 0 {
                // The bit was in the version of the format.
                assert!(name == "manifest.json" && errors.contains("--force"), "{errors}");
                fs::write(kept.join(name), content).unwrap();
                continue;
            }
            let trial = name.starts_with("trials/");
            let reported = errors.contains(&format!("kept/{name} is damaged: "));
            assert_eq!(reported, trial || name == "manifest.json", "{name}: {errors}");
            assert_eq!(trial, errors.contains(" with seed 1 again\n"), "{errors}");
            assert!(files(&kept) == right, "byte {byte} of {name} is not repaired: {errors}");
        }
    }
    assert!(refused > 16 * parts, "{refused}");
}

/// A sweep contains a manifest, trials and a scenario, too, and `run` of the same scenario would
/// replace them.
#[test]
fn a_run_does_not_take_the_folder_of_a_sweep() {
    let folder = folder();
    let path = folder.path();
    let sweep =
        ["sweep", "home.toml", "--over", "link.0.rate=2mbit", "--seeds", "1", "--quiet", "--out", "kept"];
    succeeds(path, &sweep);
    let before = files(&path.join("kept"));
    let (code, errors) = ran(path, &["run", "home.toml", "--quiet", "--seeds", "1", "--out", "kept"]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("--force"), "{errors}");
    assert!(files(&path.join("kept")) == before, "it is unchanged");
}

/// Starts three processes at once.
fn race(path: &Path, args: &[&str]) -> Vec<Child> {
    let start = || giveway(path, args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    (0..3).map(|_| start().expect("the program starts")).collect()
}

/// Waits for the end of a process. Returns its exit code and standard error.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8(output.stderr).expect("it writes text"))
}

#[test]
fn one_process_at_a_time_writes_a_folder() {
    let right = undisturbed("3");
    for round in 0..5 {
        let folder = folder();
        let path = folder.path();
        // The runs take longer than the test, so the process with the folder keeps it until it is killed.
        let long = ["run", "home.toml", "--quiet", "--jobs", "1", "--out", "kept", "--seeds", "50000"];
        let mut racers = race(path, &long);
        let mut refused = Vec::new();
        while refused.len() < 2 {
            let over =
                racers.iter_mut().position(|racer| racer.try_wait().expect("its state is known").is_some());
            match over {
                Some(at) => refused.push(ended(racers.remove(at))),
                None => std::thread::yield_now(),
            }
        }
        let mut winner = racers.remove(0);
        for (code, errors) in refused {
            assert_eq!(code, Some(1), "round {round}: {errors}");
            let message = format!("kept is being written by process {}, since 20", winner.id());
            assert!(
                errors.contains(&message) && errors.lines().count() == 1,
                "round {round}: {message} in {errors}"
            );
        }
        let (code, errors) = ran(path, &["report", "kept"]);
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("kept is being written by process "), "{errors}");
        // A killed process leaves no lock behind.
        winner.kill().expect("it is there");
        winner.wait().expect("it ends");
        succeeds(path, &["run", "home.toml", "--quiet", "--out", "kept", "--seeds", "3"]);
        let found = files(&path.join("kept"));
        for file in &right {
            assert!(found.contains(file), "round {round}: {} is different", file.0);
        }
        assert!(!found.iter().any(|(name, _)| name.contains(".tmp") || name.contains(".old")));

        // With runs that end, processes that start during one are refused, and the result is that of one
        // process.
        fs::remove_dir_all(path.join("kept")).unwrap();
        let short = ["run", "home.toml", "--quiet", "--out", "kept", "--seeds", "3"];
        let codes: Vec<Option<i32>> = race(path, &short).into_iter().map(|racer| ended(racer).0).collect();
        assert!(codes.contains(&Some(0)), "round {round}: {codes:?}");
        assert!(codes.iter().all(|code| [Some(0), Some(1)].contains(code)), "round {round}: {codes:?}");
        assert!(files(&path.join("kept")) == right, "round {round}");
    }
}

/// The program is killed repeatedly, after increasing times, and then runs to its end.
#[test]
fn a_killed_run_is_resumed_with_the_same_result() {
    let run = ["run", "home.toml", "--quiet", "--jobs", "1", "--out", "kept", "--seeds", "12"];
    let right = undisturbed_as(&run, "kept");
    let page = right.iter().find(|(name, _)| name == "report.html").expect("there is a report").1.clone();
    let folder = folder();
    let path = folder.path();
    let mut killed = 0;
    for milliseconds in [3, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80, 100, 120, 150, 200, 250, 300, 400] {
        let mut child = giveway(path, &run).stdout(Stdio::null()).spawn().expect("the program starts");
        let slept = Command::new("sleep").arg(format!("0.{milliseconds:03}")).status();
        assert!(slept.is_ok_and(|status| status.success()), "there is a sleep");
        // The process may have ended already.
        let _ = child.kill();
        killed += usize::from(!child.wait().expect("it ends").success());
        // A report is correct, or there is none.
        let output = giveway(path, &["report", "kept", "--out", "page.html"]).output().expect("it starts");
        match output.status.code() {
            Some(0) => assert!(fs::read(path.join("page.html")).unwrap() == page, "{milliseconds} ms"),
            code => assert_eq!(code, Some(2), "{}", String::from_utf8_lossy(&output.stderr)),
        }
        if killed % 5 == 4 {
            // The next one starts with an empty folder.
            let _ = fs::remove_dir_all(path.join("kept"));
        }
    }
    let _ = writeln!(std::io::stderr(), "{killed} of 18 were killed before their end");
    succeeds(path, &run);
    let found = files(&path.join("kept"));
    assert_eq!(names(&found), names(&right));
    assert!(found == right);
}

/// A small file system, which is unmounted when this is dropped.
struct Mount(PathBuf);

impl Mount {
    /// Mounts a file system of this size; `None` if this user may not mount one.
    fn new(path: &Path, kilobytes: u32) -> Option<Mount> {
        fs::create_dir_all(path).expect("there is room for a folder");
        let size = format!("size={kilobytes}k");
        let args = ["-t", "tmpfs", "-o", &size, "giveway-test"];
        let mounted = Command::new("mount").args(args).arg(path).output();
        let is_mounted = mounted.as_ref().is_ok_and(|output| output.status.success());
        if !is_mounted {
            let why = mounted.map_or_else(
                |error| error.to_string(),
                |output| String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            );
            let _ = writeln!(std::io::stderr(), "skipped: no small disk can be mounted here: {why}");
        }
        is_mounted.then(|| Mount(path.to_owned()))
    }

    fn grow(&self) {
        let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&self.0).status();
        assert!(grown.is_ok_and(|status| status.success()), "a disk can be made larger");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Disks of different sizes, so that each step of writing fails in some case. The error names the file, no
/// partial file is left or trusted, and with more space the same command has the usual result.
#[test]
fn a_run_on_a_full_disk_can_be_resumed() {
    let run = ["run", "home.toml", "--quiet", "--jobs", "1", "--out", "disk/kept", "--seeds", "3"];
    let right = undisturbed_as(&run, "disk/kept");
    let page = &right.iter().find(|(name, _)| name == "report.html").expect("there is a report").1;
    let pages = |content: &[u8]| content.len().div_ceil(4096) * 4;
    // In KiB, without the report, which is larger than all other files.
    let tables: usize = right.iter().map(|(_, content)| pages(content)).sum::<usize>() - pages(page);
    for part in 0..12 {
        let folder = folder();
        let path = folder.path();
        let room = tables * part / 10 + 4;
        let Some(disk) = Mount::new(&path.join("disk"), room as u32) else { return };
        let (code, errors) = ran(path, &run);
        assert_eq!(code, 1, "with {room} KiB, {tables} KiB of tables: {errors}");
        let said = ["No space left on device", "the disk is full"].map(|words| errors.matches(words).count());
        assert_eq!(said.iter().sum::<usize>(), 1, "it is said once: {errors}");
        assert!(errors.contains("disk/kept"), "the file is named: {errors}");
        if disk.0.join("kept").is_dir() {
            let left = files(&disk.0.join("kept"));
            assert!(
                !names(&left).iter().any(|name| name.contains(".tmp")),
                "with {room} KiB: {:?}",
                names(&left)
            );
        }
        let (code, errors) = ran(path, &["report", "disk/kept", "--out", "page.html"]);
        if code == 0 {
            let report = fs::read(path.join("page.html")).unwrap();
            let unfinished = String::from_utf8_lossy(&report).contains("This run is unfinished: ");
            assert!(unfinished || report == *page, "with {room} KiB");
        } else {
            assert!(!errors.is_empty() && code == 2, "with {room} KiB: {errors}");
        }
        disk.grow();
        succeeds(path, &run);
        let found = files(&disk.0.join("kept"));
        assert_eq!(names(&found), names(&right), "with {room} KiB");
        assert!(found == right, "with {room} KiB");
    }
}

#[test]
fn the_version_has_a_digest_of_the_sources() {
    let folder = folder();
    let output = giveway(folder.path(), &["--version"]).output().expect("it starts");
    let version_line = String::from_utf8(output.stdout).expect("it writes text");
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        version_line.starts_with(&format!("giveway {version} (")) && version_line.ends_with(")\n"),
        "{version_line}"
    );
    let (_, digest) = version_line.trim_end_matches(")\n").split_once("sources ").expect("it has a digest");
    assert!(digest.len() == 16 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{version_line}");
    // Results have the same digest.
    succeeds(folder.path(), &["run", "home.toml", "--quiet", "--out", "kept", "--seeds", "1"]);
    let manifest = fs::read_to_string(folder.path().join("kept/manifest.json")).unwrap();
    assert!(manifest.contains(&format!("\"giveway\": \"{version}, sources {digest}\"")), "{manifest}");
}

/// A run folder of another person may have links to folders with the names of its trials.
#[test]
fn a_crafted_folder_leads_nowhere_else() {
    let folder = folder();
    let path = folder.path();
    let run = ["run", "home.toml", "--quiet", "--out", "kept"];
    succeeds(path, &run);
    let trials = path.join("kept/trials");
    let of_one = fs::read_dir(&trials).unwrap().next().unwrap().unwrap().path();
    let theirs = path.join("theirs");
    for (link, to) in [(&of_one, theirs.clone()), (&trials, theirs.join("trials"))] {
        let _ = fs::remove_dir_all(&theirs);
        fs::create_dir(&theirs).unwrap();
        // The folder of the links has a trial of the same name, with files that do not belong to it.
        if link == &trials {
            fs::create_dir_all(to.join(of_one.file_name().unwrap()).join("seed-1")).unwrap();
            fs::write(to.join(of_one.file_name().unwrap()).join("seed-1/summary.json"), "theirs").unwrap();
        } else {
            fs::create_dir(to.join("seed-1")).unwrap();
            fs::write(to.join("seed-1/summary.json"), "theirs").unwrap();
        }
        let before = files(&theirs);
        fs::rename(link, path.join("kept/moved")).unwrap();
        std::os::unix::fs::symlink(&to, link).unwrap();
        for more in [&[][..], &["--force"]] {
            let (code, errors) = ran(path, &[&run[..], more].concat());
            assert!(code != 0 && errors.contains("is a link"), "{code}: {errors}");
            assert!(files(&theirs) == before, "{errors}");
        }
        fs::remove_file(link).unwrap();
        fs::rename(path.join("kept/moved"), link).unwrap();
    }
    // The sound folder is used again.
    succeeds(path, &run);
}

/// Runs, sweeps and cards take each other's trials, however their scenario writes a quantity. What was taken
/// gives the same table.
#[test]
fn trials_of_other_folders_are_taken() {
    let folder = folder();
    let at = folder.path();
    let table = |args: &[&str]| {
        let Output { status, stdout, stderr } = giveway(at, args).output().expect("the program starts");
        assert!(status.success(), "{args:?}");
        (stdout, String::from_utf8(stderr).expect("it writes text"))
    };
    let (fresh, _) = table(&["run", "home.toml", "--out", "run", "--quiet"]);
    let (again, said) = table(&["run", "home.toml", "--reuse", "run"]);
    assert_eq!(again, fresh);
    assert!(said.contains("6 of 6 trials are taken from --reuse"), "{said}");
    let sweep =
        ["sweep", "home.toml", "--over", "link.0.rate=5mbit,10mbit", "--reuse", "run", "--out", "sweep"];
    let (done, _) = table(&sweep);
    let done = String::from_utf8(done).expect("it writes text");
    assert!(done.contains("6 trials ran, 6 had run before"), "{done}");
    let (swept, said) = table(&["run", "home.toml", "--reuse", "sweep"]);
    assert_eq!(swept, fresh);
    assert!(said.contains("6 of 6 trials are taken"), "{said}");
    // A card runs the scenarios of its cells, and `giveway run` takes its trials.
    let card =
        ["--cells", "rrul/tcp-8-down", "--seeds", "2", "--no-timing", "--tune", "0", "--no-sensitivity"];
    table(&[&["evaluate", "codel", "--against", "fifo", "--quiet", "--out", "card"], &card[..]].concat());
    let (cell, said) = table(&["run", "card/cells/rrul/tcp-8-down.toml", "--reuse", "card"]);
    assert!(said.contains("4 of 4 trials are taken"), "{said}");
    assert_eq!(cell, table(&["run", "card/cells/rrul/tcp-8-down.toml"]).0);
    // Others have none.
    let (_, said) = table(&["run", "home.toml", "--set", "duration=300ms", "--reuse", "sweep"]);
    assert!(said.contains("0 of 6 trials are taken"), "{said}");
    for args in [&["run", "home.toml"][..], &["evaluate", "fifo"], &["judge", "fifo"], &sweep[..4]] {
        let (code, said) = ran(at, &[args, &["--reuse", "nothing"]].concat());
        let named = "--reuse: nothing has no trials: name the folder of a sweep, of a card or of a run";
        assert!(code == 2 && said.contains(named), "{args:?}: {code} {said}");
    }
    assert!(!at.join("cards").exists() && !at.join("judged").exists(), "a wrong flag creates no folder");
    // A card does not write into the folder of a sweep or of a run.
    for dir in ["sweep", "run"] {
        let before = files(&at.join(dir));
        let (code, said) = ran(at, &[&["evaluate", "codel", "--out", dir], &card[..2]].concat());
        let named = format!("{dir} cannot keep trials: it contains trials/");
        assert!(code == 2 && said.contains(&named), "{code} {said}");
        assert_eq!(files(&at.join(dir)), before);
    }
}

/// A card that was killed resumes with the runs that it had written. A judgement that was interrupted
/// resumes, too, and leaves none of its runs behind.
#[test]
fn a_killed_card_and_an_interrupted_judgement_resume() {
    let folder = folder();
    let at = folder.path();
    let card = |dir: &str, seeds: &str| {
        let args = ["evaluate", "codel", "--against", "fifo", "--cells", "rrul/tcp-8-down", "--tune", "0"];
        let rest = ["--no-timing", "--no-sensitivity", "--jobs", "1", "--seeds", seeds, "--out", dir];
        giveway(at, &[&args[..], &rest].concat())
    };
    let ended = |mut command: Command| command.output().expect("the program starts");
    let mut child = card("killed", "400").stdout(Stdio::null()).spawn().expect("the program starts");
    let list = at.join("killed/trials.json");
    // The first parts are written after two seconds.
    while !fs::read_to_string(&list).unwrap_or_default().contains("parquet") {
        assert!(
            child.try_wait().expect("it is a child").is_none(),
            "800 runs take longer than the first part"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().expect("it runs");
    child.wait().expect("it is a child");
    let resumed = ended(card("killed", "3"));
    let said = String::from_utf8(resumed.stderr).expect("it writes text");
    assert!(resumed.status.success() && said.contains("killed has "), "{said}");
    assert!(said.contains("runs, which are not repeated"), "{said}");
    assert!(ended(card("whole", "3")).status.success());
    let read = |dir: &str| fs::read(at.join(dir).join("card.json")).expect("the card is written");
    assert_eq!(read("killed"), read("whole"));

    fs::write(at.join("secret"), "only the judge knows").expect("there is room");
    let judge = ["judge", "codel", "--against", "fifo", "--seeds", "1", "--secret", "secret"];
    let mut child = giveway(at, &judge).stderr(Stdio::null()).spawn().expect("the program starts");
    let runs = at.join("judged/codel/candidate.jsonl");
    while fs::read_to_string(&runs).unwrap_or_default().lines().count() < 3 {
        assert!(child.try_wait().expect("it is a child").is_none(), "it has a hundred runs");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::SIGINT)
        .expect("it runs");
    assert_eq!(child.wait().expect("it is a child").code(), Some(130));
    let said = succeeds(at, &judge);
    assert!(said.contains("judged/codel has ") && said.contains("which are not repeated"), "{said}");
    let left: Vec<String> = fs::read_dir(at.join("judged/codel"))
        .expect("the folder exists")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(left.contains(&"judgement.json".to_owned()) && !left.iter().any(|name| name.contains("jsonl")));
}
