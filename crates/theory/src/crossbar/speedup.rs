//! The speedup that a fabric needs.
//!
//! A speedup of s means s matchings per slot, or a clock s times as fast. [`super::preemption::capacity`] has
//! the load that a fabric without speedup carries.

use super::mix::Mix;
use super::{Ports, fifo, preemption};

/// The speedup with which any maximal matching in every phase carries all admissible traffic: 2.
///
/// It is sufficient for every maximal matching; particular ones, such as the matching of maximum weight, need
/// no speedup. Dai and Prabhakar only require that arrivals have rates, of an admissible matrix
/// ([`super::rates`]), and show that departures have the same rates; Leonardi and others bound the mean
/// queue, for independent arrivals.
///
/// Dai and Prabhakar, "The throughput of data switches with and without speedup", INFOCOM 2000; Leonardi,
/// Mellia, Neri and Ajmone Marsan, "On the stability of input-queued switches with speed-up", IEEE/ACM
/// Transactions on Networking 9(1), 2001.
pub const MAXIMAL_MATCHING: f64 = 2.0;

/// The speedup with which a switch with queues at inputs and outputs sends every cell at the time at which
/// output queueing would: 2 − 1/N, and 2 for N → ∞.
///
/// It is necessary and sufficient, for any arrivals. `None` for no ports.
///
/// Chuang, Goel, McKeown and Prabhakar, "Matching output queueing with a combined input/output-queued
/// switch", IEEE Journal on Selected Areas in Communications 17(6), 1999.
pub fn output_queueing(ports: Ports) -> Option<f64> {
    Some(1.0 + ports.others()?)
}

/// The minimum speedup with which one queue per input, first come, first served, carries uniform traffic of
/// any load below 1: 1 over [`fifo::saturation_throughput`]; for N → ∞ 1 + 1/√2 = 1.707.
///
/// `None` where the saturation throughput is `None`. The saturation throughput is per phase, and with a
/// speedup of s a load of 1 is 1/s per phase.
pub fn fifo(ports: Ports) -> Option<f64> {
    Some(1.0 / fifo::saturation_throughput(ports)?)
}

/// The minimum speedup with which preemptive packet-mode scheduling carries this mix at a load of 1, with
/// uniform destinations: 1 over [`preemption::capacity`].
///
/// `None` for no ports. 1.061 for the paper's mix and N = 16.
pub fn preemptive(mix: &Mix, ports: Ports) -> Option<f64> {
    Some(1.0 / preemption::capacity(mix, ports)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speedups_by_hand() {
        assert_eq!(output_queueing(Ports::Finite(1)), Some(1.0));
        assert_eq!(output_queueing(Ports::Finite(4)), Some(1.75));
        assert_eq!(output_queueing(Ports::Infinite), Some(MAXIMAL_MATCHING));
        assert_eq!(output_queueing(Ports::Finite(0)), None);
        // 1/0.75, and 1/(2 − √2) = (2 + √2)/2.
        assert!((fifo(Ports::Finite(2)).unwrap() - 4.0 / 3.0).abs() < 1e-12);
        assert!((fifo(Ports::Infinite).unwrap() - (1.0 + 0.5 * std::f64::consts::SQRT_2)).abs() < 1e-12);
    }

    #[test]
    fn preemption_costs_six_percent() {
        let mix = Mix::trimodel([1, 9, 24], 0.559, 0.200).unwrap();
        let least = preemptive(&mix, Ports::Finite(16)).unwrap();
        assert!((least - 1.061).abs() < 0.0005, "{least}");
        assert_eq!(preemptive(&mix, Ports::Finite(0)), None);
    }
}
