//! Matchings compared with other libraries: `petgraph` for size, `pathfinding` for weight.

use giveway_qdisc::{Rng, Streams};
use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;
use petgraph::algo::maximum_matching;
use petgraph::graph::{NodeIndex, UnGraph};

use super::table::Table;
use super::{Ties, Weight};
use crate::arbiters::{greedy, msm, mwm};

const TIES: [Ties; 3] = [Ties::Random, Ties::Rotating, Ties::Fixed];
const WEIGHTS: [Weight; 3] = [Weight::QueueLength, Weight::CellAge, Weight::PortOccupancy];

/// A table with this number of ports. Some are sparse, some have few different weights, and often only some
/// ports are free.
fn table<const W: usize>(ports: usize, rng: &mut Rng) -> Table<W> {
    let full = [0.05, 0.2, 0.5, 0.9, 1.0][rng.below(5) as usize];
    let most = [1, 2, 5, 100, 1_000_000][rng.below(5) as usize];
    let mut cell = || if rng.uniform() < full { 1 + rng.below(most) } else { 0 };
    let table = Table::of((0..ports).map(|_| (0..ports).map(|_| cell()).collect()).collect());
    let mut some = || {
        let free = [0.1, 0.4, 0.8, 1.0][rng.below(4) as usize];
        (0..ports).filter(|_| rng.uniform() < free).collect::<Vec<_>>()
    };
    let (inputs, outputs) = (some(), some());
    table.only(&inputs, &outputs)
}

/// Thousands of tables with up to 12 ports, and some with 64 and 100.
fn tables<const W: usize>(seed: u64, mut check: impl FnMut(&Table<W>, &mut Rng)) {
    let mut rng = Streams::new(seed).rng();
    let sizes: Vec<usize> = match W {
        1 => (0..6000).map(|at| 2 + at % 11).chain([64; 40]).collect(),
        _ => vec![100; 20],
    };
    for ports in sizes {
        let table = table(ports, &mut rng);
        check(&table, &mut rng);
    }
}

/// Weight of a pair, by its definition.
fn worth<const W: usize>(table: &Table<W>, weight: Weight, input: usize, output: usize) -> i64 {
    let cells = &table.cells;
    (match weight {
        _ if !table.requests(input, output) => 0,
        Weight::QueueLength | Weight::CellAge => cells[input][output],
        Weight::PortOccupancy => {
            cells[input].iter().sum::<u64>() + cells.iter().map(|row| row[output]).sum::<u64>()
        }
    }) as i64
}

/// The weight of the best matching, by `pathfinding`.
fn best_weight<const W: usize>(table: &Table<W>, weight: Weight) -> i64 {
    let ports = table.cells.len();
    let weights = Matrix::from_fn(ports, ports, |(input, output)| worth(table, weight, input, output));
    kuhn_munkres(&weights).0
}

/// The size of the largest matching, by `petgraph`.
fn best_size<const W: usize>(table: &Table<W>) -> usize {
    let ports = table.cells.len();
    let mut graph = UnGraph::<(), ()>::new_undirected();
    for _ in 0..2 * ports {
        graph.add_node(());
    }
    for input in 0..ports {
        for output in (0..ports).filter(|output| table.requests(input, *output)) {
            graph.add_edge(NodeIndex::new(input), NodeIndex::new(ports + output), ());
        }
    }
    maximum_matching(&graph).edges().count()
}

fn sum<const W: usize>(table: &Table<W>, weight: Weight, pairs: &[(usize, usize)]) -> i64 {
    pairs.iter().map(|(input, output)| worth(table, weight, *input, *output)).sum()
}

#[test]
fn maximum_size() {
    fn check<const W: usize>() {
        tables::<W>(1, |table, _| {
            let want = best_size(table);
            for ties in TIES {
                let pairs = table.decided(&msm::Config { ties });
                assert_eq!(pairs.len(), want, "{ties:?} {table:?} {pairs:?}");
            }
        });
    }
    check::<1>();
    check::<2>();
}

#[test]
fn maximum_weight() {
    fn check<const W: usize>() {
        tables::<W>(2, |table, rng| {
            let weight = WEIGHTS[rng.below(3) as usize];
            let want = best_weight(table, weight);
            for ties in TIES {
                let pairs = table.decided(&mwm::Config { weight, ties });
                assert_eq!(sum(table, weight, &pairs), want, "{weight:?} {ties:?} {table:?} {pairs:?}");
                if weight == Weight::PortOccupancy {
                    // The theorem of Mekkittikul and McKeown: the matching has maximum size, too.
                    assert_eq!(pairs.len(), best_size(table), "{table:?} {pairs:?}");
                }
            }
        });
    }
    check::<1>();
    check::<2>();
}

/// A table with these numbers of free inputs and outputs among 32 ports. Some tables have few different
/// weights and therefore many ties. Others have weights just below or above the limit of the small cases.
fn shape(inputs: usize, outputs: usize, rng: &mut Rng) -> Table<1> {
    let full = [0.3, 0.6, 1.0][rng.below(3) as usize];
    let most = [1, 2, 3, 100, 1 << 32, 1 << 39][rng.below(6) as usize];
    let mut cell = || if rng.uniform() < full { 1 + rng.below(most) } else { 0 };
    let table = Table::of((0..32).map(|_| (0..32).map(|_| cell()).collect()).collect());
    let mut some = |count: usize| {
        let mut ports: Vec<usize> = (0..32).collect();
        (0..32 - count).for_each(|_| {
            ports.remove(rng.below(ports.len() as u64) as usize);
        });
        ports
    };
    let (inputs, outputs) = (some(inputs), some(outputs));
    table.only(&inputs, &outputs)
}

/// The algorithm depends on the number of free ports: the result is a maximum for each.
#[test]
fn all_numbers_of_few_ports() {
    let mut rng = Streams::new(6).rng();
    for (inputs, outputs) in (1..=9).flat_map(|inputs| (1..=9).map(move |outputs| (inputs, outputs))) {
        for _ in 0..30 {
            let table = shape(inputs, outputs, &mut rng);
            for ties in TIES {
                let pairs = table.decided(&msm::Config { ties });
                assert_eq!(pairs.len(), best_size(&table), "{ties:?} {table:?} {pairs:?}");
                for weight in WEIGHTS {
                    let pairs = table.decided(&mwm::Config { weight, ties });
                    let (got, want) = (sum(&table, weight, &pairs), best_weight(&table, weight));
                    assert_eq!(got, want, "{weight:?} {ties:?} {table:?} {pairs:?}");
                }
            }
        }
    }
}

/// All matchings of the requests.
fn all_matchings(table: &Table<1>) -> Vec<Vec<(usize, usize)>> {
    let mut all = vec![Vec::new()];
    for &input in &table.inputs {
        for at in 0..all.len() {
            for &output in table.outputs.iter().filter(|output| table.requests(input, **output)) {
                if all[at].iter().all(|(_, taken): &(usize, usize)| *taken != output) {
                    let mut more = all[at].clone();
                    more.push((input, output));
                    all.push(more);
                }
            }
        }
    }
    all
}

/// The matchings of maximum weight.
fn best_matchings(
    table: &Table<1>,
    value: impl Fn(&[(usize, usize)]) -> i64,
) -> std::collections::BTreeSet<Vec<(usize, usize)>> {
    let all = all_matchings(table);
    let most = all.iter().map(|pairs| value(pairs)).max().unwrap();
    all.into_iter().filter(|pairs| value(pairs) == most).collect()
}

/// With random ties every maximum occurs at some time; with other ties only one of them does.
#[test]
fn random_ties_produce_all_maxima() {
    let mut rng = Streams::new(7).rng();
    for (inputs, outputs) in (1..=4).flat_map(|inputs| (1..=4).map(move |outputs| (inputs, outputs))) {
        for _ in 0..3 {
            let mut table = shape(inputs, outputs, &mut rng);
            // Few weights.
            table.cells.iter_mut().flatten().for_each(|cells| *cells = (*cells).min(2));
            let want = best_matchings(&table, |pairs| pairs.len() as i64);
            assert_eq!(table.all_decided(&msm::Config::default(), 1500), want, "{table:?}");
            let config = mwm::Config::default();
            let want = best_matchings(&table, |pairs| sum(&table, config.weight, pairs));
            assert_eq!(table.all_decided(&config, 1500), want, "{table:?}");
        }
    }
}

/// With equal weights every matching is equally likely: random ties do not prefer a port by its number.
#[test]
fn random_ties_do_not_prefer_port_numbers() {
    for ports in [2, 3, 4] {
        let table = Table::<1>::of(vec![vec![5; 16]; 16]);
        let free: Vec<usize> = [1, 6, 9, 14][..ports].to_vec();
        let table = table.only(&free, &free);
        let mut msm = table.arbiter(&msm::Config::default());
        let mut mwm = table.arbiter(&mwm::Config::default());
        for arbiter in [&mut msm, &mut mwm] {
            let mut seen = std::collections::BTreeMap::<Vec<(usize, usize)>, u32>::new();
            let matchings: u32 = (1..=ports as u32).product();
            for _ in 0..2000 * matchings {
                let mut pairs = table.decide(&mut **arbiter);
                pairs.sort_unstable();
                *seen.entry(pairs).or_default() += 1;
            }
            assert_eq!(seen.len() as u32, matchings);
            // 2000 each; four standard deviations are at most 179.
            assert!(seen.values().all(|times| (1821..=2179).contains(times)), "{seen:?}");
        }
    }
}

#[test]
fn greedy_is_maximal_and_worth_half() {
    tables::<1>(3, |table, rng| {
        let weight = WEIGHTS[rng.below(3) as usize];
        let ties = TIES[rng.below(3) as usize];
        let pairs = table.decided(&greedy::Config { weight, ties });
        assert!(2 * sum(table, weight, &pairs) >= best_weight(table, weight), "{table:?} {pairs:?}");
        let weights: Vec<i64> = pairs.iter().map(|pair| worth(table, weight, pair.0, pair.1)).collect();
        assert!(weights.is_sorted_by(|a, b| a >= b), "the heaviest first: {weights:?}");
        // Each request is matched, or one of its ports is in a pair that is at least as heavy.
        for (input, output) in
            (0..table.cells.len()).flat_map(|i| (0..table.cells.len()).map(move |o| (i, o)))
        {
            let won = pairs.iter().zip(&weights).filter(|(pair, _)| pair.0 == input || pair.1 == output);
            let heaviest = won.map(|(_, weight)| *weight).max();
            assert!(heaviest.unwrap_or(0) >= worth(table, weight, input, output), "{table:?} {pairs:?}");
        }
    });
}

/// An arbiter that keeps prices and pairs from slot to slot finds the same weight as a new arbiter. Weights
/// change between slots as in a switch, and sometimes completely.
#[test]
fn kept_prices_and_pairs_do_not_change_the_weight() {
    let mut rng = Streams::new(4).rng();
    for run in 0..60 {
        let ports = [2, 3, 5, 8, 12, 16][run % 6];
        let config = mwm::Config { weight: WEIGHTS[run % 3], ties: TIES[run / 3 % 3] };
        let mut table = table::<1>(ports, &mut rng).only(&[], &[]);
        let mut arbiter = table.arbiter(&config);
        for slot in 0..150 {
            // Usually all ports are free. With a few free ports nothing is kept, and the kept state must
            // stay valid.
            let free = if rng.below(8) == 0 { 0.3 } else { 1.0 };
            table.inputs = (0..ports).filter(|_| rng.uniform() < free).collect();
            table.outputs = (0..ports).filter(|_| rng.uniform() < free).collect();
            let pairs = table.decide(&mut *arbiter);
            let got = sum(&table, config.weight, &pairs);
            let cold = sum(&table, config.weight, &table.decided(&config));
            assert_eq!(got, cold, "run {run}, slot {slot}: {table:?} {pairs:?}");
            assert_eq!(got, best_weight(&table, config.weight), "run {run}, slot {slot}: {table:?}");
            for (input, output) in pairs {
                table.cells[input][output] -= 1;
            }
            for input in 0..ports {
                let arrived = rng.below(3) * rng.below(4);
                table.cells[input][rng.below(ports as u64) as usize] += arrived;
            }
            if rng.below(20) == 0 {
                let (input, output) = (rng.below(ports as u64) as usize, rng.below(ports as u64) as usize);
                table.cells[input][output] = rng.below(2) * rng.below(1 << 40);
            }
        }
    }
}

/// Prices may rise with every slot. They are lowered before a key overflows.
#[test]
fn very_heavy_weights() {
    let mut rng = Streams::new(5).rng();
    let config = mwm::Config { weight: Weight::QueueLength, ties: Ties::Random };
    let mut table = Table::<1>::of(vec![vec![0; 16]; 16]);
    let mut arbiter = table.arbiter(&config);
    for _ in 0..1000 {
        // The largest weight that is not reduced: 2^47.
        let mut cells = || rng.below(2) * ((1 << 47) - rng.below(3) * rng.below(1 << 46));
        table.cells.iter_mut().flatten().for_each(|weight| *weight = cells());
        let pairs = table.decide(&mut *arbiter);
        assert_eq!(sum(&table, config.weight, &pairs), best_weight(&table, config.weight));
    }
}

/// Pairs whose weight is reduced are matched as well.
#[test]
fn weights_above_the_limit_are_reduced() {
    let table = Table::<1>::of(vec![vec![1 << 60; 16]; 16]);
    let config = mwm::Config::default();
    assert_eq!(table.decided(&config).len(), 16);
    assert_eq!(table.only(&[1, 2, 3], &[4, 5, 6, 7]).decided(&config).len(), 3);
}
