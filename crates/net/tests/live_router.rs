//! `giveway live --wan`: the one interface of a router, whose network stack is this machine's.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bed::{Bed, Host, ip, nap};
use crate::running::{Live, NET, giveway, until};

/// A router with a port to the link: the interface `b0`, with an address of this machine. `b1` is the other
/// end of the link.
struct Router {
    wan: String,
    /// A socket of the router, which sends to a host behind the link and receives from it.
    socket: UdpSocket,
    /// The third byte of the addresses.
    net: u8,
    /// The interface at the other end of the link.
    link: Host,
}

/// Link address of the host behind the link.
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Its UDP port.
const PORT: u16 = 7000;

impl Router {
    /// Gives `b0` an address. Tests use different values of `net`.
    fn build(bed: &Bed, net: u8) -> Router {
        let wan = bed.name("b0");
        ip(&["address", "add", &format!("198.18.{net}.1/24"), "dev", &wan]);
        ip(&["neighbour", "add", &format!("198.18.{net}.2"), "lladdr", "02:00:00:00:00:09", "dev", &wan]);
        let socket = UdpSocket::bind(format!("198.18.{net}.1:{PORT}")).expect("the address was just added");
        socket.connect(format!("198.18.{net}.2:{PORT}")).expect("there is a route");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("the time is not zero");
        Router { link: Host::at(bed, "b1"), wan, socket, net }
    }

    fn start(&self, dir: &Path, arguments: &[&str]) -> Live {
        Live::start_at(Command::new(NET), dir, &["--wan", &self.wan], arguments)
    }

    /// Sends numbered datagrams from the router to the link.
    fn send(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let datagram = [&number.to_be_bytes()[..], &[0; 200]].concat();
            self.socket.send(&datagram).expect("the queue of the socket has space");
        }
    }

    /// The numbers of datagrams that have left on the link, `enough` of them, or as many as leave within
    /// a while.
    fn sent(&mut self, enough: usize, within: Duration) -> Vec<u32> {
        let frames = self.link.receive(enough, within);
        let own = frames.iter().filter(|frame| frame[..6] == HOST && frame[12..14] == [8, 0]);
        own.map(|frame| u32::from_be_bytes(frame[42..46].try_into().expect("four bytes"))).collect()
    }

    /// The host behind the link sends numbered datagrams to the router.
    fn arrive(&mut self, numbers: std::ops::Range<u32>) {
        let to = std::fs::read_to_string(format!("/sys/class/net/{}/address", self.wan)).expect("it exists");
        let to: Vec<u8> =
            to.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect();
        let frames: Vec<Vec<u8>> = numbers.map(|number| datagram(&to, self.net, number)).collect();
        self.link.send(&frames);
    }

    /// The numbers of datagrams that the router's socket has received, `enough` of them.
    fn received(&self, enough: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut bytes = [0; 500];
        while numbers.len() < enough
            && let Ok(length) = self.socket.recv(&mut bytes)
        {
            assert_eq!(length, 204);
            numbers.push(u32::from_be_bytes(bytes[..4].try_into().expect("four bytes")));
        }
        numbers
    }

    /// Nothing more arrives at the socket.
    fn receives_no_more(&self) {
        self.socket.set_read_timeout(Some(Duration::from_millis(200))).expect("the time is not zero");
        assert_eq!(self.received(1), Vec::<u32>::new());
        self.socket.set_read_timeout(Some(Duration::from_secs(5))).expect("the time is not zero");
    }

    /// The virtual interfaces of the detour that exist.
    fn pair(&self) -> Vec<String> {
        let number = std::fs::read_to_string(format!("/sys/class/net/{}/ifindex", self.wan));
        let number = number.expect("it exists");
        let names = [format!("gw{}", number.trim()), format!("gw{}-stack", number.trim())];
        names.into_iter().filter(|name| Path::new("/sys/class/net").join(name).exists()).collect()
    }
}

/// An Ethernet frame with a UDP datagram of 204 bytes, without a UDP checksum (RFC 768).
fn datagram(to: &[u8], net: u8, number: u32) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 232, 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, net, 2, 198, 18, net, 1];
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    let [port, length] = [PORT, 212].map(u16::to_be_bytes);
    let udp = [&port[..], &port, &length, &[0, 0]].concat();
    [to, &HOST, &[8, 0], &header, &udp, &number.to_be_bytes(), &[0; 200]].concat()
}

/// Frames of both directions pass the discipline once each, and the link as usual after the end.
#[test]
fn frames_of_both_directions_take_the_detour() {
    let Some(bed) = Bed::build("w") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut router = Router::build(&bed, 1);
    let settings = ["--rate", "50mbit", "--rate-reverse", "20mbit", "--qdisc", "fifo limit 1000p", "--json"];
    let mut live = router.start(dir.path(), &settings);
    assert_eq!(router.pair().len(), 2);
    router.send(0..100);
    assert_eq!(router.sent(100, Duration::from_secs(5)), Vec::from_iter(0..100));
    router.arrive(0..100);
    assert_eq!(router.received(100), Vec::from_iter(0..100));
    router.receives_no_more();
    live.signal("-TERM");
    let (code, out, errors) = live.end();
    assert_eq!(code, Some(0), "{errors}");
    let statistics: serde_json::Value = serde_json::from_str(&out).unwrap();
    for direction in statistics["directions"].as_array().expect("there are two") {
        assert_eq!(direction["sent"]["packets"], 100, "{out}");
    }
    assert_eq!(router.pair(), Vec::<String>::new());
    router.send(100..110);
    assert_eq!(router.sent(10, Duration::from_secs(5)), Vec::from_iter(100..110));
    router.arrive(100..110);
    assert_eq!(router.received(10), Vec::from_iter(100..110));
}

/// The discipline and the rate decide, as between two interfaces: a short queue drops most of a burst.
#[test]
fn a_burst_of_the_router_is_queued_and_dropped() {
    let Some(bed) = Bed::build("x") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut router = Router::build(&bed, 2);
    let mut live = router.start(dir.path(), &["--rate", "1mbit", "--qdisc", "fifo limit 10p", "--json"]);
    // 246 bytes take 2 ms, and the burst less.
    router.send(0..200);
    let sent = router.sent(200, Duration::from_secs(1));
    assert!((11..100).contains(&sent.len()), "{sent:?}");
    assert_eq!(sent[..11], Vec::from_iter(0..11), "one is on the link, and ten are in the queue");
    live.signal("-TERM");
    let (_, out, _) = live.end();
    let statistics: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(statistics["directions"][0]["dropped"]["packets"], 200 - sent.len(), "{out}");
}

/// If the program is killed, the kernel leads frames past it at once.
#[test]
fn a_killed_program_does_not_interrupt_the_link() {
    let Some(bed) = Bed::build("y") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut router = Router::build(&bed, 3);
    let mut live = router.start(dir.path(), &["--rate", "50mbit"]);
    router.send(0..10);
    assert_eq!(router.sent(10, Duration::from_secs(5)).len(), 10);
    live.child.kill().unwrap();
    live.child.wait().unwrap();
    router.send(10..20);
    assert_eq!(router.sent(10, Duration::from_secs(5)), Vec::from_iter(10..20));
    router.arrive(0..10);
    assert_eq!(router.received(10), Vec::from_iter(0..10));
    until("the cleanup process removes the pair", || router.pair().is_empty());
}

/// Another process takes the detour over, and no frame of either direction is lost or passes twice.
#[test]
fn another_process_takes_the_detour_over() {
    let Some(bed) = Bed::build("z") else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut router = Router::build(&bed, 4);
    let socket = dir.path().join("s").display().to_string();
    let settings = ["--rate", "5mbit", "--qdisc", "fifo limit 5000p", "--control", &socket];
    let mut running = router.start(dir.path(), &settings);
    let sender = router.socket.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for number in 0..2000_u32 {
            let datagram = [&number.to_be_bytes()[..], &[0; 200]].concat();
            sender.send(&datagram).expect("the queue of the socket has space");
            nap(Duration::from_millis(1));
        }
    });
    let mut sent = Vec::new();
    for round in 0..2 {
        router.arrive(round * 100..round * 100 + 100);
        sent.extend(router.sent(300, Duration::from_secs(20)));
        let next = router.start(dir.path(), &[&settings[..], &["--take-over", &socket]].concat());
        let (code, _, errors) = running.end();
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(router.pair().len(), 2, "the pair belongs to the other process");
        assert_eq!(router.received(100), Vec::from_iter(round * 100..round * 100 + 100));
        running = next;
    }
    sent.extend(router.sent(2000 - sent.len(), Duration::from_secs(30)));
    sending.join().unwrap();
    assert_eq!(sent, Vec::from_iter(0..2000));
    router.receives_no_more();
    // Another kind of bridge is refused, and the running one continues.
    let (a0, b0) = (bed.name("a0"), bed.name("b0"));
    let (code, _, errors) =
        giveway(&["live", "--in", &b0, "--out", &a0, "--control", &socket, "--take-over", &socket]);
    assert_eq!(code, Some(2));
    assert!(errors.contains(&a0), "{errors}");
    running.signal("-TERM");
    assert_eq!(running.end().0, Some(0));
    assert_eq!(router.pair(), Vec::<String>::new());
}

#[test]
fn mistakes_are_explained() {
    let Some(bed) = Bed::build("q") else { return };
    let says = |arguments: &[&str], expected: &str| {
        let (code, _, errors) = giveway(&[&["live"], arguments].concat());
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    };
    let b0 = bed.name("b0");
    says(&["--wan", &b0, "--in", "a"], "cannot be used with");
    says(&["--in", &b0], "--out <IF>");
    says(&["--wan", "no-such-if"], "no interface no-such-if");
    says(&["--wan", "lo"], "lo has no Ethernet frames");
    says(&["--wan", &b0, "--rate", "1mbit", "--qdisc", "trr_sound", "--reserve"], "use --in and --out");
}

/// A setting of a file for systemd.
fn of_systemd(file: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(file);
    let text = std::fs::read_to_string(path).expect("the file exists");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("{file} sets {name}")).to_owned()
}

/// A router's interface needs the capabilities of the unit and its drop-in, and no others.
#[test]
fn the_capabilities_of_the_service_and_its_drop_in_suffice() {
    let Some(bed) = Bed::build("r") else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut router = Router::build(&bed, 5);
    let [own, more] =
        ["giveway-live@.service", "wan.conf"].map(|file| of_systemd(file, "AmbientCapabilities"));
    let command = |names: &str| {
        let names: Vec<String> =
            names.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase()).collect();
        let sets = names.iter().map(|name| format!(",+{name}")).collect::<String>();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=12345", "--regid=12345", "--clear-groups", "--no-new-privs"])
            .args(["inh-caps", "ambient-caps", "bounding-set"].map(|set| format!("--{set}=-all{sets}")))
            .arg(NET);
        command
    };
    let mut live =
        Live::start_at(command(&format!("{own} {more}")), dir.path(), &["--wan", &router.wan], &[]);
    router.send(0..10);
    assert_eq!(router.sent(10, Duration::from_secs(5)), Vec::from_iter(0..10));
    live.signal("-TERM");
    assert_eq!(live.end().0, Some(0));
    assert_eq!(router.pair(), Vec::<String>::new());
    let without = command(&own).args(["live", "--wan", &router.wan, "--duration", "100ms"]).output();
    let errors = String::from_utf8_lossy(&without.expect("setpriv is installed").stderr).into_owned();
    assert!(errors.contains("CAP_BPF"), "{errors}");
    assert_eq!(router.pair(), Vec::<String>::new());
}
