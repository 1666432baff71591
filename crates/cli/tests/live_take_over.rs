//! `giveway live --take-over`: another process takes the interfaces over from a running bridge.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::bed::{Bed, Host, frame, nap};
use crate::running::{Live, features, giveway, has_ethtool, until};

/// Sends a line to a control socket, and returns the answer.
fn ask(socket: &str, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.trim_end().to_owned()
}

/// Nanoseconds since 1970.
fn wall_ns() -> u128 {
    #[expect(clippy::disallowed_methods, reason = "the time stamps of frames are of this clock")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
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
    let numbers = |frames: &[Vec<u8>]| -> Vec<u32> {
        frames.iter().map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap())).collect()
    };
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
    assert!(ask(&socket, "hand-over confirm").starts_with("error there is no hand-over"));
    assert!(ask(&socket, "hand-over at 1000").starts_with("error the instant"));
    assert!(ask(&socket, "hand-over soon").starts_with("error hand-over needs"));
    assert_eq!(ask(&socket, &format!("hand-over at {}", wall_ns() + 50_000_000)), "ok offered");
    assert_eq!(ask(&socket, "hand-over confirm"), "ok draining");
    until("the queue is empty", || ask(&socket, "hand-over state") == "ok drained");
    assert!(!passes(&mut a, &mut b, 2), "the other process forwards");
    until("it forwards again", || passes(&mut a, &mut b, 3));
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
