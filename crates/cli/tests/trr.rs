//! Figures 10 and 11 of the TRR paper (Chen and Chen, about 2000) on real packets: what the link carries, how long a reserved flow waits among
//! greedy ones, and who gets the excess, through `giveway live` between interfaces that the tests make. They take minutes and need a machine that
//! does nothing else, so they are asked for:
//!
//! ```sh
//! cargo test --release -p giveway-cli --test all -- trr:: --ignored --nocapture --test-threads 1
//! ```
//!
//! `GIVEWAY_PAPER_SECONDS` is what is measured of each (3), `GIVEWAY_PAPER_WARMUP` what goes before (4; the buffer is full after 3.3). With 50 and 10
//! it is as long as in `papers/trr/delay.toml`. With 10,007 slots what is measured should be some tens of seconds: a flow that the
//! pointer has passed waits for a revolution, about 10 s, in which most of what it sends is pushed out, and then keeps up for a while.
//!
//! # Setting
//! That of `papers/trr`: packets of 800 bytes, a buffer of 4,000, a probe that has reserved 1 of 10 Mbit/s and never sends faster, and greedy flows
//! that have reserved the rest and send at twice that. What differs:
//! - The link counts the Ethernet header, so that a packet has 814 bytes; rates are of those.
//! - `drr` has equal quanta, since frames have no class; its bound is that of its turns, and there is none where those are fewer than what the probe
//!   needs.
//! - The slots of `trr_sound` are as wide as a packet of 1,500 bytes takes, which a bridge must expect.
//! - Of the excess: there is no third flow that has gone; half of the link was never reserved.
//!
//! Delays are from the kernel's stamp of a packet that comes to the router until its last bit is on the wire: what is seen is when the first one
//! is, and the time on the link is added. The bound is for a flow that never sends two packets at once, and does not know of the lateness of
//! the host.
//!
//! They print what they find, and fail only where a discipline with a guarantee loses a packet of the probe or is later than its bound and the
//! measured lateness of the host, or where the test has not seen everything.

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
use crate::streams::{Live, Stream, Taps, Watched, asked, flood, keep_to_the_rate, lateness, number};

/// The size that the paper recommends, IP length.
const BYTES: u16 = 800;
/// What every discipline here holds.
const LIMIT: u64 = 4000;
/// What 10,007 slots of 1 ms take, when others fill them as the pointer goes, and a little more: so long may a packet of `trr` wait.
const REVOLUTION: Duration = Duration::from_secs(11);
const PROBE: u16 = 5004;
const GREEDY: u16 = 7000;

/// Who sends through which discipline.
struct Trial<'a> {
    spec: &'a str,
    link: Rate,
    /// Keeps to its reservation.
    probe: Option<Stream>,
    /// All send equally much, on ports that follow each other.
    greedy: Vec<Stream>,
    /// What they send together.
    offered: Rate,
}

/// What came of it.
struct Outcome {
    /// Every flow, the probe first.
    watched: Vec<Watched>,
    /// What is measured, in Unix time.
    window: Range<u64>,
    /// How many frames the test has not seen.
    missed: u64,
    told: Value,
}

impl Trial<'_> {
    fn spec(&self) -> Spec {
        self.spec.parse().expect("it is one")
    }

    fn flows(&self) -> Vec<Stream> {
        self.probe.iter().chain(&self.greedy).copied().collect()
    }

    fn run(&self, bed: &Bed) -> Outcome {
        let warmup = Duration::from_secs(asked("GIVEWAY_PAPER_WARMUP", 4));
        let measured = Duration::from_secs(asked("GIVEWAY_PAPER_SECONDS", 3));
        // Longer than anything here takes: nobody repeats a reservation.
        let lifetime = format!("{}s", (warmup + measured).as_secs() + 600);
        let dir = tempfile::tempdir().expect("there is room for a folder");
        // All of them before anything is sent: opening a ring of this size holds the machine up.
        let (mut asker, flooder, prober) = (Host::at(bed, "a0"), Host::at(bed, "a0"), Host::at(bed, "a0"));
        let mut taps = Taps::open(bed);

        let rate = self.link.to_string();
        let all = ["--reserve-share", "100%", "--reserve-owner-share", "100%", "--reserve-open", "100%"];
        let reserve = [&["--reserve", "--reserve-lifetime", &lifetime][..], &all].concat();
        let reserve = if self.reserves() { &reserve[..] } else { &[] };
        let live =
            Live::start(bed, dir.path(), &[&["--rate", &rate, "--qdisc", self.spec][..], reserve].concat());
        let mut watched: Vec<Watched> = self.flows().into_iter().map(Watched::of).collect();
        if self.reserves() {
            watched.iter().for_each(|of| ask_for(&mut asker, &of.stream));
            assert_eq!(live.listed().len(), watched.len(), "everyone has what was asked for");
        }

        let stop = Arc::new(AtomicBool::new(false));
        let ports = GREEDY..GREEDY + self.greedy.len() as u16;
        let flooding = flood(flooder, ports, 1, BYTES, self.offered, &stop);
        let probing = self.probe.map(|probe| keep_to_the_rate(prober, probe, &stop));
        taps.watch(&mut watched, warmup);
        let begin = wall_ns();
        taps.watch(&mut watched, measured);
        let window = begin..wall_ns();
        // What was measured is under way still, and nothing changes until it is there; but what is lost never is.
        self.await_probe(&mut taps, &mut watched, &window, REVOLUTION);
        stop.store(true, Ordering::Relaxed);
        flooding.join().expect("it sends");
        if let Some(probing) = probing {
            probing.join().expect("it sends");
        }
        // Then the router empties.
        let packet = watched[0].stream.counted();
        let all = Duration::from_nanos(self.link.time_for(LIMIT * packet).as_ps() / 1000);
        self.await_probe(&mut taps, &mut watched, &window, all);
        Outcome { watched, window, missed: taps.missed(), told: live.end() }
    }

    /// Until all packets of the probe that came within a time have left, or those that have not never will.
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

    /// Whether it knows reservations.
    fn reserves(&self) -> bool {
        !["fifo", "drr"].contains(&self.spec().name())
    }

    /// Θ for the first flow, in seconds, and whether that is from its reservation. There is no best effort.
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

/// Reserves for a flow what it has, for as long as the router remembers it.
fn ask_for(host: &mut Host, flow: &Stream) {
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

impl Outcome {
    /// What some flows got, in Mbit/s as the link counts.
    fn got(&self, of: &[Watched]) -> f64 {
        let bytes: u64 = of.iter().map(|of| of.left_within(&self.window) * of.stream.counted()).sum();
        8e3 * bytes as f64 / (self.window.end - self.window.start) as f64
    }

    /// Cells of a table: how late the host was.
    fn host(&self) -> String {
        let ms = |value: &Value| number(value) * 1e3;
        format!(
            "{:.3} | {:.3} | {:.3} | {}",
            ms(&self.told["lateness_s"]["p999"]),
            ms(&self.told["lateness_s"]["max"]),
            ms(&self.told["longest_stall_s"]),
            self.told["lost"]["ring"],
        )
    }
}

const OF_THE_HOST: &str = "host late p99.9, ms | max, ms | longest stall, ms | ring drops";

/// Prints the beginning of a table.
fn head(columns: &str) {
    println!("\n| {columns} |\n|{}", "---|".repeat(columns.split('|').count()));
}

/// Milliseconds, or a dash.
fn ms(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{:.3}", seconds * 1e3))
}

/// Figure 10, left, and figure 11.
#[test]
#[ignore = "takes minutes"]
fn a_reserved_flow_among_greedy_ones_on_real_packets() {
    let Some(bed) = Bed::build("p") else { return };
    let link = Rate::mbit(10);
    let probe = Stream { port: PROBE, bytes: BYTES, rate: Rate::mbit(1) };
    head(&format!(
        "discipline | greedy flows | link, Mbit/s | share | probe: packets | lost | mean delay, ms | p99, ms | largest, ms | bound, ms | {OF_THE_HOST}"
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
            let got = outcome.got(&outcome.watched);
            println!(
                "| `{spec}` | {greedy} | {got:.3} | {:.2} % | {} | {} | {} | {} | {} | {} | {} |",
                got * 1e8 / link.as_bit() as f64,
                of_probe.packets,
                of_probe.lost,
                whole(of_probe.mean()),
                whole(of_probe.quantile(0.99)),
                whole(of_probe.quantile(1.0)),
                // σ/ρ + Θ - L/ρ, with one packet for the burst.
                ms(bound.map(|(theta, _)| theta)),
                outcome.host(),
            );
            let late = lateness(&outcome.told);
            let kept = of_probe.packets > 0 && of_probe.lost == 0 && of_probe.worst <= late;
            if bound.is_some_and(|(_, reserved)| reserved) && !kept {
                broken.push(format!(
                    "{spec}, {greedy} greedy flows: {} of {} lost, the worst {:.3} ms beyond its bound, the host {:.3} ms late",
                    of_probe.lost,
                    of_probe.packets,
                    of_probe.worst * 1e3,
                    late * 1e3
                ));
            }
            if outcome.missed > 0 {
                broken.push(format!("{spec}, {greedy} greedy flows: {} frames unseen", outcome.missed));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Figure 10, right.
#[test]
#[ignore = "takes minutes"]
fn who_gets_the_excess_on_real_packets() {
    let Some(bed) = Bed::build("x") else { return };
    let link = Rate::mbit(8);
    head(&format!(
        "discipline | 3 Mbit/s reserved: gets, Mbit/s | 1 Mbit/s reserved: gets, Mbit/s | ratio | together | {OF_THE_HOST}"
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
        let [large, small] = [0, 1].map(|at| outcome.got(&outcome.watched[at..=at]));
        println!(
            "| `{spec}` | {large:.3} | {small:.3} | {:.2} | {:.3} | {} |",
            large / small,
            large + small,
            outcome.host()
        );
        if outcome.missed > 0 {
            broken.push(format!("{spec}: {} frames unseen", outcome.missed));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
