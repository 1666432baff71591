//! Weights of classes, and the cost of a packet for its flow, exactly, in integers.
//!
//! Fair queueing ranks by sums of lengths divided by weights, and rounding errors would add up. So lengths
//! are counted in a unit that every weight divides: the least common multiple of the weights to the byte.

use crate::packet::Meta;
use crate::qdisc::Invalid;

/// Weights of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Units per byte at weight 1.
    unit: u64,
    /// Units per byte, by class.
    per_byte: Vec<u64>,
}

impl Weights {
    /// Largest number of units per byte.
    pub const MAX: u64 = 1 << 20;

    /// The weights of the flows of class 0, 1, 2 and so on; classes beyond the list have weight 1.
    ///
    /// # Errors
    /// A weight of zero, or weights whose least common multiple is above [`Weights::MAX`]; `parameter` is
    /// its name.
    pub fn new(parameter: &'static str, weights: &[u32]) -> Result<Weights, Invalid> {
        let mut unit = 1;
        for weight in weights.iter().copied().map(u64::from) {
            if weight == 0 {
                return Err(Invalid::new(parameter, "a weight of 0 never sends: write at least 1"));
            }
            unit = unit / gcd(unit, weight) * weight;
            if unit > Weights::MAX {
                let message = format!(
                    "{weights:?} have no common multiple up to {}: write weights that divide each other, such as 1, 2, 4",
                    Weights::MAX
                );
                return Err(Invalid::new(parameter, message));
            }
        }
        Ok(Weights { unit, per_byte: weights.iter().map(|weight| unit / u64::from(*weight)).collect() })
    }

    /// Cost of a packet for its flow: its length divided by its weight, in units.
    #[inline]
    pub fn cost(&self, meta: &Meta) -> u64 {
        let per_byte = self.per_byte.get(usize::from(meta.class)).copied().unwrap_or(self.unit);
        u64::from(meta.bytes) * per_byte
    }

    /// A number of units, in bytes at weight 1.
    pub fn bytes(&self, units: u64) -> f64 {
        units as f64 / self.unit as f64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(weights: &Weights, class: u16, bytes: u32) -> u64 {
        weights.cost(&Meta { class, bytes, ..Meta::default() })
    }

    #[test]
    fn lengths_over_weights_are_whole_numbers() {
        let weights = Weights::new("weights", &[4, 6, 1]).unwrap();
        // In twelfths of a byte.
        assert_eq!(
            [0, 1, 2, 3, 100].map(|class| cost(&weights, class, 1000)),
            [3000, 2000, 12_000, 12_000, 12_000]
        );
        assert_eq!(weights.bytes(12_000), 1000.0);
        let plain = Weights::new("weights", &[]).unwrap();
        assert_eq!((cost(&plain, 7, 1500), plain.bytes(1500)), (1500, 1500.0));
    }

    #[test]
    fn weights_without_a_common_measure_are_refused() {
        assert!(Weights::new("weights", &[1 << 20, 1 << 10]).is_ok());
        let error = Weights::new("weights", &[1021, 1031]).unwrap_err().to_string();
        assert_eq!(
            error,
            "weights: [1021, 1031] have no common multiple up to 1048576: write weights that divide each other, such as 1, 2, 4"
        );
        assert!(
            Weights::new("weights", &[1, 0]).unwrap_err().to_string().contains("a weight of 0 never sends")
        );
    }
}
