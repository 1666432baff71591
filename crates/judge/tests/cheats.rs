//! Planted cheats: each is a fair queue with one trick, and each is rejected with its reason.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use giveway_judge::{
    Candidate, Code, Failed, Judgement, Perturbation, Ran, Request, Stores, judge, judge_with, run_built,
};
use giveway_qdisc::{
    Backlog, Cx, DropReason, LinkContext, Next, Packet, Qdisc, Rate, Rng, Span, Streams, Time,
};
use giveway_scenario::{Build, Scenario};
use giveway_sim::Segment;
use giveway_trials::{Memory, Silent};

/// A trick of the queue below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    /// No trick: turns between flows, at most 100 packets.
    None,
    /// After six seconds it drops all packets of flows that have sent more than 100 kB.
    DropsLongFlowsLate,
    /// It knows seeds, by the random numbers that they give, and drops half of all packets with others.
    ReadsTheSeed,
    /// It holds each acknowledgement back for 20 ms.
    DelaysAcks,
    /// It is fair to the first 12,000 packets, and then a fifo.
    CountsPackets,
    /// It keeps every 20th packet of a flow for ever.
    KeepsPackets,
    /// It knows that flows from the first hosts of a scenario are measured, and serves them first.
    KnowsHosts,
    /// It knows the rates of public cells, and is fair only there.
    KnowsCells,
    /// It drops nearly everything, so that nothing waits.
    Blocks,
    /// It takes random numbers that do not come from the seed.
    Guesses,
    /// It sends nothing for the first two seconds of a backlog, so that others go first elsewhere.
    Sleeps,
    /// It serves acknowledgements last.
    AcksLast,
    /// As [`Trick::DropsLongFlowsLate`], with a clock from the first packet with an offset.
    ClockFromOffset,
    /// As [`Trick::CountsPackets`], and counts only packets with an offset.
    CountsOffsets,
}

/// The turns of all acknowledgements, and of known hosts.
const ACKS: u64 = u64::MAX;
const KNOWN: u64 = 1 << 63;
/// The time for which acknowledgements are held back.
const HELD: Span = Span::ms(20);
/// The packets of a test that are counted.
const COUNTED: u64 = 12_000;

/// Random numbers that differ in each run. The operating system's may be equal by chance.
fn unseeded() -> Rng {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    Streams::new(RUNS.fetch_add(1, Ordering::Relaxed)).rng()
}

/// Turns between flows, with a trick.
struct Queue {
    trick: Trick,
    rate: Rate,
    rng: Rng,
    seed_is_known: bool,
    count: u64,
    begun: Option<Time>,
    flows: BTreeMap<u64, VecDeque<Packet<Segment>>>,
    turns: VecDeque<u64>,
    kept: Vec<Packet<Segment>>,
    backlog: Backlog,
}

impl Queue {
    fn new(trick: Trick, context: &LinkContext) -> Queue {
        // What the seeds 1 and 2 give at this link.
        let path = context.streams.path().trim_start_matches('/');
        let known = [1, 2].map(|seed| Streams::new(seed).within(path).rng().word());
        Queue {
            trick,
            rate: context.rate,
            rng: if trick == Trick::Guesses { unseeded() } else { context.streams.rng() },
            seed_is_known: known.contains(&context.streams.rng().word()),
            count: 0,
            begun: None,
            flows: BTreeMap::new(),
            turns: VecDeque::new(),
            kept: Vec::new(),
            backlog: Backlog::ZERO,
        }
    }

    fn rate_is_known(&self) -> bool {
        [500_000, 1_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000].contains(&self.rate.as_bit())
    }

    fn take(&mut self, key: u64) -> Packet<Segment> {
        let flow = self.flows.get_mut(&key).expect("a turn belongs to a flow");
        let packet = flow.pop_front();
        let empty = flow.is_empty();
        self.turns.retain(|turn| *turn != key);
        if empty {
            self.flows.remove(&key);
        } else {
            self.turns.push_back(key);
        }
        let packet = packet.expect("a flow with a turn has packets");
        self.backlog.sub(packet.bytes());
        packet
    }
}

fn is_ack(segment: &Segment) -> bool {
    segment.len == 0 && segment.flags & Segment::ACK != 0
}

impl Qdisc<Segment> for Queue {
    fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        self.count += u64::from(self.trick != Trick::CountsOffsets || pkt.meta.offset > 0);
        if self.trick == Trick::ClockFromOffset && pkt.meta.offset > 0 {
            self.begun.get_or_insert(cx.now());
        }
        let is_drop = match self.trick {
            Trick::DropsLongFlowsLate => cx.now() > Time::s(6) && pkt.meta.offset > 100_000,
            Trick::ClockFromOffset => {
                self.begun.is_some_and(|begun| cx.now() > begun + Span::s(6)) && pkt.meta.offset > 100_000
            }
            Trick::ReadsTheSeed => !self.seed_is_known && self.rng.below(2) == 0,
            Trick::KnowsCells => !self.rate_is_known() && self.rng.below(5) == 0,
            Trick::Blocks => self.rng.below(10) > 0,
            Trick::Guesses => self.rng.below(7) == 0,
            _ => false,
        };
        if is_drop || self.backlog.packets >= 100 {
            return cx.drop(pkt, DropReason::Overlimit);
        }
        self.backlog.add(pkt.bytes());
        if self.trick == Trick::KeepsPackets && self.count.is_multiple_of(20) && self.kept.len() < 50 {
            return self.kept.push(pkt);
        }
        let key = match self.trick {
            Trick::CountsPackets | Trick::CountsOffsets if self.count > COUNTED => 0,
            Trick::KnowsCells if !self.rate_is_known() => 0,
            // Hosts are numbered in the order of the scenario.
            Trick::KnowsHosts if pkt.meta.from > 0 && pkt.meta.to > 1 => KNOWN,
            Trick::AcksLast | Trick::DelaysAcks if is_ack(&pkt.payload) => ACKS,
            _ => pkt.meta.flow.0,
        };
        let flow = self.flows.entry(key).or_default();
        if flow.is_empty() {
            self.turns.push_back(key);
        }
        flow.push_back(pkt);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, Segment>) -> Next<Segment> {
        let now = cx.now();
        if self.trick == Trick::Sleeps && self.backlog.packets > 0 {
            let awake = *self.begun.get_or_insert(now) + Span::s(2);
            if now < awake {
                return Next::At(awake);
            }
        }
        let is_free =
            |key: &u64| self.flows[key].front().is_some_and(|first| first.meta.arrived + HELD <= now);
        let passed = |key: &&u64| match (self.trick, **key) {
            (Trick::AcksLast, ACKS) | (Trick::KnowsHosts, KNOWN) => true,
            (Trick::DelaysAcks, ACKS) => !is_free(key),
            _ => false,
        };
        let turn = self.turns.iter().find(|key| !passed(key)).or_else(|| self.turns.front()).copied();
        let Some(key) = turn else {
            // What it keeps is in its backlog, and never leaves.
            return if self.kept.is_empty() { Next::Empty } else { Next::At(now + Span::s(3600)) };
        };
        if self.trick == Trick::DelaysAcks && key == ACKS && !is_free(&key) {
            return Next::At(self.flows[&key].front().expect("a flow with a turn").meta.arrived + HELD);
        }
        Next::Packet(self.take(key))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        let all = std::mem::take(&mut self.flows).into_values().flatten().chain(self.kept.drain(..));
        all.for_each(|packet| cx.drop(packet, DropReason::Reset));
        self.turns.clear();
        self.backlog = Backlog::ZERO;
    }

    fn rate_changed(&mut self, rate: Rate, _: Time) {
        self.rate = rate;
    }
}

struct Cheat {
    trick: Trick,
    name: String,
}

impl Candidate for Cheat {
    fn name(&self) -> &str {
        &self.name
    }

    fn stands_for(&self) -> &str {
        "fifo"
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        perturbation: Option<&Perturbation>,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<Ran, Failed> {
        let build: Build<'_> =
            &|_, _, context| Ok(Box::new(Queue::new(self.trick, context)) as Box<dyn Qdisc<Segment>>);
        let (record, seen) =
            run_built(scenario, seed, perturbation, build, keep_running).ok_or(Failed::Stopped)?;
        Ok(Ran { record, seen, fuel: (0, 0) })
    }
}

fn judged(trick: Trick) -> Judgement {
    // A cheat that fills part of a test only takes more runs to be more than chance.
    let seeds = if matches!(trick, Trick::CountsPackets | Trick::CountsOffsets) { 2 } else { 1 };
    let request = Request { seeds, secret: "a secret".to_owned(), jobs: 2, ..Request::default() };
    judge(&Cheat { trick, name: format!("{trick:?}") }, &request, &Silent).unwrap()
}

fn rejected(trick: Trick, code: Code, sentence: &str) {
    let judgement = judged(trick);
    let found = judgement.rejected.clone().unwrap_or_else(|| panic!("{}", giveway_judge::text(&judgement)));
    println!("{trick:?}: {} {:?}", found.sentence, found.cell);
    assert_eq!(found.code, code, "{}", found.sentence);
    assert!(found.sentence.contains(sentence), "{}", found.sentence);
    assert_eq!(judgement.score(), None);
}

#[test]
fn without_a_trick_it_is_accepted() {
    let judgement = judged(Trick::None);
    assert_eq!(judgement.rejected, None);
    assert!(judgement.score().is_some());
}

#[test]
fn long_flows_that_are_dropped_at_the_end() {
    rejected(Trick::DropsLongFlowsLate, Code::Clock, "it decides by the time of day");
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_a_known_seed() {
    rejected(Trick::ReadsTheSeed, Code::Seed, "it reads the seed");
}

#[test]
fn acknowledgements_that_are_held() {
    rejected(Trick::DelaysAcks, Code::Acks, "it delays acknowledgements");
}

#[test]
fn acknowledgements_that_are_served_last() {
    rejected(Trick::AcksLast, Code::Acks, "times as long as all bytes");
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_packets_of_the_test_that_are_counted() {
    rejected(Trick::CountsPackets, Code::Count, "it counts");
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_a_clock_that_begins_with_the_first_offset() {
    // With another time at the beginning its clock is the same; with packets before the test it is not.
    rejected(Trick::ClockFromOffset, Code::Count, "it counts");
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_packets_with_an_offset_that_are_counted() {
    rejected(Trick::CountsOffsets, Code::Count, "it counts");
}

#[test]
fn packets_that_are_kept_for_ever() {
    rejected(Trick::KeepsPackets, Code::Keeps, "it keeps packets");
}

#[test]
fn a_link_that_stands_still() {
    rejected(Trick::Sleeps, Code::Keeps, "it keeps packets while the link is free: once for 2s");
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_hosts_that_are_known_by_their_numbers() {
    rejected(Trick::KnowsHosts, Code::Names, "it knows flows or hosts by their numbers");
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_public_cells_that_are_known_by_their_rates() {
    rejected(Trick::KnowsCells, Code::Memorises, "it knows the public cells");
}

#[test]
fn a_queue_that_blocks() {
    rejected(Trick::Blocks, Code::Blocks, "it blocks traffic");
}

#[test]
fn randomness_without_a_seed() {
    rejected(Trick::Guesses, Code::Random, "two runs with the same seed differ");
}

/// A judgement that was stopped resumes from its stores. The runs that are repeated to find chance are never
/// taken from there.
#[test]
fn a_judgement_resumes_and_still_finds_randomness() {
    let judged = |stores| {
        let request = Request { seeds: 1, secret: "a secret".to_owned(), jobs: 2, ..Request::default() };
        let cheat = Cheat { trick: Trick::Guesses, name: "guesses".to_owned() };
        judge_with(&cheat, &request, stores, &Silent).unwrap()
    };
    let (candidate, baseline) = (Memory::default(), Memory::default());
    let stores = Stores { candidate: &candidate, baseline: &baseline };
    for _ in 0..2 {
        assert_eq!(judged(stores).rejected.unwrap().code, Code::Random);
    }
}
