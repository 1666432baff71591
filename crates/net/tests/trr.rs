//! Figures 10 and 11 of the TRR paper (Chen and Chen, about 2000) with real packets through `giveway live`:
//! the throughput of the link, the delay of a reserved flow among greedy ones, and the distribution of the
//! excess rate. The tests take minutes and need an idle machine, so they are run explicitly:
//!
//! ```sh
//! cargo test --release -p giveway-net --test all -- trr:: --ignored --nocapture --test-threads 1
//! ```
//!
//! `GIVEWAY_PAPER_SECONDS` is the measurement interval of each trial (3 s by default), and
//! `GIVEWAY_PAPER_WARMUP` the time before it (4 s; the buffer is full after 3.3 s). With 50 and 10 the times
//! match `papers/trr/delay.toml`. With 10,007 slots the interval should be some tens of seconds: a flow that
//! the pointer has passed waits for a revolution, about 10 s. During this time most of its packets are pushed
//! out, and afterwards it keeps up for a while.
//!
//! # Setting
//! The setting comes from `papers/trr`: packets of 800 bytes, a buffer of 4,000 packets, a probe that has
//! reserved 1 of 10 Mbit/s and never sends faster, and greedy flows that have reserved the rest and send at
//! twice that rate. There are differences:
//! - The link counts the Ethernet header, so a packet has 814 bytes, also in rates.
//! - `drr` has equal quanta, since frames have no class. Its bound follows from its turns. There is no bound
//!   if the turns give the probe less than its rate.
//! - A slot of `trr_sound` is the transmission time of a packet of 1,500 bytes, which a bridge must expect.
//! - In the test of the excess, there is no third flow that has ended; half of the link was never reserved.
//!
//! A delay is the time from the kernel's timestamp of a packet that enters the router until its last bit is
//! on the wire. The measured end is the transmission of the first bit, and the time on the link is added. The
//! bound is for a flow that never sends two packets at once, and does not include the lateness of the bridge.
//!
//! The tests print their results. They fail only if a discipline with a guarantee loses a packet of the
//! probe, if a delay exceeds its bound by more than the measured lateness of the bridge, or if the test has
//! missed frames.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_disciplines::Spec;
use giveway_live::clock::wall_ns;
use giveway_live::station::EVERYONE;
use giveway_qdisc::{Guarantee, LinkContext, Rate, Streams};
use giveway_reserve::{EtherTypes, Kind, Message, Tuple};
use giveway_theory::latency_rate::{Flow, Scheduler, Server};
use serde_json::Value;

use crate::bed::{Bed, Host};
use crate::streams::{Live, Stream, Taps, Watched, env_number, flood, keep_to_the_rate, lateness, number};

/// IP length of a packet in bytes, as the paper recommends.
const BYTES: u16 = 800;
/// Limit of every discipline here, in packets.
const LIMIT: u64 = 4000;
/// Longest sojourn time with `trr`: a revolution of 10,007 slots of 1 ms, and a reserve.
const REVOLUTION: Duration = Duration::from_secs(11);
/// Source port of the probe.
const PROBE: u16 = 5004;
/// Source port of the first greedy flow.
const GREEDY: u16 = 7000;

/// A discipline, a link and its traffic.
struct Trial<'a> {
    spec: &'a str,
    link: Rate,
    /// The flow that never exceeds its reservation.
    probe: Option<Stream>,
    /// Flows of equal rates with consecutive ports.
    greedy: Vec<Stream>,
    /// Offered rate of all greedy flows together.
    offered: Rate,
}

/// Result of a trial.
struct Measured {
    /// Packets of every flow, the probe first.
    watched: Vec<Watched>,
    /// The measurement interval, as Unix time in nanoseconds.
    window: Range<u64>,
    /// Number of frames that the test has missed.
    missed: u64,
    /// Final statistics of the bridge.
    statistics: Value,
}

impl Trial<'_> {
    fn spec(&self) -> Spec {
        self.spec.parse().expect("it is one")
    }

    fn flows(&self) -> Vec<Stream> {
        self.probe.iter().chain(&self.greedy).copied().collect()
    }

    fn run(&self, bed: &Bed) -> Measured {
        let warmup = Duration::from_secs(env_number("GIVEWAY_PAPER_WARMUP", 4));
        let measured = Duration::from_secs(env_number("GIVEWAY_PAPER_SECONDS", 3));
        // Reservations are not refreshed, so they live longer than the trial.
        let lifetime = format!("{}s", (warmup + measured).as_secs() + 600);
        let dir = tempfile::tempdir().expect("there is room for a folder");
        // All sockets are opened before anything is sent, since opening a ring of this size stalls the
        // machine.
        let (mut requester, flooder, prober) =
            (Host::at(bed, "a0"), Host::at(bed, "a0"), Host::at(bed, "a0"));
        let mut taps = Taps::open(bed);

        let rate = self.link.to_string();
        let all = ["--reserve-share", "100%", "--reserve-owner-share", "100%", "--reserve-open", "100%"];
        let flags = [&["--reserve", "--reserve-lifetime", &lifetime][..], &all].concat();
        let flags = if self.reserves() { &flags[..] } else { &[] };
        let live =
            Live::start(bed, dir.path(), &[&["--rate", &rate, "--qdisc", self.spec][..], flags].concat());
        let mut watched: Vec<Watched> = self.flows().into_iter().map(Watched::of).collect();
        if self.reserves() {
            watched.iter().for_each(|of| reserve(&mut requester, &of.stream));
            assert_eq!(live.listed().len(), watched.len(), "every flow has its reservation");
        }

        let stop = Arc::new(AtomicBool::new(false));
        let ports = GREEDY..GREEDY + self.greedy.len() as u16;
        let flooding = flood(flooder, ports, 1, BYTES, self.offered, &stop);
        let probing = self.probe.map(|probe| keep_to_the_rate(prober, probe, &stop));
        taps.watch(&mut watched, warmup);
        let begin = wall_ns();
        taps.watch(&mut watched, measured);
        let window = begin..wall_ns();
        // Traffic continues until the packets of the interval have left. Lost packets never leave, so there
        // is a limit.
        self.await_probe(&mut taps, &mut watched, &window, REVOLUTION);
        stop.store(true, Ordering::Relaxed);
        flooding.join().expect("it sends");
        if let Some(probing) = probing {
            probing.join().expect("it sends");
        }
        // Then the backlog leaves.
        let packet = watched[0].stream.counted();
        let all = Duration::from_nanos(self.link.time_for(LIMIT * packet).as_ps() / 1000);
        self.await_probe(&mut taps, &mut watched, &window, all);
        Measured { watched, window, missed: taps.missed(), statistics: live.end() }
    }

    /// Waits until all packets of the probe in the interval have left, or are known to be lost, at most for
    /// this time.
    fn await_probe(&self, taps: &mut Taps, watched: &mut [Watched], window: &Range<u64>, patience: Duration) {
        let in_order = self.spec().properties(&LinkContext::new(self.link, Streams::new(0))).keeps_flow_order;
        let step = Duration::from_millis(100);
        for _ in 0..=patience.as_millis() / step.as_millis() {
            taps.watch(watched, step);
            let of = &watched[0];
            if self.probe.is_none() || !of.waits(window) || in_order && of.is_past(window) {
                return;
            }
        }
    }

    /// True if the discipline honours reservations.
    fn reserves(&self) -> bool {
        !["fifo", "drr"].contains(&self.spec().name())
    }

    /// The latency Θ of the first flow in seconds, and true if it follows from its reservation; `None` if the
    /// discipline has no bound. There is no best-effort traffic.
    fn latency(&self) -> Option<(f64, bool)> {
        let (spec, flows) = (self.spec(), self.flows());
        let context = LinkContext::new(self.link, Streams::new(0));
        let link = self.link.as_bit() as f64;
        let server = |rate: &dyn Fn(&Stream) -> f64| Server {
            link,
            flows: flows.iter().map(|of| Flow { rate: rate(of), packet: of.counted() as f64 }).collect(),
            best_effort: 0.0,
        };
        let reserved = |scheduler| {
            let server = server(&|of| of.rate.as_bit() as f64);
            server.latency(scheduler, 0).map(|theta| (theta, true))
        };
        match spec.properties(&context).guarantee {
            Guarantee::Reserved => reserved(Scheduler::Wfq),
            Guarantee::ReservedInSlots(width) => reserved(Scheduler::TimestampRoundRobin(width.as_s())),
            Guarantee::Turns => {
                let share = link / flows.len() as f64;
                let quanta = vec![spec.turn(0, &context).0 as f64; flows.len()];
                let theta = server(&|_| share).latency(Scheduler::DrrThatForgets(&quanta), 0)?;
                (share >= flows[0].rate.as_bit() as f64).then_some((theta, false))
            }
            _ => None,
        }
    }
}

/// Reserves the rate of a flow. The reservation has no end and is not refreshed.
fn reserve(host: &mut Host, flow: &Stream) {
    let tuple =
        Tuple { from: [10, 0, 0, 1], to: [10, 0, 0, 2], from_port: flow.port, to_port: 6000, protocol: 17 };
    let sender = [2, 0, 0, 0, 0, 8];
    let (rate, finish) = (flow.rate, u64::MAX);
    let start = Message { kind: Kind::Start, tuple, rate, start: 0, finish, sender, number: 1 };
    let kind = EtherTypes::LOCAL.start.to_be_bytes();
    host.send(&[[&EVERYONE[..], &sender, &kind, &start.encode(None)].concat()]);
    let answers = host.receive(1, Duration::from_secs(2));
    let answer = answers.first().and_then(|frame| Message::decode(&frame[14..], None).ok());
    assert_eq!(answer, Some(start.answer(None)));
}

impl Measured {
    /// Throughput of these flows in Mbit/s, as the link counts.
    fn throughput(&self, of: &[Watched]) -> f64 {
        let bytes: u64 = of.iter().map(|of| of.left_within(&self.window) * of.stream.counted()).sum();
        8e3 * bytes as f64 / (self.window.end - self.window.start) as f64
    }

    /// Cells of a table with the lateness of the bridge.
    fn lateness_cells(&self) -> String {
        let ms = |value: &Value| number(value) * 1e3;
        format!(
            "{:.3} | {:.3} | {:.3} | {}",
            ms(&self.statistics["lateness_s"]["p999"]),
            ms(&self.statistics["lateness_s"]["max"]),
            ms(&self.statistics["longest_stall_s"]),
            self.statistics["lost"]["ring"],
        )
    }
}

/// Headings of the cells with the lateness of the bridge.
const LATENESS: &str = "lateness p99.9, ms | max, ms | longest stall, ms | ring drops";

/// Prints the heading of a table.
fn head(columns: &str) {
    println!("\n| {columns} |\n|{}", "---|".repeat(columns.split('|').count()));
}

/// Formats seconds as milliseconds; a dash for `None`.
fn ms(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{:.3}", seconds * 1e3))
}

/// Figure 10 (left) and figure 11 of the paper.
#[test]
#[ignore = "takes minutes"]
fn a_reserved_flow_among_greedy_ones_on_real_packets() {
    let Some(bed) = Bed::build("p") else { return };
    let link = Rate::mbit(10);
    let probe = Stream { port: PROBE, bytes: BYTES, rate: Rate::mbit(1) };
    head(&format!(
        "discipline | greedy flows | link, Mbit/s | share | probe: packets | lost | mean delay, ms | p99, ms | largest, ms | bound, ms | {LATENESS}"
    ));
    let mut broken = Vec::new();
    for spec in [
        "fifo limit 4000p",
        "drr limit 4000p",
        "wfq limit 4000p",
        "tss limit 4000p",
        "trr slots 101 unit 1ms limit 4000p",
        "trr slots 10007 unit 1ms limit 4000p",
        "trr_sound limit 4000p",
    ] {
        for greedy in [8, 32, 128u16] {
            let rate = Rate::bit((link.as_bit() - probe.rate.as_bit()) / u64::from(greedy));
            let trial = Trial {
                spec,
                link,
                probe: Some(probe),
                greedy: (0..greedy).map(|n| Stream { port: GREEDY + n, bytes: BYTES, rate }).collect(),
                offered: Rate::bit(2 * rate.as_bit() * u64::from(greedy)),
            };
            let outcome = trial.run(&bed);
            let bound = trial.latency();
            let of_probe =
                outcome.watched[0].judge(bound.map_or(0.0, |(theta, _)| theta), link, &outcome.window);
            let on_link = link.time_for(probe.counted()).as_s();
            let whole = |delay: Option<f64>| ms(delay.map(|delay| delay + on_link));
            let throughput = outcome.throughput(&outcome.watched);
            println!(
                "| `{spec}` | {greedy} | {throughput:.3} | {:.2} % | {} | {} | {} | {} | {} | {} | {} |",
                throughput * 1e8 / link.as_bit() as f64,
                of_probe.packets,
                of_probe.lost,
                whole(of_probe.mean()),
                whole(of_probe.quantile(0.99)),
                whole(of_probe.quantile(1.0)),
                // The bound is σ/ρ + Θ - L/ρ. The burst σ is one packet L, so the bound is Θ.
                ms(bound.map(|(theta, _)| theta)),
                outcome.lateness_cells(),
            );
            let late = lateness(&outcome.statistics);
            let meets_bound = of_probe.packets > 0 && of_probe.lost == 0 && of_probe.worst <= late;
            if bound.is_some_and(|(_, reserved)| reserved) && !meets_bound {
                broken.push(format!(
                    "{spec}, {greedy} greedy flows: {} of {} lost, the worst {:.3} ms beyond its bound, lateness {:.3} ms",
                    of_probe.lost,
                    of_probe.packets,
                    of_probe.worst * 1e3,
                    late * 1e3
                ));
            }
            if outcome.missed > 0 {
                broken.push(format!("{spec}, {greedy} greedy flows: {} frames missed", outcome.missed));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Figure 10 (right) of the paper.
#[test]
#[ignore = "takes minutes"]
fn the_excess_rate_on_real_packets() {
    let Some(bed) = Bed::build("x") else { return };
    let link = Rate::mbit(8);
    head(&format!(
        "discipline | 3 Mbit/s reserved: throughput, Mbit/s | 1 Mbit/s reserved: throughput, Mbit/s | ratio | together | {LATENESS}"
    ));
    let mut broken = Vec::new();
    for spec in [
        "trr slots 101 unit 1ms limit 4000p",
        "trr slots 10007 unit 1ms limit 4000p",
        "trr_sound limit 4000p",
        "tss limit 4000p",
        "wfq limit 4000p",
        "drr limit 4000p",
    ] {
        let flow = |port, rate| Stream { port, bytes: BYTES, rate };
        let greedy = vec![flow(GREEDY, Rate::mbit(3)), flow(GREEDY + 1, Rate::mbit(1))];
        let trial = Trial { spec, link, probe: None, greedy, offered: Rate::mbit(16) };
        let outcome = trial.run(&bed);
        let [large, small] = [0, 1].map(|at| outcome.throughput(&outcome.watched[at..=at]));
        println!(
            "| `{spec}` | {large:.3} | {small:.3} | {:.2} | {:.3} | {} |",
            large / small,
            large + small,
            outcome.lateness_cells()
        );
        if outcome.missed > 0 {
            broken.push(format!("{spec}: {} frames missed", outcome.missed));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
