//! Switches that carry single cells, with uniform destinations.

use super::Ports;

/// Mean wait of a cell in a switch with queues at its outputs, in slots: (N − 1)/N · p / (2(1 − p)).
///
/// p, the load, is the probability that a cell arrives at an input in a slot, independent of all else. `None`
/// unless 0 ≤ p < 1 and N ≥ 1. Exact for those arrivals, at any load below 1. The wait of a cell that leaves
/// in the slot of its arrival is 0. With a speedup of 2 − 1/N a switch with queues at its inputs can do the
/// same ([`super::speedup::output_queueing`]).
///
/// Karol, Hluchyj and Morgan, "Input Versus Output Queueing on a Space-Division Packet Switch", IEEE
/// Transactions on Communications 35(12), 1987; eq. (1) of the P-SPF paper.
pub fn output_queueing_wait(load: f64, ports: Ports) -> Option<f64> {
    let others = ports.others()?;
    (0.0..1.0).contains(&load).then(|| others * load / (2.0 * (1.0 - load)))
}

/// Throughput of parallel iterative matching (PIM) with one iteration when every input has a cell for every
/// output, in cells per slot and port: 1 − (1 − 1/N)^N, and 1 − 1/e for N → ∞.
///
/// Every output grants a random input, and every input with a grant sends. `None` for no ports. Exact.
///
/// Anderson, Owicki, Saxe and Thacker, "High-Speed Switch Scheduling for Local-Area Networks", ACM
/// Transactions on Computer Systems 11(4), 1993; McKeown, "The iSLIP Scheduling Algorithm for Input-Queued
/// Switches", IEEE/ACM Transactions on Networking 7(2), 1999, section II.
pub fn pim_saturation_throughput(ports: Ports) -> Option<f64> {
    Some(match ports {
        Ports::Finite(n) => 1.0 - libm::pow(ports.others()?, f64::from(n)),
        Ports::Infinite => 1.0 - libm::exp(-1.0),
    })
}

/// Largest number of ports for [`pim_throughput`].
pub const MAX_PIM_PORTS: u32 = 128;

/// Throughput of PIM with several iterations when every input has a cell for every output, in cells per slot
/// and port.
///
/// After an iteration, the m inputs and m outputs that are left still have cells for each other. Each of
/// these outputs grants one of these inputs, so the number of new pairs is the number of different values in
/// m draws out of m: an exact recursion over m. One iteration is [`pim_saturation_throughput`].
///
/// The time grows as N³, so the result is `None` above [`MAX_PIM_PORTS`], and for no ports. Exact for a
/// switch whose queues are never empty; otherwise there are fewer requests to choose from. 0.6439, 0.8815,
/// 0.9727 and 0.9989 for N = 16 and 1 to 4 iterations.
pub fn pim_throughput(ports: u32, iterations: u32) -> Option<f64> {
    if !(1..=MAX_PIM_PORTS).contains(&ports) {
        return None;
    }
    let n = ports as usize;
    // The probability that m are left, by m.
    let mut left = vec![0.0; n + 1];
    left[n] = 1.0;
    // N iterations always give a perfect matching, because each adds at least one pair.
    for _ in 0..iterations.min(ports) {
        let mut next = vec![0.0; n + 1];
        for (m, probability) in left.iter().enumerate().filter(|(_, probability)| **probability > 0.0) {
            for (matched, share) in different_draws(m).into_iter().enumerate() {
                next[m - matched] += probability * share;
            }
        }
        left = next;
    }
    let unmatched: f64 = left.iter().enumerate().map(|(m, probability)| m as f64 * probability).sum();
    Some(1.0 - unmatched / n as f64)
}

/// The probability that m independent uniform draws out of m show d different values, for d = 0 to m.
fn different_draws(m: usize) -> Vec<f64> {
    let mut seen = vec![0.0; m + 1];
    seen[0] = 1.0;
    for _ in 0..m {
        for d in (0..=m).rev() {
            let again = seen[d] * d as f64 / m as f64;
            let new = if d > 0 { seen[d - 1] * (m + 1 - d) as f64 / m as f64 } else { 0.0 };
            seen[d] = again + new;
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("within the range of the formula");
        assert!((value - expected).abs() <= 1e-12, "{value} is not {expected}");
    }

    /// p = 0.8, N = 2: half of 0.8/0.4.
    #[test]
    fn output_queues_by_hand() {
        close(output_queueing_wait(0.8, Ports::Finite(2)), 1.0);
        close(output_queueing_wait(0.8, Ports::Infinite), 2.0);
        close(output_queueing_wait(0.8, Ports::Finite(1)), 0.0);
        assert_eq!(output_queueing_wait(1.0, Ports::Finite(2)), None);
        assert_eq!(output_queueing_wait(-0.1, Ports::Finite(2)), None);
        assert_eq!(output_queueing_wait(0.5, Ports::Finite(0)), None);
    }

    /// Two outputs grant the same input half of the time: 1/2 · 1 + 1/2 · 1/2. Then one input and one output
    /// are left, which find each other.
    #[test]
    fn parallel_iterative_matching_by_hand() {
        close(pim_saturation_throughput(Ports::Finite(2)), 0.75);
        close(pim_saturation_throughput(Ports::Infinite), 1.0 - 1.0 / std::f64::consts::E);
        close(pim_throughput(2, 0), 0.0);
        close(pim_throughput(2, 1), 0.75);
        close(pim_throughput(2, 2), 1.0);
        // Three grants name 1, 2 or 3 inputs in 3, 18 and 6 of 27 cases. One is left after 2, two after 1.
        close(pim_throughput(3, 1), (3.0 + 36.0 + 18.0) / 81.0);
        close(pim_throughput(3, 2), 1.0 - (3.0 / 27.0) * 0.5 / 3.0);
    }

    #[test]
    fn the_recursion_starts_at_the_closed_form_and_ends_with_a_perfect_matching() {
        for ports in 1..=64 {
            close(pim_throughput(ports, 1), pim_saturation_throughput(Ports::Finite(ports)).unwrap());
            close(pim_throughput(ports, ports), 1.0);
        }
    }

    /// Each iteration leaves at most a quarter of the requests on average (Anderson and others, appendix), so
    /// of the inputs at most half.
    #[test]
    fn every_iteration_matches_half_of_the_rest_or_more() {
        for ports in [2, 5, 16, 64, MAX_PIM_PORTS] {
            let mut left = 1.0;
            for iterations in 1..8 {
                left /= 2.0;
                assert!(1.0 - pim_throughput(ports, iterations).unwrap() <= left);
            }
        }
    }

    #[test]
    fn out_of_range() {
        assert_eq!(pim_saturation_throughput(Ports::Finite(0)), None);
        assert_eq!(pim_throughput(0, 1), None);
        assert_eq!(pim_throughput(MAX_PIM_PORTS + 1, 1), None);
    }
}
