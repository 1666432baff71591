//! What a running `giveway live` may still do, what it leaves on the disk, and what it puts back: by whom it
//! is run, when the disk is full, and when it is killed.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bed::{Bed, Host, frame, nap};
use crate::running::{GIVEWAY, Live, said};

/// Patient, since the machine may be busy: a minute.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        nap(Duration::from_millis(100));
    }
    panic!("not within a minute: {what}");
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("there is room");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    dir
}

/// For each thread of a process: its name, and the words behind these names in its status.
fn threads(process: u32, names: &[&str]) -> Vec<(String, Vec<Vec<String>>)> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it lives");
    let status = |path: &Path| fs::read_to_string(path.join("status")).unwrap_or_default();
    let words = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    };
    tasks
        .flatten()
        .map(|task| {
            let status = status(&task.path());
            let name: Vec<String> = words(&status, "Name");
            (name.concat(), names.iter().map(|name| words(&status, name)).collect())
        })
        .collect()
}

/// Checks that no thread of the process runs as root or has a capability, and that each has a system call filter.
fn has_nothing(process: u32) -> Result<(), String> {
    let names =
        ["Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];
    let none = "0000000000000000";
    for (thread, words) in threads(process, &names) {
        let told: Vec<String> = words.iter().map(|words| words.join(" ")).collect();
        let roots = words[..2].iter().flatten().any(|number| number == "0");
        let caps = told[3..8].iter().any(|set| set != none);
        if roots || !told[2].is_empty() || caps || told[8] != "1" || told[9] != "2" {
            return Err(format!("{thread}: {told:?}"));
        }
    }
    Ok(())
}

#[test]
fn no_thread_is_root_or_has_a_capability() {
    let Some(bed) = Bed::build("n") else { return };
    let dir = folder();
    let place = |name: &str| dir.path().join(name).display().to_string();
    let (socket, record, pcap, trace) = (place("s"), place("record"), place("a.pcapng"), place("a.trace"));
    let files = ["--control", &socket, "--record", &record, "--pcap", &pcap, "--trace", &trace];
    let mut live = Live::start(&bed, dir.path(), &[&files[..], &["--metrics", "127.0.0.1:0"]].concat());
    until("every thread has given up all", || has_nothing(live.process()).is_ok());
    let names: Vec<String> = threads(live.process(), &[]).into_iter().map(|(name, _)| name).collect();
    for expected in
        ["gw-control", "gw-metrics", "gw-record", "gw-pcap", "trace", "gw-forward", "gw-rev-spare"]
    {
        assert!(names.iter().any(|name| name == expected), "{names:?}");
    }
    assert_eq!(has_nothing(live.process()), Ok(()));
    // It still does what it is told, and writes what it should.
    assert_eq!(said(&["control", &socket, "set", "qdisc", "drr"]).1, "qdisc is drr\n");
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(!Path::new(&socket).exists(), "the socket goes with it");
    assert!(Path::new(&record).join("forward/manifest.json").exists(), "{errors}");
}

/// The folder of the one who called sudo is not root's, and root without capabilities may not write in it.
#[test]
fn what_sudo_records_belongs_to_the_one_who_called_it() {
    let Some(bed) = Bed::build("u") else { return };
    let dir = folder();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(12_345), Some(12_345)).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let place = |name: &str| home.join(name).display().to_string();
    let (record, pcap, trace, socket) = (place("record"), place("a.pcapng"), place("a.trace"), place("s"));
    let mut command = Command::new(GIVEWAY);
    command.env("SUDO_UID", "12345").env("SUDO_GID", "12345");
    let files = ["--record", &record, "--pcap", &pcap, "--trace", &trace, "--control", &socket];
    let mut live = Live::start_with(command, &bed, dir.path(), &files);
    until("the watching thread is no root any more", || {
        threads(live.process(), &["Uid"]).iter().all(|(_, words)| words[0] == ["12345"; 4])
    });
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("recorded in "), "{errors}");
    for kept in [&record, &pcap, &trace, &format!("{record}/reverse/manifest.json")] {
        assert_eq!(fs::metadata(kept).unwrap().uid(), 12_345, "{kept}");
    }
    assert!(!Path::new(&socket).exists(), "the socket goes, whosever folder it is in");
    // Somebody else's folder is refused before anything runs.
    let theirs = dir.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(12_346), Some(12_346)).unwrap();
    let (a, b) = (bed.name("a1"), bed.name("b0"));
    let (code, _, errors) =
        said(&["live", "--in", &a, "--out", &b, "--record", &theirs.display().to_string()]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(
        errors.contains("the folder belongs to user 12346") && errors.contains("chown nobody"),
        "{errors}"
    );
}

/// Folders that nobody else may search are no obstacle: what is written in is opened before.
#[test]
fn a_recording_below_a_folder_of_root_is_written() {
    let Some(bed) = Bed::build("r") else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let record = dir.path().join("record");
    let mut live = Live::start(&bed, dir.path(), &["--record", &record.display().to_string()]);
    until("every thread has given up all", || has_nothing(live.process()).is_ok());
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(record.join("forward/manifest.json").exists());
}

/// Readers and a kill find a whole recording at any time.
#[test]
fn a_recording_is_whole_at_any_time() {
    let Some(bed) = Bed::build("k") else { return };
    let dir = folder();
    let record = dir.path().join("record");
    let arguments = ["--record", &record.display().to_string(), "--record-every", "1s", "--quiet"];
    let live = Live::start(&bed, dir.path(), &arguments);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..100).map(|n| frame(0x88b5, n, 500)).collect();
    a.send(&frames);
    assert_eq!(b.receive(100, Duration::from_secs(20)), frames);
    let manifest = record.join("forward/manifest.json");
    until("it is there", || manifest.exists());
    // Three times it is written anew while somebody reads, and it is never missing or half.
    let mut seen = Vec::new();
    until("it was written three times more", || {
        for _ in 0..200 {
            let text = fs::read_to_string(&manifest).expect("a reader finds it at any time");
            let read: serde_json::Value = serde_json::from_str(&text).expect("it is whole");
            assert_eq!(read["complete"], true);
            let written = fs::metadata(&manifest).map(|of| of.ino()).expect("it is there");
            if !seen.contains(&written) {
                seen.push(written);
            }
        }
        seen.len() > 3
    });
    live.signal("-KILL");
    drop(live);
    let forward = record.join("forward").display().to_string();
    let (code, _, errors) = said(&["report", &forward]);
    assert_eq!(code, Some(0), "{errors}");
    let table = record.join("forward/summary.parquet");
    assert!(table.exists() || record.join("forward/trials").exists());
}

/// A file system of a few megabytes.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf) -> Option<Small> {
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m,mode=755", "none"]).arg(&at);
        mount.status().is_ok_and(|done| done.success()).then_some(Small(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_no_frame_and_loses_nothing_that_was_written() {
    let Some(bed) = Bed::build("f") else { return };
    let dir = folder();
    let Some(small) = Small::mount(dir.path().join("small")) else { return };
    let place = |name: &str| small.0.join(name).display().to_string();
    let (record, pcap, trace) = (place("record"), place("a.pcapng"), place("a.trace"));
    let files = ["--record", &record, "--record-every", "1s", "--pcap", &pcap, "--trace", &trace];
    let mut live = Live::start(&bed, dir.path(), &files);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..100).map(|n| frame(0x88b5, n, 500)).collect();
    let mut pass = || {
        a.send(&frames);
        assert_eq!(b.receive(100, Duration::from_secs(20)), frames);
    };
    pass();
    let manifest = small.0.join("record/forward/manifest.json");
    until("it is there", || manifest.exists() && fs::metadata(&pcap).is_ok_and(|of| of.len() > 10_000));
    // Whoever fills it leaves no room, and takes what becomes free.
    let fill = small.0.join("fill");
    let mut filler = fs::File::create(&fill).unwrap();
    let mut fill_up = || while filler.write_all(&[7; 4096]).is_ok() {};
    let mut said_full = false;
    until("it says so", || {
        fill_up();
        // An error is told in a line: which of the three is first does not matter.
        if !said_full {
            let line = live.line();
            said_full = line.contains("No space left") && line.contains("tried again");
        }
        said_full
    });
    pass();
    let kept: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    assert_eq!(kept["complete"], true, "what was there stays whole");
    assert!(
        giveway_capture::Reader::open(&pcap).unwrap().all(|packet| packet.is_ok()),
        "and so does the capture"
    );
    // A file that is open keeps its room.
    drop(filler);
    fs::remove_file(&fill).unwrap();
    until("it says so", || live.line().contains("written again"));
    pass();
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(giveway_capture::Reader::open(&pcap).unwrap().filter(|packet| packet.is_ok()).count(), 300);
    let (code, checked, _) = said(&["replay-check", &trace]);
    assert!(code == Some(0) && checked.contains("all equal"), "{checked}");
    let (code, _, errors) = said(&[
        "report",
        &format!("{record}/forward"),
        "--out",
        &dir.path().join("r.html").display().to_string(),
    ]);
    assert_eq!(code, Some(0), "{errors}");
}

/// The features of an interface that are on, as ethtool lists them.
fn features(interface: &str) -> Vec<String> {
    let shown = Command::new("ethtool").args(["-k", interface]).output().expect("it is installed");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let on = shown.lines().filter(|line| line.contains(": on")).map(|line| line.trim().to_owned());
    on.collect()
}

/// The processes whose parent is this one.
fn children(process: u32) -> Vec<String> {
    let is_child = |of: &fs::DirEntry| {
        let stat = fs::read_to_string(of.path().join("stat")).unwrap_or_default();
        // Behind the name of the program, in brackets: its state, and its parent.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1).map(str::to_owned));
        parent == Some(process.to_string())
    };
    let all = fs::read_dir("/proc").expect("it is there").flatten().filter(is_child);
    all.map(|of| of.file_name().to_string_lossy().into_owned()).collect()
}

fn has_ethtool() -> bool {
    let there = Command::new("ethtool").arg("--version").stdout(Stdio::null()).status();
    there.is_ok_and(|done| done.success())
}

#[test]
fn offloads_come_back_at_the_end_and_after_a_kill() {
    let Some(bed) = Bed::build("o") else { return };
    if !has_ethtool() {
        return;
    }
    let dir = folder();
    let a1 = bed.name("a1");
    let gro = Command::new("ethtool").args(["-K", &a1, "gro", "on"]).status();
    assert!(gro.is_ok_and(|done| done.success()));
    let before = features(&a1);
    let merges = |line: &&String| {
        line.starts_with("tx-tcp") || line.starts_with("generic-") || line.contains("-segmentation:")
    };
    assert!(before.iter().any(|line| line.starts_with("tx-tcp-segmentation")), "{before:?}");
    let socket = dir.path().join("s");
    let arguments = ["--fix-offloads", "--control", &socket.display().to_string()];

    let mut live = Live::start(&bed, dir.path(), &arguments);
    let during = features(&a1);
    let left: Vec<&String> = during.iter().filter(merges).filter(|line| !line.contains("[fixed]")).collect();
    assert!(left.is_empty(), "{left:?}");
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains(&format!("{a1}: turned off gso, gro, tso")), "{errors}");
    assert!(errors.contains("they are turned on again at the end"), "{errors}");
    assert_eq!(features(&a1), before);

    // Killed, it cannot do that itself.
    let live = Live::start(&bed, dir.path(), &arguments);
    assert_ne!(features(&a1), before);
    live.signal("-KILL");
    drop(live);
    until("they are back", || features(&a1) == before);
    until("the socket is gone", || !socket.exists());
    // A service manager starts it again at once, while that is being done.
    let live = Live::start(&bed, dir.path(), &arguments);
    live.signal("-KILL");
    drop(live);
    let mut live = Live::start(&bed, dir.path(), &arguments);
    assert_ne!(features(&a1), before);
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
    assert_eq!(features(&a1), before);

    // And killed with the process that does: the next start finds what was left.
    let live = Live::start(&bed, dir.path(), &arguments);
    let children = children(live.process());
    assert_eq!(children.len(), 1, "the process that puts things back, and no other");
    for child in &children {
        assert!(Command::new("kill").args(["-KILL", child]).status().unwrap().success());
    }
    live.signal("-KILL");
    drop(live);
    nap(Duration::from_millis(300));
    assert!(features(&a1) != before && socket.exists(), "nobody was left to do it");
    let mut live = Live::start(&bed, dir.path(), &["--control", &socket.display().to_string()]);
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("an earlier giveway live ended before it could turn"), "{errors}");
    assert!(errors.contains("removed the socket of an earlier giveway"), "{errors}");
    assert_eq!(features(&a1), before);
}

#[test]
fn a_slow_client_of_the_metrics_stops_no_other() {
    let Some(bed) = Bed::build("w") else { return };
    let dir = folder();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    let socket = dir.path().join("s");
    let arguments = ["--metrics", &free.to_string(), "--control", &socket.display().to_string(), "--quiet"];
    let mut live = Live::start(&bed, dir.path(), &arguments);
    // Fifteen who say nothing, and one who sends a byte now and then, to each of them.
    let silent: Vec<TcpStream> = (0..15).map(|_| TcpStream::connect(free).unwrap()).collect();
    let quiet: Vec<UnixStream> = (0..15).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let (mut web, mut local) = (TcpStream::connect(free).unwrap(), UnixStream::connect(&socket).unwrap());
    let dripping = std::thread::spawn(move || {
        // Until it is closed, which is the only end that this has.
        let mut dripped = 0;
        while web.write_all(b"G").is_ok() | local.write_all(b"s").is_ok() {
            dripped += 1;
            nap(Duration::from_millis(100));
        }
        dripped
    });
    let mut asking = TcpStream::connect(free).unwrap();
    asking.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    asking.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    asking.read_to_string(&mut answer).expect("it answers while others are slow");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    assert_eq!(said(&["control", &socket.display().to_string(), "set", "rate", "5mbit"]).0, Some(0));
    assert!(dripping.join().unwrap() > 0, "both were closed at their deadline");
    drop((silent, quiet));
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

#[test]
fn metrics_for_everybody_are_warned_of() {
    let Some(bed) = Bed::build("e") else { return };
    let dir = folder();
    for (at, warns) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let mut live = Live::start(&bed, dir.path(), &["--metrics", at]);
        live.signal("-TERM");
        let errors = live.end().2;
        assert_eq!(errors.contains("may read the metrics without a password"), warns, "{errors}");
    }
}

/// Four capabilities instead of root: as a service manager gives them.
#[test]
fn an_ordinary_user_with_four_capabilities_may_do_all_of_it() {
    let Some(bed) = Bed::build("c") else { return };
    if Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let dir = folder();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(12_345), Some(12_345)).unwrap();
    // Where the user may run it, whatever the folders of the build allow.
    let program = dir.path().join("giveway");
    fs::copy(GIVEWAY, &program).unwrap();
    let place = |name: &str| home.join(name).display().to_string();
    let (record, pcap, trace, socket) = (place("record"), place("a.pcapng"), place("a.trace"), place("s"));
    let settings = home.join("live.toml");
    fs::write(&settings, "rate = \"100mbit\"\n").unwrap();
    let caps = "+net_raw,+net_admin,+sys_nice,+ipc_lock";
    let mut command = Command::new("setpriv");
    command.args(["--reuid=12345", "--regid=12345", "--clear-groups"]);
    command.args([&format!("--inh-caps={caps}"), &format!("--ambient-caps={caps}")]).arg(&program);
    let settings = settings.display().to_string();
    let files = [
        "--record",
        &record,
        "--pcap",
        &pcap,
        "--trace",
        &trace,
        "--control",
        &socket,
        "--settings",
        &settings,
    ];
    let files = [&files[..], &["--fix-offloads", "--metrics", "127.0.0.1:0"]].concat();
    let before = features(&bed.name("a1"));
    let mut live = Live::start_with(command, &bed, &home, &files);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..50).map(|n| frame(0x88b5, n, 500)).collect();
    a.send(&frames);
    assert_eq!(b.receive(50, Duration::from_secs(20)), frames);
    let sets = ["Uid", "CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp"];
    until("every thread has given up all", || {
        threads(live.process(), &sets).iter().all(|(_, words)| {
            let none = words[1..5].iter().all(|set| set == &["0000000000000000"]);
            words[0][0] == "12345" && none && words[5] == ["1"] && words[6] == ["2"]
        })
    });
    assert_eq!(said(&["control", &socket, "set", "rate", "50mbit"]).0, Some(0));
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(Path::new(&record).join("forward/manifest.json").exists() && !Path::new(&socket).exists());
    if has_ethtool() {
        assert_eq!(features(&bed.name("a1")), before);
    }
}

/// Settings that only root may read are read again all the same while the file is the same; another file in
/// its place is told of.
#[test]
fn settings_of_root_are_read_again() {
    let Some(bed) = Bed::build("s") else { return };
    let dir = folder();
    let file = dir.path().join("live.toml");
    let write = |path: &Path, text: &str| {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(&file, "rate = \"10mbit\"\n");
    let mut live = Live::start(&bed, dir.path(), &["--settings", &file.display().to_string()]);
    until("every thread has given up all", || has_nothing(live.process()).is_ok());
    let mut hup = |expected: &str| {
        live.signal("-HUP");
        (0..12).map(|_| live.line()).find(|line| line.contains(expected)).expect(expected)
    };
    write(&file, "rate = \"12mbit\"\n");
    hup("rate is 12mbit");
    let other = dir.path().join("other");
    write(&other, "rate = \"13mbit\"\n");
    fs::rename(&other, &file).unwrap();
    let told = hup("another file has this name now");
    assert!(told.contains("nothing was changed"), "{told}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    hup("rate is 13mbit");
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

#[test]
fn users_that_do_not_exist_are_refused() {
    let Some(bed) = Bed::build("q") else { return };
    let (a, b) = (bed.name("a1"), bed.name("b0"));
    let (code, _, errors) = said(&["live", "--in", &a, "--out", &b, "--user", "no-such-user"]);
    assert!(code == Some(2) && errors.contains("there is no user \"no-such-user\""), "{errors}");
}
