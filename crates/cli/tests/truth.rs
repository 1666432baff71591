//! Workloads that are extracted from captures, compared with what is known: exports of simulations, whose
//! applications a probe observed, and the example, whose programs measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use giveway_capture::Reader;
use giveway_qdisc::{FlowKind, FlowReport, Meta, PortId, Probe, Time};
use giveway_scenario::Scenario;
use giveway_sim::Segment;
use giveway_workload::{CaptureStatistics, Connection, Direction, Extraction, Local, Side, Workload};

/// A home with web users, whose connections carry many objects or one object each, file transfers, and a
/// call. All traffic ends 5 s before the run.
const HOME: &str = r#"
duration = "25 s"
warmup = "0 s"
disciplines = ["fifo limit 10000p"]

[[link]]
from = "home"
to = "isp"
rate = "1 Gbit/s"
delay = "10 ms"
qdisc = "compare"

[record]
port = ["home->isp", "isp->home"]

[[traffic]]
kind = "web"
from = "home"
to = "isp"
users = 4
think = "1 s"
report = "objects"
stop = "20 s"

[[traffic]]
kind = "web"
from = "home"
to = "isp"
users = 2
think = "2 s"
connections = "per_object"
report = "objects"
stop = "20 s"

[[traffic]]
kind = "transfers"
from = "isp"
to = "home"
per_second = 2
size = { lognormal = { mean = "200kb", sigma = 1.5, max = "2mb" } }
stop = "20 s"

[[traffic]]
kind = "audio"
from = "home"
to = "isp"
stop = "20 s"
"#;

/// The connections that a probe observes.
#[derive(Default)]
struct Truth {
    /// Connections by the numbers in their segments, `conn` and `serial`.
    connections: BTreeMap<(u32, u32), Talk>,
    /// Bytes of completed transfers.
    transfers: Vec<u64>,
    unfinished: usize,
    datagrams: usize,
    first: Option<Time>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Talk {
    /// Transmission of the first SYN, in nanoseconds since the first packet.
    start: u64,
    /// Bytes of the client.
    client: u64,
    /// Bytes of the server.
    server: u64,
}

impl Probe<Segment> for Truth {
    fn on_transmission(&mut self, _: PortId, _: &Meta, segment: &Segment, now: Time) {
        let first = *self.first.get_or_insert(now);
        if segment.has(Segment::DATAGRAM) {
            self.datagrams += 1;
            return;
        }
        let start = now.as_ps() / 1000 - first.as_ps() / 1000;
        let talk = self
            .connections
            .entry((segment.conn, segment.serial))
            .or_insert(Talk { start, ..Talk::default() });
        let bytes = if segment.has(Segment::REPLY) { &mut talk.server } else { &mut talk.client };
        // The SYN has sequence number 0, so data begin with 1.
        let end = (segment.seq + u64::from(segment.len)).saturating_sub(1);
        *bytes = (*bytes).max(if segment.len > 0 { end } else { 0 });
    }
    fn on_flow(&mut self, report: &FlowReport) {
        if report.kind == FlowKind::Transfer {
            match report.delivered == report.bytes {
                true => self.transfers.push(report.bytes),
                false => self.unfinished += 1,
            }
        }
    }
}

/// Runs the only trial of a scenario with a probe.
fn observed(text: &str, folder: &Path) -> Truth {
    let scenario = Scenario::parse(text, folder.to_owned()).expect("it is valid");
    let mut truth = Truth::default();
    let network = scenario.network().expect("its backend is a network");
    network.run(&scenario.trials()[0], &mut truth, &|_| true).expect("it is not stopped");
    truth
}

/// Runs the scenario with the program, and extracts the workload from its export.
fn extracted(text: &str, folder: &Path) -> (Workload, CaptureStatistics, Local) {
    std::fs::write(folder.join("run.toml"), text).unwrap();
    let mut giveway = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let run = giveway.args(["run", "run.toml", "--quiet", "--export", "run.pcapng"]).current_dir(folder);
    let output = run.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut extraction = Extraction::default();
    for packet in Reader::open(folder.join("run.pcapng")).unwrap() {
        extraction.packet(&packet.unwrap());
    }
    let (local, _) = extraction.guess().expect("the addresses determine it");
    let (workload, seen) = extraction.finish(&local);
    (workload, seen, local)
}

/// Replays a workload over a fast link, and extracts the workload from the capture of the replay.
fn replayed(workload: &Workload, folder: &Path) -> Workload {
    let mut file = Vec::new();
    workload.write(&mut file).unwrap();
    std::fs::write(folder.join("workload.jsonl"), file).unwrap();
    let (found, seen, _) = extracted(REPLAY, folder);
    assert_eq!((seen.missed, seen.unanswered, seen.strays, seen.open_before), (0, 0, 0, 0));
    found
}

/// The scenario of the replay, as `giveway compare` writes it.
const REPLAY: &str = r#"
duration = "40 s"
warmup = "0 s"
phase = "exact"
disciplines = ["fifo limit 10000p"]

[[link]]
from = "home"
to = "isp"
rate = "1 Gbit/s"
delay = "0 s"
qdisc = "compare"

[record]
port = ["home->isp", "isp->home"]

[[traffic]]
kind = "applications"
from = "home"
to = "isp"
file = "workload.jsonl"
"#;

/// Checks that two workloads have the same ADUs with the same triggers and epochs. Times may differ by
/// `close` nanoseconds, so connections that start together may have another order. Returns the place of each
/// given connection among the found ones.
fn assert_same(found: &Workload, given: &Workload, close: u64) -> Vec<usize> {
    assert_eq!(found.connections.len(), given.connections.len());
    let adus = |connection: &Connection| -> Vec<_> {
        connection.adus.iter().map(|adu| (adu.side, adu.bytes, adu.trigger)).collect()
    };
    let epochs =
        |connection: &Connection| connection.epochs.iter().map(|epoch| epoch.adus).collect::<Vec<_>>();
    let mut places: Vec<usize> = Vec::new();
    for given in &given.connections {
        let is_same = |found: &Connection| {
            found.start.abs_diff(given.start) <= close
                && (adus(found), epochs(found)) == (adus(given), epochs(given))
        };
        let place = (0..found.connections.len())
            .find(|at| !places.contains(at) && is_same(&found.connections[*at]))
            .unwrap_or_else(|| panic!("not found: {given:?}"));
        places.push(place);
        let found = &found.connections[place];
        assert_eq!((found.direction, found.begun, found.ended), (given.direction, true, true));
        let rtts = (found.rtt.expect("seen"), given.rtt.expect("given"));
        assert!(rtts.0.abs_diff(rtts.1) <= close, "{rtts:?}");
        for (found, given) in found.adus.iter().zip(&given.adus) {
            assert!(found.think_time.abs_diff(given.think_time) <= close, "{found:?} {given:?}");
        }
    }
    assert_eq!(found.trains.len(), given.trains.len());
    for (found, given) in found.trains.iter().zip(&given.trains) {
        assert_eq!(
            (found.direction, found.packets.len(), found.bytes()),
            (given.direction, given.packets.len(), given.bytes())
        );
        assert!(found.start.abs_diff(given.start) <= close);
    }
    places
}

/// The pages of a workload: connection and epoch of each request.
fn pages(workload: &Workload) -> Vec<Vec<(usize, usize)>> {
    let mut pages: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, connection) in workload.connections.iter().enumerate() {
        for (number, epoch) in connection.epochs.iter().enumerate() {
            if let Some(page) = epoch.page {
                pages.entry(page).or_default().push((at, number));
            }
        }
    }
    pages.into_values().map(sorted).collect()
}

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_unstable();
    items
}

/// The start and the bytes of an extracted connection.
fn talk(connection: &Connection) -> Talk {
    Talk {
        start: connection.start,
        client: connection.bytes(Side::Client),
        server: connection.bytes(Side::Server),
    }
}

#[test]
fn the_workload_of_a_simulated_home_is_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let truth = observed(HOME, folder.path());
    let (workload, seen, local) = extracted(HOME, folder.path());
    assert_eq!(local.to_string(), "10.0.0.1");
    assert_eq!(truth.unfinished, 0, "all transfers are complete");
    assert!(truth.connections.len() > 100, "{}", truth.connections.len());

    // Each connection has the same bytes of both sides, and the same start.
    assert_eq!(workload.connections.len(), truth.connections.len());
    let bytes = |talk: &Talk| (talk.client, talk.server);
    let found: Vec<Talk> = sorted(workload.connections.iter().map(talk));
    let simulated: Vec<Talk> = sorted(truth.connections.values().copied());
    assert_eq!(sorted(found.iter().map(bytes)), sorted(simulated.iter().map(bytes)));
    for (found, simulated) in found.iter().zip(&simulated) {
        assert!(found.start.abs_diff(simulated.start) <= 1_000, "{found:?} {simulated:?}");
    }
    assert_eq!((seen.missed, seen.unanswered, seen.strays, seen.open_before), (0, 0, 0, 0));

    // The round-trip time is 20 ms, and sending a packet takes 12 us.
    for connection in &workload.connections {
        let rtt = connection.rtt.expect("a handshake was seen");
        assert!((20_000_000..=21_000_000).contains(&rtt), "{rtt} ns");
    }

    // Each epoch is an object with its request, or a transfer.
    let heavier = |connection: &Connection| -> Vec<u64> {
        let of = |adus: &[giveway_workload::Adu], side| -> u64 {
            adus.iter().filter(|adu| adu.side == side).map(|adu| adu.bytes).sum()
        };
        let epochs = connection.epochs_with_adus();
        epochs
            .map(
                |(_, adus)| {
                    if of(adus, Side::Server) > 0 { of(adus, Side::Server) } else { of(adus, Side::Client) }
                },
            )
            .collect()
    };
    let found = sorted(workload.connections.iter().flat_map(heavier));
    let simulated = sorted(truth.transfers);
    assert_eq!(found.len(), simulated.len(), "the number of epochs");
    assert_eq!(found, simulated);

    // The call has all its packets.
    assert_eq!(workload.trains.len(), 1);
    let train = &workload.trains[0];
    assert_eq!(
        (train.direction, train.group.as_str(), train.packets.len()),
        (Direction::Up, "voice-like", truth.datagrams)
    );
}

/// A workload that is replayed and extracted again is the same. Times differ because packets queue at the
/// link: at 10 Gbit/s, by 1.2 us for each packet that leaves together with others.
#[test]
fn a_replayed_workload_is_extracted_again() {
    let folder = tempfile::tempdir().unwrap();
    let (workload, ..) = extracted(HOME, folder.path());
    let found = replayed(&workload, folder.path());
    let places = assert_same(&found, &workload, 1_000_000);
    let there = |page: Vec<(usize, usize)>| sorted(page.into_iter().map(|(at, epoch)| (places[at], epoch)));
    let (found, given) = (pages(&found), pages(&workload));
    let (count, again) =
        (given.len(), given.into_iter().map(there).filter(|page| found.contains(page)).count());
    // Six users are behind one address, so pages overlap and have two readings: 36 of 48 are found again.
    assert!(4 * again >= 3 * count, "{again} of {count}");
}

/// Every kind of trigger: servers that send first, think times of both sides, pauses, uploads, and both
/// directions. A pause of at most 40 ms within the data of one side would be hidden by the delayed
/// acknowledgement, and the two ADUs would be one.
#[test]
fn every_kind_of_adu_is_extracted_again() {
    let tcp = |start: u64, way: &str, rtt: u64, writes: &[(&str, u64, &str, u64)], exchanges: &[u32]| {
        let writes: Vec<String> = writes
            .iter()
            .map(|(side, bytes, cue, ms)| {
                format!(r#"{{"side":"{side}","bytes":{bytes},"cue":{cue},"pause":{}}}"#, ms * 1_000_000)
            })
            .collect();
        let exchanges: Vec<String> =
            exchanges.iter().map(|writes| format!(r#"{{"writes":{writes},"took":0}}"#)).collect();
        format!(
            r#"{{"tcp":{{"start":{},"way":"{way}","rtt":{},"group":"tcp 80","writes":[{}],"exchanges":[{}]}}}}"#,
            start * 1_000_000,
            rtt * 1_000_000,
            writes.join(","),
            exchanges.join(",")
        )
    };
    let lines = [
        r#"{"giveway_workload":1,"span":10000000000}"#.to_owned(),
        // One connection starts every 100 ms, so that their packets do not queue.
        tcp(
            0,
            "up",
            20,
            &[("client", 300, "{\"peer\":0}", 12), ("server", 100_000, "{\"peer\":300}", 50)],
            &[2],
        ),
        tcp(
            100,
            "up",
            40,
            &[
                ("server", 80, "{\"peer\":0}", 5),
                ("client", 30, "{\"peer\":80}", 9),
                ("server", 1460, "{\"peer\":30}", 0),
            ],
            &[1, 2],
        ),
        tcp(
            200,
            "up",
            30,
            &[("client", 2_000_000, "{\"peer\":0}", 0), ("server", 90, "{\"peer\":2000000}", 3)],
            &[2],
        ),
        tcp(
            300,
            "down",
            60,
            &[
                ("client", 300, "{\"peer\":0}", 0),
                ("server", 14_600, "{\"peer\":300}", 0),
                ("client", 300, "{\"peer\":14600}", 200),
                ("server", 777, "{\"peer\":600}", 2),
            ],
            &[2, 2],
        ),
        tcp(
            400,
            "up",
            30,
            &[
                ("client", 300, "{\"peer\":0}", 0),
                ("server", 5_000, "{\"peer\":300}", 0),
                ("server", 700, "\"own\"", 300),
                ("server", 70, "\"own\"", 2_000),
            ],
            &[3, 1],
        ),
        tcp(
            500,
            "up",
            30,
            &[
                ("client", 300, "{\"peer\":0}", 0),
                ("client", 200, "\"own\"", 100),
                ("server", 700, "{\"peer\":500}", 0),
            ],
            &[3],
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut given = Workload::read(lines.join("\n").as_bytes()).unwrap();
    let found = replayed(&given, folder.path());
    // Connections to port 80 get pages, which the given workload does not have.
    for epoch in given.connections.iter_mut().flat_map(|connection| &mut connection.epochs) {
        epoch.page = None;
    }
    let mut found = found;
    for epoch in found.connections.iter_mut().flat_map(|connection| &mut connection.epochs) {
        epoch.page = None;
    }
    assert_same(&found, &given, 1_000_000);
}

// -- the example, captured from real hosts ----------------------------------------------------------

/// Completion times of the replayed example.
#[derive(Default)]
struct Observed {
    /// Start and duration of each epoch towards the home, in seconds.
    down: Vec<(f64, f64)>,
    /// Bytes and duration of the largest upload, the duration in seconds.
    upload: Option<(u64, f64)>,
    /// Bytes and 99th percentile of the upstream delay of the call, the delay in seconds.
    call: Option<(u64, f64)>,
}

impl Probe<Segment> for Observed {
    fn on_flow(&mut self, report: &FlowReport) {
        // Node 0 is the home.
        let took = report.end.since(report.start).as_s();
        match (report.kind, report.to) {
            (FlowKind::Transfer, 0) => self.down.push((report.start.as_s(), took)),
            (FlowKind::Transfer, _) if self.upload.is_none_or(|(most, _)| most < report.bytes) => {
                self.upload = Some((report.bytes, took));
            }
            (FlowKind::Datagrams, to) if to != 0 && self.call.is_none_or(|(most, _)| most < report.bytes) => {
                self.call = Some((report.bytes, report.delay_p99.as_s()));
            }
            _ => {}
        }
    }
}

fn quantile(times: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut times: Vec<f64> = times.into_iter().collect();
    times.sort_by(f64::total_cmp);
    times[((times.len() - 1) as f64 * share).round() as usize]
}

/// The ends of the 95 % interval of a quantile: two values of the sample, by the binomial distribution of the
/// number of values below the quantile.
fn interval(times: impl IntoIterator<Item = f64>, share: f64) -> (f64, f64) {
    let mut times: Vec<f64> = times.into_iter().collect();
    times.sort_by(f64::total_cmp);
    let count = times.len() as f64;
    let spread = 1.96 * (count * share * (1.0 - share)).sqrt();
    let at = |rank: f64| times[(rank.max(0.0) as usize).min(times.len() - 1)];
    (at((count * share - spread).floor()), at((count * share + spread).ceil()))
}

/// The example was captured at a link of 2 Mbit/s upstream, with a queue of 150 kB, and 16 Mbit/s downstream.
/// A replay over such a link has the same completion times: a quantile is at most 10 % outside the 95 %
/// interval of the captured one, since the capture is a sample of a few hundred requests.
#[test]
fn the_replayed_example_has_the_measured_times() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().unwrap();
    let mut giveway = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let compare = giveway.arg("compare").arg(example.join("home-uplink.pcapng"));
    let compare =
        compare.args(["--rate-up", "2mbit", "--rate-down", "16mbit", "--qdisc", "fifo limit 150000b"]);
    let output =
        compare.args(["--seeds", "5", "--quiet", "--out", "out"]).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = folder.path().join("out");
    let text = std::fs::read_to_string(kept.join("scenario.toml")).unwrap();
    let scenario = Scenario::parse(&text, kept.clone()).expect("it was just run");
    let runs: Vec<Observed> = scenario
        .trials()
        .iter()
        .map(|trial| {
            let mut observed = Observed::default();
            scenario.network().unwrap().run(trial, &mut observed, &|_| true).expect("it is not stopped");
            observed
        })
        .collect();
    assert_eq!(runs.len(), 5);

    let file = std::io::BufReader::new(std::fs::File::open(kept.join("workload.jsonl")).unwrap());
    let workload = Workload::read(file).unwrap();
    let mut captured: Vec<(f64, f64)> = Vec::new();
    let mut upload = (0, 0.0);
    for connection in &workload.connections {
        for (epoch, adus) in connection.epochs_with_adus() {
            let of = |side| adus.iter().filter(|adu| adu.side == side).map(|adu| adu.bytes).sum();
            let (request, response): (u64, u64) = (of(Side::Client), of(Side::Server));
            let took = epoch.took as f64 / 1e9;
            // A connection carries one page, so its start determines the phase.
            match request > response {
                false if epoch.whole => captured.push((connection.start as f64 / 1e9, took)),
                true if request > upload.0 => upload = (request, took),
                _ => {}
            }
        }
    }
    let measured: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(example.join("home-uplink.json")).unwrap()).unwrap();
    // The measured one-way delay includes the 15 ms of the path, which the simulation of a train does not.
    let metrics = &measured["results"][0]["metrics"];
    let call = metrics["src.call-up.delay_p99_s"]["mean"].as_f64().unwrap() - 0.015;

    let simulated: Vec<(f64, f64)> = runs.iter().flat_map(|run| run.down.clone()).collect();
    let mean = |of: &dyn Fn(&Observed) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    const TOLERANCE: f64 = 0.1;
    // Name, captured value, its interval, simulated value.
    let mut lines: Vec<(String, f64, (f64, f64), f64)> = Vec::new();
    for (phase, from, to) in
        [("all", 0.0, 100.0), ("before", 0.0, 8.0), ("during", 8.0, 28.0), ("after", 28.0, 100.0)]
    {
        let of = |times: &[(f64, f64)]| -> Vec<f64> {
            let within = times.iter().filter(|(start, _)| (from..to).contains(start));
            within.map(|(_, took)| *took).collect()
        };
        let (captured, simulated) = (of(&captured), of(&simulated));
        for (name, share) in [("25 %", 0.25), ("median", 0.5), ("75 %", 0.75)] {
            let [captured_time, simulated_time] =
                [&captured, &simulated].map(|times| quantile(times.iter().copied(), share));
            let interval = interval(captured.iter().copied(), share);
            lines.push((format!("{phase}, {name}"), captured_time, interval, simulated_time));
        }
    }
    let mut once = |name: &str, captured: f64, simulated: f64| {
        lines.push((name.to_owned(), captured, (captured, captured), simulated));
    };
    once("upload", upload.1, mean(&|run| run.upload.expect("there is one").1));
    once("call up, 99 %", call, mean(&|run| run.call.expect("there is one").1));
    let count = |times: &[(f64, f64)]| times.iter().filter(|(start, _)| (8.0..28.0).contains(start)).count();
    assert_eq!((captured.len(), count(&captured)), (222, 68));
    let mut table = format!("{} epochs captured, {} simulated\n", captured.len(), simulated.len());
    let mut wrong = 0;
    for (name, captured, (least, most), simulated) in lines {
        let fits = (least * (1.0 - TOLERANCE)..=most * (1.0 + TOLERANCE)).contains(&simulated);
        let verdict = if fits { "" } else { "  <- beyond the tolerance" };
        wrong += usize::from(!fits);
        table +=
            &format!("{name:14} {captured:8.3} s ({least:.3} to {most:.3}) {simulated:8.3} s{verdict}\n");
    }
    println!("{table}");
    assert_eq!(wrong, 0, "{table}");
}
