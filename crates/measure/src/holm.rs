//! Holm's correction for several comparisons at once.
//!
//! Of a hundred differences without any cause, five are outside their 95 % interval. Holm (1979, "A simple
//! sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6) keeps the
//! probability of even one such finding below the level, whatever the tests have in common: the smallest of
//! `m` p-values is compared with `level / m`, the next one with `level / (m - 1)`, and so on, until one is
//! too large.

/// For each p-value, true if its difference counts at this level of all together.
///
/// ```
/// use giveway_measure::holm;
///
/// // 0.01 is below 0.05 / 3; 0.03 is not below 0.05 / 2, so 0.04 does not count either.
/// assert_eq!(holm(&[0.04, 0.01, 0.03], 0.05), [false, true, false]);
/// ```
pub fn holm(p_values: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut counts = vec![false; p_values.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if p_values[at] > level / (p_values.len() - rank) as f64 {
            break;
        }
        counts[at] = true;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test is not corrected; the example with four is worked out by hand.
    #[test]
    fn by_hand() {
        assert_eq!(holm(&[0.05], 0.05), [true]);
        assert_eq!(holm(&[0.051], 0.05), [false]);
        // 0.05 / 4 = 0.0125, / 3 = 0.0167, / 2 = 0.025, / 1.
        assert_eq!(holm(&[0.01, 0.016, 0.024, 0.05], 0.05), [true; 4]);
        assert_eq!(holm(&[0.01, 0.017, 0.001, 0.0], 0.05), [true, true, true, true]);
        assert_eq!(holm(&[0.013, 0.013, 0.013, 0.013], 0.05), [false; 4]);
        assert!(holm(&[], 0.05).is_empty());
    }
}
