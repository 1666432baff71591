//! The closed forms of crossbars, compared with small simulations that share nothing with their derivation.
//!
//! Every tolerance is four standard errors, from the means of batches that are long enough to be independent.
//! Seeds are fixed, so a test that passes once passes always.

use giveway_theory::crossbar::{Ports, cells, fifo, preemption};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A number below `n`, uniform. The remainder of 2⁶⁴ by a small n leaves a bias of less than 1e-17.
fn below(rng: &mut Pcg64, n: usize) -> usize {
    (rng.next_u64() % n as u64) as usize
}

fn chance(rng: &mut Pcg64, probability: f64) -> bool {
    ((rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64) < probability
}

/// The mean of 100 batches and its standard error. A first batch is the warm-up.
fn estimate(mut batch: impl FnMut() -> f64) -> (f64, f64) {
    batch();
    let means: Vec<f64> = (0..100).map(|_| batch()).collect();
    let mean = means.iter().sum::<f64>() / 100.0;
    let variance = means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 99.0;
    (mean, (variance / 100.0).sqrt())
}

#[track_caller]
fn agrees((mean, error): (f64, f64), exact: f64) {
    // An error of more than 0.3 % of the value would let anything pass.
    assert!(error < 0.003 * exact, "the standard error {error} is too large to say anything");
    assert!(
        (mean - exact).abs() < 4.0 * error,
        "simulated {mean} with a standard error of {error}, exactly {exact}"
    );
}

/// Direct simulation of the heads: each input has one with its destination, an output with heads serves a
/// random one, and its input draws a new one. It uses neither partitions nor symmetry.
#[test]
fn heads_of_line() {
    for ports in [2, 3, 4, 5, 6, 7, 8, 16] {
        let mut rng = Pcg64::seed_from_u64(1987);
        let mut heads: Vec<usize> = (0..ports).map(|_| below(&mut rng, ports)).collect();
        let slots = 4_000;
        let simulated = estimate(|| {
            let mut served = 0;
            for _ in 0..slots {
                let before = heads.clone();
                for output in 0..ports {
                    let contenders: Vec<usize> =
                        (0..ports).filter(|input| before[*input] == output).collect();
                    if !contenders.is_empty() {
                        heads[contenders[below(&mut rng, contenders.len())]] = below(&mut rng, ports);
                        served += 1;
                    }
                }
            }
            f64::from(served) / (slots * ports) as f64
        });
        agrees(simulated, fifo::saturation_throughput(Ports::Finite(ports as u32)).unwrap());
    }
}

/// Requests, grants and accepts, with a cell for every output at every input.
#[test]
fn parallel_iterative_matching() {
    for (ports, iterations) in [(2, 1), (4, 1), (16, 1), (4, 2), (16, 2), (16, 3)] {
        let mut rng = Pcg64::seed_from_u64(1993);
        let slots = 2_000;
        let simulated = estimate(|| {
            let mut matched = 0;
            for _ in 0..slots {
                let mut output_of: Vec<Option<usize>> = vec![None; ports];
                for _ in 0..iterations {
                    let requesting: Vec<usize> =
                        (0..ports).filter(|input| output_of[*input].is_none()).collect();
                    let mut grants: Vec<Vec<usize>> = vec![Vec::new(); ports];
                    for output in (0..ports).filter(|output| !output_of.contains(&Some(*output))) {
                        grants[requesting[below(&mut rng, requesting.len())]].push(output);
                    }
                    for (input, granted) in
                        grants.iter().enumerate().filter(|(_, granted)| !granted.is_empty())
                    {
                        output_of[input] = Some(granted[below(&mut rng, granted.len())]);
                    }
                }
                matched += output_of.iter().flatten().count();
            }
            matched as f64 / (slots * ports) as f64
        });
        agrees(simulated, cells::pim_throughput(ports as u32, iterations).unwrap());
        if iterations == 1 {
            agrees(simulated, cells::pim_saturation_throughput(Ports::Finite(ports as u32)).unwrap());
        }
    }
}

/// Output queues as counters: the cells of a slot arrive, one leaves, and the others wait another slot. By
/// Little the mean wait is the mean number of waiting cells per output over p.
#[test]
fn output_queues() {
    for (ports, load) in [(2, 0.5), (8, 0.5), (16, 0.7)] {
        let mut rng = Pcg64::seed_from_u64(35);
        let mut queues = vec![0u64; ports];
        let slots = 20_000;
        let simulated = estimate(|| {
            let (mut left, mut came) = (0, 0u32);
            for _ in 0..slots {
                for _ in 0..ports {
                    if chance(&mut rng, load) {
                        queues[below(&mut rng, ports)] += 1;
                        came += 1;
                    }
                }
                for queue in &mut queues {
                    *queue = queue.saturating_sub(1);
                    left += *queue;
                }
            }
            left as f64 / f64::from(came)
        });
        agrees(simulated, cells::output_queueing_wait(load, Ports::Finite(ports as u32)).unwrap());
    }
}

/// A given output is served from a given input. In (8) it is blocked when that input has a short packet for
/// another output and none arrives for the output. In the other form each input sends a short packet with
/// that probability, to outputs that are all different: the beginning of a shuffled row.
#[test]
fn blocked_outputs() {
    let (ports, short_rate) = (4, 0.4);
    let mut rng = Pcg64::seed_from_u64(2005);
    let slots = 20_000;
    let arriving = estimate(|| {
        let mut blocked = 0;
        for _ in 0..slots {
            let short: Vec<Option<usize>> =
                (0..ports).map(|_| chance(&mut rng, short_rate).then(|| below(&mut rng, ports))).collect();
            blocked += u32::from(short[0].is_some() && !short.contains(&Some(0)));
        }
        f64::from(blocked) / f64::from(slots)
    });
    agrees(arriving, preemption::blocked(short_rate, Ports::Finite(ports as u32)).unwrap());
    let received = estimate(|| {
        let mut blocked = 0;
        for _ in 0..slots {
            let mut outputs: Vec<usize> = (0..ports).collect();
            for last in (1..ports).rev() {
                outputs.swap(last, below(&mut rng, last + 1));
            }
            let short: Vec<Option<usize>> =
                outputs.iter().map(|output| chance(&mut rng, short_rate).then_some(*output)).collect();
            blocked += u32::from(short[0].is_some() && !short.contains(&Some(0)));
        }
        f64::from(blocked) / f64::from(slots)
    });
    agrees(received, preemption::blocked_by_received(short_rate, Ports::Finite(ports as u32)).unwrap());
}
