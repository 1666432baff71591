//! Search for violations of reservations: no packet departs later than the bound of its scheduler, for any
//! traffic of other flows. The search also finds violations of bounds that are known to be false.
//!
//! The test applies the definition of latency-rate servers to packets: with F_k = max(a_k, F_(k-1)) + L_k/ρ,
//! the finish at the flow's own rate, packet k departs by F_k + Θ - L/ρ. A byte takes a microsecond on the
//! link, and rates are in percent of the link, so F times the percentage is a whole number of picoseconds and
//! measurements are exact. The tolerance is a picosecond, for stamps, which are rounded to 2⁻²⁰ ps.
//!
//! `cargo xtask bounds` tries 100,000 cases with each discipline.

use giveway_disciplines::Spec;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};
use giveway_theory::latency_rate::{Flow, Scheduler, Server};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// Rate of the link, at which a byte takes a microsecond.
const LINK: Rate = Rate::mbit(8);
const PS_PER_BYTE: i128 = 1_000_000;
/// Largest packet of the link in bytes, from which the defaults of `width` and `quantum` follow.
const MTU: f64 = 1500.0;

/// Reservations and arrivals.
#[derive(Clone, Debug)]
struct Case {
    /// Reserved rate of each flow in percent of the link, at most 100 in all.
    shares: Vec<u32>,
    /// Arrivals: time since the previous one in bytes on the link, the flow (the last is best effort), and
    /// the length.
    arrivals: Vec<(u32, usize, u32)>,
}

impl Case {
    /// The largest packet of a flow, bytes.
    fn largest(&self, flow: usize) -> u32 {
        self.arrivals.iter().filter(|(_, of, _)| *of == flow).map(|(.., bytes)| *bytes).max().unwrap_or(0)
    }
    /// The case as a server of the crate `theory`.
    fn server(&self) -> Server {
        let flow = |(flow, share): (usize, &u32)| Flow {
            rate: LINK.as_bit() as f64 * f64::from(*share) / 100.0,
            packet: f64::from(self.largest(flow)),
        };
        Server {
            link: LINK.as_bit() as f64,
            flows: self.shares.iter().enumerate().map(flow).collect(),
            best_effort: f64::from(self.largest(self.shares.len())),
        }
    }
    /// The case without best effort.
    fn reserved_only(&self) -> Case {
        let mut case = self.clone();
        case.arrivals.retain(|(_, flow, _)| *flow < self.shares.len());
        case
    }
    /// The case with packets of one length.
    fn of_one_length(&self) -> Case {
        let mut case = self.clone();
        let bytes = case.arrivals.first().map_or(1500, |(.., bytes)| *bytes);
        case.arrivals.iter_mut().for_each(|arrival| arrival.2 = bytes);
        case
    }
}

/// Shares with a small common multiple, so that `scfq` accepts them as weights.
const SHARES: [u32; 9] = [1, 2, 4, 5, 10, 20, 25, 40, 50];

fn case() -> impl Strategy<Value = Case> {
    let shares = prop::collection::vec(0..SHARES.len(), 2..8).prop_map(|picks| {
        let mut left = 100;
        let mut shares: Vec<u32> = Vec::new();
        for pick in picks {
            if SHARES[pick] <= left {
                left -= SHARES[pick];
                shares.push(SHARES[pick]);
            }
        }
        // The rest is reserved by more flows, largest first, since unreserved capacity hides violations.
        for share in SHARES.into_iter().rev() {
            while share <= left && shares.len() < 9 {
                left -= share;
                shares.push(share);
            }
        }
        shares
    });
    let gap = prop_oneof![5 => Just(0u32), 2 => 1..1500u32, 1 => 1500..20_000u32];
    let bytes = prop_oneof![Just(1500u32), Just(100), 64..1500u32];
    let arrival = (gap, any::<prop::sample::Index>(), bytes, 1..6usize);
    (shares, prop::collection::vec(arrival, 2..50), any::<bool>()).prop_map(
        |(shares, arrivals, best_effort)| {
            let senders = shares.len() + usize::from(best_effort);
            let burst = |(gap, flow, bytes, packets): (u32, prop::sample::Index, u32, usize)| {
                let flow = flow.index(senders);
                (0..packets).map(move |nth| (if nth == 0 { gap } else { 0 }, flow, bytes))
            };
            let arrivals = arrivals.into_iter().flat_map(burst).collect();
            Case { shares, arrivals }
        },
    )
}

/// Departure of a packet.
struct Departure {
    flow: usize,
    bytes: u32,
    /// Time at which the last bit was sent.
    at: Time,
    /// Lateness relative to F, in ps times the percentage of its flow.
    late: i128,
    /// Number of queued packets of each flow, this packet included.
    queued: Vec<u32>,
}

/// Runs a case with a discipline. Arrivals at the time of a dequeue precede it.
fn departures(spec: &str, case: &Case) -> Vec<Departure> {
    let context = LinkContext::new(LINK, Streams::new(1).within("bounds"));
    let mut qdisc = spec.parse::<Spec>().unwrap().build_numbered(&context).unwrap();
    let mut out = Outbox::default();
    let mut finish = vec![0i128; case.shares.len()];
    // F of each packet; the packet carries its number.
    let mut stamps = Vec::new();
    let mut queued = vec![0u32; case.shares.len() + 1];
    let mut left = Vec::new();
    let (mut arrived, mut free) = (Time::ZERO, Time::ZERO);
    let mut rest = case.arrivals.iter().peekable();
    loop {
        // All arrivals until the link is free again.
        while let Some((gap, flow, bytes)) =
            rest.next_if(|(gap, ..)| arrived + LINK.time_for(u64::from(*gap)) <= free)
        {
            arrived += LINK.time_for(u64::from(*gap));
            let mut pkt = Packet::new(FlowKey(*flow as u64), *bytes, stamps.len() as u64);
            pkt.meta.class = *flow as u16;
            if let Some(share) = case.shares.get(*flow) {
                pkt.meta.reserved = Rate::bit(LINK.as_bit() / 100 * u64::from(*share));
                let came = i128::from(arrived.as_ps()) * i128::from(*share);
                finish[*flow] = finish[*flow].max(came) + i128::from(*bytes) * PS_PER_BYTE * 100;
            }
            stamps.push(finish.get(*flow).copied().unwrap_or(0));
            queued[*flow] += 1;
            qdisc.enqueue(pkt, &mut Cx::new(arrived, &mut out));
        }
        match qdisc.dequeue(&mut Cx::new(free, &mut out)) {
            Next::Packet(pkt) => {
                let (flow, finish) = (pkt.meta.flow.0 as usize, stamps[pkt.payload as usize]);
                free += LINK.time_for(u64::from(pkt.bytes()));
                let share = i128::from(case.shares.get(flow).copied().unwrap_or(0));
                let late = i128::from(free.as_ps()) * share - finish;
                left.push(Departure { flow, bytes: pkt.bytes(), at: free, late, queued: queued.clone() });
                queued[flow] -= 1;
            }
            Next::At(_) => panic!("{spec} keeps the link busy"),
            Next::Empty => match rest.peek() {
                Some((gap, ..)) => free = arrived + LINK.time_for(u64::from(*gap)),
                None => break,
            },
        }
    }
    assert!(out.dropped.is_empty(), "bounds hold without losses");
    left
}

/// Checks the delays of a case. `allowed` returns the largest lateness of a flow in seconds. The error is the
/// first violation.
fn too_late(spec: &str, case: &Case, allowed: impl Fn(&Server, usize) -> Option<f64>) -> Result<(), String> {
    let server = case.server();
    for Departure { flow, bytes, at, late, .. } in departures(spec, case) {
        let Some(share) = case.shares.get(flow) else { continue };
        let late = late as f64 / f64::from(*share);
        let allowed = allowed(&server, flow).expect("there is a bound") * 1e12;
        if late > allowed + 1.0 {
            return Err(format!(
                "{spec}: {bytes} bytes of flow {flow} ({share} %) depart at {at:?}, {late} ps after their time; {allowed} are allowed"
            ));
        }
    }
    Ok(())
}

/// Definition of a backlogged flow: one of its packets is queued, or is queued or on the wire.
#[derive(Clone, Copy, PartialEq)]
enum Backlog {
    Queued,
    WithTheWire,
}

/// Checks the shares of a case: over any time in which two flows are backlogged, the difference of their
/// service, in seconds at their rates. The error is the first violation.
fn unfair(
    spec: &str,
    case: &Case,
    backlog: Backlog,
    allowed: impl Fn(&Server, usize, usize) -> Option<f64>,
) -> Result<(), String> {
    let server = case.server();
    let flows = case.shares.len();
    // For each pair: the difference since both are backlogged, with its lowest and highest value, in bytes
    // per percent times 200.
    let mut apart = vec![vec![None::<(i64, i64, i64)>; flows]; flows];
    for Departure { flow, bytes, queued, .. } in departures(spec, case) {
        for one in 0..flows {
            for other in 0..one {
                if queued[one] == 0 || queued[other] == 0 {
                    apart[one][other] = None;
                    continue;
                }
                let (now, low, high) = apart[one][other].unwrap_or_default();
                let sent = |of: usize| {
                    if of == flow { i64::from(bytes) * i64::from(200 / case.shares[of]) } else { 0 }
                };
                let now = now + sent(one) - sent(other);
                let (low, high) = (low.min(now), high.max(now));
                apart[one][other] = Some((now, low, high));
                let differ = (high - low) as f64 / 2.0 * 1e-6;
                let bound = allowed(&server, one, other).expect("there is a bound");
                if differ > bound + 1e-12 {
                    return Err(format!(
                        "{spec}: flows {one} and {other} are {differ} s apart; {bound} are allowed"
                    ));
                }
                let emptied = queued[flow] == 1 && (flow == one || flow == other);
                if emptied && backlog == Backlog::Queued {
                    apart[one][other] = None;
                }
            }
        }
    }
    Ok(())
}

const fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// The weights of classes, for disciplines that have those instead of reservations.
fn by_class(case: &Case, times: u32) -> String {
    let weights: Vec<String> = case.shares.iter().map(|share| (share * times).to_string()).collect();
    weights.join(" ")
}

/// Quanta in proportion to the shares: the smallest covers the largest packet of the link.
fn quanta_of(case: &Case) -> (String, Vec<f64>) {
    let least = *case.shares.iter().min().expect("some flow has a reservation");
    let quantum = |share: &u32| u64::from(*share) * 1500_u64.div_ceil(u64::from(least));
    let text: Vec<String> = case.shares.iter().map(|share| format!("{}b", quantum(share))).collect();
    (text.join(" "), case.shares.iter().map(|share| quantum(share) as f64).collect())
}

/// Checks all bounds on delay that hold.
fn sound(case: &Case) -> Result<(), String> {
    let kept =
        |scheduler: Scheduler<'static>| move |server: &Server, flow: usize| server.lateness(scheduler, flow);
    too_late("vc", case, kept(Scheduler::VirtualClock))?;
    too_late("wfq", case, kept(Scheduler::Wfq))?;
    too_late("wf2q", case, kept(Scheduler::Wf2q))?;
    too_late("tss", case, kept(Scheduler::TimeShift))?;
    too_late("qfq", case, kept(Scheduler::QuickFair(MTU)))?;
    for us in [500, 1500, 3000] {
        let width = format!("width {us}us");
        too_late(&format!("trr_sound {width}"), case, kept(Scheduler::TimestampRoundRobin(seconds(us))))?;
        too_late(
            &format!("trr_sound slots 7 {width}"),
            case,
            kept(Scheduler::TimestampRoundRobin(seconds(us))),
        )?;
        too_late(&format!("vtrr {width}"), case, kept(Scheduler::VirtualTimeRoundRobin(seconds(us))))?;
    }
    let reserved = case.reserved_only();
    let (text, quanta) = quanta_of(case);
    let forgets = |server: &Server, flow: usize| server.lateness(Scheduler::DrrThatForgets(&quanta), flow);
    too_late(&format!("drr quanta [{text}]"), &reserved, forgets)?;
    too_late(&format!("scfq limit 1000p weights [{}]", by_class(case, 1)), &reserved, kept(Scheduler::Scfq))
}

/// Eight times the usual number of cases of a property.
fn many() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.saturating_mul(8), ..usual }
}

proptest! {
    #![proptest_config(many())]

    /// No packet departs later than the bound of its scheduler.
    #[test]
    fn bounds_on_delay_hold(case in case()) {
        sound(&case).map_err(TestCaseError::fail)?;
        sound(&case.of_one_length()).map_err(TestCaseError::fail)?;
    }

    /// The service of two backlogged flows differs by at most the published or observed bound.
    #[test]
    fn bounds_on_fairness_hold(case in case()) {
        let kept = |scheduler: Scheduler<'static>| {
            move |server: &Server, one: usize, other: usize| server.fairness(scheduler, one, other)
        };
        let reserved = case.reserved_only();
        let scfq = format!("scfq limit 1000p weights [{}]", by_class(&case, 1));
        unfair(&scfq, &reserved, Backlog::WithTheWire, kept(Scheduler::Scfq)).map_err(TestCaseError::fail)?;
        unfair("wfq", &case, Backlog::WithTheWire, kept(Scheduler::Wfq)).map_err(TestCaseError::fail)?;
        let one = case.of_one_length();
        unfair("tss", &one, Backlog::WithTheWire, kept(Scheduler::TimeShift)).map_err(TestCaseError::fail)?;
        for us in [500, 1500, 3000] {
            let (trr, vtrr) = (format!("trr_sound width {us}us"), format!("vtrr width {us}us"));
            unfair(&trr, &one, Backlog::WithTheWire, kept(Scheduler::TimestampRoundRobin(seconds(us)))).map_err(TestCaseError::fail)?;
            unfair(&vtrr, &one, Backlog::WithTheWire, kept(Scheduler::VirtualTimeRoundRobin(seconds(us)))).map_err(TestCaseError::fail)?;
        }
        let (text, quanta) = quanta_of(&case);
        let drr = format!("drr quanta [{text}]");
        let rounds = |server: &Server, one, other| server.fairness(Scheduler::Drr(&quanta), one, other);
        unfair(&drr, &reserved, Backlog::Queued, rounds).map_err(TestCaseError::fail)?;
    }
}

/// Searches for a violation of a false claim, and returns it.
fn found_false(claim: &str, holds: impl Fn(&Case) -> Result<(), String>) -> String {
    let config = ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&case(), |case| holds(&case).map_err(TestCaseError::fail));
    match outcome {
        Err(violation) => violation.to_string(),
        Ok(()) => panic!("{claim}: no violation found"),
    }
}

/// The search finds violations of bounds that are known to be false.
#[test]
fn violations_of_false_bounds_are_found() {
    let as_wfq = |server: &Server, flow: usize| server.lateness(Scheduler::Wfq, flow);
    let printed =
        |server: &Server, flow: usize| server.lateness(Scheduler::TimestampRoundRobinAsPrinted, flow);
    found_false("a fifo keeps the bound of wfq", |case| too_late("fifo", case, as_wfq));
    found_false("trr keeps the bound that is printed", |case| {
        too_late("trr slots 101", &case.of_one_length(), printed)
    });
    found_false("trr keeps it with many slots", |case| {
        too_late("trr slots 100003 unit 100us", &case.of_one_length(), printed)
    });
    found_false("trr_round keeps it", |case| too_late("trr_round", &case.of_one_length(), printed));
    found_false("slots cost nothing", |case| {
        too_late("trr_sound width 3000us", &case.of_one_length(), printed)
    });
    found_false("vtrr keeps the bound that is printed", |case| {
        let vtrr = Scheduler::VirtualTimeRoundRobinAsPrinted(seconds(500));
        too_late("vtrr width 500us", &case.of_one_length(), |server, flow| server.lateness(vtrr, flow))
    });
    found_false("scfq keeps the bound of wfq", |case| {
        let scfq = format!("scfq limit 1000p weights [{}]", by_class(case, 1));
        too_late(&scfq, &case.reserved_only(), as_wfq)
    });
    found_false("qfq keeps the bound of wfq", |case| too_late("qfq", case, as_wfq));
    found_false("tss is as fair as scfq", |case| {
        unfair("tss", &case.of_one_length(), Backlog::WithTheWire, |server, one, other| {
            server.fairness(Scheduler::Scfq, one, other)
        })
    });
    found_false("vc is fair", |case| {
        unfair("vc", &case.of_one_length(), Backlog::WithTheWire, |server, one, other| {
            server.fairness(Scheduler::Wfq, one, other)
        })
    });
}

/// A flow of `drr` that empties leaves the round while its last packet is still on the wire. If its next
/// packet arrives before the end of that transmission, the flow has lost its turn although it was never
/// without a packet: all other flows are served before it, after the packet on the wire, which the published
/// bound does not include. Here the bound of 4,002 us is exceeded by 434 us.
#[test]
fn deficit_round_robin_exceeds_its_published_bound_when_a_turn_is_lost() {
    let quanta = [1000.0, 1000.0];
    let allowed = |server: &Server, flow: usize| server.lateness(Scheduler::Drr(&quanta), flow);
    let greedy = [(0, 1, 64), (0, 1, 1000), (0, 1, 1000), (0, 1, 936), (0, 1, 1000)];
    let case = |second| {
        let arrivals = [&greedy[..], &[(65, 0, 500), (second, 0, 1001)]].concat();
        Case { shares: vec![50, 50], arrivals }
    };
    // While 500 bytes are on the wire, from 1,064 to 1,564.
    let late = too_late("drr quanta [1000b 1000b]", &case(1000), allowed);
    let message = late.expect_err("the bound is exceeded");
    assert!(message.contains("2434000000 ps after their time"), "{message}");
    // If it arrives before the transmission begins, the flow keeps its turn, or gets the next one within the
    // bound.
    too_late("drr quanta [1000b 1000b]", &case(998), allowed).unwrap();
    let forgets = |server: &Server, flow: usize| server.lateness(Scheduler::DrrThatForgets(&quanta), flow);
    too_late("drr quanta [1000b 1000b]", &case(1000), forgets).unwrap();
    // The same applies to shares: their published bound is for flows that always have a packet in the queue.
    found_false("drr is fair to flows that empty for a moment", |case| {
        let (text, quanta) = quanta_of(case);
        let rounds = |server: &Server, one, other| server.fairness(Scheduler::Drr(&quanta), one, other);
        unfair(&format!("drr quanta [{text}]"), &case.reserved_only(), Backlog::WithTheWire, rounds)
    });
}
