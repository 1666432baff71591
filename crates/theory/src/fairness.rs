//! How equal shares are.

/// Jain's fairness index, (Σx)² / (n Σx²): 1 when all shares are equal, 1/n when one has everything.
///
/// Shares in any unit, none negative. `None` when there are no shares or all are zero.
///
/// Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC TR-301, 1984.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_equal_shares_and_one_winner() {
        assert_eq!(jain(&[5.0; 7]), Some(1.0));
        assert_eq!(jain(&[0.0, 0.0, 3.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)² / (3 · (1 + 4 + 9)) = 36/42.
        assert_eq!(jain(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
    }

    #[test]
    fn nothing_shared_has_no_fairness() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
