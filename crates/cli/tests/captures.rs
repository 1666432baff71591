//! `giveway compare` with captures from anywhere: several files, a pipe, parts, pauses, wrong places.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use giveway_capture::{EnhancedPacket, Headers, InterfaceDescription, LinkType, Reader, Transport, Writer};
use serde_json::Value;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/home-uplink.pcapng").canonicalize().unwrap()
}

/// Runs a command of the program in a folder. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str], input: Option<&Path>) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.args(args).current_dir(folder).env("COLUMNS", "100").env("NO_COLOR", "1");
    command.stdin(input.map_or_else(Stdio::null, |file| File::open(file).expect("the input exists").into()));
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (status.code().expect("no signal ends it"), text(stdout), text(stderr))
}

const QUICK: [&str; 6] = ["--rate", "8mbit", "--qdisc", "fifo limit 100p", "--seeds", "1"];

/// The fingerprint of a comparison and its messages.
fn compared(folder: &Path, args: &[&str], input: Option<&Path>) -> (Value, String) {
    let (code, out, err) = ran(folder, &[&["compare"], args, &QUICK, &["--json"]].concat(), input);
    assert_eq!(code, 0, "{err}");
    let out: Value = serde_json::from_str(&out).expect("it is JSON");
    (out["links"][0]["table"]["results"].clone(), err)
}

/// Writes packets of TCP port 443: (time in ms, from and to, sequence number, acknowledgement, flags, data).
fn write(path: &Path, packets: &[Row]) {
    let mut writer = Writer::new(File::create(path).unwrap(), "a test").unwrap();
    let raw = InterfaceDescription { link: LinkType::RAW, ..Default::default() };
    let interface = writer.interface(&raw).unwrap();
    for (ms, from, to, seq, ack, flags, data) in packets {
        let port = |host: &[u8; 4]| if host[3] == 10 { 443 } else { 50_000 };
        let bytes = 40 + *data;
        let headers = Headers {
            from: *from,
            to: *to,
            from_port: port(from),
            to_port: port(to),
            bytes,
            id: 0,
            dscp: giveway_qdisc::Dscp::default(),
            ecn: giveway_qdisc::Ecn::NotCapable,
            transport: Transport::Tcp {
                seq: *seq,
                ack: *ack,
                flags: *flags,
                window: 65_535,
                options: &[],
                data: *data,
            },
        };
        let mut data = Vec::new();
        headers.write(&mut data);
        let time = ms * 1_000_000;
        writer.packet(&EnhancedPacket { interface, time, bytes, data: &data, comment: None }).unwrap();
    }
    writer.finish().unwrap();
}

type Row = (u64, [u8; 4], [u8; 4], u32, u32, u8, u32);

/// A request of 100 bytes and a response of 1,000 at a time in ms.
fn exchange(at: u64, client: [u8; 4], server: [u8; 4]) -> Vec<Row> {
    let (c, s) = ((client, server), (server, client));
    vec![
        (at, c.0, c.1, 0, 0, 2, 0),
        (at + 10, s.0, s.1, 0, 1, 18, 0),
        (at + 20, c.0, c.1, 1, 1, 16, 0),
        (at + 21, c.0, c.1, 1, 1, 24, 100),
        (at + 40, s.0, s.1, 1, 101, 24, 1_000),
        (at + 50, c.0, c.1, 101, 1_001, 17, 0),
        (at + 60, s.0, s.1, 1_001, 102, 17, 0),
        (at + 70, c.0, c.1, 102, 1_002, 16, 0),
    ]
}

const CLIENT: [u8; 4] = [192, 168, 1, 20];
const SERVER: [u8; 4] = [203, 0, 113, 10];

/// Seven hours with an exchange every 50 s, and six instead of one in the fourth and the fifth hour. The
/// busy and the idle hours are compared apart.
#[test]
fn a_long_capture_is_cut_into_busy_and_idle_hours() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = Vec::new();
    for number in 0..7 * 72u64 {
        let at = number * 50_000;
        let busy = (3..5).contains(&(at / 3_600_000));
        for more in 0..if busy { 6 } else { 1 } {
            let client =
                [192, 168, 1 + (number % 8) as u8, 20 + (number / 8 % 100) as u8 + 100 * (more % 2) as u8];
            rows.extend(exchange(at + more * 1_000, client, SERVER));
        }
    }
    let file = dir.path().join("day.pcapng");
    write(&file, &rows);
    let quick = [&["compare", "day.pcapng", "--json"], &QUICK[..]].concat();
    let (code, out, err) = ran(dir.path(), &quick, None);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("the busy hours (03:00 to 05:00 UTC) are compared on their own; --whole"), "{err}");
    let hours = |out: &str| -> Vec<Value> {
        let out: Value = serde_json::from_str(out).expect("it is JSON");
        out["links"].as_array().unwrap().iter().map(|link| link["hours"].clone()).collect()
    };
    let apart = ["idle hours (00:00 to 03:00, 05:00 to 07:00 UTC)", "busy hours (03:00 to 05:00 UTC)"];
    assert_eq!(hours(&out), apart);
    // The commands of the last part, if any, are those for the busy hours.
    let words = [&["compare", "day.pcapng", "--out", "results"], &QUICK[..]].concat();
    let (code, out, _) = ran(dir.path(), &words, None);
    assert_eq!(code, 0);
    assert!(out.contains("8mbit, busy hours (03:00 to 05:00 UTC)"), "{out}");
    assert!(dir.path().join("results/8mbit-busy/report.html").is_file());
    let whole = [&quick[..], &["--whole"]].concat();
    let (_, out, _) = ran(dir.path(), &whole, None);
    assert_eq!(hours(&out), [Value::Null]);
}

/// An upload of 3 MB in twelve seconds, and meanwhile twenty pings: requests of 84 bytes and their replies.
fn upload_and_pings(folder: &Path) {
    let (c, s) = ((CLIENT, SERVER), (SERVER, CLIENT));
    let mut rows: Vec<Row> =
        vec![(0, c.0, c.1, 0, 0, 2, 0), (20, s.0, s.1, 0, 1, 18, 0), (20, c.0, c.1, 1, 1, 16, 0)];
    for number in 0..2_000 {
        let (at, seq) = (30 + 6 * u64::from(number), 1 + 1_500 * number);
        rows.push((at, c.0, c.1, seq, 1, 16, 1_500));
        rows.push((at + 1, s.0, s.1, 1, seq + 1_500, 16, 0));
    }
    write(&folder.join("upload.pcapng"), &rows);
    let mut writer = Writer::new(File::create(folder.join("pings.pcapng")).unwrap(), "a test").unwrap();
    let raw = InterfaceDescription { link: LinkType::RAW, ..Default::default() };
    let interface = writer.interface(&raw).unwrap();
    for number in 0..20u64 {
        for (later, (from, to)) in [(0, c), (20, s)] {
            let mut data = vec![0x45, 0, 0, 84, 0, 0, 0, 0, 64, 1, 0, 0];
            data.extend([from, to].concat());
            let echo = if later == 0 { 8 } else { 0 };
            data.extend([echo, 0, 0, 0, 0, 7, 0, number as u8]);
            let time = (2_000 + 500 * number + later) * 1_000_000;
            writer
                .packet(&EnhancedPacket { interface, time, bytes: 84, data: &data, comment: None })
                .unwrap();
        }
    }
    writer.finish().unwrap();
}

/// Twenty pings have no 99th percentile, and one upload is too few for a completion time. The pings wait
/// behind the upload all the same, and that is a reason to change the discipline.
#[test]
fn pings_beside_an_upload_are_a_reason_to_change() {
    let dir = tempfile::tempdir().unwrap();
    upload_and_pings(dir.path());
    let words = ["compare", "upload.pcapng", "pings.pcapng", "--rate-up", "2mbit", "--rate-down", "16mbit"];
    let (code, out, err) = ran(dir.path(), &[&words[..], &["--json", "--seeds", "3"]].concat(), None);
    assert_eq!(code, 0, "{err}");
    let out: Value = serde_json::from_str(&out).expect("it is JSON");
    let link = &out["links"][0];
    let wait = |at: usize| {
        link["table"]["results"][at]["metrics"]["at.local->far.small_sojourn_p50_s"]["mean"].as_f64().unwrap()
    };
    assert!(wait(0) > 0.2 && wait(1) < 0.02, "fifo {} and fq_codel {}", wait(0), wait(1));
    let advice = &link["recommendation"];
    assert!(advice["discipline"].is_string(), "{advice:#}");
    let why = advice["reasons"]["why"].as_str().unwrap();
    assert!(why.contains("the 95th percentile of the sojourn times of small packets upstream is "), "{why}");
    let findings = link["findings"].to_string();
    assert!(
        findings.contains("The 95th percentile of the sojourn times of small packets upstream is "),
        "{findings}"
    );
}

/// Each seed has another draw of stretches of the capture, the same with every discipline and in every run.
#[test]
fn a_bootstrap_draws_stretches_of_the_capture() {
    let dir = tempfile::tempdir().unwrap();
    let file = example();
    let file = file.to_str().unwrap();
    let sent = |more: &[&str]| {
        let words = [&["compare", file, "--json", "--rate", "8mbit", "--seeds", "2"], more].concat();
        let (code, out, err) =
            ran(dir.path(), &[&words[..], &["--qdisc", "fifo limit 100p", "--qdisc", "drr"]].concat(), None);
        assert_eq!(code, 0, "{err}");
        let out: Value = serde_json::from_str(&out).unwrap();
        let results = out["links"][0]["table"]["results"].clone();
        let transfers =
            |at: usize| results[at]["metrics"]["at.far->local.flows_completed"]["per_seed"].clone();
        (transfers(0), transfers(1), out["links"][0]["table"]["fingerprint"].clone())
    };
    let (fifo, _, whole) = sent(&[]);
    let apart = |seeds: &Value| (seeds[0].as_f64().unwrap() - seeds[1].as_f64().unwrap()).abs();
    assert!(apart(&fifo) <= 2.0, "each seed has all transfers: {fifo}");
    let (fifo, drr, drawn) = sent(&["--bootstrap"]);
    assert!(apart(&fifo) > 5.0, "each seed has other stretches: {fifo}");
    assert_eq!(fifo, drr);
    assert_ne!(whole, drawn);
    assert_eq!(sent(&["--bootstrap"]).2, drawn);
    let refused = |more: &[&str]| {
        let (code, _, err) = ran(dir.path(), &[&["compare", file, "--rate", "8mbit"], more].concat(), None);
        assert_eq!(code, 2, "{err}");
        err
    };
    let err = refused(&["--bootstrap=20s"]);
    assert!(err.contains("has fewer than 5 stretches of 20s; write for example --bootstrap="), "{err}");
    assert!(refused(&["--bootstrap", "--mode", "replay"]).contains("leave out --bootstrap"));
}

/// Splits the example into files with every third packet, or with a third of its time.
fn split(folder: &Path, by_time: bool) -> Vec<String> {
    let count = Reader::open(example()).unwrap().count();
    let mut names = Vec::new();
    for part in 0..3 {
        let name = format!("part{part}.pcapng");
        let mut writer = Writer::new(File::create(folder.join(&name)).unwrap(), "a test").unwrap();
        let mut frames = giveway_capture::Frames::new(Box::new(File::open(example()).unwrap())).unwrap();
        let mut number = 0;
        while let Some(frame) = frames.next().unwrap() {
            if number == 0 {
                let link = InterfaceDescription { link: frame.link, ..Default::default() };
                writer.interface(&link).unwrap();
            }
            let mine = if by_time { number * 3 / count } else { number % 3 };
            if mine == part {
                let (time, bytes, data) = (frame.time, frame.wire_bytes, frame.data);
                writer.packet(&EnhancedPacket { interface: 0, time, bytes, data, comment: None }).unwrap();
            }
            number += 1;
        }
        writer.finish().unwrap();
        names.push(name);
    }
    names
}

#[test]
fn a_pipe_is_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let (from_file, _) = compared(folder.path(), &[example().to_str().unwrap()], None);
    let (from_pipe, err) = compared(folder.path(), &["-"], Some(&example()));
    assert_eq!(from_file, from_pipe);
    assert!(err.contains("the standard input: 17172 packets"), "{err}");
    let (code, _, err) = ran(folder.path(), &["compare", "-", "-", "--rate", "1mbit"], Some(&example()));
    assert_eq!(code, 2);
    assert!(err.contains("the standard input, -, can be read once"), "{err}");
}

/// The parts of a capture in any order give the results of the whole.
#[test]
fn rotated_and_overlapping_files_are_one_capture() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, _) = compared(folder.path(), &[example().to_str().unwrap()], None);
    for by_time in [true, false] {
        split(folder.path(), by_time);
        let names = ["part2.pcapng", "part0.pcapng", "part1.pcapng"];
        let (merged, err) = compared(folder.path(), &names, None);
        assert_eq!(merged, whole, "by time: {by_time}");
        assert!(err.contains("part2.pcapng and 2 more files: 17172 packets"), "{err}");
        assert!(!err.contains("in two files at once"), "{err}");
    }
    let twice = [example(), example()];
    let (twice, err) = compared(folder.path(), &twice.each_ref().map(|file| file.to_str().unwrap()), None);
    assert_eq!(twice, whole);
    assert!(err.contains("17172 packets are in two files at once: each is used once"), "{err}");
}

/// A replay of several files is kept with its packets, and can be repeated.
#[test]
fn a_replay_of_several_files_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let names = split(folder.path(), true);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let replay = ["--mode", "replay", "--out", "kept"];
    let (merged, _) = compared(folder.path(), &[&names[..], &replay].concat(), None);
    let (whole, _) = compared(folder.path(), &[example().to_str().unwrap(), "--mode", "replay"], None);
    assert_eq!(merged, whole);
    let args = ["run", "kept/scenario.toml", "--json", "-q"];
    let (code, out, err) = ran(folder.path(), &args, None);
    assert_eq!(code, 0, "{err}");
    let again: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(again["results"], merged);
}

#[test]
fn a_part_is_chosen_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let example = example();
    let example = example.to_str().unwrap();
    // The capture begins at 03:40:51 UTC.
    let (relative, err) = compared(folder.path(), &[example, "--from", "9.5s", "--until", "20s"], None);
    assert!(err.contains("used: the 5"), "{err}");
    let absolute = ["--from", "2026-11-25T03:41:00Z", "--until", "03:41:11"];
    let (_, err) = compared(folder.path(), &[&[example], &absolute[..]].concat(), None);
    assert!(err.contains("packets between 2026-11-25T03:41:00Z and 2026-11-25T03:41:11Z"), "{err}");
    assert!(relative.is_array());
    for (args, wanted) in [
        (&["--from", "10m"][..], "home-uplink.pcapng spans 2026-11-25T03:40:51Z to 2026-11-25T03:41:31Z"),
        (&["--until", "03:00"], "no packet is between the beginning and 2026-11-25T03:00:00Z; "),
        (&["--from", "20s", "--until", "10s"], "the end is before the beginning"),
        (&["--from", "noon"], "\"noon\" is not a time: write 90s or 10m after the first packet"),
    ] {
        let (code, _, err) = ran(folder.path(), &[&["compare", example], args, &QUICK].concat(), None);
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(err.contains(wanted), "{args:?}: {err}");
    }
}

/// A capture of years with seconds of traffic.
#[test]
fn long_pauses_are_cut_from_the_time_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("years.pcapng");
    let day = 86_400_000;
    let times = [100 * day, 500 * day, 1_748 * day];
    write(&path, &times.iter().flat_map(|at| exchange(*at, CLIENT, SERVER)).collect::<Vec<_>>());
    let (_, err) = compared(folder.path(), &["years.pcapng"], None);
    assert!(err.contains("years.pcapng: 24 packets, 0.0 MB in 20.2 s"), "{err}");
    assert!(
        err.contains(
            "2 pauses of more than a minute without packets: 1647 days were cut from the time line, so rates do not \
             include them; the longest, of 1247 days, begins at 1971-05-16T00:00:00Z"
        ),
        "{err}"
    );
    // A replay has the same time line.
    let (replayed, _) = compared(folder.path(), &["years.pcapng", "--mode", "replay"], None);
    assert_eq!(replayed.as_array().unwrap().len(), 1);
}

#[test]
fn captures_at_the_wrong_place_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("lo.pcapng"), &exchange(0, [127, 0, 0, 1], [127, 0, 0, 10]));
    let (code, _, err) = ran(folder.path(), &[&["compare", "lo.pcapng"], &QUICK[..]].concat(), None);
    assert_eq!(code, 2);
    assert!(err.contains("lo.pcapng is a capture of the loopback interface: 100 % of its packets"), "{err}");
    compared(folder.path(), &["lo.pcapng", "--link", "127.0.0.1"], None);

    // Downloads and uploads of which the capture has only the sender.
    let mut half = Vec::new();
    for number in 0..40_u32 {
        half.push((u64::from(number), SERVER, CLIENT, 1 + number * 1_000, 1, 16, 1_000));
        half.push((
            u64::from(number),
            [192, 168, 1, 21],
            [203, 0, 113, 11],
            1 + number * 1_000,
            1,
            16,
            1_000,
        ));
    }
    write(&folder.path().join("half.pcapng"), &half);
    let (code, _, err) = ran(folder.path(), &[&["compare", "half.pcapng"], &QUICK[..]].concat(), None);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains(
            "one direction only: 100 % of the bytes of TCP belong to connections of which no answer is seen"
        ),
        "{err}"
    );
    compared(folder.path(), &["half.pcapng", "--mode", "replay"], None);
}

/// A capture at the place of a scenario.
#[test]
fn commands_for_scenarios_name_the_command_for_captures() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(example(), folder.path().join("my.pcapng")).unwrap();
    for command in ["run", "check"] {
        let (code, _, err) = ran(folder.path(), &[command, "my.pcapng"], None);
        assert_eq!(code, 2, "{command}: {err}");
        let wanted = "my.pcapng is a capture, not a scenario: write giveway compare my.pcapng --rate 10mbit";
        assert!(err.contains(wanted), "{command}: {err}");
    }
}

/// One damaged file of several ends early, and is named.
#[test]
fn a_damaged_file_of_several_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let names = split(folder.path(), true);
    let path = folder.path().join(&names[1]);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (_, err) = compared(folder.path(), &names.iter().map(String::as_str).collect::<Vec<_>>(), None);
    assert!(err.contains("part1.pcapng is damaged at byte"), "{err}");
    assert!(err.contains("; its packets before that are used"), "{err}");
}

/// A capture that cannot be made says why.
#[test]
fn live_captures_that_cannot_be_made_say_why() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.pcapng"), "mine").unwrap();
    for (args, wanted) in [
        (&["--live", "lo"][..], "--for <TIME>"),
        (&["--live", "lo", "--for", "20:15"], "write a length of time, for example 90s or 5m"),
        (&["--live", "lo", "--for", "1s", "a.pcap"], "cannot be used with"),
        (&["--live", "nosuch", "--for", "1s"], "--live n"),
        (&["--live", "lo", "--for", "1s", "--keep", "mine.pcapng"], "the file exists; --force replaces it"),
        (&["--keep", "mine.pcapng", "a.pcap"], "--live <INTERFACE>"),
    ] {
        let (code, _, err) = ran(folder.path(), &[&["compare"], args, &QUICK].concat(), None);
        assert_ne!(code, 0, "{args:?}: {err}");
        assert!(err.contains(wanted), "{args:?}: {err}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("mine.pcapng")).unwrap(), "mine");
}

/// Through sudo, the program and tcpdump are the user who called sudo for as long as the capture lasts, and
/// the kept file is that user's.
#[test]
fn a_live_capture_through_sudo_gives_up_root() {
    let has_tcpdump = Command::new("tcpdump").arg("--version").output().is_ok();
    if !nix::unistd::geteuid().is_root() || !has_tcpdump {
        eprintln!("not tested: needs root and tcpdump");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // nobody, on all systems with tcpdump.
    let nobody = 65_534;
    std::os::unix::fs::chown(folder.path(), Some(nobody), Some(nobody)).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("giveway"))
        .args(["compare", "--live", "lo", "--for", "60s", "--keep", "kept.pcapng", "--rate", "1mbit"])
        .args(["--qdisc", "fifo", "--link", "127.0.0.0/8", "--out", "results"])
        .current_dir(folder.path())
        .envs([("SUDO_USER", "nobody"), ("SUDO_UID", "65534"), ("SUDO_GID", "65534")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    let mut first = [String::new(), String::new()];
    first.iter_mut().for_each(|line| drop(messages.read_line(line)));
    let settled = "giveway: runs as nobody from now on, without privileges\n";
    assert!(first.contains(&settled.to_owned()), "{first:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let of =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect(name).trim().to_owned();
    assert_eq!(of("Uid:"), ["65534"; 4].join("\t"));
    assert_eq!(of("Gid:"), ["65534"; 4].join("\t"));
    assert_eq!(u64::from_str_radix(&of("CapEff:"), 16), Ok(0));
    assert_eq!(u64::from_str_radix(&of("CapPrm:"), 16), Ok(0));
    // A connection is a packet that it captures; then Ctrl-C ends the capture, though root started it.
    for _ in 0..3 {
        let _ = std::net::TcpStream::connect(("127.0.0.1", 9));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    child.wait().unwrap();
    let kept = std::fs::metadata(folder.path().join("kept.pcapng")).expect("the packets are kept");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&kept), nobody);
}
