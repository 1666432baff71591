//! Sources of data-centre traffic, on a star of hosts: their pairs, their rates and their rounds.

use std::collections::{BTreeMap, BTreeSet};

use giveway_qdisc::{Bytes, FlowReport, Rate, Span, Time};
use giveway_sim::traffic::{all_to_all, incast, permutation};
use giveway_sim::{Sim, Sizes, SourceContext, TcpConfig, Traffic};

use crate::support::{Counters, Lab};

const HOSTS: u16 = 8;

/// Hosts 1 to 8 around the node 0, with links of 10 Gbit/s.
fn star(seed: u64) -> Lab {
    let mut lab = Lab::new(usize::from(HOSTS) + 1, seed);
    for host in 1..=HOSTS {
        lab.wire(host, 0, Rate::gbit(10), Span::us(1));
    }
    lab
}

/// The context of traffic among the hosts, or of senders 2 to 8 to the host 1.
fn context(lab: &Lab) -> SourceContext {
    let pairs: Vec<(u16, u16)> = (2..=HOSTS).map(|host| (host, 1)).collect();
    SourceContext {
        hosts: (1..=HOSTS).collect(),
        access: Rate::gbit(u64::from(HOSTS) * 10),
        ..lab.context(&pairs, &TcpConfig::rfc())
    }
}

/// Runs one source. Returns the reports of flows and the remark.
fn run(config: &impl Traffic, seed: u64, until: Time) -> (Vec<FlowReport>, Option<String>) {
    let mut lab = star(seed);
    let context = context(&lab);
    lab.source_at(config, &context);
    let mut counters = Counters::default();
    let mut sim = Sim::new(lab.plan(until));
    sim.step_to(until, &mut counters);
    let remark = sim.remarks().next().map(|(_, remark)| remark);
    sim.finish(&mut counters);
    (counters.flows, remark)
}

#[test]
fn a_permutation_has_each_host_once_as_sender_and_once_as_receiver() {
    let config = permutation::Config { size: Some(Bytes(50_000)), ..Default::default() };
    let mut seen = BTreeSet::new();
    for seed in 1..6 {
        let (flows, _) = run(&config, seed, Time::ms(100));
        let pairs: BTreeMap<u16, u16> = flows.iter().map(|flow| (flow.from, flow.to)).collect();
        assert!(flows.iter().all(|flow| flow.delivered == 50_000 && flow.start == Time::ZERO));
        assert!(pairs.keys().copied().eq(1..=HOSTS));
        assert_eq!(pairs.values().collect::<BTreeSet<_>>().len(), usize::from(HOSTS));
        assert!(pairs.iter().all(|(from, to)| from != to));
        seen.insert(pairs);
    }
    assert!(seen.len() > 1, "the permutation depends on the seed");
}

#[test]
fn all_to_all_offers_its_fraction_of_the_access_rate_to_all_pairs_alike() {
    let config = all_to_all::Config {
        fraction: Some("20 %".parse().unwrap()),
        load: None,
        size: Sizes::Fixed(Bytes(10_000)),
        count: None,
    };
    let (flows, _) = run(&config, 1, Time::ms(100));
    // 20 % of 80 Gbit/s in transfers of 10 kB are 200,000 a second. Five standard deviations of the count.
    let error = 5.0 * 20_000_f64.sqrt();
    assert!((flows.len() as f64 - 20_000.0).abs() < error, "{}", flows.len());
    let mut pairs: BTreeMap<(u16, u16), f64> = BTreeMap::new();
    for flow in &flows {
        *pairs.entry((flow.from, flow.to)).or_default() += 1.0;
    }
    assert!(pairs.keys().all(|(from, to)| from != to));
    assert_eq!(pairs.len(), 56, "8 hosts have 56 pairs");
    let expected = flows.len() as f64 / 56.0;
    let off = |count: &f64| (count - expected).abs() / expected.sqrt();
    assert!(pairs.values().map(off).fold(0.0, f64::max) < 5.0, "{pairs:?}");
}

#[test]
fn answers_of_a_round_begin_together_and_the_next_round_follows_the_last_answer() {
    let config = incast::Config { total: Some(Bytes(140_000)), rounds: Some(3), ..Default::default() };
    let (flows, remark) = run(&config, 1, Time::s(1));
    assert_eq!(flows.len(), 3 * 7);
    assert!(flows.iter().all(|flow| flow.to == 1 && flow.delivered == 20_000));
    let mut rounds: BTreeMap<Time, Vec<&FlowReport>> = BTreeMap::new();
    flows.iter().for_each(|flow| rounds.entry(flow.start).or_default().push(flow));
    let rounds: Vec<_> = rounds.into_iter().collect();
    assert_eq!(rounds.len(), 3);
    for (start, answers) in &rounds {
        assert!(answers.iter().map(|answer| answer.from).collect::<BTreeSet<_>>().into_iter().eq(2..=HOSTS));
        let last = answers.iter().map(|answer| answer.end).max().unwrap();
        // 140 kB take 112 us on the link of the receiver.
        assert!(last.since(*start) > Span::us(112));
        let next = rounds.iter().map(|(next, _)| *next).find(|next| next > start);
        assert!(next.is_none_or(|next| next >= last));
    }
    assert!(remark.unwrap().starts_with("3 of 3 rounds are complete, after "));
}

#[test]
fn rounds_at_intervals_have_their_senders_drawn() {
    let config = incast::Config {
        each: Some(Bytes(1_000)),
        fan_in: Some(3),
        every: Some(Span::ms(2)),
        ..Default::default()
    };
    let (flows, remark) = run(&config, 1, Time::ms(99));
    let mut rounds: BTreeMap<Time, BTreeSet<u16>> = BTreeMap::new();
    flows.iter().for_each(|flow| assert!(rounds.entry(flow.start).or_default().insert(flow.from)));
    assert!(rounds.keys().copied().eq((0..50).map(|round| Time::ms(2 * round))));
    assert!(rounds.values().all(|senders| senders.len() == 3));
    assert!(rounds.values().collect::<BTreeSet<_>>().len() > 10, "there are 35 sets of senders");
    assert!(remark.unwrap().starts_with("50 of 50 rounds are complete, after "));
}
