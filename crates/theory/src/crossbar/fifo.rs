//! One queue per input, first come, first served: throughput with head-of-line blocking.

use std::collections::BTreeMap;

use super::Ports;

/// Throughput of FIFO input queues at saturation for N → ∞, in cells per slot and port: 2 − √2, about 0.586.
///
/// For uniform and independent destinations. The choice among contenders does not matter.
///
/// Karol, Hluchyj and Morgan, "Input Versus Output Queueing on a Space-Division Packet Switch", IEEE
/// Transactions on Communications 35(12), 1987, section III.
pub const LIMIT: f64 = 2.0 - std::f64::consts::SQRT_2;

/// Largest number of ports for [`saturation_throughput`], with about 45,000 states.
pub const MAX_PORTS: u32 = 32;

/// Throughput of FIFO input queues at saturation, in cells per slot and port: exact for N ports, and
/// [`LIMIT`] for N → ∞. It is also the largest stable load under independent arrivals with uniform
/// destinations.
///
/// `None` for no ports and above [`MAX_PORTS`], where it is within 0.01 of the limit. Table I of Karol,
/// Hluchyj and Morgan has it for N up to 8: 1, 0.75, 0.6825, 0.6553, 0.6399, 0.6302, 0.6234, 0.6184. This
/// agrees, but for the last digit of N = 4, which is 325/496 = 0.65524, and of N = 6, 0.63015. At N = 16 and
/// 32 it is 0.6016 and 0.5936.
///
/// **Method.** Every input always has a head. In a slot every output that is the destination of some head
/// serves one of them, and each head served is replaced by one with a new destination, uniform over the
/// outputs. Of the Nᴺ assignments of destinations to heads only the number of heads of each output matters:
/// the inputs of the heads have no influence, nor does the choice of the head that is served. Since outputs
/// are equal, only the multiset of these numbers matters. So the states are the partitions of N: 22 for N = 8
/// instead of 16,777,216.
///
/// A slot takes one from every part, k parts in all, which leaves a partition of N − k. Then k heads are
/// drawn one by one: a head goes to one of the c outputs that have v heads with probability c/N. Drawing them
/// one by one keeps every move between partitions of j and of j + 1, the same for all k, so that one pass
/// over j does the draws of every state together. The distribution is iterated from slot to slot, from one
/// head per output, until it is stationary: the mean number of parts over N is the throughput.
pub fn saturation_throughput(ports: Ports) -> Option<f64> {
    match ports {
        Ports::Infinite => Some(LIMIT),
        Ports::Finite(n @ 1..=MAX_PORTS) => Some(HeadsOfLine::new(n as usize).throughput()),
        Ports::Finite(_) => None,
    }
}

/// The numbers of heads of the outputs that have any, in descending order.
type Partition = Vec<usize>;

/// The Markov chain of the heads of line.
struct HeadsOfLine {
    ports: usize,
    /// By the number of heads j with a destination, from 0 to N: the transitions of each partition of j when
    /// one more head is drawn, as (partition of j + 1, probability).
    draws: Vec<Vec<Vec<(usize, f64)>>>,
    /// For each partition of N: the number of outputs that serve, and the partition that remains.
    serves: Vec<(usize, usize)>,
}

impl HeadsOfLine {
    fn new(ports: usize) -> Self {
        // All partitions of j, in the order of their numbers.
        let mut partitions: Vec<Vec<Partition>> = vec![vec![Vec::new()]];
        let mut numbers: Vec<BTreeMap<Partition, usize>> = vec![BTreeMap::from([(Vec::new(), 0)])];
        let mut draws = Vec::new();
        for heads in 0..ports {
            let (mut found, mut number_of) = (Vec::new(), BTreeMap::new());
            let mut moves = Vec::new();
            for partition in &partitions[heads] {
                let mut to = Vec::new();
                for (next, outputs) in one_more(partition, ports) {
                    let number = *number_of.entry(next).or_insert_with_key(|next| {
                        found.push(next.clone());
                        found.len() - 1
                    });
                    to.push((number, outputs as f64 / ports as f64));
                }
                moves.push(to);
            }
            draws.push(moves);
            partitions.push(found);
            numbers.push(number_of);
        }
        let serves = partitions[ports]
            .iter()
            .map(|partition| {
                let left: Partition =
                    partition.iter().map(|heads| heads - 1).filter(|heads| *heads > 0).collect();
                (partition.len(), numbers[ports - partition.len()][&left])
            })
            .collect();
        HeadsOfLine { ports, draws, serves }
    }

    fn throughput(&self) -> f64 {
        // Rounding leaves changes of about 1e-16 for ever. The chain converges geometrically, because about
        // half of the heads are new in each slot, so the remaining distance is about as small as the last
        // change.
        const STATIONARY: f64 = 1e-13;
        let mut now = vec![0.0; self.serves.len()];
        let one_each =
            self.serves.iter().position(|(outputs, _)| *outputs == self.ports).expect("N = 1 + ... + 1");
        now[one_each] = 1.0;
        loop {
            let next = self.slot(&now);
            let change: f64 = now.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
            now = next;
            if change < STATIONARY {
                let busy: f64 =
                    now.iter().zip(&self.serves).map(|(p, (outputs, _))| p * *outputs as f64).sum();
                return busy / self.ports as f64;
            }
        }
    }

    /// The distribution over the partitions of N after one slot.
    fn slot(&self, now: &[f64]) -> Vec<f64> {
        let mut layers: Vec<Vec<f64>> = self.draws.iter().map(|moves| vec![0.0; moves.len()]).collect();
        for (probability, (outputs, left)) in now.iter().zip(&self.serves) {
            layers[self.ports - outputs][*left] += probability;
        }
        layers.push(vec![0.0; now.len()]);
        for (heads, moves) in self.draws.iter().enumerate() {
            let (before, after) = layers.split_at_mut(heads + 1);
            for (probability, to) in before[heads].iter().zip(moves) {
                for (number, share) in to {
                    after[0][*number] += probability * share;
                }
            }
        }
        layers.pop().expect("it was pushed")
    }
}

/// The partitions that one more head leads to, each with the number of outputs that lead to it: one of
/// several equal parts grows, or an idle output gets its first head.
fn one_more(partition: &Partition, ports: usize) -> Vec<(Partition, usize)> {
    let mut grown = Vec::new();
    let mut start = 0;
    while start < partition.len() {
        let equal = partition[start..].iter().take_while(|heads| **heads == partition[start]).count();
        // The first of the equal parts grows, so that parts stay in descending order.
        let mut next = partition.clone();
        next[start] += 1;
        grown.push((next, equal));
        start += equal;
    }
    if partition.len() < ports {
        let mut next = partition.clone();
        next.push(1);
        grown.push((next, ports - partition.len()));
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(ports: u32) -> f64 {
        saturation_throughput(Ports::Finite(ports)).expect("few enough")
    }

    /// Two heads go to two outputs or to one, each half of the time: 1/2 · 1 + 1/2 · 1/2.
    ///
    /// Three: in the partitions 3, 2 + 1 and 1 + 1 + 1 the chain is 1/7, 14/21 and 4/21 of the time, so the
    /// throughput is (3 + 28 + 12)/63.
    #[test]
    fn two_and_three_ports_by_hand() {
        assert!((exact(1) - 1.0).abs() < 1e-12);
        assert!((exact(2) - 0.75).abs() < 1e-12);
        assert!((exact(3) - 43.0 / 63.0).abs() < 1e-12);
    }

    /// To one in the last digit, because the exact 325/496 = 0.65524 is printed as 0.6553, and 0.63015 as
    /// 0.6302. The former also comes out when all 256 states are followed, with every choice among
    /// contenders.
    #[test]
    fn karols_table() {
        let table = [1.0, 0.75, 0.6825, 0.6553, 0.6399, 0.6302, 0.6234, 0.6184];
        for (ports, expected) in (1..).zip(table) {
            assert!(
                (exact(ports) - expected).abs() <= 0.0001,
                "N = {ports}: {} is not {expected}",
                exact(ports)
            );
        }
        assert!((exact(4) - 325.0 / 496.0).abs() < 1e-12);
    }

    #[test]
    fn the_states_are_the_partitions() {
        // 1, 2, 3, 5, 7, 11, 15, 22: p(n) for n = 1 to 8.
        let states: Vec<usize> = (1..=8).map(|ports| HeadsOfLine::new(ports).serves.len()).collect();
        assert_eq!(states, [1, 2, 3, 5, 7, 11, 15, 22]);
    }

    /// More ports, more conflicts. The distance to the limit falls roughly as 1/N: 0.0326 at 8, 0.0158 at 16.
    #[test]
    fn it_falls_towards_the_limit() {
        let all: Vec<f64> = (1..=24).chain([MAX_PORTS]).map(exact).collect();
        assert!(all.windows(2).all(|pair| pair[1] < pair[0]));
        assert!(all.iter().all(|throughput| *throughput > LIMIT));
        let halved = (exact(16) - LIMIT) / (exact(8) - LIMIT);
        assert!((0.45..0.55).contains(&halved), "{halved}");
    }

    #[test]
    fn the_limit_is_two_minus_the_root_of_two() {
        assert!((LIMIT - 0.585_786_437_626_905).abs() < 1e-15);
        assert_eq!(saturation_throughput(Ports::Infinite), Some(LIMIT));
    }

    #[test]
    fn out_of_range() {
        assert_eq!(saturation_throughput(Ports::Finite(0)), None);
        assert_eq!(saturation_throughput(Ports::Finite(MAX_PORTS + 1)), None);
    }
}
