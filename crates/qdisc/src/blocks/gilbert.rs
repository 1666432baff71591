//! Losses in bursts: the model of Gilbert and Elliott, with the parameters of `loss gemodel` of tc-netem(8).

use crate::rng::Rng;
use crate::units::Share;

/// A good and a bad state, which change before a packet. A stationary share of p / (p + r) of the packets
/// meets the bad state, whose runs have a mean of 1 / r packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gilbert {
    /// Probability that the good state ends.
    pub p: Share,
    /// Probability that the bad state ends.
    pub r: Share,
    /// Probability of a loss in the bad state, 1-h.
    pub bad: Share,
    /// Probability of a loss in the good state, 1-k.
    pub good: Share,
}

impl Gilbert {
    /// True if the next packet is lost. `in_bad` is the state; each call draws twice.
    #[inline]
    pub fn loses(&self, in_bad: &mut bool, rng: &mut Rng) -> bool {
        let leaves = if *in_bad { self.r } else { self.p };
        *in_bad ^= rng.uniform() < leaves.get();
        let share = if *in_bad { self.bad } else { self.good };
        rng.uniform() < share.get()
    }

    /// The mean share of lost packets.
    pub fn mean(&self) -> f64 {
        let (p, r) = (self.p.get(), self.r.get());
        let in_bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
        in_bad * self.bad.get() + (1.0 - in_bad) * self.good.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    /// States with certain transitions: good and bad packets alternate, and the first meets the bad state.
    #[test]
    fn the_state_changes_before_a_packet() {
        let share = |share| Share::new(share).unwrap();
        let mut rng = Streams::new(1).rng();
        let mut in_bad = false;
        let always = Gilbert { p: share(1.0), r: share(1.0), bad: share(1.0), good: share(0.0) };
        let lost: Vec<bool> = (0..4).map(|_| always.loses(&mut in_bad, &mut rng)).collect();
        assert_eq!((lost, always.mean()), (vec![true, false, true, false], 0.5));
        assert_eq!(Gilbert::default().mean(), 0.0);
        assert!(!Gilbert::default().loses(&mut false, &mut rng));
    }
}
