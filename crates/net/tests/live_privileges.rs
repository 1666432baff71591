//! Privileges of a running `giveway live`, owners of its files, and the state that it leaves: when different
//! users run it, when the disk is full, and when it is killed.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bed::{Bed, Host, frame, nap};
use crate::running::{Live, NET, features, giveway, has_ethtool, main_program, run, until};

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("there is room");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    dir
}

/// For each thread of a process: its name, and the words of these entries in its status.
fn threads(process: u32, names: &[&str]) -> Vec<(String, Vec<Vec<String>>)> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the process exists");
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

/// Checks that no thread of the process runs as root or has a capability, and that each has a system call
/// filter.
fn has_nothing(process: u32) -> Result<(), String> {
    let names =
        ["Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];
    let none = "0000000000000000";
    for (thread, words) in threads(process, &names) {
        let sets: Vec<String> = words.iter().map(|words| words.join(" ")).collect();
        let roots = words[..2].iter().flatten().any(|number| number == "0");
        let caps = sets[3..8].iter().any(|set| set != none);
        if roots || !sets[2].is_empty() || caps || sets[8] != "1" || sets[9] != "2" {
            return Err(format!("{thread}: {sets:?}"));
        }
    }
    Ok(())
}

#[test]
fn no_thread_is_root_or_has_a_capability() {
    let Some(bed) = Bed::build("n") else { return };
    if main_program().is_none() {
        return;
    }
    let dir = folder();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (socket, record, pcap, trace) = (path("s"), path("record"), path("a.pcapng"), path("a.trace"));
    let files = ["--control", &socket, "--record", &record, "--pcap", &pcap, "--trace", &trace];
    let mut live = Live::start(&bed, dir.path(), &[&files[..], &["--metrics", "127.0.0.1:0"]].concat());
    until("no thread has privileges", || has_nothing(live.process()).is_ok());
    let names: Vec<String> = threads(live.process(), &[]).into_iter().map(|(name, _)| name).collect();
    for expected in
        ["gw-control", "gw-metrics", "gw-record", "gw-pcap", "trace", "gw-forward", "gw-rev-spare"]
    {
        assert!(names.iter().any(|name| name == expected), "{names:?}");
    }
    assert_eq!(has_nothing(live.process()), Ok(()));
    // Settings can still be changed, and outputs are written.
    assert_eq!(giveway(&["control", &socket, "set", "qdisc", "drr"]).1, "qdisc is drr\n");
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(!Path::new(&socket).exists(), "the socket is removed");
    assert!(Path::new(&record).join("forward/manifest.json").exists(), "{errors}");
}

/// The value of a setting of the unit that the Debian package has.
fn unit(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/giveway-live@.service");
    let text = fs::read_to_string(path).expect("the unit exists");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("the unit sets {name}")).to_owned()
}

/// The bridge runs as another user with the capabilities and limits of the unit, and needs all of them.
#[test]
fn the_capabilities_and_limits_of_the_service_suffice() {
    let Some(bed) = Bed::build("y") else { return };
    let dir = folder();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let given = unit("AmbientCapabilities");
    assert_eq!(given, unit("CapabilityBoundingSet"));
    let all: Vec<String> =
        given.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase()).collect();
    let memory = unit("LimitMEMLOCK").replace("infinity", "unlimited");
    let limits = [format!("--rtprio={}", unit("LimitRTPRIO")), format!("--memlock={memory}")];
    let raised = Command::new("prlimit").args(&limits).arg("true").output();
    let raised = raised.is_ok_and(|output| output.status.success());
    if !raised {
        println!("real-time scheduling and locked memory are not tested: this root may not raise limits");
    }
    let command = |names: &[String]| {
        let names: String = names.iter().map(|name| format!(",+{name}")).collect();
        let mut command = Command::new("prlimit");
        command
            .args(if raised { &limits[..] } else { &[] })
            .args(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--no-new-privs"])
            .args(["inh-caps", "ambient-caps", "bounding-set"].map(|set| format!("--{set}=-all{names}")))
            .arg(NET);
        command
    };
    // The helper process needs CAP_NET_ADMIN to turn offloads off and on.
    let mut live = Live::start_with(command(&all), &bed, dir.path(), &["--fix-offloads"]);
    until("no thread has capabilities", || {
        let words = threads(live.process(), &["CapEff", "CapPrm"]);
        words.iter().all(|(_, sets)| sets.iter().all(|set| set == &["0000000000000000"]))
    });
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("turned off"), "{errors}");
    if raised {
        assert!(errors.contains("real-time scheduling (SCHED_FIFO 50)"), "{errors}");
        assert!(errors.contains("memory locked"), "{errors}");
        assert!(!errors.contains("ermitted"), "{errors}");
    }
    for missing in &all {
        let rest: Vec<String> = all.iter().filter(|name| *name != missing).cloned().collect();
        let (a, b) = (bed.name("a1"), bed.name("b0"));
        let mut live = command(&rest);
        live.args(["live", "--in", &a, "--out", &b, "--fix-offloads", "--duration", "100ms"]);
        let output = live.output().expect("setpriv is installed");
        let errors = String::from_utf8_lossy(&output.stderr);
        let offloads = errors.lines().any(|line| line.contains("cannot turn") && line.contains("ermitted"));
        assert!(errors.contains("CAP_NET_RAW") || offloads, "without {missing}: {errors}");
    }
}

/// The user who called sudo owns the folder, and root without capabilities may not write in it.
#[test]
fn files_belong_to_the_user_who_called_sudo() {
    let Some(bed) = Bed::build("u") else { return };
    if main_program().is_none() {
        return;
    }
    let dir = folder();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(12_345), Some(12_345)).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let path = |name: &str| home.join(name).display().to_string();
    let (record, pcap, trace, socket) = (path("record"), path("a.pcapng"), path("a.trace"), path("s"));
    let mut command = Command::new(NET);
    command.env("SUDO_UID", "12345").env("SUDO_GID", "12345");
    let files = ["--record", &record, "--pcap", &pcap, "--trace", &trace, "--control", &socket];
    let mut live = Live::start_with(command, &bed, dir.path(), &files);
    until("the watching thread is not root any more", || {
        threads(live.process(), &["Uid"]).iter().all(|(_, words)| words[0] == ["12345"; 4])
    });
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("recorded in "), "{errors}");
    for kept in [&record, &pcap, &trace, &format!("{record}/reverse/manifest.json")] {
        assert_eq!(fs::metadata(kept).unwrap().uid(), 12_345, "{kept}");
    }
    assert!(!Path::new(&socket).exists(), "the socket is removed, with any owner of the folder");
    // The folder of another user is refused before anything runs.
    let theirs = dir.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(12_346), Some(12_346)).unwrap();
    let (a, b) = (bed.name("a1"), bed.name("b0"));
    let (code, _, errors) =
        giveway(&["live", "--in", &a, "--out", &b, "--record", &theirs.display().to_string()]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(
        errors.contains("the folder belongs to user 12346") && errors.contains("chown nobody"),
        "{errors}"
    );
}

/// The folder is opened before privileges are dropped, so only root need be able to search the folders above
/// it.
#[test]
fn a_recording_below_a_folder_of_root_is_written() {
    let Some(bed) = Bed::build("r") else { return };
    if main_program().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let record = dir.path().join("record");
    let mut live = Live::start(&bed, dir.path(), &["--record", &record.display().to_string()]);
    until("no thread has privileges", || has_nothing(live.process()).is_ok());
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(record.join("forward/manifest.json").exists());
}

/// The process that writes the recording of a bridge.
fn writing_process(bridge: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{bridge}/task/{bridge}/children"));
    let of_threads = fs::read_dir(format!("/proc/{bridge}/task")).unwrap().flatten();
    let all = of_threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let all: Vec<String> = all.chain(children).collect();
    let numbers = all.iter().flat_map(|list| list.split_whitespace()).filter_map(|text| text.parse().ok());
    numbers.into_iter().find(|number: &u32| {
        let command = fs::read_to_string(format!("/proc/{number}/cmdline")).unwrap_or_default();
        command.contains("write-recording")
    })
}

/// The program that writes tables has the user of the outputs, and none of the privileges and descriptors of
/// the bridge. It ends with the bridge, and not by a signal to all processes of a service.
#[test]
fn a_recording_is_written_without_privileges_by_another_process() {
    let Some(bed) = Bed::build("w") else { return };
    if main_program().is_none() {
        return;
    }
    let dir = folder();
    let record = dir.path().join("record");
    let mut live = Live::start(&bed, dir.path(), &["--record", &record.display().to_string()]);
    let writer = writing_process(live.process()).expect("it runs");
    let nobody = nix::unistd::User::from_name("nobody").unwrap().map_or(65_534, |user| user.uid.as_raw());
    let sets = ["Uid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"];
    for (_, words) in threads(writer, &sets) {
        assert!(words[0].iter().all(|user| *user == nobody.to_string()), "{words:?}");
        assert!(words[1].is_empty(), "{words:?}");
        assert!(words[2..7].iter().all(|set| set == &["0000000000000000"]), "{words:?}");
        assert_eq!(words[7], ["1"]);
    }
    let open = fs::read_dir(format!("/proc/{writer}/fd")).unwrap().flatten();
    let open: Vec<String> =
        open.map(|entry| fs::read_link(entry.path()).unwrap().display().to_string()).collect();
    // The child has the standard error of the test, which may be closed.
    let other = |to: &&String| !["socket:", "pipe:", "/dev/null"].iter().any(|start| to.starts_with(start));
    assert_eq!(open.iter().find(other), None, "{open:?}");
    // The connection at both standard streams, and its copies in the program; no packet socket.
    let own: Vec<&String> = open.iter().filter(|to| to.starts_with("socket:")).collect();
    assert!(own.iter().all(|to| *to == own[0]), "{open:?}");
    assert_eq!(fs::read_link(format!("/proc/{writer}/cwd")).unwrap(), record);
    for signal in ["-INT", "-TERM", "-HUP"] {
        let sent = Command::new("kill").args([signal, &writer.to_string()]).status();
        assert!(sent.unwrap().success());
    }
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert!(code == Some(0) && errors.contains("recorded in "), "{errors}");
    assert!(record.join("forward/manifest.json").exists());
    assert!(!Path::new(&format!("/proc/{writer}")).exists(), "it has ended");
}

/// Frames pass without the process that writes, and what it has written stays.
#[test]
fn frames_pass_although_the_process_that_writes_was_killed() {
    let Some(bed) = Bed::build("k") else { return };
    if main_program().is_none() {
        return;
    }
    let dir = folder();
    let record = dir.path().join("record");
    let arguments = ["--record", &record.display().to_string(), "--record-every", "1s", "--quiet"];
    let mut live = Live::start(&bed, dir.path(), &arguments);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..100).map(|n| frame(0x88b5, n, 500)).collect();
    let mut pass = || {
        a.send(&frames);
        assert_eq!(b.receive(100, Duration::from_secs(20)), frames);
    };
    pass();
    let manifest = record.join("reverse/manifest.json");
    until("it was written", || manifest.exists());
    let writer = writing_process(live.process()).expect("it runs").to_string();
    assert!(Command::new("kill").args(["-KILL", &writer]).status().unwrap().success());
    let line = live.line();
    assert!(line.contains("--record: the process that writes the recording is gone"), "{line}");
    assert!(line.contains("earlier data stay intact, and nothing more is recorded"), "{line}");
    pass();
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(1), "{errors}");
    assert_eq!(errors.matches("is gone").count(), 1, "at the end again, and not in between: {errors}");
    let kept: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    assert_eq!(kept["complete"], true);
}

/// A reader finds a complete recording at any time, also after a kill.
#[test]
fn a_recording_is_complete_at_any_time() {
    let Some(bed) = Bed::build("k") else { return };
    let Some(main) = main_program() else { return };
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
    // It is read while it is written three times, and is never missing or partial.
    let mut seen = Vec::new();
    until("it was written three more times", || {
        for _ in 0..200 {
            let text = fs::read_to_string(&manifest).expect("a reader finds it at any time");
            let read: serde_json::Value = serde_json::from_str(&text).expect("it is complete");
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
    let (code, _, errors) = run(&main, &["report", &forward]);
    assert_eq!(code, Some(0), "{errors}");
    let table = record.join("forward/summary.parquet");
    assert!(table.exists() || record.join("forward/trials").exists());
}

/// A file system of 16 MiB.
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
fn on_a_full_disk_frames_pass_and_written_data_stay() {
    let Some(bed) = Bed::build("f") else { return };
    let Some(main) = main_program() else { return };
    let dir = folder();
    let Some(small) = Small::mount(dir.path().join("small")) else { return };
    let path = |name: &str| small.0.join(name).display().to_string();
    let (record, pcap, trace) = (path("record"), path("a.pcapng"), path("a.trace"));
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
    // The filler uses all space, also space that becomes free later.
    let fill = small.0.join("fill");
    let mut filler = fs::File::create(&fill).unwrap();
    let mut fill_up = || while filler.write_all(&[7; 4096]).is_ok() {};
    let mut full_reported = false;
    until("the full disk is reported", || {
        fill_up();
        // Each error is a line. Any of the three outputs may be first.
        if !full_reported {
            let line = live.line();
            full_reported = line.contains("No space left") && line.contains("tried again");
        }
        full_reported
    });
    pass();
    let kept: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    assert_eq!(kept["complete"], true, "the earlier recording stays complete");
    assert!(
        giveway_capture::Reader::open(&pcap).unwrap().all(|packet| packet.is_ok()),
        "and so does the capture"
    );
    // An open file keeps its space.
    drop(filler);
    fs::remove_file(&fill).unwrap();
    until("the end of the problem is reported", || live.line().contains("written again"));
    pass();
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(giveway_capture::Reader::open(&pcap).unwrap().filter(|packet| packet.is_ok()).count(), 300);
    let (code, checked, _) = run(&main, &["replay-check", &trace]);
    assert!(code == Some(0) && checked.contains("all equal"), "{checked}");
    let (code, _, errors) = run(
        &main,
        &["report", &format!("{record}/forward"), "--out", &dir.path().join("r.html").display().to_string()],
    );
    assert_eq!(code, Some(0), "{errors}");
}

/// The processes whose parent is this one.
fn children(process: u32) -> Vec<String> {
    let is_child = |of: &fs::DirEntry| {
        let stat = fs::read_to_string(of.path().join("stat")).unwrap_or_default();
        // After the name of the program in brackets: its state, and its parent.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1).map(str::to_owned));
        parent == Some(process.to_string())
    };
    let all = fs::read_dir("/proc").expect("it is there").flatten().filter(is_child);
    all.map(|of| of.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn offloads_are_restored_at_the_end_and_after_a_kill() {
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

    // After a kill, the cleanup process restores them.
    let live = Live::start(&bed, dir.path(), &arguments);
    assert_ne!(features(&a1), before);
    live.signal("-KILL");
    drop(live);
    until("they are restored", || features(&a1) == before);
    until("the socket is removed", || !socket.exists());
    // A service manager restarts the program at once, during the cleanup.
    let live = Live::start(&bed, dir.path(), &arguments);
    live.signal("-KILL");
    drop(live);
    let mut live = Live::start(&bed, dir.path(), &arguments);
    assert_ne!(features(&a1), before);
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
    assert_eq!(features(&a1), before);

    // If the cleanup process is killed as well, the next start restores them.
    let live = Live::start(&bed, dir.path(), &arguments);
    let children = children(live.process());
    assert_eq!(children.len(), 1, "only the cleanup process");
    for child in &children {
        assert!(Command::new("kill").args(["-KILL", child]).status().unwrap().success());
    }
    live.signal("-KILL");
    drop(live);
    nap(Duration::from_millis(300));
    assert!(features(&a1) != before && socket.exists(), "no process has restored them");
    let mut live = Live::start(&bed, dir.path(), &["--control", &socket.display().to_string()]);
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("an earlier giveway live ended before it could turn"), "{errors}");
    assert!(errors.contains("removed the socket of an earlier giveway"), "{errors}");
    assert_eq!(features(&a1), before);
}

#[test]
fn a_slow_client_does_not_delay_others() {
    let Some(bed) = Bed::build("w") else { return };
    let dir = folder();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    let socket = dir.path().join("s");
    let arguments = ["--metrics", &free.to_string(), "--control", &socket.display().to_string(), "--quiet"];
    let mut live = Live::start(&bed, dir.path(), &arguments);
    // Each socket has fifteen clients that send nothing, and one that sends a byte every 100 ms.
    let silent: Vec<TcpStream> = (0..15).map(|_| TcpStream::connect(free).unwrap()).collect();
    let quiet: Vec<UnixStream> = (0..15).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let (mut web, mut local) = (TcpStream::connect(free).unwrap(), UnixStream::connect(&socket).unwrap());
    let dripping = std::thread::spawn(move || {
        // This ends only when the program closes both connections.
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
    assert_eq!(giveway(&["control", &socket.display().to_string(), "set", "rate", "5mbit"]).0, Some(0));
    assert!(dripping.join().unwrap() > 0, "both were closed at their deadline");
    drop((silent, quiet));
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

#[test]
fn metrics_that_other_machines_can_read_are_a_warning() {
    let Some(bed) = Bed::build("e") else { return };
    let dir = folder();
    for (at, warns) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let mut live = Live::start(&bed, dir.path(), &["--metrics", at]);
        live.signal("-TERM");
        let errors = live.end().2;
        assert_eq!(errors.contains("may read the metrics without a password"), warns, "{errors}");
    }
}

/// A service manager can give four capabilities instead of root.
#[test]
fn a_user_with_four_capabilities_can_use_all_features() {
    let Some(bed) = Bed::build("c") else { return };
    let Some(main) = main_program() else { return };
    if Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let dir = folder();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(12_345), Some(12_345)).unwrap();
    // The user may not be able to search the folders of the build.
    let program = dir.path().join("giveway-net");
    fs::copy(NET, &program).unwrap();
    fs::copy(main, dir.path().join("giveway")).unwrap();
    let path = |name: &str| home.join(name).display().to_string();
    let (record, pcap, trace, socket) = (path("record"), path("a.pcapng"), path("a.trace"), path("s"));
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
    until("no thread has privileges", || {
        threads(live.process(), &sets).iter().all(|(_, words)| {
            let none = words[1..5].iter().all(|set| set == &["0000000000000000"]);
            words[0][0] == "12345" && none && words[5] == ["1"] && words[6] == ["2"]
        })
    });
    assert_eq!(giveway(&["control", &socket, "set", "rate", "50mbit"]).0, Some(0));
    live.signal("-TERM");
    let (code, _, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(Path::new(&record).join("forward/manifest.json").exists() && !Path::new(&socket).exists());
    if has_ethtool() {
        assert_eq!(features(&bed.name("a1")), before);
    }
}

/// A settings file that only root may read can be read again, as long as it is the same file. Another file
/// with its name is an error.
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
    until("no thread has privileges", || has_nothing(live.process()).is_ok());
    let mut hup = |expected: &str| {
        live.signal("-HUP");
        (0..12).map(|_| live.line()).find(|line| line.contains(expected)).expect(expected)
    };
    write(&file, "rate = \"12mbit\"\n");
    hup("rate is 12mbit");
    let other = dir.path().join("other");
    write(&other, "rate = \"13mbit\"\n");
    fs::rename(&other, &file).unwrap();
    let refused = hup("another file has this name now");
    assert!(refused.contains("nothing was changed"), "{refused}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    hup("rate is 13mbit");
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

#[test]
fn users_that_do_not_exist_are_refused() {
    let Some(bed) = Bed::build("q") else { return };
    let (a, b) = (bed.name("a1"), bed.name("b0"));
    let (code, _, errors) = giveway(&["live", "--in", &a, "--out", &b, "--user", "no-such-user"]);
    assert!(code == Some(2) && errors.contains("no user \"no-such-user\""), "{errors}");
}

/// `apt purge` leaves nothing that the service of the package has created, and keeps what others have.
#[test]
fn a_purge_removes_the_files_of_the_service() {
    let root = folder();
    let path = |name: &str| root.path().join(name);
    for kept in ["var/lib/other", "var/lib/private/other", "etc/giveway", "home/theirs"] {
        fs::create_dir_all(path(kept)).unwrap();
    }
    fs::write(path("etc/giveway/wan.toml"), "rate = \"5mbit\"\n").unwrap();
    fs::write(path("home/theirs/file"), "").unwrap();
    fs::create_dir_all(path("var/lib/private/giveway-live-wan/recording")).unwrap();
    fs::create_dir_all(path("run/giveway-live-wan")).unwrap();
    std::os::unix::fs::symlink("private/giveway-live-wan", path("var/lib/giveway-live-wan")).unwrap();
    // The service can make links in its folder.
    let link = path("var/lib/private/giveway-live-wan/recording/link");
    std::os::unix::fs::symlink(path("home/theirs"), link).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/debian/scripts/postrm");
    for (step, states) in [("remove", 2), ("purge", 0)] {
        let done = Command::new("sh").arg(&script).arg(step).env("DPKG_ROOT", root.path()).status().unwrap();
        assert!(done.success());
        let left = ["var/lib", "var/lib/private"].map(|folder| fs::read_dir(path(folder)).unwrap());
        let left = left.into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let left = left.filter(|name| name.to_string_lossy().starts_with("giveway-live-")).count();
        assert_eq!(left, states, "after {step}");
    }
    assert!(!path("run/giveway-live-wan").exists());
    assert!(path("var/lib/private/other").exists() && path("home/theirs/file").exists());
    assert!(path("etc/giveway/wan.toml").exists());
}

/// The service has its own user, who cannot read a key that only root may read. systemd passes it on.
#[test]
fn the_service_gets_the_key_that_only_root_may_read() {
    assert_eq!(unit("DynamicUser"), "yes");
    assert_eq!(unit("LoadCredential"), "key:/etc/giveway/%i.key");
    // Without a default, a missing key would prevent the start of a bridge that needs none.
    assert_eq!(unit("SetCredential"), "key:none");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/example.toml");
    let example = fs::read_to_string(example).unwrap();
    assert!(example.contains("reserve-key-file = \"/run/credentials/giveway-live@NAME.service/key\""));
}

/// Outputs are created with the ids of the user that the bridge becomes, and the last component of their
/// paths is never a link, so that this user reaches nothing else through root.
#[test]
fn outputs_of_root_reach_nothing_that_their_user_cannot_reach() {
    let Some(bed) = Bed::build("z") else { return };
    if main_program().is_none() {
        return;
    }
    let dir = folder();
    let (home, roots) = (dir.path().join("home"), dir.path().join("roots"));
    for folder in [&home, &roots, &roots.join("empty")] {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    chown(&home, Some(12_345), Some(12_345)).unwrap();
    fs::write(roots.join("capture.pcapng"), [0x0a, 0x0d, 0x0d, 0x0a]).unwrap();
    fs::write(roots.join("secret"), "theirs").unwrap();
    let live = |flag: &str, path: &Path, more: &[&str]| {
        let output = Command::new(NET)
            .args(["live", "--in", &bed.name("a1"), "--out", &bed.name("b0"), "--duration", "50ms", flag])
            .arg(path)
            .args(more)
            .env("SUDO_UID", "12345")
            .env("SUDO_GID", "12345")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let link = |name: &str, to: PathBuf| {
        let link = home.join(name);
        std::os::unix::fs::symlink(to, &link).unwrap();
        link
    };
    for (flag, path, more) in [
        ("--record", link("record", roots.join("empty")), &[][..]),
        ("--record", link("above", roots.clone()).join("new"), &[]),
        ("--pcap", link("a.pcapng", roots.join("capture.pcapng")), &[]),
        ("--pcap", link("b.pcapng", roots.join("new.pcapng")), &[]),
        ("--pcap", home.join("above/capture.pcapng"), &[]),
        ("--trace", link("a.trace", roots.join("secret")), &["--force"]),
        ("--trace", home.join("above/new.trace"), &[]),
    ] {
        let (code, errors) = live(flag, &path, more);
        assert_eq!(code, Some(2), "{flag} {}: {errors}", path.display());
        assert!(errors.contains(" is a link") || errors.contains("may not write"), "{flag}: {errors}");
    }
    // A failure to write this file is only a remark.
    let (_, errors) = live("--ready", &link("ready", roots.join("ready")), &[]);
    assert!(errors.contains("it is a link: name the file that it leads to"), "{errors}");
    assert_eq!(fs::read(roots.join("capture.pcapng")).unwrap().len(), 4);
    assert_eq!(fs::read_to_string(roots.join("secret")).unwrap(), "theirs");
    assert_eq!(fs::read_dir(&roots).unwrap().count(), 3);
    assert_eq!(fs::metadata(roots.join("empty")).unwrap().uid(), 0);
}

/// Captures and recordings have other people's traffic, so only their owner may read them.
#[test]
fn captures_and_recordings_are_private() {
    let Some(bed) = Bed::build("p") else { return };
    if main_program().is_none() {
        return;
    }
    let dir = folder();
    let path = |name: &str| dir.path().join(name).display().to_string();
    // A file of an earlier bridge is made private, too.
    fs::write(path("b.pcapng"), "").unwrap();
    for pcap in [path("a.pcapng"), path("b.pcapng")] {
        let files = ["--record", &path("record"), "--pcap", &pcap, "--trace", &path("a.trace")];
        let mut live = Live::start(&bed, dir.path(), &files);
        live.signal("-TERM");
        let (code, _, errors) = live.end();
        assert_eq!(code, Some(0), "{errors}");
        let mut open =
            vec![PathBuf::from(path("record")), PathBuf::from(&pcap), PathBuf::from(path("a.trace"))];
        let mut seen = 0;
        while let Some(path) = open.pop() {
            let about = fs::metadata(&path).unwrap();
            assert_eq!(about.mode() & 0o077, 0, "{}", path.display());
            seen += 1;
            if about.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        assert!(seen > 10, "{seen} files and folders");
    }
}
