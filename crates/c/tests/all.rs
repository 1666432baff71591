//! A program in C against the disciplines in Rust: the same calls, and the same decisions.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use giveway_disciplines::{ALL, Spec};
use giveway_qdisc::{Bytes, Cx, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};

/// Calls of one program.
const CALLS: u64 = 4000;
/// The rate of the link, bit/s.
const RATE: u64 = 10_000_000;

/// A folder for the compiled programs. It is kept until the tests end.
static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("there is room for a program"));

/// The program of the tests.
static DECIDE: LazyLock<PathBuf> = LazyLock::new(|| compiled("tests/decide.c"));

/// Compiles a file of this crate, with the static library.
fn compiled(file: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Cargo puts the library next to the test.
    let test = std::env::current_exe().expect("a test has a path");
    let program = FOLDER.path().join(Path::new(file).file_stem().expect("a file has a name"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let done = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(here.join("include"))
        .arg(here.join(file))
        .arg(test.with_file_name("libgiveway_c.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .status();
    assert!(done.expect("a C compiler is installed").success());
    program
}

/// The output of a program.
fn printed(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    assert!(output.status.success(), "{args:?}: {}", text(output.stderr));
    text(output.stdout)
}

/// The numbers of `decide.c`.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The calls of `decide.c` in Rust, and the same lines.
fn decided(spec: &Spec) -> String {
    let context = LinkContext { mtu: Bytes(1500), ..LinkContext::new(Rate::bit(RATE), Streams::new(7)) };
    let mut qdisc = spec.build_numbered(&context).unwrap();
    let (mut numbers, mut out, mut now, mut text) = (Numbers(1), Outbox::default(), 0, String::new());
    for id in 0..CALLS {
        now += numbers.below(1_500_000);
        let time = Time::from_ps(now * 1000);
        let mut line = String::new();
        if numbers.below(5) < 3 {
            let packet = giveway_c::Packet {
                id,
                flow: numbers.below(20),
                bytes: 40 + numbers.below(1461) as u32,
                traffic_class: numbers.below(3) as u16,
                from: numbers.below(4) as u16,
                to: 4 + numbers.below(4) as u16,
                ecn: numbers.below(3) as u8,
                reserved: numbers.below(2) * 100_000,
                offset: numbers.below(100_000) as u32,
                remaining: numbers.below(100_000) as u32,
                dscp: numbers.below(64) as u8,
                ..giveway_c::Packet::default()
            };
            qdisc.enqueue(meta(&packet, time), &mut Cx::new(time, &mut out));
        } else {
            match qdisc.dequeue(&mut Cx::new(time, &mut out)) {
                Next::Packet(packet) => {
                    let marked = packet.meta.ecn == giveway_qdisc::Ecn::Marked;
                    writeln!(line, "sends {}{}", packet.payload, if marked { " marked" } else { "" })
                        .unwrap();
                }
                Next::At(at) => writeln!(line, "waits {}", at.as_ps().div_ceil(1000)).unwrap(),
                Next::Empty => line.push_str("empty\n"),
            }
        }
        out.marked.clear();
        for (packet, why) in out.dropped.drain(..) {
            writeln!(text, "drops {} {}", packet.payload, why as u8).unwrap();
        }
        text += &line;
    }
    let backlog = qdisc.backlog();
    writeln!(text, "holds {} {}", backlog.packets, backlog.bytes).unwrap();
    text
}

fn meta(packet: &giveway_c::Packet, arrived: Time) -> Packet<u64> {
    use giveway_qdisc::{Dscp, Ecn, FlowKey, Header, Meta};
    let meta = Meta {
        bytes: packet.bytes,
        class: packet.traffic_class,
        ecn: [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0][usize::from(packet.ecn)],
        header: Header::new(Dscp::of_service(packet.dscp << 2), false),
        flow: FlowKey(packet.flow),
        from: packet.from,
        to: packet.to,
        arrived,
        reserved: Rate::bit(packet.reserved),
        offset: packet.offset,
        remaining: packet.remaining,
        ..Meta::default()
    };
    Packet { meta, payload: packet.id }
}

#[test]
fn every_discipline_decides_in_c_as_in_rust() {
    let mut lines = 0;
    for entry in ALL {
        let default: Spec = entry.name.parse().unwrap();
        for spec in default.variants() {
            let c = printed(&DECIDE, &["decide", &spec.to_string()]);
            let rust = decided(&spec);
            assert!(c == rust, "{spec}");
            lines += c.lines().count();
        }
    }
    assert!(lines > 100_000, "{lines}");
}

#[test]
fn a_change_keeps_packets_and_a_wrong_call_loses_nothing() {
    assert_eq!(printed(&DECIDE, &["misuse"]), include_str!("misuse.txt"));
}

/// The page of the book shows the program and these lines.
#[test]
fn the_example_of_the_book_shares_a_link() {
    let example = compiled("examples/share.c");
    let page = include_str!("../../../docs/book/hosts.md");
    assert!(page.contains(&format!("```text\n{}```", printed(&example, &[]))), "{}", printed(&example, &[]));
    assert!(printed(&example, &["fifo"]).ends_with("packet 6 of flow 1\n"));
}

/// `GIVEWAY_UPDATE=1 cargo test -p giveway-c` writes it.
#[test]
fn the_header_is_made_from_the_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let sources = ["src/packet.rs", "src/lib.rs"].map(|name| here.join(name));
    let builder = sources.iter().fold(cbindgen::Builder::new(), |builder, file| builder.with_src(file));
    let mut made = Vec::new();
    builder.with_config(config).generate().unwrap().write(&mut made);
    let file = here.join("include/giveway.h");
    if std::env::var_os("GIVEWAY_UPDATE").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read(&file).unwrap_or_default();
    assert!(kept == made, "include/giveway.h is out of date: GIVEWAY_UPDATE=1 cargo test -p giveway-c");
    let functions = String::from_utf8(made).unwrap().matches("\n);").count();
    assert!(functions <= 10, "at most ten functions");
}
