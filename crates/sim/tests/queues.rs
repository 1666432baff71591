//! The simulator compared with queueing theory: one link, Poisson arrivals, and the waiting times of
//! textbooks.
//!
//! Each run is divided into batches, which give a 99.9 % confidence interval of the mean. Theory must lie
//! inside it. With 20 comparisons, a correct simulator fails with one set of seeds in fifty; the seeds are
//! fixed.

use crate::support::Lab;
use giveway_qdisc::{Bytes, DropReason, Meta, PortId, Probe, Rate, Rng, Span, Time};
use giveway_sim::engine::SourcePlan;
use giveway_sim::{Net, Segment, Source, StreamId, TcpConfig};

const RATE: Rate = Rate::mbit(8);
/// Mean length: a packet takes a millisecond.
const MEAN_BYTES: f64 = 1000.0;
const MEAN_S: f64 = 0.001;

#[derive(Clone, Copy)]
enum Lengths {
    Exponential,
    Fixed,
    /// A tenth of the packets is ten times as long as the others, which gives a high variance.
    TwoSizes,
}

impl Lengths {
    fn draw(self, rng: &mut Rng) -> u32 {
        let bytes = match self {
            Lengths::Exponential => rng.exponential(MEAN_BYTES),
            Lengths::Fixed => MEAN_BYTES,
            Lengths::TwoSizes => {
                let short = MEAN_BYTES / 1.9;
                if rng.below(10) == 0 { 10.0 * short } else { short }
            }
        };
        (bytes + 0.5).max(1.0) as u32
    }
    /// Second moment of the service time, s².
    fn second_moment(self) -> f64 {
        let s = MEAN_S * MEAN_S;
        match self {
            Lengths::Exponential => 2.0 * s,
            Lengths::Fixed => s,
            Lengths::TwoSizes => (0.9 + 0.1 * 100.0) / (1.9 * 1.9) * s,
        }
    }
}

/// Poisson arrivals. Each is one packet, or a transfer: packets of equal length at the same time, each with
/// its own flow.
struct Poisson {
    arrivals: Rng,
    lengths: Rng,
    mean_gap: f64,
    kind: Arrivals,
    stream: Option<StreamId>,
}

#[derive(Clone, Copy)]
enum Arrivals {
    Packets(Lengths),
    /// Transfers of 1 to 40 packets of 100 bytes, uniformly distributed.
    Transfers,
}

const PIECE: u32 = 100;

impl Source for Poisson {
    fn wake(&mut self, net: &mut Net<'_>) {
        match self.kind {
            Arrivals::Packets(lengths) => {
                let stream = *self.stream.get_or_insert_with(|| net.stream(0, 1));
                net.datagram(stream, lengths.draw(&mut self.lengths));
            }
            Arrivals::Transfers => {
                let stream = net.stream(0, 1);
                for _ in 0..=self.lengths.below(40) {
                    net.datagram(stream, PIECE);
                }
            }
        }
        net.wake_at(net.now() + Span::from_s_f64(self.arrivals.exponential(self.mean_gap)));
    }
}

/// Waiting times in seconds, in order of departure; drops and arrivals.
#[derive(Default)]
struct Log {
    waiting_times: Vec<f64>,
    arrived: u64,
    dropped: u64,
    /// Stream, packet number, arrival and end of the transmission of each packet, for transfers.
    departures: Vec<(u32, u64, Time, Time)>,
}

impl Probe<Segment> for Log {
    fn on_arrival(&mut self, at: PortId, _: &Meta, _: Time) {
        self.arrived += u64::from(at == PortId(0));
    }
    fn on_transmission(&mut self, at: PortId, meta: &Meta, segment: &Segment, now: Time) {
        if at == PortId(0) {
            self.waiting_times.push(now.since(meta.arrived).as_s());
            let done = now + RATE.time_for(u64::from(meta.bytes));
            self.departures.push((segment.conn, segment.seq, meta.arrived, done));
        }
    }
    fn on_drop(&mut self, at: PortId, _: &Meta, _: &Segment, _: DropReason, _: Time) {
        self.dropped += u64::from(at == PortId(0));
    }
}

fn run(spec: &str, kind: Arrivals, load: f64, seconds: u64, seed: u64) -> Log {
    let mut lab = Lab::new(2, seed);
    lab.link(0, 1, RATE, Span::ZERO, spec);
    let mean_work = match kind {
        Arrivals::Packets(_) => MEAN_S,
        Arrivals::Transfers => 20.5 * f64::from(PIECE) * 8.0 / RATE.as_bit() as f64,
    };
    let streams = lab.streams.within("poisson");
    lab.sources.push(SourcePlan::new(
        "poisson",
        Box::new(Poisson {
            arrivals: streams.within("arrivals").rng(),
            lengths: streams.within("lengths").rng(),
            mean_gap: mean_work / load,
            kind,
            stream: None,
        }),
    ));
    let mut log = Log::default();
    lab.run(Time::s(seconds), Time::NEVER, &mut log);
    log
}

/// Mean and half width of the 99.9 % interval over 30 batches (Student's t with 29 degrees of freedom:
/// 3.659).
fn interval(values: &[f64]) -> (f64, f64) {
    const BATCHES: usize = 30;
    let size = values.len() / BATCHES;
    let means: Vec<f64> = values
        .chunks_exact(size)
        .take(BATCHES)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (BATCHES - 1) as f64;
    (mean, 3.659 * (variance / BATCHES as f64).sqrt())
}

fn agrees(name: &str, values: &[f64], theory: f64, most_width: f64) {
    let (mean, half) = interval(values);
    assert!((mean - theory).abs() <= half, "{name}: {mean:.6} ± {half:.6}, theory {theory:.6}");
    // A wide interval would contain any theory.
    assert!(half <= most_width * theory, "{name}: ± {:.1} % is too wide", half / theory * 100.0);
}

#[test]
fn waiting_times_follow_pollaczek_and_khinchine() {
    for (name, lengths) in
        [("M/M/1", Lengths::Exponential), ("M/D/1", Lengths::Fixed), ("M/G/1", Lengths::TwoSizes)]
    {
        for load in [0.3, 0.6, 0.8] {
            let log = run("fifo limit 1000000p", Arrivals::Packets(lengths), load, 2000, 11);
            let theory =
                giveway_theory::queues::mg1_waiting(load / MEAN_S, MEAN_S, lengths.second_moment()).unwrap();
            agrees(&format!("{name} at {load}"), &log.waiting_times, theory, 0.12);
        }
    }
    // The special forms equal the general one.
    let md1 = giveway_theory::queues::md1_waiting(600.0, MEAN_S).unwrap();
    assert!((md1 - giveway_theory::queues::mg1_waiting(600.0, MEAN_S, 1e-6).unwrap()).abs() < 1e-12);
}

/// The source `poisson`: one flow, and four that share the load.
#[test]
fn the_source_poisson_makes_md1() {
    for (load, flows) in [(0.5, 1), (0.8, 4)] {
        let mut lab = Lab::new(2, 11);
        lab.link(0, 1, RATE, Span::ZERO, "fifo limit 1000000p");
        let rate = Rate::bit((RATE.as_bit() as f64 * load) as u64 / u64::from(flows));
        let config = giveway_sim::traffic::poisson::Config { rate, packet: Bytes(MEAN_BYTES as u64), flows };
        lab.source(&config, &[(0, 1)], &TcpConfig::rfc());
        let mut log = Log::default();
        lab.run(Time::s(2000), Time::NEVER, &mut log);
        let theory = giveway_theory::queues::md1_waiting(load / MEAN_S, MEAN_S).unwrap();
        agrees(&format!("M/D/1 at {load} of {flows} flows"), &log.waiting_times, theory, 0.12);
    }
}

#[test]
fn a_full_buffer_loses_the_share_of_mm1k() {
    for (load, capacity) in [(0.8, 5), (0.8, 10), (1.2, 10)] {
        // The packet in transmission does not count toward the limit, so a system of K packets queues K - 1.
        let spec = format!("fifo limit {}p", capacity - 1);
        let mut shares = Vec::new();
        for seed in 0..30 {
            let log = run(&spec, Arrivals::Packets(Lengths::Exponential), load, 100, seed);
            shares.push(log.dropped as f64 / log.arrived as f64);
        }
        agrees(
            &format!("M/M/1/{capacity} at {load}"),
            &shares,
            giveway_theory::queues::mm1k_loss(load, capacity),
            0.12,
        );
    }
}

/// Transfers whose packets arrive at once, each with its own flow, through DRR with a quantum of one packet:
/// processor sharing. A transfer that takes x alone takes x / (1 - load), for any distribution of sizes.
#[test]
fn drr_shares_the_processor() {
    let load = 0.7;
    let log = run(&format!("drr limit 1000000p quantum {PIECE}b"), Arrivals::Transfers, load, 4000, 3);
    let streams = 1 + log.departures.iter().map(|(conn, ..)| *conn).max().unwrap() as usize;
    // Number of packets, arrival and end of each transfer.
    let mut transfers = vec![(0u64, Time::ZERO, Time::ZERO); streams];
    for (conn, _, arrived, done) in &log.departures {
        let transfer = &mut transfers[*conn as usize];
        *transfer = (transfer.0 + 1, *arrived, transfer.2.max(*done));
    }
    for packets in [1u64, 10, 20, 40] {
        let near = transfers.iter().filter(|(n, ..)| *n == packets);
        let responses: Vec<f64> = near.map(|(_, arrived, done)| done.since(*arrived).as_s()).collect();
        let alone = packets as f64 * f64::from(PIECE) * 8.0 / RATE.as_bit() as f64;
        let arrivals = load / (20.5 * f64::from(PIECE) * 8.0 / RATE.as_bit() as f64);
        let sharing = giveway_theory::queues::mg1_processor_sharing_response(
            arrivals,
            20.5 * f64::from(PIECE) * 8.0 / RATE.as_bit() as f64,
            alone,
        )
        .unwrap();
        let (mean, half) = interval(&responses);
        // A packet is not infinitely small: a transfer waits for the packet in transmission, and a turn takes
        // a packet time.
        let piece = f64::from(PIECE) * 8.0 / RATE.as_bit() as f64;
        let most = 2.0 * piece / (1.0 - load);
        assert!(
            mean - half <= sharing + most && sharing <= mean + half + most,
            "{packets} packets: {mean:.6} ± {half:.6}, processor sharing {sharing:.6}"
        );
    }
}
