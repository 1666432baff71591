//! Two `giveway live` in a row: each one fragments frames, and the other one reassembles them. Between them
//! no packet is longer than the configured size.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bed::{Bed, Host, frame, ip, nap};

const NET: &str = env!("CARGO_BIN_EXE_giveway-net");
/// A discipline that does not drop in these tests.
const DRR: &str = "drr limit 8000p";

/// A link between the two bridges.
struct Between<'a>(&'a Bed);

impl Between<'_> {
    fn of(bed: &Bed) -> Between<'_> {
        ip(&["link", "add", &bed.name("c0"), "type", "veth", "peer", "name", &bed.name("c1")]);
        for end in ["c0", "c1"] {
            let setting = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", bed.name(end));
            std::fs::write(setting, "1").expect("the interface was just made");
            ip(&["link", "set", &bed.name(end), "up"]);
        }
        Between(bed)
    }
}

impl Drop for Between<'_> {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "del", &self.0.name("c0")]).stderr(Stdio::null()).status();
    }
}

/// A running `giveway live` with a control socket.
struct Live {
    child: Child,
    socket: PathBuf,
}

impl Live {
    /// Starts the program, and returns once frames pass.
    fn start(bed: &Bed, dir: &Path, name: &str, ends: [&str; 2], arguments: &[&str]) -> Live {
        let (ready, socket) = (dir.join(format!("{name}.ready")), dir.join(format!("{name}.sock")));
        let child = Command::new(NET)
            .args(["live", "--in", &bed.name(ends[0]), "--out", &bed.name(ends[1]), "--json", "--quiet"])
            .arg("--no-realtime")
            .arg("--ready")
            .arg(&ready)
            .arg("--control")
            .arg(&socket)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        for _ in 0..500 {
            if ready.exists() {
                break;
            }
            nap(Duration::from_millis(10));
        }
        assert!(ready.exists(), "it began within five seconds");
        Live { child, socket }
    }

    /// Sends a request to the control socket, and returns the answer.
    fn control(&self, arguments: &[&str]) -> String {
        let output = Command::new(NET).arg("control").arg(&self.socket).args(arguments).output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// Stops the program. Returns the final statistics of both directions.
    fn end(self) -> serde_json::Value {
        self.control(&["stop"]);
        let output = self.child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0));
        let statistics: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        statistics["directions"].clone()
    }
}

/// A frame of `length` bytes with Ethernet, IPv4 and UDP headers, of one of eight flows.
fn datagram(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = frame(0x0800, number, length);
    let ports = 5000 + number as u16 % 8;
    let mut header = vec![0x45, 0];
    header.extend((length as u16 - 14).to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2]);
    header.extend(ports.to_be_bytes());
    header.extend(ports.to_be_bytes());
    header.extend((length as u16 - 34).to_be_bytes());
    bytes[14..14 + header.len()].copy_from_slice(&header);
    bytes
}

/// Sends the frames, 50 at a time, and returns the received frames.
fn across(from: &mut Host, to: &mut Host, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let few = frames.chunks(50).map(|frames| {
        from.send(frames);
        to.receive(frames.len(), Duration::from_secs(3))
    });
    few.flatten().collect()
}

/// Sorts frames by their bytes, since the order among flows may change.
fn sorted(mut frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    frames.sort();
    frames
}

/// Every length from 60 to 1,514 bytes in both directions, with a tagged frame and a non-IP frame. Fragments
/// have 800 bytes forward and 500 bytes in reverse, and later 68 bytes forward.
#[test]
fn frames_of_all_lengths_cross_two_bridges_as_fragments() {
    let Some(bed) = Bed::build("p") else { return };
    let _between = Between::of(&bed);
    let dir = tempfile::tempdir().unwrap();
    let first = Live::start(
        &bed,
        dir.path(),
        "first",
        ["a1", "c0"],
        &["--qdisc", DRR, "--fragment", "800", "--reassemble-reverse"],
    );
    let second = Live::start(
        &bed,
        dir.path(),
        "second",
        ["c1", "b0"],
        &["--qdisc", DRR, "--reassemble", "--fragment-reverse", "500"],
    );
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let (mut forward, mut reverse) = (Host::at(&bed, "c1"), Host::at(&bed, "c0"));

    let mut frames: Vec<Vec<u8>> = (60..=1514).map(|length| datagram(length as u32, length)).collect();
    let mut tagged = datagram(9, 1514);
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    frames.push(tagged);
    // A non-IP frame is not fragmented, though it is longer than a fragment.
    let non_ip = frame(0x88b5, 1, 1000);
    frames.push(non_ip.clone());
    let frames = sorted(frames);

    assert!(sorted(across(&mut a, &mut b, &frames)) == frames, "the same bytes, forward");
    assert!(sorted(across(&mut b, &mut a, &frames)) == frames, "the same bytes, in reverse");
    for (host, size) in [(&mut forward, 800), (&mut reverse, 500)] {
        let seen = host.receive(usize::MAX, Duration::from_millis(100));
        assert!(seen.len() > frames.len());
        let long: Vec<_> = seen.iter().filter(|frame| frame.len() > 18 + size).collect();
        assert_eq!(long, [&non_ip], "nothing else is longer than {size} bytes and a tagged header");
    }

    // 1,514 - 14 - 800 lengths and the tagged frame have two fragments each.
    let shown: serde_json::Value = serde_json::from_str(&first.control(&["show"])).expect("it is JSON");
    assert_eq!(shown["directions"][0]["fragment"], 800);
    assert_eq!(first.control(&["set", "fragment", "68"]), "fragment is 68\n");
    assert_eq!(first.control(&["set", "reassemble_reverse", "no"]), "reassemble-reverse is no\n");
    nap(Duration::from_millis(300));
    let longest = [datagram(1, 1514)];
    assert_eq!(across(&mut a, &mut b, &longest), longest);
    assert_eq!(forward.receive(usize::MAX, Duration::from_millis(100)).len(), 25, "60 bytes in each");

    let (first, second) = (first.end(), second.end());
    assert_eq!(first[0]["cut"]["frames"], 701 + 1);
    assert_eq!(first[0]["cut"]["fragments"], 2 * 701 + 25);
    assert_eq!(first[0]["cut"]["whole"], 1);
    assert_eq!(second[0]["joined"]["frames"], 702);
    assert_eq!(second[0]["joined"]["fragments"], 2 * 701 + 25);
    assert_eq!(second[1]["cut"]["frames"], 1001);
    assert_eq!(first[1]["joined"]["frames"], 1001);
    for direction in [&first[0], &first[1], &second[0], &second[1]] {
        let lost = direction["joined"]["lost"].as_object().expect("reasons");
        assert!(lost.len() == 6 && lost.values().all(|lost| *lost == 0), "{lost:?}");
        assert_eq!(direction["joined"]["waiting"], 0);
        assert_eq!(direction["dropped"]["packets"], 0);
    }
}

/// 500 frames at once for a queue of 40 fragments: most are dropped, and only fragments of complete frames
/// are sent.
#[test]
fn an_overload_sends_no_fragment_without_the_others() {
    let Some(bed) = Bed::build("r") else { return };
    let _between = Between::of(&bed);
    let dir = tempfile::tempdir().unwrap();
    let slow = ["--fragment", "500", "--rate", "4mbit", "--qdisc", "fifo limit 40p"];
    let first = Live::start(&bed, dir.path(), "first", ["a1", "c0"], &slow);
    let second = Live::start(&bed, dir.path(), "second", ["c1", "b0"], &["--reassemble"]);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..500).map(|number| datagram(number, 1442)).collect();
    a.send(&frames);
    let received = b.receive(usize::MAX, Duration::from_secs(1));
    assert!(received.iter().all(|frame| frames.contains(frame)), "received frames are complete");
    let (first, second) = (first.end(), second.end());
    assert!(first[0]["drops"]["overlimit"].as_u64() > Some(0), "{}", first[0]["drops"]);
    assert_eq!(first[0]["sent"]["packets"], 3 * received.len(), "three fragments for each received frame");
    assert_eq!(second[0]["joined"]["fragments"], 3 * received.len());
    assert_eq!(second[0]["joined"]["waiting"], 0);
}

/// Fragment sizes that are not valid are refused with a correction.
#[test]
fn invalid_fragment_sizes_are_refused() {
    let Some(bed) = Bed::build("q") else { return };
    let refused = |arguments: &[&str]| {
        let output = Command::new(NET)
            .args(["live", "--in", &bed.name("a1"), "--out", &bed.name("b0"), "--duration", "1ms"])
            .args(arguments)
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--fragment", "60"]).contains("--fragment: 60 bytes: fragments have 68 to 9000 bytes"));
    assert!(refused(&["--fragment-type", "0x0800"]).contains("IPv4"));
    for end in ["a0", "a1", "b0", "b1"] {
        ip(&["link", "set", &bed.name(end), "mtu", "9000"]);
    }
    let output = refused(&["--fragment-reverse", "68"]);
    assert!(
        output.contains("--fragment-reverse: an MTU of 9000 bytes") && output.contains("write 79 at least"),
        "{output}"
    );
}
