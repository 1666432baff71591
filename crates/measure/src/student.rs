//! Student's t distribution, for confidence intervals over a handful of seeds.

/// The t that a Student variable with `freedom` degrees of freedom exceeds in absolute value with probability
/// `1 - inside`: 12.706 for 1 degree and 0.95.
///
/// Exact up to rounding: bisection on the finite sums for the distribution.
///
/// # Panics
/// Unless `freedom` is at least 1 and `inside` lies between 0 and 1.
pub fn t_quantile(freedom: u32, inside: f64) -> f64 {
    assert!(freedom > 0, "an interval needs two values");
    assert!((0.0..1.0).contains(&inside), "a probability below 1");
    // The bisection is over θ with t = √ν · tan θ: the angle is bounded, and t is not.
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if probability_within(freedom, middle) < inside {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::sqrt(f64::from(freedom)) * libm::tan(0.5 * (low + high))
}

/// The probability that a Student variable with `freedom` degrees of freedom is at least `t` in absolute
/// value: the p-value of a t-test. `t` is not negative.
pub fn t_exceeded(freedom: u32, t: f64) -> f64 {
    (1.0 - probability_within(freedom, libm::atan(t / libm::sqrt(f64::from(freedom))))).max(0.0)
}

/// P(|T| < √ν · tan θ); Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 (ν odd) and
/// 26.7.4 (even).
fn probability_within(freedom: u32, angle: f64) -> f64 {
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    let odd = freedom % 2;
    // Terms cosᵏθ · (2·4·…)/(3·5·…) for odd k, cosᵏθ · (1·3·…)/(2·4·…) for even k, up to k = ν − 2.
    let mut term = if odd == 1 { cos } else { 1.0 };
    let mut sum = 0.0;
    let mut k = odd;
    while k + 2 <= freedom {
        sum += term;
        term *= cos * cos * f64::from(k + 1) / f64::from(k + 2);
        k += 2;
    }
    if odd == 1 { std::f64::consts::FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};

    /// The 97.5 % column of the printed tables.
    #[test]
    fn the_table_in_the_back_of_the_book() {
        for (freedom, t) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)]
        {
            assert!((t_quantile(freedom, 0.95) - t).abs() < 5.1e-4, "{freedom}");
        }
        // ν = 1 is Cauchy's: tan(0.475π).
        assert!((t_quantile(1, 0.95) - libm::tan(0.475 * std::f64::consts::PI)).abs() < 1e-12);
        // ν = 2 has the closed form t = p·√(2/(1 − p²)).
        assert!((t_quantile(2, 0.95) - 0.95 * libm::sqrt(2.0 / (1.0 - 0.9025))).abs() < 1e-12);
    }

    #[test]
    fn an_independent_implementation_agrees() {
        for freedom in (1..=60).chain([99, 500, 1000]) {
            let oracle = StudentsT::new(0.0, 1.0, f64::from(freedom)).unwrap();
            for inside in [0.5, 0.9, 0.95, 0.99] {
                let t = t_quantile(freedom, inside);
                let probability = 2.0 * oracle.cdf(t) - 1.0;
                assert!((probability - inside).abs() < 1e-9, "{freedom} {inside}: {probability}");
            }
        }
    }
}
