//! `giveway live --reserve` and `giveway live reserve`, on interfaces that the tests create. Reserved flows
//! keep their rates and delay bounds while best-effort traffic floods the link at ten times its rate.
//!
//! By default the flood takes a few seconds. For ten minutes, on an idle machine:
//!
//! ```sh
//! GIVEWAY_FLOOD_SECONDS=600 cargo test --release -p giveway-net --test all -- reserve:: --nocapture flood
//! ```

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{LinkContext, Rate, Streams};
use giveway_reserve::{Message, Reason};
use giveway_theory::latency_rate::{Flow, Scheduler, Server, delay};

use crate::bed::{Bed, Host, nap};
use crate::streams::{
    EVER, Judged, Live, NET, OVERHEAD, Stream, Taps, Watched, env_number, flood, giveway, keep_to_the_rate,
    lateness, number, signal,
};

#[test]
fn invalid_reservation_flags_are_refused_with_a_correction() {
    let refused = |arguments: &[&str]| {
        let (code, _, errors) = giveway(&[&["live", "--in", "a", "--out", "b"], arguments].concat());
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    let errors = refused(&["--rate", "10mbit", "--reserve"]);
    assert!(errors.contains("fq_codel ignores reservations: set --qdisc to one of "), "{errors}");
    assert!(errors.contains("trr_sound"), "{errors}");
    let reserving = |more: &[&str]| refused(&[&["--qdisc", "trr_sound", "--reserve"], more].concat());
    assert!(reserving(&[]).contains("set --rate, as in --rate 10mbit"));
    let limited = |more: &[&str]| reserving(&[&["--rate", "10mbit"], more].concat());
    assert!(limited(&["--reserve-share", "0%"]).contains("write for example 95%"));
    assert!(limited(&["--reserve-lifetime", "10ms"]).contains("at least 1s"));
    assert!(limited(&["--reserve-open", "0%"]).contains("write for example 50%"));
    assert!(limited(&["--reserve-owner-share", "0%"]).contains("write for example 50%"));
    assert!(limited(&["--reserve-least", "6mbit"]).contains("one machine may reserve here, 4750kbit"));
    assert!(limited(&["--reserve-types", "0x0800"]).contains("is in use by IP, ARP or VLANs"));
    assert!(limited(&["--reserve-key-file", "no.such"]).contains("--reserve-key-file no.such: "));
    assert!(refused(&["--flow-hash", "xor:1000"]).contains("write xor:1009"));
    assert!(refused(&["--reserve-share", "95%"]).contains("--reserve"), "it needs --reserve");
    let tun =
        ["live", "--in", "tun:a", "--out", "tun:b", "--rate", "10mbit", "--qdisc", "trr_sound", "--reserve"];
    let (code, _, errors) = giveway(&tun);
    assert!(code == Some(2) && errors.contains("use two Ethernet interfaces"), "{errors}");

    let flow = ["reserve", "--via", "no0such", "--from", "10.0.0.1:1", "--to", "10.0.0.2:2"];
    let (code, _, errors) = giveway(&[&flow[..], &["--rate", "1mbit"]].concat());
    let refused = errors.contains("no interface no0such") || errors.contains("CAP_NET_RAW");
    assert!(code == Some(2) && refused, "{errors}");
    let (code, _, errors) = giveway(&flow);
    assert!(code == Some(2) && errors.contains("--rate <RATE>"), "{errors}");
    let (code, _, errors) =
        giveway(&[&flow[..], &["--rate", "1mbit", "--start", "@17", "--for", "1s"]].concat());
    assert!(code == Some(2) && errors.contains("would end in the past"), "{errors}");
}

/// A running `giveway live reserve` whose reservation was granted.
struct Client {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Client {
    fn begin(arguments: &[&str]) -> Client {
        let mut child = Command::new(NET)
            .arg("reserve")
            .args(arguments)
            .args(["--repeat", "300ms"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut client = Client { child, out };
        let line = client.line();
        assert!(line.starts_with("granted by "), "{line}");
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it is text");
        line
    }

    /// Sends Ctrl-C. Returns the exit code and the last line of the output.
    fn end(mut self) -> (Option<i32>, String) {
        signal(&self.child, "-INT");
        let line = self.line();
        (self.child.wait().expect("it ends").code(), line)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates two files with different keys.
fn keys(dir: &Path) -> [String; 2] {
    [("key", "000102030405060708090a0b0c0d0e0f"), ("other", "100102030405060708090a0b0c0d0e0f")].map(
        |(name, text)| {
            use std::os::unix::fs::PermissionsExt;
            let file = dir.join(name);
            std::fs::write(&file, text).expect("the folder is ours");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))
                .expect("the file is ours");
            file.display().to_string()
        },
    )
}

/// Requests are granted, refused with the reason, rejected as forged, ended, changed, revoked, and forwarded
/// to the next router.
#[test]
fn requests_are_answered() {
    let Some(bed) = Bed::build("q") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [key, other] = keys(dir.path());
    let all = ["--reserve-key-file", &key, "--reserve-owner-share", "100%"];
    let reserve = [&["--rate", "10mbit", "--qdisc", "trr_sound", "--reserve"][..], &all].concat();
    let live = Live::start(&bed, dir.path(), &reserve);
    let via = bed.name("a0");
    let flow = |port: &'static str| {
        ["reserve", "--via", &via, "--to", "10.0.0.2:6000", "--from", port].map(str::to_owned)
    };
    let ask = |port: &'static str, more: &[&str]| {
        let flow = flow(port);
        let mut words: Vec<&str> = flow.iter().map(String::as_str).collect();
        words.extend(more);
        giveway(&words)
    };
    let mut behind = Host::at(&bed, "b1");

    let (code, out, errors) = ask("10.0.0.1:5004", &["--rate", "9mbit", "--once", "--key-file", &key]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.contains("udp 10.0.0.1:5004 > 10.0.0.2:6000 at 9mbit, until it expires"), "{out}");
    assert_eq!(live.listed(), ["udp 10.0.0.1:5004 > 10.0.0.2:6000"]);
    let passed = behind.receive(1, Duration::from_secs(2));
    assert_eq!(passed.len(), 1, "the next router receives the request");
    assert_eq!(passed[0][12..18], [0x88, 0xb5, b'G', b'W', 2, 1]);

    let (code, out, errors) = ask("10.0.0.1:5006", &["--rate", "501kbit", "--once", "--key-file", &key]);
    assert_eq!((code, &*out), (Some(1), ""));
    assert!(
        errors.contains("the link has too little unreserved rate in that time: request a lower rate"),
        "{errors}"
    );
    assert_eq!(behind.receive(1, Duration::from_millis(200)).len(), 0, "a refused request is not forwarded");

    for wrong in [&["--key-file", &*other][..], &[]] {
        let (code, _, errors) =
            ask("10.0.0.1:5004", &[&["--end", "--tries", "1", "--timeout", "300ms"], wrong].concat());
        assert!(code == Some(1) && errors.contains("no answer: no router on"), "{errors}");
    }
    let shown = live.shown();
    assert_eq!(
        (&shown["messages"]["forged"], &shown["reserved_bps"]),
        (&2.into(), &9_000_000.into()),
        "{shown}"
    );

    // The rate of the link is halved, so the reservation does not fit any more.
    assert_eq!(giveway(&["control", &live.socket, "set", "rate", "5mbit"]).1, "rate is 5mbit\n");
    let shown = live.shown();
    assert_eq!(
        (&shown["messages"]["revoked"], &shown["reservable_bps"]),
        (&1.into(), &4_750_000.into()),
        "{shown}"
    );
    assert!(live.listed().is_empty());

    let (code, ..) = ask("10.0.0.1:5004", &["--rate", "2mbit", "--once", "--key-file", &key]);
    assert_eq!(code, Some(0));
    let (code, out, errors) = ask("10.0.0.1:5004", &["--end", "--key-file", &key]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.starts_with("ended by ") && live.listed().is_empty(), "{out}");

    // A client that is stopped ends its reservation.
    let flow = flow("10.0.0.1:5008");
    let flow: Vec<&str> =
        flow[1..].iter().map(String::as_str).chain(["--rate", "1mbit", "--key-file", &key]).collect();
    let client = Client::begin(&flow);
    assert_eq!(live.listed().len(), 1);
    let (code, line) = client.end();
    assert!(code == Some(0) && line.starts_with("ended by "), "{line}");

    // The next router has no free entry, so the reservation here is released.
    behind.receive(100, Duration::from_millis(200));
    let mut client = Client::begin(&flow);
    let passed = behind.receive(1, Duration::from_secs(2)).remove(0);
    let key = SipHasher::new(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    let request = Message::decode(&passed[14..], Some(&key)).expect("it is the forwarded request");
    let mut answer = [&passed[6..12], &[2, 0, 0, 0, 0, 9, 0x88, 0xb5][..]].concat();
    answer.extend(request.answer(Some(Reason::TableFull)).encode(Some(&key)));
    behind.send(&[answer]);
    assert_eq!(client.child.wait().expect("it ends").code(), Some(1));
    let released = || live.listed().is_empty();
    assert!(
        (0..100).any(|_| released() || {
            nap(Duration::from_millis(20));
            false
        }),
        "{:?}",
        live.listed()
    );

    let statistics = live.end();
    let messages = &statistics["reservations"]["messages"];
    assert_eq!((&messages["ended"], &messages["refused"]), (&3.into(), &1.into()), "{statistics}");
    assert_eq!(statistics["lost"]["ring"], 0);
}

/// Three flows send at their reserved rates, and best-effort traffic at ten times the rate of the link. None
/// of the three loses a packet, and each packet meets the bound of the latency-rate server plus the measured
/// lateness of the bridge. Then one client is killed, and the packets of its flow become best effort.
#[test]
fn reserved_flows_keep_their_bounds_in_a_flood() {
    let Some(bed) = Bed::build("f") else { return };
    let seconds = env_number("GIVEWAY_FLOOD_SECONDS", 3);
    let dir = tempfile::tempdir().unwrap();
    let link = Rate::mbit(10);
    let streams = [(5004, 1000, Rate::mbit(2)), (5006, 500, Rate::mbit(1)), (5008, 200, Rate::kbit(100))]
        .map(|(port, bytes, rate)| Stream { port, bytes, rate });
    let (flooding, ports) = (1200, 7000..7016);
    let live = Live::start(
        &bed,
        dir.path(),
        &["--rate", "10mbit", "--qdisc", "trr_sound", "--reserve", "--reserve-lifetime", "2s"],
    );
    let via = bed.name("a0");
    let mut clients: Vec<Client> = streams
        .iter()
        .map(|stream| {
            let (from, rate) = (format!("10.0.0.1:{}", stream.port), stream.rate.to_string());
            Client::begin(&["--via", &via, "--to", "10.0.0.2:6000", "--from", &from, "--rate", &rate])
        })
        .collect();
    assert_eq!(live.listed().len(), 3);

    let mut taps = Taps::open(&bed);
    let mut watched: Vec<Watched> = streams.iter().map(|stream| Watched::of(*stream)).collect();
    let (stop, stop_flood) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    // All sockets are opened before anything is sent, since opening a ring of this size stalls the machine.
    let mut hosts: Vec<Host> = (0..5).map(|_| Host::at(&bed, "a0")).collect();
    let mut host = || hosts.pop().expect("there are enough");
    let flooded = flood(host(), ports, 16, flooding, Rate::bit(10 * link.as_bit()), &stop_flood);
    let sending: Vec<_> = streams.iter().map(|stream| keep_to_the_rate(host(), *stream, &stop)).collect();
    let mut passed = taps.watch(&mut watched, Duration::from_secs(seconds));
    stop.store(true, Ordering::Relaxed);
    let sent: Vec<u32> = sending.into_iter().map(|sending| sending.join().expect("it sends")).collect();
    passed += taps.watch(&mut watched, Duration::from_millis(500));

    // The client is killed, so its reservation expires. The flood continues, and the flow is one of seventeen
    // that share the unreserved rate.
    clients[0].child.kill().expect("it is ours");
    passed += taps.watch(&mut watched, Duration::from_millis(2500));
    assert_eq!(live.listed(), ["udp 10.0.0.1:5006 > 10.0.0.2:6000", "udp 10.0.0.1:5008 > 10.0.0.2:6000"]);
    let mut orphan = vec![Watched::of(streams[0])];
    let stop = Arc::new(AtomicBool::new(false));
    let sending = keep_to_the_rate(host(), streams[0], &stop);
    passed += taps.watch(&mut orphan, Duration::from_millis(1500));
    stop.store(true, Ordering::Relaxed);
    sending.join().expect("it sends");
    stop_flood.store(true, Ordering::Relaxed);
    let flooded = flooded.join().expect("it sends");
    passed += taps.watch(&mut orphan, Duration::from_millis(1500));
    assert_eq!(taps.missed(), 0, "the test has recorded all packets before and behind the router");
    drop(clients);
    let statistics = live.end();

    // Width of a slot of the discipline: the time of the largest packet of the link.
    let slot = link.time_for(LinkContext::new(link, Streams::new(0)).mtu.0).as_s();
    let flows = streams
        .iter()
        .map(|stream| Flow { rate: stream.rate.as_bit() as f64, packet: stream.counted() as f64 });
    let server = Server {
        link: link.as_bit() as f64,
        flows: flows.collect(),
        best_effort: f64::from(flooding + OVERHEAD),
    };
    let late = lateness(&statistics);
    println!(
        "| flow | packets | lost | p99.9 delay, ms | longest, ms | bound, ms | beyond the packet's own bound, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut broken = Vec::new();
    for (at, of) in watched.iter().enumerate() {
        let theta = server.latency(Scheduler::TimestampRoundRobin(slot), at).expect("they fit");
        let judged = of.judge(theta, link, &EVER);
        let bound = delay(of.stream.counted() as f64, server.flows[at].rate, &[theta]);
        let quantile = |share| judged.quantile(share).expect("a packet left");
        let longest = quantile(1.0);
        println!(
            "| {} of {} bytes | {} | {} | {:.3} | {:.3} | {:.3} | {:+.3} |",
            of.stream.rate,
            of.stream.bytes,
            judged.packets,
            judged.lost,
            quantile(0.999) * 1e3,
            longest * 1e3,
            bound * 1e3,
            judged.worst * 1e3
        );
        let all = (judged.packets, judged.lost) == (sent[at] as usize, 0);
        if !all || judged.worst > late || longest > bound + late {
            broken.push(of.stream.port);
        }
    }
    println!("| best effort, 16 flows | {flooded} | {} | | | none | |", flooded.saturating_sub(passed));
    println!(
        "lateness of the bridge: 99.9 % {:.3} ms, longest {:.3} ms; {} stalls, the longest {:.3} ms, all {:.3} ms; ring drops {}; {seconds} s",
        number(&statistics["lateness_s"]["p999"]) * 1e3,
        number(&statistics["lateness_s"]["max"]) * 1e3,
        statistics["stalls"],
        number(&statistics["longest_stall_s"]) * 1e3,
        number(&statistics["stalled_s"]) * 1e3,
        statistics["lost"]["ring"],
    );
    assert!(
        broken.is_empty(),
        "a packet was lost, or exceeded the bound by more than the lateness of the bridge: {broken:?}"
    );
    assert!(flooded > 5 * passed, "{passed} of {flooded} passed, so the flood was too small");
    assert_eq!(statistics["reservations"]["messages"]["expired"], 1, "{statistics}");

    let theta = server.latency(Scheduler::TimestampRoundRobin(slot), 0).expect("they fit");
    let Judged { packets, lost, worst, .. } = orphan[0].judge(theta, link, &EVER);
    println!(
        "without its reservation: {packets} packets, {lost} lost, the worst {:.0} ms beyond the bound",
        worst * 1e3
    );
    assert!(lost > 0 || worst > 0.05, "{packets} packets still had the service of a reservation");
}
