//! `giveway live --take-over`: another process takes the interfaces over from a running bridge.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_control::lock::process_at;
use giveway_qdisc::{Rng, Streams};

use crate::bed::{Bed, Host, frame, nap};
use crate::running::{Live, NET, features, giveway, has_ethtool, until};

/// Sends a line on a connection to a control socket, and returns the answer.
fn ask(stream: &mut BufReader<UnixStream>, line: &str) -> String {
    stream.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).unwrap();
    answer.trim_end().to_owned()
}

/// Nanoseconds since 1970.
fn wall_ns() -> u128 {
    #[expect(clippy::disallowed_methods, reason = "the time stamps of frames are of this clock")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
}

/// The numbers of frames.
fn numbers(frames: &[Vec<u8>]) -> Vec<u32> {
    frames.iter().map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap())).collect()
}

/// Frames that are sent all the time pass once each and in their order, while three other processes take
/// over, one after the other.
#[test]
fn no_frame_is_lost_or_sent_twice() {
    let Some(bed) = Bed::build("t") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let socket = path("s");
    // A queue is never empty: 1,000 frames of 500 bytes in a second are 4 Mbit/s.
    let settings = ["--rate", "3mbit", "--qdisc", "fifo limit 5000p", "--control", &socket, "--json"];
    let mut running = Live::start(&bed, dir.path(), &settings);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..4000).map(|n| frame(0x88b5, n, 500)).collect();
    let (take_over, sent) = (["--take-over", &socket], frames.clone());
    let sending = std::thread::spawn(move || {
        for some in sent.chunks(4) {
            a.send(some);
            nap(Duration::from_millis(4));
        }
    });
    let mut got = Vec::new();
    for _ in 0..3 {
        got.extend(b.receive(300, Duration::from_secs(20)));
        let next = Live::start(&bed, dir.path(), &[&settings[..], &take_over].concat());
        let (code, out, errors) = running.end();
        assert_eq!(code, Some(0), "{errors}");
        assert!(errors.contains("another giveway live has taken over"), "{errors}");
        assert!(out.contains("\"unsent\""), "it prints its statistics: {out}");
        running = next;
    }
    got.extend(b.receive(frames.len() - got.len(), Duration::from_secs(60)));
    sending.join().unwrap();
    assert_eq!(numbers(&got), numbers(&frames));
    assert!(got == frames, "no byte is changed");
    assert_eq!(b.receive(1, Duration::from_millis(200)).len(), 0, "none is sent twice");
    // The last process has the control socket and the locks of the interfaces.
    assert_eq!(giveway(&["control", &socket, "set", "rate", "5mbit"]).1, "rate is 5mbit\n");
    let (a1, b0) = (bed.name("a1"), bed.name("b0"));
    let (code, _, errors) = giveway(&["live", "--in", &a1, "--out", &b0]);
    assert_eq!(code, Some(2));
    assert!(errors.contains(&format!("process {}", running.process())), "{errors}");
    running.signal("-TERM");
    assert_eq!(running.end().0, Some(0));
    assert!(!Path::new(&socket).exists());
}

/// Offloads stay off, and the process that has taken over restores them.
#[test]
fn offloads_are_restored_by_the_last_process() {
    let Some(bed) = Bed::build("u") else { return };
    if !has_ethtool() {
        println!("skipped: ethtool is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (socket, a1) = (dir.path().join("s").display().to_string(), bed.name("a1"));
    let before = features(&a1);
    let arguments = ["--fix-offloads", "--control", &socket];
    let mut first = Live::start(&bed, dir.path(), &arguments);
    let off = features(&a1);
    assert_ne!(off, before);
    // Without --fix-offloads: the process is responsible for what it took over.
    let mut second = Live::start(&bed, dir.path(), &["--control", &socket, "--take-over", &socket]);
    assert_eq!(first.end().0, Some(0));
    assert_eq!(features(&a1), off, "the first process restored nothing");
    // A third one that gives up changes nothing, and the second one continues.
    let (code, _, errors) = giveway(&[
        "live",
        "--in",
        &a1,
        "--out",
        &bed.name("b0"),
        "--take-over",
        &socket,
        "--metrics",
        "192.0.2.1:1",
        "--qdisc",
        "nonsense",
    ]);
    assert_eq!(code, Some(2), "{errors}");
    assert_eq!(features(&a1), off);
    second.signal("-TERM");
    let (code, _, errors) = second.end();
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(features(&a1), before);
}

/// A process that is killed while it takes over leaves a bridge that forwards.
#[test]
fn a_bridge_forwards_again_if_the_other_process_is_silent() {
    let Some(bed) = Bed::build("v") else { return };
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s").display().to_string();
    let mut live = Live::start(&bed, dir.path(), &["--control", &socket]);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let passes = |a: &mut Host, b: &mut Host, number| {
        a.send(&[frame(0x88b5, number, 100)]);
        b.receive(1, Duration::from_millis(300)).len() == 1
    };
    assert!(passes(&mut a, &mut b, 1));
    let connect = || BufReader::new(UnixStream::connect(&socket).unwrap());
    let refused = |line: &str| ask(&mut connect(), line);
    assert!(refused("hand-over 2 confirm").starts_with("error there is no such hand-over"));
    assert!(refused("hand-over 2 at 1000").starts_with("error the instant"));
    assert!(refused("hand-over 2 at soon").starts_with("error hand-over needs"));
    assert!(refused(&format!("hand-over at {}", wall_ns())).contains("too old for this bridge"));
    let hand_over = || {
        let mut stream = connect();
        let at = wall_ns() + 400_000_000;
        assert_eq!(ask(&mut stream, &format!("hand-over 2 at {at}")), "ok offered");
        assert_eq!(ask(&mut stream, "hand-over 2 confirm"), "ok draining");
        until("the queue is empty", || ask(&mut stream, "hand-over 2 state") == "ok drained");
        stream
    };
    let mut silent = hand_over();
    assert!(!passes(&mut a, &mut b, 2), "the other process forwards");
    until("it forwards again", || passes(&mut a, &mut b, 3));
    assert!(ask(&mut silent, "hand-over 2 commit").contains("three seconds passed"));
    let mut given = hand_over();
    assert_eq!(ask(&mut given, "hand-over 2 commit"), "ok given");
    // Longer than the limit of silence: the other process may be stopped.
    nap(Duration::from_secs(4));
    assert!(!passes(&mut a, &mut b, 4), "the link belongs to the other process");
    drop(given);
    until("it forwards again", || passes(&mut a, &mut b, 5));
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

#[test]
fn only_the_bridge_of_these_interfaces_is_taken_over() {
    let Some(bed) = Bed::build("o") else { return };
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s").display().to_string();
    let (a1, b0) = (bed.name("a1"), bed.name("b0"));
    let refused = |ends: [&str; 2], more: &[&str]| {
        let (code, _, errors) =
            giveway(&[&["live", "--in", ends[0], "--out", ends[1], "--take-over", &socket], more].concat());
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    let errors = refused([&a1, &b0], &[]);
    assert!(errors.contains("no bridge answers there") && errors.contains("without --take-over"), "{errors}");
    let mut live = Live::start(&bed, dir.path(), &["--control", &socket]);
    let errors = refused([&bed.name("a0"), &b0], &[]);
    assert!(errors.contains(&format!("does not use {}", bed.name("a0"))), "{errors}");
    let errors = refused([&a1, &b0], &["--qdisc", "bpf:fifo"]);
    assert!(errors.contains("kill -9"), "{errors}");
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

/// It has asked for the link, and is stopped for longer than the other process waits for it.
#[test]
fn a_successor_that_was_stopped_leaves_the_link_to_the_other_process() {
    let Some(bed) = Bed::build("p") else { return };
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s").display().to_string();
    let settings = ["--rate", "200kbit", "--qdisc", "fifo limit 5000p", "--control", &socket];
    let mut live = Live::start(&bed, dir.path(), &settings);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    // Ten seconds of the link, so that the successor waits for the queue.
    a.send(&Vec::from_iter((0..500).map(|number| frame(0x88b5, number, 500))));
    let mut successor = Member::start(&bed, dir.path(), &[&settings[..], &["--take-over", &socket]].concat());
    until("it has opened the interfaces", || successor.has_thread("gw-forward"));
    // It asks at once, for an instant in half a second.
    nap(Duration::from_millis(1500));
    successor.signal("-STOP");
    nap(Duration::from_secs(4));
    successor.signal("-CONT");
    until("it ends", || successor.has_ended());
    let said = successor.said();
    assert!(said.contains("three seconds passed") && said.contains("the bridge continues"), "{said}");
    assert!(!successor.is_ready());
    a.send(&[frame(0x88b5, 500, 500)]);
    let got = b.receive(501, Duration::from_secs(60));
    assert_eq!(numbers(&got), Vec::from_iter(0..=500), "each frame passes once");
    assert_eq!(b.receive(1, Duration::from_millis(200)).len(), 0);
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

/// The control socket belongs to the new process as soon as `--background` returns.
#[test]
fn take_overs_at_the_same_time_leave_one_control_socket_and_foreign_files() {
    let Some(bed) = Bed::build("q") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (socket, pcap) = (path("s"), path("p"));
    let foreign = ["s.next", "p.earlier"].map(path);
    foreign.iter().for_each(|foreign| std::fs::write(foreign, "foreign").unwrap());
    let (a1, b0) = (bed.name("a1"), bed.name("b0"));
    let settings = ["--control", &socket, "--pcap", &pcap, "--fix-offloads"];
    let before = has_ethtool().then(|| features(&a1));
    let mut live = Live::start(&bed, dir.path(), &settings);
    let reload = || {
        let mut command = Command::new(NET);
        command.args(["live", "--in", &a1, "--out", &b0, "--background", "--take-over", &socket]);
        command.args(settings).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for _ in 0..2 {
        let earlier = process_at(Path::new(&socket)).unwrap();
        let mut reloads = [reload(), reload()];
        for reload in &mut reloads {
            assert!(reload.wait().unwrap().success());
            assert_ne!(process_at(Path::new(&socket)).unwrap(), earlier);
        }
    }
    assert_eq!(live.end().0, Some(0));
    assert_eq!(giveway(&["control", &socket, "set", "rate", "5mbit"]).1, "rate is 5mbit\n");
    let last = process_at(Path::new(&socket)).unwrap().unwrap();
    assert_eq!(giveway(&["control", &socket, "stop"]).0, Some(0));
    until("it has ended", || !Path::new(&format!("/proc/{last}")).exists());
    assert_eq!(has_ethtool().then(|| features(&a1)), before, "the offloads are restored");
    let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["p", "p.earlier", "ready", "s.next"], "no socket and no other capture is left");
    for foreign in foreign {
        assert_eq!(std::fs::read_to_string(foreign).unwrap(), "foreign");
    }
}

#[test]
fn a_process_that_is_killed_while_it_begins_leaves_no_socket() {
    let Some(bed) = Bed::build("s") else { return };
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let settings = ["--rate", "8mbit", "--control", socket.to_str().unwrap()];
    let first = Member::start(&bed, dir.path(), &settings);
    until("the first is ready", || first.is_ready());
    let take_over = [&settings[..], &["--take-over", socket.to_str().unwrap()]].concat();
    let sockets = || {
        let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name());
        files.filter(|name| name.to_string_lossy().starts_with('s')).count()
    };
    // Each is killed as soon as its socket exists, which is when its cleanup begins.
    for _ in 0..30 {
        let mut next = Member::start(&bed, dir.path(), &take_over);
        while sockets() == 1 && !next.has_ended() {
            std::thread::yield_now();
        }
        next.child.kill().unwrap();
        until("its socket is removed", || sockets() == 1);
    }
    assert_eq!(process_at(&socket).ok().flatten(), Some(first.child.id()));
}

#[test]
fn an_endless_answer_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while stream.write_all(&[b'a'; 1 << 16]).is_ok() {}
    });
    let (code, _, errors) = giveway(&["control", socket.to_str().unwrap(), "show"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("longer than") || errors.contains("no complete answer"), "{errors}");
}

/// A `giveway live` that may end, be stopped or be killed at any time.
struct Member {
    child: Child,
    ready: PathBuf,
    log: PathBuf,
}

impl Member {
    fn start(bed: &Bed, dir: &Path, arguments: &[&str]) -> Member {
        let name =
            |suffix: &str| (0..).map(|n| dir.join(format!("{n}.{suffix}"))).find(|path| !path.exists());
        let [log, ready] = ["log", "ready"].map(|suffix| name(suffix).unwrap());
        let mut command = Command::new(NET);
        command.args(["live", "--in", &bed.name("a1"), "--out", &bed.name("b0"), "--ready"]).arg(&ready);
        command.args(arguments).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        Member { child: command.spawn().unwrap(), ready, log }
    }

    fn signal(&self, name: &str) {
        // It may have ended already.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args([name, &id]).stderr(Stdio::null()).status();
    }

    fn has_thread(&self, name: &str) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten();
        let names =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
        names.into_iter().any(|thread| thread.trim_end() == name)
    }

    fn is_ready(&self) -> bool {
        self.ready.exists()
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A disturbance of the processes of a schedule during a take-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Reload,
    Another,
    StopSuccessor,
    StopEarlier,
    KillSuccessor,
    KillEarlier,
}

/// Take-overs at random times, in which a process is stopped, killed or made to read its settings again, or
/// another one takes over as well: no frame leaves twice, none is lost unless a process is stopped or killed,
/// and in the end one process forwards and has the control socket.
///
/// `GIVEWAY_SCHEDULES=1000` tries that many schedules, in about two hours, and `GIVEWAY_SCHEDULES=250..500`
/// the schedules of these seeds: several ranges can be tried at the same time.
#[test]
fn random_schedules_lose_and_repeat_no_frame() {
    const FAULTS: [Fault; 7] = [
        Fault::None,
        Fault::Reload,
        Fault::Another,
        Fault::StopSuccessor,
        Fault::StopEarlier,
        Fault::KillSuccessor,
        Fault::KillEarlier,
    ];
    let asked = std::env::var("GIVEWAY_SCHEDULES").unwrap_or_else(|_| "2".to_owned());
    let (from, until) = asked.split_once("..").unwrap_or(("0", &asked));
    let [from, until] = [from, until].map(|text| text.parse().expect("it is a number"));
    let Some(bed) = Bed::build("r") else { return };
    for seed in from..until {
        let mut rng = Streams::new(seed).within("schedule").rng();
        // Each kind of disturbance once in seven schedules.
        let fault = FAULTS[(seed as usize * 3 + 3) % FAULTS.len()];
        println!("schedule {seed}: {fault:?}");
        schedule(&bed, seed, fault, &mut rng);
    }
}

fn schedule(bed: &Bed, seed: u64, fault: Fault, rng: &mut Rng) {
    let dir = tempfile::tempdir().unwrap();
    let (socket, file) = (dir.path().join("s").display().to_string(), dir.path().join("live.toml"));
    std::fs::write(&file, "rate = \"8mbit\"\nqdisc = \"fifo limit 5000p\"\n").unwrap();
    let settings = ["--settings", file.to_str().unwrap(), "--control", &socket];
    let take_over = [&settings[..], &["--take-over", &socket]].concat();
    let mut members = vec![Member::start(bed, dir.path(), &settings)];
    until("the first is ready", || members[0].is_ready());
    let over = Arc::new(AtomicBool::new(false));
    let (mut a, mut b) = (Host::at(bed, "a0"), Host::at(bed, "b1"));
    let sending = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                a.send(&Vec::from_iter((number..number + 4).map(|number| frame(0x88b5, number, 300))));
                number += 4;
                nap(Duration::from_millis(4));
            }
            number
        }
    });
    let receiving = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut got = Vec::new();
            while !over.load(Ordering::Relaxed) {
                got.extend(numbers(&b.receive(64, Duration::from_millis(100))));
            }
            got.extend(numbers(&b.receive(usize::MAX, Duration::from_secs(1))));
            got
        }
    });
    let ms = |rng: &mut Rng, most: u64| Duration::from_millis(rng.below(most));
    members.push(Member::start(bed, dir.path(), &take_over));
    nap(ms(rng, 1500));
    match fault {
        Fault::None => {}
        Fault::Reload => members.iter().filter(|member| member.is_ready()).for_each(|it| it.signal("-HUP")),
        Fault::Another => members.push(Member::start(bed, dir.path(), &take_over)),
        Fault::KillSuccessor => members[1].signal("-KILL"),
        Fault::KillEarlier => members[0].signal("-KILL"),
        Fault::StopSuccessor | Fault::StopEarlier => {
            let stopped = &members[usize::from(fault == Fault::StopSuccessor)];
            stopped.signal("-STOP");
            nap(ms(rng, 6000));
            stopped.signal("-CONT");
        }
    }
    until("each new process is ready or has ended", || {
        members[1..].iter_mut().all(|member| member.has_ended() || member.is_ready())
    });
    let listens = || process_at(Path::new(&socket)).ok().flatten();
    let mut looks = 0;
    until("one process is left, and has the control socket", || {
        let ids: Vec<u32> =
            members.iter_mut().filter_map(|it| (!it.has_ended()).then(|| it.child.id())).collect();
        if ids.is_empty() {
            // As a service manager does if the bridge and its successor were killed.
            members.push(Member::start(bed, dir.path(), &settings));
        }
        let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name());
        let sockets = files.filter(|name| name.to_string_lossy().starts_with("s")).count();
        looks += 1;
        if looks == 500 {
            let said = members.iter().map(Member::said).collect::<Vec<_>>().join("--\n");
            println!("{ids:?}, {sockets} sockets, {:?} listens:\n{said}", listens());
        }
        ids.len() == 1
            && sockets == 1
            && listens() == Some(ids[0])
            && giveway(&["control", &socket, "show"]).0 == Some(0)
    });
    over.store(true, Ordering::Relaxed);
    let (sent, mut got) = (sending.join().unwrap(), receiving.join().unwrap());
    let said = || members.iter().map(Member::said).collect::<Vec<_>>().join("--\n");
    let about = format!("schedule {seed}, {fault:?}");
    let in_order = got.is_sorted();
    got.sort_unstable();
    assert!(got.windows(2).all(|two| two[0] != two[1]), "{about}: a frame left twice:\n{}", said());
    if matches!(fault, Fault::None | Fault::Reload | Fault::Another) {
        assert_eq!(got.len(), sent as usize, "{about}: frames are lost:\n{}", said());
        assert!(in_order, "{about}: a frame was overtaken:\n{}", said());
    }
}
