use proptest::prelude::*;

use super::*;

const PORTS: Ports = Ports::Finite(16);

/// TRIMODEL(1, 9, 24, 0.559, 0.200).
fn paper() -> Mix {
    Mix::trimodel([1, 9, 24], 0.559, 0.200).unwrap()
}

/// 0.05 to 0.95.
fn loads() -> impl Iterator<Item = f64> {
    (1..20).map(|i| f64::from(i) / 20.0)
}

#[track_caller]
fn close(value: Option<f64>, expected: f64, tolerance: f64) {
    let value = value.expect("within the range of the formula");
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
}

/// Equation (1) with p = 0.1 and N = 16: 15/16 · 0.1/1.8.
#[test]
fn short_packets_wait_as_behind_an_output_queue() {
    let shorts = Mix::trimodel([1, 9, 24], 1.0, 0.0).unwrap();
    close(short_wait(&shorts, 0.1, PORTS), 15.0 / 16.0 * 0.1 / 1.8, 1e-12);
    close(short_wait(&shorts, 0.1, Ports::Infinite), 0.1 / 1.8, 1e-12);
    // At a load of 1 the paper's mix has λ_s = 0.068648.
    close(short_wait(&paper(), 1.0, Ports::Infinite), 0.068_648 / (2.0 * (1.0 - 0.068_648)), 1e-6);
}

/// Packets of one and three cells, half each: E(S) = 2, E(S²) = 5, and at ρ = 0.5 λ = 1/4, ρ_s = 1/8, ρ_l =
/// 3/8. (4): (3 + 5/4)/(7/8) − 3 = 13/7. (3): (1/8)/(2 · 7/8) = 1/14. (5): their mean, 27/28. (6):
/// (1/4)(5)/(2/2) = 5/4.
#[test]
fn one_and_three_cells_by_hand() {
    let mix = Mix::trimodel([1, 3, 3], 0.5, 0.5).unwrap();
    close(long_wait(&mix, 0.5), 13.0 / 7.0, 1e-12);
    close(overall_wait(&mix, 0.5), 27.0 / 28.0, 1e-12);
    close(general_wait(&mix, 0.5), 1.25, 1e-12);
    close(gain(&mix, 0.5), 35.0 / 27.0, 1e-12);
}

/// (5) is printed twice, as a mean and multiplied out, and (7) is (6)/(5): at 19 loads all these forms
/// agree.
#[test]
fn the_equations_agree_with_each_other() {
    let mix = paper();
    let spread = 1.0 + mix.squared_variation();
    for load in loads() {
        let offered = mix.at(load).unwrap();
        let (rate, short_rate, long_rate) = (offered.rate, offered.short_rate, offered.long_rate);
        let (short_load, long_load, second) = (offered.short_load, offered.long_load, mix.second_moment());
        let (short, long) =
            (short_wait(&mix, load, Ports::Infinite).unwrap(), long_wait(&mix, load).unwrap());
        let mean = short_rate / rate * short + long_rate / rate * long;
        let multiplied_out = (0.5 * short_rate * short_rate
            + short_load * long_load
            + long_rate * rate * second / (2.0 * (1.0 - load)))
            / (rate * (1.0 - short_load));
        close(overall_wait(&mix, load), mean, 1e-12 * mean);
        close(overall_wait(&mix, load), multiplied_out, 1e-12 * mean);
        close(general_wait(&mix, load), rate * second / (2.0 * (1.0 - load)), 1e-12 * mean);
        let printed = spread * (1.0 - short_load) * load * load
            / ((1.0 - load) * short_rate * short_rate
                + 2.0 * (1.0 - load) * short_load * long_load
                + long_rate * rate * second);
        close(gain(&mix, load), printed, 1e-12);
        close(gain(&mix, load), general_wait(&mix, load).unwrap() / multiplied_out, 1e-12);
    }
}

/// 2.010 towards no load and 2.112 towards a full one, which is (1 − ρ_s)·λ/λ_l. Between 0.2 and 0.95: 2.03
/// to 2.11.
#[test]
fn limits_of_the_gain() {
    close(gain(&paper(), 0.0), 2.010, 0.0005);
    close(gain(&paper(), 1.0), 2.112, 0.0005);
    close(gain(&paper(), 0.2), 2.03, 0.005);
    close(gain(&paper(), 0.95), 2.11, 0.005);
}

#[test]
fn throughput_at_a_full_load() {
    let lambda = short_rate_at_full_load(&paper());
    assert!((lambda - 0.068_648).abs() < 5e-7, "{lambda}");
    // Printed with five digits and with four. 0.94345 is 0.9435 or, from more digits, 0.9434.
    close(max_throughput(&paper(), PORTS), 0.93966, 0.000_005);
    close(max_throughput(&paper(), Ports::Infinite), 0.93591, 0.000_005);
    for (ports, expected) in [(4, 0.9511), (8, 0.9435), (32, 0.9378), (64, 0.9368)] {
        close(max_throughput(&paper(), Ports::Finite(ports)), expected, 0.000_051);
    }
    // The other formula, in which only short packets that cross block an output.
    let difference = |ports| blocked(lambda, ports).unwrap() - blocked_by_received(lambda, ports).unwrap();
    assert!((difference(Ports::Infinite) - 0.000_16).abs() < 0.000_005);
    assert!((difference(PORTS) - 0.000_40).abs() < 0.000_005);
}

/// Measurements of a separate simulator at full load (standard deviation of a run 0.0001).
#[test]
fn simulated_throughputs() {
    let lambda = short_rate_at_full_load(&paper());
    for (ports, simulated) in [(4, 0.9515), (8, 0.9439), (32, 0.9381), (64, 0.9370)] {
        close(max_throughput(&paper(), Ports::Finite(ports)), simulated, 0.0005);
        if ports >= 8 {
            close(Some(1.0 - blocked_by_received(lambda, Ports::Finite(ports)).unwrap()), simulated, 0.0002);
        }
    }
    close(Some(blocked_by_received(lambda, PORTS).unwrap()), 0.0600, 0.0001);
}

/// 0.9429, and 0.9429 + B(0.9429 λ_s) = 1: above what the switch carries at a load of 1.
#[test]
fn capacity_is_the_load_that_blocks_the_rest() {
    close(capacity(&paper(), PORTS), 0.9429, 0.000_05);
    let largest = capacity(&paper(), PORTS).unwrap();
    assert!(largest > max_throughput(&paper(), PORTS).unwrap());
    let at_it = blocked(paper().at(largest).unwrap().short_rate, PORTS).unwrap();
    assert!((largest + at_it - 1.0).abs() < 1e-15);
    // No output is blocked without short packets, or with a single port.
    close(capacity(&Mix::trimodel([9, 9, 24], 0.5, 0.5).unwrap(), PORTS), 1.0, 0.0);
    close(capacity(&paper(), Ports::Finite(1)), 1.0, 0.0);
}

/// Calculated independently and multiplied with the same number, (4) and (4') are 63 and 88.8 slots at a load
/// of 0.8, 154 and 361 at 0.9. So (4')/(4) is 1.41 and 2.34. The gains are simulated ones.
#[test]
fn corrected_waits() {
    for (load, paper_has, corrected_has) in [(0.8, 63.0, 88.8), (0.9, 154.0, 361.0)] {
        let ratio = corrected_long_wait(&paper(), load, PORTS).unwrap() / long_wait(&paper(), load).unwrap();
        // Half a slot in 63.
        assert!((ratio / (corrected_has / paper_has) - 1.0).abs() < 0.008, "{ratio}");
    }
    for (load, simulated, within) in [(0.7, 1.75, 0.05), (0.8, 1.45, 0.025), (0.85, 1.19, 0.09)] {
        close(corrected_gain(&paper(), load, PORTS), simulated, within * simulated);
    }
}

/// One and three cells again, at ρ = 0.5 and N = 2: λ_s = 1/8, B = 1/8 · 1/2 · 15/16 = 15/256;
/// (4') is (3 + (5/8)/(128/256 − 15/256))/(224/256 − 15/256) − 3.
#[test]
fn corrected_wait_by_hand() {
    let mix = Mix::trimodel([1, 3, 3], 0.5, 0.5).unwrap();
    let ports = Ports::Finite(2);
    close(blocked(0.125, ports), 15.0 / 256.0, 1e-15);
    let long = (3.0 + 160.0 / 113.0) / (209.0 / 256.0) - 3.0;
    close(corrected_long_wait(&mix, 0.5, ports), long, 1e-12);
    // (2) is half of (3) for two ports.
    let overall = 0.5 * (1.0 / 28.0) + 0.5 * long;
    close(corrected_overall_wait(&mix, 0.5, ports), overall, 1e-12);
    close(corrected_gain(&mix, 0.5, ports), 1.25 / overall, 1e-12);
}

/// The pole of (4') is the capacity, the pole of (4) is 1.
#[test]
fn poles() {
    let largest = capacity(&paper(), PORTS).unwrap();
    assert!(corrected_long_wait(&paper(), largest - 1e-6, PORTS).unwrap() > 1e6);
    assert_eq!(corrected_long_wait(&paper(), largest + 1e-9, PORTS), None);
    assert_eq!(corrected_overall_wait(&paper(), largest + 1e-9, PORTS), None);
    assert_eq!(corrected_gain(&paper(), largest + 1e-9, PORTS), None);
    assert!(long_wait(&paper(), 1.0 - 1e-6).unwrap() > 1e6);
    assert_eq!(long_wait(&paper(), 1.0), None);
}

#[test]
fn out_of_range() {
    let mix = paper();
    for load in [-0.1, 1.0, 1.1, f64::NAN] {
        assert_eq!(long_wait(&mix, load), None);
        assert_eq!(overall_wait(&mix, load), None);
        assert_eq!(general_wait(&mix, load), None);
    }
    assert_eq!(gain(&mix, 1.1), None);
    assert_eq!(gain(&mix, f64::NAN), None);
    assert_eq!(blocked(1.1, PORTS), None);
    assert_eq!(blocked_by_received(-0.1, PORTS), None);
    for none in [
        short_wait(&mix, 0.5, Ports::Finite(0)),
        blocked(0.5, Ports::Finite(0)),
        max_throughput(&mix, Ports::Finite(0)),
        capacity(&mix, Ports::Finite(0)),
        corrected_long_wait(&mix, 0.5, Ports::Finite(0)),
    ] {
        assert_eq!(none, None);
    }
    let shorts = Mix::trimodel([1, 9, 24], 1.0, 0.0).unwrap();
    assert_eq!(long_wait(&shorts, 0.5), None);
    assert_eq!(gain(&shorts, 1.0), None);
}

/// With short packets alone nothing is preempted, and with none neither.
#[test]
fn one_class_gains_nothing() {
    let shorts = Mix::trimodel([1, 9, 24], 1.0, 0.0).unwrap();
    let longs = Mix::trimodel([9, 9, 24], 0.5, 0.5).unwrap();
    for load in loads() {
        close(gain(&shorts, load), 1.0, 1e-12);
        close(gain(&longs, load), 1.0, 1e-12);
        let general = general_wait(&longs, load).unwrap();
        close(long_wait(&longs, load), general, 1e-12 * general.max(1.0));
        close(corrected_overall_wait(&longs, load, PORTS), general, 1e-12 * general.max(1.0));
    }
}

proptest! {
    /// (9) is (8) for many ports, more ports block more, and fewer outputs receive short packets than have
    /// any arriving.
    #[test]
    fn blocking(short_rate in 0.0..=1.0f64, ports in 1u32..1000) {
        let with = |ports| blocked(short_rate, Ports::Finite(ports)).unwrap();
        let limit = blocked(short_rate, Ports::Infinite).unwrap();
        prop_assert!((with(1_000_000) - limit).abs() < 1e-5);
        prop_assert!(with(ports) <= with(ports + 1));
        prop_assert!((0.0..=limit).contains(&with(ports)));
        prop_assert!(blocked_by_received(short_rate, Ports::Finite(ports)).unwrap() <= with(ports));
    }

    /// Whatever the mix, wasted slots make waits longer, and a switch is stable below its capacity only.
    #[test]
    fn corrections(p_a in 0.01..0.99f64, of_rest in 0.0..1.0f64, cells in 2u32..40, load in 0.01..0.99f64, ports in 2u32..64) {
        let mix = Mix::trimodel([1, cells, 2 * cells], p_a, (1.0 - p_a) * of_rest).unwrap();
        let ports = Ports::Finite(ports);
        let largest = capacity(&mix, ports).unwrap();
        prop_assert!(largest >= max_throughput(&mix, ports).unwrap());
        let corrected = corrected_long_wait(&mix, load, ports);
        prop_assert_eq!(corrected.is_some(), load < largest);
        if let Some(corrected) = corrected {
            prop_assert!(corrected > long_wait(&mix, load).unwrap());
        }
    }
}
