//! `giveway live` and `giveway live control`, on interfaces that the tests create.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::bed::{Bed, Host, frame, ip, nap};
use crate::running::{Live, giveway, main_program, run};

#[test]
fn invalid_settings_are_refused_with_a_correction() {
    let refused = |arguments: &[&str]| {
        let (code, _, errors) = giveway(&[&["live", "--in", "a", "--out", "b"], arguments].concat());
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    assert!(refused(&["--rate", "20"]).contains("--rate: "), "a rate needs a unit");
    assert!(refused(&["--qdisc", "fq_codl"]).contains("did you mean \"fq_codel\""));
    assert!(refused(&["--delay", "90s"]).contains("--delay: 90s is too long"));
    let wrong = refused(&["--rate", "{ setps = [] }"]);
    assert!(wrong.contains("--rate: unknown key \"setps\" of rate; did you mean \"steps\"?"), "{wrong}");
    let wrong = refused(&["--rate-reverse", "{ trace = \"no.mahi\" }"]);
    assert!(wrong.contains("--rate-reverse: trace: no.mahi: cannot be opened: "), "{wrong}");
    assert!(refused(&["--reorder", "1%"]).contains("is not a table: write none, or { percent"));
    let reserved = ["--reserve", "--qdisc", "trr_sound", "--rate", "{ steps = [[\"0s\", \"5mbit\"]] }"];
    assert!(refused(&reserved).contains("--reserve: a rate that varies has no share to reserve"));
    assert!(refused(&["--settings", "no.such"]).contains("no.such: "));
    assert!(refused(&["--tui"]).contains("--tui needs a terminal"));
    assert!(refused(&[]).contains("no interface a\n"));
}

#[test]
fn settings_that_the_kernel_does_not_support_are_refused() {
    let refused = |arguments: &[&str]| {
        let live = ["live", "--in", "lo", "--out", "no-such", "--qdisc", "bpf:efd limit 300p"];
        let (code, _, errors) = giveway(&[&live[..], arguments].concat());
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    for (flags, expected) in [
        (&["--delay", "5ms"][..], "--delay: disciplines in the kernel have no link emulation"),
        (&["--reassemble-reverse"], "--reassemble-reverse: disciplines in the kernel"),
        (
            &["--record", "somewhere"],
            "--record: with disciplines in the kernel, this program sees no packets",
        ),
        (&["--trace", "somewhere"], "--trace: with disciplines in the kernel"),
        (&["--tui"], "giveway kernel show prints the counters of the kernel"),
        (&["--reserve"], "bpf:trr reserves rates by the marks of packets"),
        (&["--mpu", "64"], "--mpu: "),
        (&["--qdisc-reverse", "fq_codel"], "either both directions are in the kernel or none"),
        (&["--rate", "20"], "--rate: "),
        (&["--rate", "{ steps = [] }"], "--rate: the rate of a discipline in the kernel is constant"),
        (&[], "no interface no-such"),
    ] {
        let errors = refused(flags);
        assert!(errors.contains(expected), "{flags:?}: {errors}");
    }
    let (code, _, errors) = giveway(&["live", "--in", "tun:a", "--out", "lo", "--qdisc", "bpf:fifo"]);
    assert!(
        code == Some(2) && errors.contains("tun:a: the kernel cannot forward to a TUN interface"),
        "{errors}"
    );
    let (code, _, errors) = giveway(&["live", "--in", "a", "--out", "b", "--objects", "."]);
    assert!(
        code == Some(2) && errors.contains("--objects is only for disciplines in the kernel"),
        "{errors}"
    );
}

/// Tests with a kernel that supports BPF qdiscs are in `cargo xtask test-kernel`.
#[test]
fn a_kernel_without_bpf_qdiscs_is_an_error() {
    let Some(bed) = Bed::build("bpf") else { return };
    if giveway_kernel::attach::ready().is_ok() {
        return;
    }
    let (a, b) = (bed.name("a1"), bed.name("b0"));
    for (qdisc, expected) in [
        ("bpf:efd", "needs Linux 6.16 or later, built with CONFIG_NET_SCH_BPF"),
        ("bpf:trr", "trr needs the rate of its link"),
        ("bpf:drr buckets 4", "buckets: in the kernel each flow has a separate queue"),
        ("bpf:codel", "the kernel has no discipline \"codel\" of Giveway"),
    ] {
        let (code, _, errors) = giveway(&["live", "--in", &a, "--out", &b, "--quiet", "--qdisc", qdisc]);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(expected), "{qdisc}: {errors}");
    }
}

#[test]
fn control_reports_a_missing_bridge() {
    let (code, _, errors) = giveway(&["control", "/no/such/socket", "show"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("no answer at /no/such/socket"), "{errors}");
}

/// All features together: frames pass, settings are changed and read, and at the end each output has all
/// frames.
#[test]
fn it_runs_is_changed_and_writes_its_outputs() {
    let Some(bed) = Bed::build("x") else { return };
    let Some(main) = main_program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (socket, record, pcap, trace) = (path("s"), path("record"), path("a.pcapng"), path("a.trace"));
    let mut live = Live::start(
        &bed,
        dir.path(),
        &[
            "--rate",
            "100mbit",
            "--qdisc",
            "fifo limit 1000p",
            "--control",
            &socket,
            "--record",
            &record,
            "--pcap",
            &pcap,
            "--trace",
            &trace,
            "--metrics",
            "127.0.0.1:0",
            "--json",
        ],
    );
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..200).map(|n| frame(0x88b5, n, 500)).collect();
    a.send(&frames);
    assert_eq!(b.receive(200, Duration::from_secs(5)), frames);

    assert_eq!(
        giveway(&["control", &socket, "set", "rate", "50mbit"]),
        (Some(0), "rate is 50mbit\n".into(), String::new())
    );
    assert_eq!(giveway(&["control", &socket, "set", "qdisc", "drr"]).1, "qdisc is drr\n");
    let (code, _, errors) = giveway(&["control", &socket, "set", "qdisc", "dr"]);
    assert!(code == Some(2) && errors.contains("did you mean \"drr\""), "{errors}");
    let (code, _, errors) = giveway(&["control", &socket, "set", "rate"]);
    assert!(code == Some(2) && errors.contains("<VALUE>"), "{errors}");
    nap(Duration::from_millis(300));
    a.send(&frames);
    assert_eq!(b.receive(200, Duration::from_secs(5)), frames);
    nap(Duration::from_millis(300));
    let (_, shown, _) = giveway(&["control", &socket, "show"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("it is JSON");
    let forward = &shown["directions"][0];
    assert_eq!((&forward["sent"]["packets"], &forward["qdisc"]), (&400.into(), &"drr".into()));
    assert_eq!(forward["rate_bps"], 50_000_000);

    // A second bridge must not get the interfaces or the socket.
    let (code, _, errors) = giveway(&["live", "--in", &bed.name("a1"), "--out", &bed.name("b1")]);
    assert!(code == Some(2) && errors.contains("belongs to another giveway live already"), "{errors}");
    assert!(errors.contains(&format!("end it with: giveway live control {socket} stop")), "{errors}");
    let (code, _, errors) =
        giveway(&["live", "--in", &bed.name("a0"), "--out", &bed.name("b1"), "--control", &socket]);
    assert!(code == Some(2) && errors.contains("another process listens there already"), "{errors}");

    live.signal("-TERM");
    let (code, out, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    let summary: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(summary["directions"][0]["sent"]["packets"], 400);
    assert_eq!(summary["directions"][0]["lost"]["ring"], 0);
    assert!(!Path::new(&socket).exists(), "the socket is removed");

    let captured = giveway_capture::Reader::open(&pcap).expect("it is a capture").count();
    assert_eq!(captured, 400);
    let (code, checked, _) = run(&main, &["replay-check", &trace]);
    assert!(code == Some(0) && checked.contains("all equal"), "{checked}");
    let (code, _, errors) = run(&main, &["report", &format!("{record}/forward")]);
    assert_eq!(code, Some(0), "{errors}");
}

/// The interface on one side is removed, and another one gets its name, as with a container or a dial-up
/// link. The program reports it, completes its outputs and exits with code 1, so that a service manager
/// starts it again on the new interface.
#[test]
fn it_ends_when_an_interface_is_removed() {
    let Some(bed) = Bed::build("y") else { return };
    let Some(main) = main_program() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (record, pcap) = (path("record"), path("a.pcapng"));
    let arguments = ["--rate", "1mbit", "--qdisc", "fifo", "--record", &record, "--pcap", &pcap, "--json"];
    let mut live = Live::start(&bed, dir.path(), &arguments);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..20).map(|n| frame(0x88b5, n, 1000)).collect();
    a.send(&frames);
    // On a busy machine this may return more than one frame.
    let mut received = b.receive(1, Duration::from_secs(5));
    ip(&["link", "del", &bed.name("a1")]);
    bed.pair("a0", "a1");
    let (code, out, errors) = live.end();
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains(&format!("the interface {} was removed", bed.name("a1"))), "{errors}");
    received.extend(b.receive(20 - received.len(), Duration::from_secs(1)));
    assert_eq!(received, frames, "the backlog was sent");
    let summary: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(summary["directions"][0]["sent"]["packets"], 20);
    assert_eq!(giveway_capture::Reader::open(&pcap).expect("it is a capture").count(), 20);
    assert_eq!(run(&main, &["report", &format!("{record}/forward")]).0, Some(0));
    // The next start uses the new interface.
    let mut live = Live::start(&bed, dir.path(), &["--quiet"]);
    let mut a = Host::at(&bed, "a0");
    a.send(&frames[..1]);
    assert_eq!(b.receive(1, Duration::from_secs(5)), frames[..1]);
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}

/// With port 0 the program does not report the port that it gets, so this test chooses a free one.
#[test]
fn metrics_are_served() {
    let Some(bed) = Bed::build("m") else { return };
    let dir = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    let mut live = Live::start(&bed, dir.path(), &["--metrics", &free.to_string(), "--quiet"]);
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(free).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
    let label = format!("interface=\"{}\"", bed.name("b0"));
    assert!(answer.contains("giveway_sent_packets_total{") && answer.contains(&label), "{answer}");
    assert!(ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    live.signal("-INT");
    assert_eq!(live.end().0, Some(0));
}

/// SIGHUP applies the settings that the file has now. A mistake has no effect.
#[test]
fn the_settings_are_read_again() {
    let Some(bed) = Bed::build("g") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("live.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("rate = \"10mbit\"\nqdisc = \"efd\"\n");
    let mut live = Live::start(&bed, dir.path(), &["--settings", &file.display().to_string()]);
    let begins = (0..8)
        .map(|_| live.line())
        .find(|line| line.contains(" to "))
        .expect("it describes its configuration");
    assert!(begins.contains("10mbit, efd"), "{begins}");
    let mut after = |text: &str| {
        write(text);
        live.signal("-HUP");
        (0..8).map(|_| live.line()).find(|line| line.contains("rate") || line.contains("nothing")).unwrap()
    };
    assert_eq!(after("rate = \"12mbit\"\nqdisc = \"efd\"\n"), "giveway: rate is 12mbit\n");
    let refused = after("rate = \"12mbt\"\n");
    assert!(refused.contains("live.toml: rate: ") && refused.contains("nothing was changed"), "{refused}");
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
}
