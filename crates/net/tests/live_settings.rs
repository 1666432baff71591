//! A settings file with all flags of a bridge, the background, and the messages to a service manager.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::bed::{Bed, Host, frame};
use crate::running::{Live, NET, giveway, until};

fn settings(bed: &Bed, dir: &Path, more: &str) -> String {
    let file = dir.join("live.toml");
    let (a1, b0, socket) = (bed.name("a1"), bed.name("b0"), dir.join("s").display().to_string());
    let text = format!("in = {a1:?}\nout = {b0:?}\ncontrol = {socket:?}\nring = 1024\n{more}");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// One file describes a bridge. It runs in the background, and another process takes it over with a changed
/// file.
#[test]
fn a_file_describes_a_bridge() {
    let Some(bed) = Bed::build("f") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = settings(&bed, dir.path(), "rate = \"5mbit\"\nqdisc = \"efd\"\n");
    let socket = dir.path().join("s").display().to_string();
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let passes = |a: &mut Host, b: &mut Host| {
        a.send(&[frame(0x88b5, 1, 100)]);
        assert_eq!(b.receive(1, Duration::from_secs(5)).len(), 1, "frames pass when the command returns");
    };
    let start = |more: &[&str]| {
        let words = [&["live", "--settings", &file, "--background", "--quiet"], more].concat();
        // The output of the bridge must not keep a pipe of this test open.
        let mut command = Command::new(NET);
        let done = command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
        done.unwrap().code()
    };
    assert_eq!(start(&[]), Some(0));
    passes(&mut a, &mut b);
    let shows = |text: &str| giveway(&["control", &socket, "show"]).1.contains(text);
    until("the rate is that of the file", || shows("\"rate_bps\":5000000") && shows("efd"));
    settings(&bed, dir.path(), "rate = \"7mbit\"\nqdisc = \"efd\"\n");
    assert_eq!(start(&["--take-over", &socket]), Some(0));
    passes(&mut a, &mut b);
    until("the new process answers", || shows("\"rate_bps\":7000000"));
    assert_eq!(giveway(&["control", &socket, "stop"]).1, "ends\n");
    until("it ends", || !Path::new(&socket).exists());
    // A mistake is printed by the process in the background, and the command fails.
    settings(&bed, dir.path(), "qdisc = \"no-such\"\n");
    assert_eq!(start(&[]), Some(2));
    settings(&bed, dir.path(), "rings = 3\n");
    assert_eq!(start(&[]), Some(2));
}

/// SIGHUP changes settings, and refuses to change other flags.
#[test]
fn other_flags_do_not_change_while_it_runs() {
    let Some(bed) = Bed::build("h") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = settings(&bed, dir.path(), "rate = \"5mbit\"\n");
    let mut live = Live::start(&bed, dir.path(), &["--settings", &file]);
    let mut after = |more: &str| {
        settings(&bed, dir.path(), more);
        live.signal("-HUP");
        (0..40)
            .map(|_| live.line())
            .find(|line| line.contains("rate is") || line.contains("nothing"))
            .unwrap()
    };
    assert_eq!(after("rate = \"6mbit\"\n"), "giveway: rate is 6mbit\n");
    let refused = after("rate = \"7mbit\"\noverhead = 44\n");
    assert!(refused.contains("live.toml: overhead cannot change while the bridge runs"), "{refused}");
    assert!(refused.contains("--take-over") && refused.contains("nothing was changed"), "{refused}");
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

/// The messages of sd_notify(3), in their order.
#[test]
fn a_service_manager_is_informed() {
    let Some(bed) = Bed::build("m") else { return };
    let dir = tempfile::tempdir().unwrap();
    let manager = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    let (sender, messages) = mpsc::channel();
    // A thread, because the kernel keeps ten messages only, and drops those that come while nobody reads.
    std::thread::spawn(move || {
        let mut bytes = [0; 500];
        while let Ok(length) = manager.recv(&mut bytes)
            && sender.send(String::from_utf8_lossy(&bytes[..length]).into_owned()).is_ok()
        {}
    });
    let received = || messages.recv_timeout(Duration::from_secs(30)).expect("a message comes");
    let command = || {
        let mut command = Command::new(NET);
        command.env("NOTIFY_SOCKET", dir.path().join("notify")).env("WATCHDOG_USEC", "200000");
        command
    };
    let socket = dir.path().join("s").display().to_string();
    let mut live = Live::start_with(command(), &bed, dir.path(), &["--rate", "5mbit", "--control", &socket]);
    let first = received();
    assert!(first.starts_with("READY=1\nSTATUS=") && first.contains("5mbit"), "{first}");
    assert_eq!([received(), received()], ["WATCHDOG=1", "WATCHDOG=1"]);
    let mut next =
        Live::start_with(command(), &bed, dir.path(), &["--control", &socket, "--take-over", &socket]);
    let mut read = Vec::new();
    let mut until_main = || {
        loop {
            let text = received();
            read.push(text.clone());
            if let Some(main) = text.strip_prefix("MAINPID=") {
                return main.parse::<u32>().expect("it is a number");
            }
        }
    };
    assert_eq!(until_main(), next.process());
    assert_eq!(live.end().0, Some(0));
    // The process that stays in the background is the service, as its parent tells.
    let (a1, b0) = (bed.name("a1"), bed.name("b0"));
    let mut background = command();
    background.args(["live", "--in", &a1, "--out", &b0, "--background", "--control", &socket]);
    background.args(["--take-over", &socket]).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(background.status().unwrap().success());
    let main = until_main();
    assert_eq!(next.end().0, Some(0));
    until("it answers in place of the other one", || {
        giveway(&["control", &socket, "show"]).1.contains("directions")
    });
    assert!(std::fs::read_to_string(format!("/proc/{main}/cmdline")).unwrap().contains("--take-over"));
    assert!(giveway(&["control", &socket, "stop"]).0 == Some(0));
    // Only the last process ends the service.
    let mut stopping = received();
    while stopping != "STOPPING=1" {
        read.push(stopping);
        stopping = received();
    }
    assert!(!read.contains(&stopping), "{read:?}");
}
