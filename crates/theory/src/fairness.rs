//! Fairness of shares.

/// Jain's fairness index, (Σx)² / (n Σx²): 1 if all shares are equal, 1/n if all but one are zero.
///
/// Shares are in any unit and not negative. `None` if there are no shares or all are zero.
///
/// Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC TR-301, 1984.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// The max-min fair share R of a link: the largest rate of a flow with which the link is full and all lower
/// demands are met. The solution of C = Σ min(r_i, R).
///
/// `rates`, the demands of the flows, and `capacity` are in the same unit and not negative. `None` if the sum
/// of the demands is at most the capacity.
///
/// Max-min fairness: Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2; equation (5) of FPIP
/// (Zhang, Jiang and Dou 2007).
pub fn fair_share(rates: &[f64], capacity: f64) -> Option<f64> {
    let mut rates = rates.to_vec();
    rates.sort_unstable_by(f64::total_cmp);
    let mut left = capacity;
    for (served, rate) in rates.iter().enumerate() {
        let share = left / (rates.len() - served) as f64;
        if *rate > share {
            return Some(share);
        }
        left -= rate;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_demands_are_met_and_the_rest_is_shared() {
        // Twenty senders of 0.5, 1, ... 10 at a link of 10: each half a unit.
        let twenty: Vec<f64> = (1..=20).map(|i| 0.5 * f64::from(i)).collect();
        assert_eq!(fair_share(&twenty, 10.0), Some(0.5));
        // Ten of 0.2 leave 8 to ten of 2.
        let share = fair_share(&[[0.2; 10], [2.0; 10]].concat(), 10.0).unwrap();
        assert!((share - 0.8).abs() < 1e-12, "{share}");
        assert_eq!(fair_share(&[4.0, 4.0, 4.0, 4.0, 4.0, 5.0], 10.0), Some(10.0 / 6.0));
        assert_eq!(fair_share(&[1.0, 2.0], 10.0), None);
        assert_eq!(fair_share(&[], 10.0), None);
    }

    proptest! {
        #[test]
        fn the_link_is_full_and_no_flow_exceeds_the_share(
            rates in prop::collection::vec(0.0..100.0f64, 1..50),
            capacity in 0.1..1000.0f64,
        ) {
            let requested: f64 = rates.iter().sum();
            match fair_share(&rates, capacity) {
                Some(share) => {
                    let used: f64 = rates.iter().map(|rate| rate.min(share)).sum();
                    prop_assert!((used / capacity - 1.0).abs() < 1e-9, "{used} of {capacity}");
                }
                None => prop_assert!(requested <= capacity * (1.0 + 1e-9)),
            }
        }
    }

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
