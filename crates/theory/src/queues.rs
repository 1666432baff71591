//! Queues with one server: waiting times, sojourn times and numbers in the system.
//!
//! λ is the arrival rate and μ the service rate, both per second; ρ = λ/μ (or λ·E\[S\]) is the load. The
//! waiting time ends when service starts, the sojourn time (also called response) when it ends, both
//! in seconds.
//!
//! "Kleinrock I" and "Kleinrock II" are Leonard Kleinrock, "Queueing Systems", volumes 1 (1975) and 2 (1976).

/// The load ρ = λ·E\[S\]; `None` unless the queue is stable.
fn stable_load(arrivals_per_s: f64, service_s: f64) -> Option<f64> {
    let load = arrivals_per_s * service_s;
    (0.0..1.0).contains(&load).then_some(load)
}

/// Mean waiting time in M/G/1, first come first served, in seconds: λ·E\[S²\] / (2(1 − ρ)).
///
/// `service_s` is E\[S\] in seconds, `service_second_moment` is E\[S²\] in seconds squared. `None` unless ρ
/// < 1.
///
/// Pollaczek 1930 and Khinchine 1932; Kleinrock I, section 5.7.
pub fn mg1_waiting(arrivals_per_s: f64, service_s: f64, service_second_moment: f64) -> Option<f64> {
    let load = stable_load(arrivals_per_s, service_s)?;
    Some(arrivals_per_s * service_second_moment / (2.0 * (1.0 - load)))
}

/// Mean sojourn time in M/G/1, first come first served, in seconds: the mean waiting time and one mean
/// service time.
///
/// Arguments as of [`mg1_waiting`]. A job of known size x waits as long as any other, so its sojourn time is
/// W + x.
pub fn mg1_fifo_response(arrivals_per_s: f64, service_s: f64, service_second_moment: f64) -> Option<f64> {
    Some(mg1_waiting(arrivals_per_s, service_s, service_second_moment)? + service_s)
}

/// Mean sojourn time in M/G/1 with processor sharing of a job that needs `size_s` seconds of service alone,
/// in seconds: x / (1 − ρ). It depends on the distribution of sizes only through its mean, `service_s`.
///
/// `None` unless ρ < 1. Kleinrock II, section 4.4.
pub fn mg1_processor_sharing_response(arrivals_per_s: f64, service_s: f64, size_s: f64) -> Option<f64> {
    Some(size_s / (1.0 - stable_load(arrivals_per_s, service_s)?))
}

/// Mean waiting time in M/M/1, in seconds: ρ / (μ − λ).
///
/// `None` unless ρ < 1. Kleinrock I, section 3.2: the mean sojourn time 1/(μ − λ) less the mean service time
/// 1/μ.
pub fn mm1_waiting(arrivals_per_s: f64, services_per_s: f64) -> Option<f64> {
    let load = stable_load(arrivals_per_s, 1.0 / services_per_s)?;
    Some(load / (services_per_s - arrivals_per_s))
}

/// Mean sojourn time in M/M/1, in seconds: 1 / (μ − λ).
///
/// `None` unless ρ < 1. Kleinrock I, section 3.2.
pub fn mm1_response(arrivals_per_s: f64, services_per_s: f64) -> Option<f64> {
    stable_load(arrivals_per_s, 1.0 / services_per_s)?;
    Some(1.0 / (services_per_s - arrivals_per_s))
}

/// Mean number in M/M/1, the one in service included: ρ / (1 − ρ).
///
/// `None` unless ρ < 1. Kleinrock I, section 3.2.
pub fn mm1_number(arrivals_per_s: f64, services_per_s: f64) -> Option<f64> {
    let load = stable_load(arrivals_per_s, 1.0 / services_per_s)?;
    Some(load / (1.0 - load))
}

/// The `quantile` (0 ≤ q < 1) of the waiting time in M/M/1, first come first served, in seconds: the t at
/// which P(W > t) = ρ·exp(−(μ − λ)t) has fallen to 1 − q. Zero if more than q of all arrivals do not wait.
///
/// `None` unless ρ < 1 and 0 ≤ q < 1. Kleinrock I, section 5.7, solved for the time.
pub fn mm1_waiting_quantile(arrivals_per_s: f64, services_per_s: f64, quantile: f64) -> Option<f64> {
    let load = stable_load(arrivals_per_s, 1.0 / services_per_s)?;
    if !(0.0..1.0).contains(&quantile) {
        return None;
    }
    Some((libm::log(load / (1.0 - quantile)) / (services_per_s - arrivals_per_s)).max(0.0))
}

/// Mean waiting time in M/D/1 with service time `service_s`, in seconds: ρ·D / (2(1 − ρ)), half of the time
/// in M/M/1.
///
/// `None` unless ρ < 1. [`mg1_waiting`] with E\[S²\] = D².
pub fn md1_waiting(arrivals_per_s: f64, service_s: f64) -> Option<f64> {
    mg1_waiting(arrivals_per_s, service_s, service_s * service_s)
}

/// Share of the arrivals that M/M/1/K loses: (1 − ρ)ρᴷ / (1 − ρᴷ⁺¹), and 1/(K + 1) at ρ = 1.
///
/// `places` is K, the one in service included. Any load. Kleinrock I, section 3.6, the state probability at k
/// = K.
pub fn mm1k_loss(load: f64, places: u32) -> f64 {
    mm1k_probability(load, places, places)
}

/// Mean number in M/M/1/K, the one in service included: ρ/(1 − ρ) − (K + 1)ρᴷ⁺¹/(1 − ρᴷ⁺¹), and K/2 at ρ = 1.
///
/// `places` is K. Any load. The mean of the distribution in Kleinrock I, section 3.6.
pub fn mm1k_number(load: f64, places: u32) -> f64 {
    // A sum, because the closed form loses all digits near ρ = 1.
    (0..=places).map(|k| f64::from(k) * mm1k_probability(load, places, k)).sum()
}

/// P(k in the system) of M/M/1/K: ρᵏ / Σρⁱ. Above ρ = 1 the powers are taken from the full end, where they
/// shrink.
fn mm1k_probability(load: f64, places: u32, k: u32) -> f64 {
    let (ratio, exponent) = if load <= 1.0 { (load, k) } else { (1.0 / load, places - k) };
    let all: f64 = (0..=places).map(|i| libm::pow(ratio, f64::from(i))).sum();
    libm::pow(ratio, f64::from(exponent)) / all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("within the range of the formula");
        assert!((value - expected).abs() <= 1e-12 * expected.abs(), "{value} is not {expected}");
    }

    /// λ = 8, μ = 10: ρ = 0.8, sojourn 1/2 s, waiting 0.5 − 0.1 = 0.4 s, number 4; Little: 8 · 0.5 = 4.
    #[test]
    fn mm1_by_hand() {
        close(mm1_response(8.0, 10.0), 0.5);
        close(mm1_waiting(8.0, 10.0), 0.4);
        close(mm1_number(8.0, 10.0), 4.0);
        // With exponential service E[S²] = 2/μ², and Pollaczek-Khinchine must give the same.
        close(mg1_waiting(8.0, 0.1, 0.02), 0.4);
        close(mg1_fifo_response(8.0, 0.1, 0.02), 0.5);
    }

    /// Half of M/M/1: 0.2 s.
    #[test]
    fn md1_by_hand() {
        close(md1_waiting(8.0, 0.1), 0.2);
    }

    /// Lindley's recursion with equally frequent service times, and arrivals drawn from a Weyl sequence
    /// instead of a random generator. It is independent of the formula.
    #[test]
    fn pollaczek_khinchine_agrees_with_a_simulated_queue() {
        // Service 0.5 s or 1.5 s, equally likely: E[S] = 1, E[S²] = 1.25; λ = 0.5: W = 0.5 · 1.25 / (2 · 0.5)
        // = 0.625 s.
        close(mg1_waiting(0.5, 1.0, 1.25), 0.625);
        let mut state = 0x1234_5678_9abc_def1_u64;
        let mut draw = move || {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut waiting, mut sum, n) = (0.0_f64, 0.0, 4_000_000);
        for _ in 0..n {
            let service = if draw() < 0.5 { 0.5 } else { 1.5 };
            let gap = -libm::log(1.0 - draw()) / 0.5;
            sum += waiting;
            waiting = (waiting + service - gap).max(0.0);
        }
        // The standard error is about 0.001 (waiting times are correlated over a few busy periods).
        assert!((sum / f64::from(n) - 0.625).abs() < 0.005);
    }

    #[test]
    fn processor_sharing_slows_all_jobs_by_the_same_factor() {
        close(mg1_processor_sharing_response(8.0, 0.1, 0.1), 0.5);
        close(mg1_processor_sharing_response(8.0, 0.1, 3.0), 15.0);
    }

    /// Half of the arrivals at ρ = 0.5 find an idle server, so the median waiting time is 0. At q = 0.9:
    /// 0.5·exp(−t) = 0.1 for μ − λ = 1, t = ln 5.
    #[test]
    fn mm1_quantiles_by_hand() {
        close(mm1_waiting_quantile(1.0, 2.0, 0.5), 0.0);
        close(mm1_waiting_quantile(1.0, 2.0, 0.4), 0.0);
        close(mm1_waiting_quantile(1.0, 2.0, 0.9), 1.609_437_912_434_100_3);
        assert_eq!(mm1_waiting_quantile(1.0, 2.0, 1.0), None);
    }

    /// The integral of the quantile function is the mean.
    #[test]
    fn mm1_quantiles_have_the_right_mean() {
        let n = 200_000;
        let sum: f64 =
            (0..n).filter_map(|i| mm1_waiting_quantile(8.0, 10.0, (f64::from(i) + 0.5) / f64::from(n))).sum();
        assert!((sum / f64::from(n) - 0.4).abs() < 1e-4);
    }

    #[test]
    fn overload_has_no_mean() {
        assert_eq!(mm1_waiting(10.0, 10.0), None);
        assert_eq!(md1_waiting(11.0, 0.1), None);
        assert_eq!(mg1_processor_sharing_response(20.0, 0.1, 1.0), None);
    }

    /// K = 2, ρ = 1/2: the states weigh 4 : 2 : 1, so the loss is 1/7 and the mean number (2 + 2)/7.
    #[test]
    fn mm1k_by_hand() {
        close(Some(mm1k_loss(0.5, 2)), 1.0 / 7.0);
        close(Some(mm1k_number(0.5, 2)), 4.0 / 7.0);
        close(Some(mm1k_loss(1.0, 9)), 0.1);
        close(Some(mm1k_number(1.0, 9)), 4.5);
        // ρ = 2 is ρ = 1/2 with full and empty exchanged: states 1 : 2 : 4.
        close(Some(mm1k_loss(2.0, 2)), 4.0 / 7.0);
        close(Some(mm1k_number(2.0, 2)), 10.0 / 7.0);
    }

    /// The closed forms for ρ other than 1, and the carried load: (1 − P_K)·ρ is the share of time for which
    /// the server is busy.
    #[test]
    fn mm1k_agrees_with_its_closed_forms() {
        for load in [0.3, 0.8, 0.95, 1.3, 4.0] {
            for places in [1, 5, 40] {
                let k = f64::from(places);
                let top = libm::pow(load, k + 1.0);
                let number = load / (1.0 - load) - (k + 1.0) * top / (1.0 - top);
                let loss = (1.0 - load) * libm::pow(load, k) / (1.0 - top);
                assert!((mm1k_number(load, places) - number).abs() < 1e-9 * number);
                assert!((mm1k_loss(load, places) - loss).abs() < 1e-9 * loss);
                let busy = 1.0 - mm1k_probability(load, places, 0);
                assert!(((1.0 - mm1k_loss(load, places)) * load - busy).abs() < 1e-12);
            }
        }
    }

    /// A permanent overload loses the excess: 1 − 1/ρ.
    #[test]
    fn mm1k_survives_large_loads_and_many_places() {
        assert!((mm1k_loss(5.0, 2_000) - 0.8).abs() < 1e-12);
        assert!(mm1k_loss(0.5, 2_000) < 1e-300);
    }
}
