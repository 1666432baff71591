//! Mixes of packet sizes, and the rates that follow from them at an offered load.
//!
//! Sizes are in cells, so E(S) is in slots. The paper is Li, Liu, Shi, Xu and Wu on preemptive short packets
//! first; its section 2.2 calls a packet short when it has one cell and no TCP data, so a packet of one cell
//! may be long.

use std::fmt;

/// One kind of packet in a [`Mix`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixEntry {
    /// Size in cells, which is its service time in slots. At least 1.
    pub cells: u32,
    /// Share of all packets, 0 to 1.
    pub share: f64,
    /// `true` if it has priority over long packets. Only packets of one cell can be short.
    pub short: bool,
}

/// Packet sizes with their probabilities. The shares sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    kinds: Vec<MixEntry>,
}

/// The load of a port by a mix. Rates are in packets per slot, loads in cells per slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortLoad {
    /// λ, of all packets.
    pub rate: f64,
    /// λ_s, of short packets.
    pub short_rate: f64,
    /// λ_l, of long packets.
    pub long_rate: f64,
    /// ρ, of all packets.
    pub load: f64,
    /// ρ_s, which is λ_s: short packets have one cell.
    pub short_load: f64,
    /// ρ_l, of long packets.
    pub long_load: f64,
}

/// The reason why kinds of packets are not a mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MixError {
    /// A share that is not between 0 and 1, or not a number.
    Share(f64),
    /// The shares do not sum to 1; the value is their sum.
    Sum(f64),
    /// A packet without cells.
    NoCells,
    /// A short packet of this number of cells, which is above 1.
    LongShort(u32),
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MixError::Share(share) => {
                write!(f, "{share} is not a share of packets: give a number from 0 to 1")
            }
            MixError::Sum(sum) => write!(f, "the shares of packets sum to {sum}: make it 1"),
            MixError::NoCells => f.write_str("a packet of 0 cells: give its size as 1 or more"),
            MixError::LongShort(cells) => {
                write!(f, "a short packet of {cells} cells: short packets have one, so call it long")
            }
        }
    }
}

impl std::error::Error for MixError {}

/// Tolerance for the sum of shares, because of rounding.
const ROUNDING: f64 = 1e-9;

impl Mix {
    /// A mix of these kinds.
    ///
    /// # Errors
    ///
    /// If a share is not in 0 to 1 or the shares do not sum to 1 (within 10⁻⁹), a packet has no cells, or a
    /// short one more than one.
    pub fn new(kinds: &[MixEntry]) -> Result<Mix, MixError> {
        for kind in kinds {
            if !(0.0..=1.0).contains(&kind.share) {
                return Err(MixError::Share(kind.share));
            }
            match (kind.cells, kind.short) {
                (0, _) => return Err(MixError::NoCells),
                (2.., true) => return Err(MixError::LongShort(kind.cells)),
                _ => {}
            }
        }
        let sum: f64 = kinds.iter().map(|kind| kind.share).sum();
        if (sum - 1.0).abs() > ROUNDING {
            return Err(MixError::Sum(sum));
        }
        Ok(Mix { kinds: kinds.to_vec() })
    }

    /// TRIMODEL(a, b, c, P_a, P_b) of section 5: a cells with probability P_a, b with P_b, c with 1 − P_a −
    /// P_b. The packets of one cell are the short ones. The paper's traffic is TRIMODEL(1, 9, 24, 0.559,
    /// 0.200).
    ///
    /// # Errors
    ///
    /// If a probability is not in 0 to 1, P_a + P_b exceeds 1, or a size is 0.
    pub fn trimodel(cells: [u32; 3], p_a: f64, p_b: f64) -> Result<Mix, MixError> {
        // 1 − 0.9 − 0.1 is a little less than 0 in binary. If it is much less, the sum is too large.
        let p_c = (1.0 - p_a - p_b).max(0.0);
        let kind = |cells, share| MixEntry { cells, share, short: cells == 1 };
        Mix::new(&[kind(cells[0], p_a), kind(cells[1], p_b), kind(cells[2], p_c)])
    }

    /// The kinds of packet, as they were given.
    pub fn kinds(&self) -> &[MixEntry] {
        &self.kinds
    }

    /// The mean size E(S), in slots.
    pub fn mean(&self) -> f64 {
        self.sum(|kind| f64::from(kind.cells))
    }

    /// The second moment of the size E(S²), in slots squared.
    pub fn second_moment(&self) -> f64 {
        self.sum(|kind| f64::from(kind.cells) * f64::from(kind.cells))
    }

    /// C_v², the squared coefficient of variation: E(S²)/E(S)² − 1.
    pub fn squared_variation(&self) -> f64 {
        self.second_moment() / (self.mean() * self.mean()) - 1.0
    }

    /// λ_s/λ, the share of packets that are short.
    pub fn short_share(&self) -> f64 {
        self.sum(|kind| if kind.short { 1.0 } else { 0.0 })
    }

    /// λ_l/λ, the share of packets that are long.
    pub fn long_share(&self) -> f64 {
        self.sum(|kind| if kind.short { 0.0 } else { 1.0 })
    }

    /// E(S_l), the mean of long packets in slots. `None` when there are none.
    pub fn long_mean(&self) -> Option<f64> {
        let share = self.long_share();
        (share > 0.0).then(|| self.sum(|kind| if kind.short { 0.0 } else { f64::from(kind.cells) }) / share)
    }

    /// The rates at an offered load of ρ. `None` unless 0 ≤ ρ ≤ 1, the range of the load of a port.
    pub fn at(&self, load: f64) -> Option<PortLoad> {
        if !(0.0..=1.0).contains(&load) {
            return None;
        }
        let rate = load / self.mean();
        let (short_rate, long_rate) = (rate * self.short_share(), rate * self.long_share());
        // ρ − ρ_s would leave a rounding error if there are no long packets.
        let long_load = long_rate * self.long_mean().unwrap_or(0.0);
        Some(PortLoad { rate, short_rate, long_rate, load, short_load: short_rate, long_load })
    }

    fn sum(&self, of: impl Fn(&MixEntry) -> f64) -> f64 {
        self.kinds.iter().map(|kind| kind.share * of(kind)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paper() -> Mix {
        Mix::trimodel([1, 9, 24], 0.559, 0.200).unwrap()
    }

    /// E(S) = 0.559 + 1.8 + 0.241 · 24 = 8.143; E(S²) = 0.559 + 16.2 + 0.241 · 576 = 155.575;
    /// E(S_l) = 7.584/0.441.
    #[test]
    fn the_papers_mix_by_hand() {
        let mix = paper();
        assert!((mix.mean() - 8.143).abs() < 1e-12);
        assert!((mix.second_moment() - 155.575).abs() < 1e-12);
        assert!((mix.squared_variation() - (155.575 / 66.308_449 - 1.0)).abs() < 1e-12);
        assert!((mix.long_mean().unwrap() - 7.584 / 0.441).abs() < 1e-12);
        let half = mix.at(0.5).unwrap();
        assert!((half.rate - 0.5 / 8.143).abs() < 1e-12);
        assert!((half.short_load - 0.559 * 0.5 / 8.143).abs() < 1e-12);
        assert!((half.long_load - 7.584 * 0.5 / 8.143).abs() < 1e-12);
    }

    #[test]
    fn invalid_trimodels_are_refused() {
        let refused = |cells, p_a, p_b| Mix::trimodel(cells, p_a, p_b).expect_err("it is not a mix");
        assert_eq!(refused([1, 9, 24], 0.75, 0.5), MixError::Sum(1.25));
        assert_eq!(refused([1, 9, 24], -0.25, 0.5), MixError::Share(-0.25));
        assert_eq!(refused([1, 9, 24], 0.5, -0.25), MixError::Share(-0.25));
        assert_eq!(refused([1, 9, 24], 1.5, 0.0), MixError::Share(1.5));
        assert!(matches!(refused([1, 9, 24], f64::NAN, 0.5), MixError::Share(p) if p.is_nan()));
        assert!(matches!(refused([1, 9, 24], 0.5, f64::NAN), MixError::Share(p) if p.is_nan()));
        assert_eq!(refused([1, 9, 24], f64::INFINITY, 0.5), MixError::Share(f64::INFINITY));
        for cells in [[0, 9, 24], [1, 0, 24], [1, 9, 0]] {
            assert_eq!(refused(cells, 0.5, 0.2), MixError::NoCells);
        }
    }

    /// 1 − 0.9 − 0.1 is −2.8e-17 in binary.
    #[test]
    fn probabilities_that_use_up_everything_are_a_mix() {
        let mix = Mix::trimodel([1, 9, 24], 0.9, 0.1).unwrap();
        assert_eq!(mix.kinds()[2].share, 0.0);
        assert!((mix.mean() - 1.8).abs() < 1e-12);
    }

    #[test]
    fn invalid_mixes_are_refused() {
        let kind = |cells, share, short| MixEntry { cells, share, short };
        assert_eq!(Mix::new(&[]), Err(MixError::Sum(0.0)));
        assert_eq!(Mix::new(&[kind(1, 0.25, true), kind(3, 0.5, false)]), Err(MixError::Sum(0.75)));
        assert_eq!(Mix::new(&[kind(2, 1.0, true)]), Err(MixError::LongShort(2)));
        // Data in one cell is long.
        let data = Mix::new(&[kind(1, 0.5, true), kind(1, 0.5, false)]).unwrap();
        assert_eq!((data.short_share(), data.long_mean()), (0.5, Some(1.0)));
    }

    #[test]
    fn the_load_of_a_port_is_at_most_a_cell_per_slot() {
        assert_eq!(paper().at(1.01), None);
        assert_eq!(paper().at(-0.01), None);
        assert_eq!(paper().at(f64::NAN), None);
    }

    #[test]
    fn without_long_packets_nothing_long_is_offered() {
        let mix = Mix::trimodel([1, 9, 24], 1.0, 0.0).unwrap();
        assert_eq!(mix.long_mean(), None);
        assert_eq!(mix.at(0.3).unwrap().long_load, 0.0);
    }

    proptest! {
        /// The rates of short and long packets sum to the rate of all packets, and (1 + C_v²)ρ² = λ²E(S²).
        #[test]
        fn rates_add_up(
            cells in prop::array::uniform3(1u32..40), p_a in 0.0..1.0f64, of_rest in 0.0..1.0f64, load in 0.0..=1.0f64,
        ) {
            let mix = Mix::trimodel(cells, p_a, (1.0 - p_a) * of_rest).unwrap();
            let offered = mix.at(load).unwrap();
            prop_assert!((offered.short_load + offered.long_load - load).abs() < 1e-12);
            prop_assert!((offered.short_rate + offered.long_rate - offered.rate).abs() < 1e-12);
            let spread = (1.0 + mix.squared_variation()) * load * load;
            prop_assert!((spread - offered.rate * offered.rate * mix.second_moment()).abs() < 1e-12 * (1.0 + spread));
        }
    }
}
