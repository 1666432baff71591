//! `giveway compare`: the example, and captures and requests that are not valid.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/home-uplink.pcapng").canonicalize().unwrap()
}

/// Runs the command in a folder. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    command.arg("compare").args(args).current_dir(folder).env("COLUMNS", "100").env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (status.code().expect("no signal ends it"), text(stdout), text(stderr))
}

fn compared(folder: &Path, args: &[&str]) -> (String, String) {
    let example = example();
    let (code, out, err) = ran(folder, &[&[example.to_str().unwrap()], args].concat());
    assert_eq!(code, 0, "{err}");
    (out, err)
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let (out, _) = compared(folder, &[args, &["--json", "-q"]].concat());
    serde_json::from_str(&out).expect("it is JSON")
}

const HOME: [&str; 4] = ["--rate-up", "2mbit", "--rate-down", "16mbit"];

#[test]
fn the_example_is_compared_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = compared(folder.path(), &HOME);
    assert!(err.contains("(a guess: private addresses are local: 100 % of the packets"), "{err}");
    assert!(err.contains("115 TCP connections, 19 pages"), "{err}");
    for wanted in [
        "upstream at 2mbit",
        "downstream at 16mbit",
        "(as captured)",
        "fq_codel",
        "pie",
        "drr",
        "efd",
        "Findings",
        "Recommendation\nfq_codel at 1.9 Mbit/s upstream; change nothing downstream",
        "fq_codel upstream only",
        "price of the shaper",
        "\n  tc qdisc add dev WAN parent 1:1 fq_codel\n",
        "\n  tc qdisc del dev WAN root\n",
        "\nCheck that it helped:\n  ping -c 20 HOST",
    ] {
        assert!(out.contains(wanted), "{wanted} is missing in\n{out}");
    }
    let (answer, details) = out.split_once("upstream at 2mbit").unwrap();
    assert!(answer.starts_with("Recommendation\n"), "the answer comes first:\n{out}");
    let findings: Vec<&str> = details.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    assert!(findings[0].starts_with("Downloads are shorter with "), "{findings:#?}");
    assert!(
        findings[1].starts_with("The 99th percentile of the delay of calls upstream is "),
        "{findings:#?}"
    );
    assert!(
        findings
            .iter()
            .any(|finding| finding.contains("measurably worse") || finding.starts_with("Cost of "))
    );
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "without --out no file is written");
}

/// At 2 Mbit/s in both directions every setup makes the only upload much longer, so none is recommended, and
/// the table of the best one has the gain and the loss.
#[test]
fn a_loss_is_shown_and_disqualifies() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        json(folder.path(), &["--rate", "2mbit", "--qdisc", "fifo limit 100p", "--qdisc", "fq_codel"]);
    let advice = &output["links"][0]["recommendation"];
    assert_eq!((&advice["discipline"], &advice["directions"]), (&Value::Null, &Value::Null));
    let verdict = |metric: &str, direction: &str| {
        let effects = advice["effects"].as_array().expect("the best setup has effects");
        let of = |one: &&Value| one["metric"] == metric && one["direction"] == direction;
        effects.iter().find(of).unwrap_or_else(|| panic!("{metric} {direction}: {advice}"))["verdict"].clone()
    };
    assert_eq!(verdict("fct_gt3MB_p50_s", "upstream"), "worse", "one upload is enough for a loss");
    assert_eq!(verdict("voice_delay_p99_s", "upstream"), "better");
}

/// Another queue downstream than upstream: the rows have the name of the one upstream.
#[test]
fn directions_have_their_own_disciplines() {
    let folder = tempfile::tempdir().unwrap();
    let up = ["--qdisc-up", "fifo limit 60p", "--qdisc-down", "fifo limit 400p"];
    let args = [&HOME[..], &up, &["--qdisc", "cake", "--seeds", "2", "--out", "kept"]].concat();
    let (out, _) = compared(folder.path(), &args);
    let scenario = fs::read_to_string(folder.path().join("kept/scenario.toml")).unwrap();
    assert!(scenario.contains("disciplines = [\"fifo limit 60p\", \"cake\"]"), "{scenario}");
    assert!(
        scenario.contains(
            "in_place_of = { \"fifo limit 60p\" = \"fifo limit 400p\", \"cake\" = \"cake bandwidth 16mbit\" }"
        ),
        "cake has the rate of the link, as it is deployed: {scenario}"
    );
    assert!(
        out.replace("\n  ", " ")
            .contains("60 packets upstream, 360 ms at 2mbit, and 400 packets downstream, 300 ms"),
        "{out}"
    );
    let refused = |args: &[&str], wanted: &str| {
        let example = example();
        let (code, _, err) = ran(folder.path(), &[&[example.to_str().unwrap()], args].concat());
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(wanted), "{err}");
    };
    refused(&["--rate", "2mbit", "--qdisc-up", "codel"], "each --qdisc-up needs a --qdisc-down");
    refused(&["--rate", "2mbit", "--overhead", "dsl"], "\"dsl\" is not a kind of line");
}

/// The table and the JSON have the same utilization, also if the run is longer than the capture.
#[test]
fn the_use_of_a_link_is_one_number() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--rate", "1mbit", "--mode", "replay", "--qdisc", "fifo limit 100p", "--qdisc", "fq_codel"];
    let (out, _) = compared(folder.path(), &args);
    let output = json(folder.path(), &args);
    let of = |row: &Value| row["metrics"]["at.far->local.utilization"]["mean"].as_f64().unwrap();
    let row = &output["links"][0]["table"]["results"][1];
    let used = format!(" {:.1} ", 100.0 * of(row));
    let down = out.split("downstream at").nth(1).expect("there is a table");
    let line = down.lines().find(|line| line.starts_with("fq_codel")).expect("it has a row");
    let tables = down.lines().filter(|line| line.starts_with("fq_codel"));
    assert!(tables.into_iter().any(|line| line.contains(&used)), "{used} is not in {line}\n{down}");
}

/// The kept scenario runs without the capture, with the same results; a second comparison resumes it.
#[test]
fn a_comparison_is_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        [&HOME[..], &["--qdisc", "fifo limit 100p", "--qdisc", "fq_codel", "--seeds", "2", "--out", "kept"]]
            .concat();
    let first = json(folder.path(), &args);
    let kept = folder.path().join("kept");
    for name in ["scenario.toml", "workload.jsonl", "manifest.json", "report.html", "flows.parquet"] {
        assert!(kept.join(name).is_file(), "{name} is missing");
    }
    let report = fs::read_to_string(kept.join("report.html")).unwrap();
    let finding = first["links"][0]["findings"][0].as_str().unwrap();
    // In the report, a non-breaking space is between a number and its unit.
    let report = report.replace('\u{a0}', " ").replace("&nbsp;", " ");
    assert!(report.contains(finding), "the report has the finding: {finding}");
    let second = json(folder.path(), &args);
    let print = |of: &Value| of["links"][0]["table"]["fingerprint"].clone();
    assert_eq!(print(&first), print(&second));
    let mut again = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let again = again
        .args(["run", "kept/scenario.toml", "--json", "-q"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["fingerprint"], print(&first));
}

#[test]
fn several_rates_are_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--rate", "1mbit,8mbit", "--qdisc", "fifo limit 100p", "--qdisc", "efd limit 100p"];
    let more = ["--seeds", "2", "--out", "sweep", "--export", "queues.pcapng"];
    let output = json(folder.path(), &[&args[..], &more].concat());
    for file in ["queues-1mbit-fifo.pcapng", "queues-8mbit-efd.pcapng"] {
        assert!(folder.path().join(file).is_file(), "{file} is missing");
    }
    let rates: Vec<_> =
        output["links"].as_array().unwrap().iter().map(|link| link["rate_upstream_bps"].as_u64()).collect();
    assert_eq!(rates, [Some(1_000_000), Some(8_000_000)]);
    for rate in ["1mbit", "8mbit"] {
        assert!(folder.path().join("sweep").join(rate).join("report.html").is_file(), "{rate}");
    }
    let together = fs::read_to_string(folder.path().join("sweep/report.html")).unwrap();
    assert!(together.contains("1mbit") && together.contains("8mbit"), "one report has both");
    let fct = |link: usize| {
        let metrics = &output["links"][link]["table"]["results"][0]["metrics"];
        metrics["at.far->local.fct_p95_s"]["mean"].as_f64().unwrap()
    };
    assert!(fct(0) > 3.0 * fct(1), "{} {}", fct(0), fct(1));
}

/// Every packet of the capture arrives once at one of the two ports, and senders do not react.
#[test]
fn a_replay_has_the_packets_of_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["--rate", "100mbit", "--mode", "replay", "--qdisc", "fifo limit 1000p", "--export", "out.pcapng"];
    let (out, _) = compared(folder.path(), &args);
    assert!(out.contains("Not in the model: senders do not react"), "{out}");
    let packets = giveway_capture::Reader::open(folder.path().join("out.pcapng")).unwrap();
    let exported: Vec<giveway_capture::Packet> = packets.map(Result::unwrap).collect();
    let original = giveway_capture::Reader::open(example()).unwrap().map(Result::unwrap);
    let original: Vec<giveway_capture::Packet> = original.filter(|packet| packet.ip.is_some()).collect();
    assert_eq!(exported.len(), original.len());
    let bytes = |packets: &[giveway_capture::Packet]| {
        packets.iter().map(|packet| u64::from(packet.bytes)).sum::<u64>()
    };
    assert_eq!(bytes(&exported), bytes(&original));
}

/// `--qdisc all` is all disciplines without required parameters, except shapers, which would be a second
/// link.
#[test]
fn all_is_every_discipline_but_shapers() {
    let folder = tempfile::tempdir().unwrap();
    let output = json(folder.path(), &[&HOME[..], &["--qdisc", "all", "--seeds", "1"]].concat());
    let rows = output["links"][0]["table"]["results"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["qdisc"].as_str().unwrap()).collect();
    let has = |name: &str| names.iter().any(|found| found.split(' ').next() == Some(name));
    assert!(
        ["fifo", "prio", "drr", "sfq", "efd", "red", "codel", "fq_codel", "pie"].into_iter().all(has),
        "{names:?}"
    );
    assert!(!has("tbf"), "{names:?}");
}

#[test]
fn invalid_requests_are_refused_with_a_correction() {
    let folder = tempfile::tempdir().unwrap();
    let example = example();
    let example = example.to_str().unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&[example], "in this capture are 2126kbit upstream and 1528kbit downstream"),
        (&[example, "--rate", "0mbit"], "a link with rate 0 sends nothing; write for example --rate 10mbit"),
        (&[example, "--rate", "0"], "a rate is written for example \"10mbit\""),
        (&[example, "--rate-up", "2mbit"], "--rate-down is missing: add for example --rate-down 16mbit"),
        (&[example, "--rate", "1mbit", "--rtt", "1h"], "--rtt"),
        (
            &[example, "--rate", "1mbit", "--rtt", "3600s"],
            "no path has a round-trip time of 3600s; write for example --rtt 30ms",
        ),
        (
            &[example, "--rate", "1mbit", "--rtt", "30ms", "--mode", "replay"],
            "a replay has no round-trip times, because no sender reacts; leave out --rtt or --mode replay",
        ),
        (&[example, "--rate", "1mbit", "--qdisc", "fq_coddle"], "did you mean \"fq_codel\"?"),
        (
            &[example, "--rate", "1mbit", "--link", "192.168.0.0/99"],
            "is neither a prefix such as 192.168.0.0/16",
        ),
        (
            &[example, "--rate", "1mbit", "--link", "10.9.9.0/24"],
            "no packet crosses between 10.9.9.0/24 and the rest",
        ),
        (&["missing.pcap", "--rate", "1mbit"], "missing.pcap cannot be opened"),
    ];
    for (args, wanted) in cases {
        let (code, out, err) = ran(folder.path(), args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(wanted), "{args:?}: {err}");
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "no file is left");
}

#[test]
fn files_that_are_not_captures_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(example()).unwrap();
    let pcap = |link: u32| {
        let words = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, link];
        let mut bytes: Vec<u8> = words[..1].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend([2, 0, 4, 0]);
        bytes.extend(words[2..].iter().flat_map(|word| word.to_le_bytes()));
        bytes
    };
    let mut arp = pcap(1);
    arp.extend([0, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 42, 0, 0, 0]);
    arp.extend([[0; 12].as_slice(), &[8, 6], &[0; 28]].concat());
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("empty", vec![], "is neither pcap nor pcapng"),
        ("text", b"Dear Sir or Madam".to_vec(), "text is a text file: give a capture, as tcpdump -w"),
        ("noise", b"\x01\x02\x03\x04".to_vec(), "is neither pcap nor pcapng: it begins with 01 02 03 04"),
        (
            "old.snoop",
            b"snoop\0\0\0\0\0\0\x02".to_vec(),
            "old.snoop is a Sun snoop file: convert it with `editcap -F pcapng old.snoop out.pcapng`",
        ),
        ("cut", whole[..10].to_vec(), "the file ends within"),
        ("strange", pcap(147), "uses link type 147, which is not supported; supported: Ethernet (1)"),
        ("silent", pcap(1), "has no packets"),
        ("arp", arp, "has no IP packets, only 1 other"),
    ];
    for (name, bytes, wanted) in cases {
        fs::write(folder.path().join(name), bytes).unwrap();
        let (code, out, err) = ran(folder.path(), &[name, "--rate", "1mbit", "--out", "results"]);
        assert_eq!((code, out.as_str()), (2, ""), "{name}: {err}");
        assert!(err.contains(wanted) && err.lines().count() == 1, "{name}: {err}");
        assert!(!folder.path().join("results").exists(), "{name}: no file is left");
    }
}

/// The readable half of a capture is used, and the damage is reported.
#[test]
fn the_readable_part_of_a_damaged_capture_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(example()).unwrap();
    fs::write(folder.path().join("half.pcapng"), &whole[..whole.len() / 2]).unwrap();
    let (code, out, err) =
        ran(folder.path(), &["half.pcapng", "--rate", "2mbit", "--qdisc", "fifo limit 100p", "--seeds", "1"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("is damaged at byte") && err.contains("the packets before that are used"), "{err}");
    assert!(err.contains("still open at the end"), "{err}");
    assert!(out.contains("Only fifo limit 100p ran"), "{out}");
}

/// A capture of one direction shows no requests; its packets can still be replayed.
#[test]
fn connections_need_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("down.pcapng")).unwrap();
    let mut writer = giveway_capture::Writer::new(file, "a test").unwrap();
    let raw = giveway_capture::InterfaceDescription {
        name: "down",
        description: "",
        link: giveway_capture::LinkType::RAW,
        speed: 0,
        snap: 0,
    };
    let interface = writer.interface(&raw).unwrap();
    for packet in 0..100_u32 {
        let headers = giveway_capture::Headers {
            from: [203, 0, 113, 10],
            to: [192, 168, 1, 20],
            from_port: 443,
            to_port: 50_000,
            bytes: 1_500,
            id: 0,
            dscp: giveway_qdisc::Dscp::default(),
            ecn: giveway_qdisc::Ecn::NotCapable,
            transport: giveway_capture::Transport::Tcp {
                seq: packet * 1_460,
                ack: 1,
                flags: 16,
                window: 65_535,
                options: &[],
                data: 1_460,
            },
        };
        let mut data = Vec::new();
        headers.write(&mut data);
        let time = u64::from(packet) * 1_000_000;
        let block =
            giveway_capture::EnhancedPacket { interface, time, bytes: 1_500, data: &data, comment: None };
        writer.packet(&block).unwrap();
    }
    writer.finish().unwrap();
    let (code, _, err) = ran(folder.path(), &["down.pcapng", "--rate", "8mbit"]);
    assert_eq!(code, 2);
    assert!(err.contains("this capture has one direction only: 100 % of the bytes of TCP"), "{err}");
    assert!(err.contains("can be replayed as they are with --mode replay"), "{err}");
    let (code, out, err) = ran(folder.path(), &["down.pcapng", "--rate", "8mbit", "--mode", "replay"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("downstream at 8mbit"), "{out}");
}

/// A folder that cannot be written, and a full disk: one message, and no partial output.
#[test]
fn results_that_cannot_be_written_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "not a folder").unwrap();
    let example = example();
    let example = example.to_str().unwrap();
    let (code, out, err) = ran(folder.path(), &[example, "--rate", "2mbit", "--out", "file/results"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("--out file/results:") && err.lines().count() == 1, "{err}");

    let program = assert_cmd::cargo::cargo_bin!("giveway");
    // Files may have at most 16 kB, as if the disk were full. The signal is ignored, so that writing fails
    // instead.
    let script = format!(
        "trap '' XFSZ; ulimit -f 32; exec {} compare {example} --rate 2mbit -q --out full",
        program.display()
    );
    let ended = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{err}");
    assert!(err.contains("cannot write the workload to"), "{err}");
    assert!(!folder.path().join("full").exists(), "no partial output is left");
}
