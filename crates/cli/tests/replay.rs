//! `giveway run --trace-port` and `giveway replay-check`.

use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
duration = "2 s"
seeds = 2
disciplines = ["fifo limit 10p", "red limit 20p weight 0.5 ecn", "fq_codel target 1ms"]

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

/// Runs the program to its end. Returns its exit code, standard output and standard error.
fn ran(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let output = command.args(args).current_dir(folder).output();
    let Output { status, stdout, stderr } = output.expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (status.code().expect("no signal ends it"), text(stdout), text(stderr))
}

/// The names of all files except the scenario, hidden files included.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != "home.toml");
    names.sort();
    names
}

const TRACES: [&str; 3] = ["up-fifo.trace", "up-fq_codel.trace", "up-red.trace"];

fn traced(path: &Path) -> String {
    let (code, table, err) = ran(path, &["run", "home.toml", "--trace-port", "home->isp=up.trace"]);
    assert_eq!((code, files(path)), (0, TRACES.map(str::to_owned).to_vec()), "{err}");
    for file in TRACES {
        assert!(err.contains(&format!("giveway: {file} has ")), "{err}");
    }
    table
}

#[test]
fn a_trace_of_a_simulation_is_replayed() {
    let folder = folder();
    let path = folder.path();
    let table = traced(path);
    let (_, untraced, _) = ran(path, &["run", "home.toml"]);
    assert_eq!(table, untraced, "a trace changes nothing");

    let (code, out, err) = ran(path, &[&["replay-check"], &TRACES[..]].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4, "{out}");
    for (line, (file, spec)) in lines.iter().zip([
        ("up-fifo.trace", "fifo limit 10p"),
        ("up-fq_codel.trace", "fq_codel target 1ms"),
        ("up-red.trace", "red limit 20p"),
    ]) {
        assert!(line.starts_with(&format!("{file}: home->isp, {spec}")), "{line}");
        assert!(line.contains(" at 5mbit: equal ("), "{line}");
        let number = |unit: &str| -> u64 {
            let before = line.split(unit).next().expect("there is a text before it");
            before.rsplit([' ', '(']).next().unwrap().parse().unwrap_or_else(|_| panic!("{unit} in {line}"))
        };
        // Two seconds at 5 Mbit/s are 833 packets of 1,500 bytes.
        assert!(number(" packets arrived") > 700 && number(" sent") > 700, "{line}");
        assert!(number(" dropped") > 0, "{line}");
    }
    assert!(lines[3].starts_with("3 disciplines, ") && lines[3].ends_with(": all equal"), "{out}");

    // The trace of a program that was killed.
    let whole = std::fs::read(path.join("up-fifo.trace")).unwrap();
    std::fs::write(path.join("cut.trace"), &whole[..whole.len() / 2]).unwrap();
    let (code, out, _) = ran(path, &["replay-check", "cut.trace"]);
    assert_eq!(code, 0);
    assert!(out.contains(": equal (") && out.contains("its end is missing"), "{out}");
    assert!(out.contains("cut.trace: has no end"), "{out}");

    // A trace with a changed bit.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    std::fs::write(path.join("damaged.trace"), damaged).unwrap();
    let (code, out, _) = ran(path, &["replay-check", "damaged.trace", "up-red.trace"]);
    assert_eq!(code, 1);
    assert!(out.contains("damaged.trace: is damaged at byte "), "{out}");
    assert!(out.contains("up-red.trace: ") && !out.contains("all equal"), "{out}");
}

/// The trace names "fifo limit 10p", but the recorded queue was shorter.
#[test]
fn a_difference_is_reported_and_is_a_failure() {
    use giveway_disciplines::{Discipline, fifo};
    use giveway_qdisc::{Cx, FlowKey, Limit, LinkContext, Outbox, Packet, Qdisc, Rate, Streams, Time};

    let folder = folder();
    let path = folder.path();
    let file = std::fs::File::create(path.join("other.trace")).unwrap();
    let recording =
        giveway_replay::Recording::start(file, "a test", giveway_replay::Options::default()).unwrap();
    let context = LinkContext::new(Rate::mbit(10), Streams::new(1));
    let shorter = fifo::Config { limit: Limit::Packets(9), ..fifo::Config::default() };
    let inner = Box::new(shorter.build(&context).unwrap());
    let mut queue = recording.tracer().wrap("up", "fifo limit 10p", &context, inner);
    for at in 1..=10 {
        let pkt = Packet::new(FlowKey(1), 100, ());
        queue.enqueue(pkt, &mut Cx::new(Time::ms(at), &mut Outbox::default()));
    }
    drop(queue);
    recording.finish().unwrap();
    let (code, out, err) = ran(path, &["replay-check", "other.trace"]);
    assert_eq!((code, err.as_str()), (1, ""));
    assert_eq!(
        out,
        "other.trace: up, fifo limit 10p at 10mbit: different: operation 10 at 10ms, enqueue of packet 9: the \
         trace has packet 9 dropped (overlimit), this run no further drop (10 operations: 10 packets arrived, \
         0 sent, 1 dropped, 0 marked)\n"
    );
}

#[test]
fn invalid_arguments_are_refused() {
    let folder = folder();
    let path = folder.path();
    for (args, code, message) in [
        (&["replay-check", "nowhere"][..], 2, "cannot read nowhere: No such file"),
        (&["replay-check", "home.toml"], 2, "home.toml is not an operation trace"),
        (&["run", "home.toml", "--trace-port", "up.trace"], 2, "write a port and a file, as in"),
        (
            &["run", "home.toml", "--trace-port", "isp->hom=up.trace"],
            2,
            "unknown port \"isp->hom\"; the ports are \"home->isp\", \"isp->home\"",
        ),
        (&["run", "home.toml", "home.toml", "--trace-port", "home->isp=x"], 2, "one scenario at a time"),
        (&["run", "home.toml", "--trace-port", "home->isp=no/x"], 1, "cannot write no/x-fifo: No such file"),
    ] {
        let (got, out, err) = ran(path, args);
        assert_eq!((got, out.as_str()), (code, ""), "{err}");
        assert!(err.contains(message), "{message} in {err}");
        assert_eq!(files(path), [""; 0], "nothing is left behind");
    }
}

/// Two ports are traced and a capture is written in one run.
#[test]
fn several_ports_are_traced_and_captured_in_one_run() {
    let folder = folder();
    let path = folder.path();
    let args = ["run", "home.toml", "--quiet", "--set", "disciplines=fifo", "--export", "home.pcapng"];
    let ports = ["--trace-port", "home->isp=up.trace", "--trace-port", "isp->home=down.trace"];
    assert_eq!(ran(path, &[&args[..], &ports].concat()).0, 0);
    assert_eq!(files(path), ["down.trace", "home.pcapng", "up.trace"]);
    let (code, out, _) = ran(path, &["replay-check", "up.trace", "down.trace"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("up.trace: home->isp, ") && out.contains("down.trace: isp->home, "), "{out}");
}
