//! `giveway run --export`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
duration = "1 s"
seeds = 2
disciplines = ["fifo limit 10p", "fq_codel"]

[[link]]
from = "home"
to = "isp"
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "compare"

[[traffic]]
kind = "bulk"
from = "home"
to = "isp"
flows = 3
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    std::fs::write(folder.path().join("home.toml"), SCENARIO).expect("there is room for a file");
    folder
}

/// Runs the program to its end. Returns its exit code and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let Output { status, stderr, .. } = command.args(args).current_dir(folder).output().expect("it starts");
    (status.code().expect("no signal ends it"), String::from_utf8(stderr).expect("it writes text"))
}

/// The names of all files except the scenario, hidden files included.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != "home.toml");
    names.sort();
    names
}

#[test]
fn every_discipline_gets_a_capture_of_its_first_seed() {
    let folder = folder();
    let path = folder.path();
    let (code, err) = ran(path, &["run", "home.toml", "--export", "home.pcapng"]);
    assert_eq!(code, 0);
    assert_eq!(files(path), ["home-fifo.pcapng", "home-fq_codel.pcapng"]);
    for file in files(path) {
        let packets = giveway_capture::Reader::open(path.join(&file)).unwrap().map(|packet| packet.unwrap());
        let count = packets.inspect(|packet| assert_eq!(packet.link, giveway_capture::LinkType::RAW)).count();
        assert!(count > 400, "5 Mbit/s for a second are 416 packets of 1,500 bytes: {count}");
        assert!(err.contains(&format!("giveway: {file} has {count} packets\n")), "{err}");
    }
    let one = ["run", "home.toml", "--quiet", "--set", "disciplines=fifo", "--export", "one.pcapng"];
    assert_eq!(ran(path, &one), (0, String::new()));
    assert!(path.join("one.pcapng").is_file());
}

/// Finished results are read from the folder, but a run that is exported is repeated.
#[test]
fn finished_runs_are_repeated_for_an_export() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(ran(path, &["run", "home.toml", "--quiet", "--out", "kept"]).0, 0);
    let summary = || std::fs::read(path.join("kept/summary.parquet")).unwrap();
    let before = summary();
    assert_eq!(ran(path, &["run", "home.toml", "--quiet", "--out", "kept", "--export", "home.pcapng"]).0, 0);
    assert!(path.join("home-fifo.pcapng").is_file() && path.join("home-fq_codel.pcapng").is_file());
    assert!(before == summary(), "the results are the same");
}

#[test]
fn unwritable_paths_are_reported_before_anything_runs() {
    let folder = folder();
    let path = folder.path();
    std::fs::create_dir(path.join("here-fq_codel.pcapng")).unwrap();
    for (file, message) in [
        ("nowhere/x.pcapng", "cannot write nowhere/x-fifo.pcapng: No such file or directory (os error 2)"),
        ("here.pcapng", "cannot write here-fq_codel.pcapng: it exists and is not a file"),
    ] {
        let (code, err) = ran(path, &["run", "home.toml", "--export", file]);
        assert_eq!((code, err.as_str()), (1, format!("giveway: {message}\n").as_str()));
        assert_eq!(files(path), ["here-fq_codel.pcapng"], "nothing is left behind");
    }
    let (code, err) = ran(path, &["run", "home.toml", "home.toml", "--export", "x.pcapng"]);
    assert_eq!((code, err.as_str()), (2, "giveway: --export takes one scenario at a time\n"));
}

/// The disk becomes full during the run: here a limit on the length of files, which has the same effect.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_partial_file_and_loses_no_other_result() {
    let folder = folder();
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" run home.toml --seeds 1 --set disciplines=fifo \
                  --quiet --export home.pcapng";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(assert_cmd::cargo::cargo_bin!("giveway"))
        .current_dir(folder.path())
        .output()
        .expect("there is a shell");
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert_eq!(err, "giveway: cannot write home.pcapng: File too large (os error 27)\n");
    assert!(String::from_utf8(output.stdout).unwrap().contains("fingerprint"), "the table is there");
    assert_eq!(files(folder.path()), [""; 0]);
}

/// tshark reads every packet, finds no malformed one, and distinguishes the connections.
#[test]
fn tshark_understands_an_export() {
    let folder = folder();
    let one =
        ["run", "home.toml", "--quiet", "--set", "disciplines=fifo limit 10p", "--export", "one.pcapng"];
    assert_eq!(ran(folder.path(), &one).0, 0);
    let file = folder.path().join("one.pcapng");
    let fields = [
        "frame.interface_name",
        "frame.interface_description",
        "frame.comment",
        "_ws.malformed",
        "tcp.stream",
        "tcp.len",
    ];
    let Some(lines) = crate::tshark::fields(&file, &fields, &[]) else { return };
    let mut comments: BTreeMap<&str, u32> = BTreeMap::new();
    let mut streams = Vec::new();
    for line in &lines {
        assert_eq!(line[..2], ["home->isp", "fifo limit 10p"]);
        assert_eq!(line[3], "", "nothing is malformed");
        *comments.entry(&line[2]).or_default() += 1;
        streams.push(line[4].as_str());
    }
    assert_eq!(comments.keys().copied().collect::<Vec<_>>(), ["", "dropped: overlimit"]);
    let packets = giveway_capture::Reader::open(&file).unwrap().count();
    assert_eq!(lines.len(), packets);
    streams.sort();
    streams.dedup();
    assert_eq!(streams, ["0", "1", "2"], "three connections");
}
