//! Short packets that interrupt long ones: the formulae of "preemptive short packets first" (P-SPF), their
//! errors, and corrected formulae.
//!
//! Li, Liu, Shi, Xu and Wu analyse a crossbar in which a packet crosses in consecutive slots, except that
//! short packets of one cell go first. Equations are numbered as in their section 4. Destinations are
//! uniform. A wait is the time at the input that is not service, in slots; interruptions of a long packet
//! count.
//!
//! **Accuracy.** Compared with simulations of N = 16 and TRIMODEL(1, 9, 24, 0.559, 0.200), on-off arrivals:
//!
//! - [`blocked`] and [`max_throughput`] are right within 0.0005.
//! - [`short_wait`] is right at a load of 0.2 and too low at higher loads, by a factor of 1.06 at 0.5, 1.23
//!   at 0.8, 1.44 at 0.9 and 2.3 at 1: short packets come in runs. All of these waits are below 0.1 slots.
//! - [`long_wait`], [`overall_wait`] and [`gain`] are for low loads. Their pole is at a load of 1, while the
//!   queues of long packets grow without end from [`capacity`] on, which is 0.943. Simulated gains of P-SPF
//!   over 4-iSLIP are 2.10, 2.02, 1.91, 1.75, 1.45, 1.19, 0.73 and 0.10 at loads of 0.2, 0.5, 0.6, 0.7, 0.8,
//!   0.85, 0.9 and 0.95, where the formula has 2.03 to 2.11.
//! - [`corrected_long_wait`] has its pole at the capacity. Like all waits here it neglects that inputs can
//!   accept only one grant.

use super::mix::Mix;
use super::{Ports, cells};

/// E(W_s), the mean wait of short packets in slots: (N − 1)/N · λ_s / (2(1 − ρ_s)), eq. (2), and (3) for N →
/// ∞.
///
/// [`cells::output_queueing_wait`] at the load of short packets, so `None` unless 0 ≤ ρ ≤ 1, ρ_s < 1 and N
/// ≥ 1. Accurate (1 %) at loads around 0.2, 6 % too low at 0.5; the documentation of the module has more.
pub fn short_wait(mix: &Mix, load: f64, ports: Ports) -> Option<f64> {
    cells::output_queueing_wait(mix.at(load)?.short_load, ports)
}

/// E(W_l), the mean wait of long packets in slots; eq. (4), two classes with preemptive priority at one
/// server: (E(S_l) + λE(S²) / (2(1 − ρ))) / (1 − ρ_s) − E(S_l).
///
/// `None` unless 0 ≤ ρ < 1 and some packets are long. Only for low loads: at 0.8 the difference between
/// preemptive and general scheduling is 3 slots, and 37 to 41 in simulations. [`corrected_long_wait`] is
/// accurate at higher loads.
pub fn long_wait(mix: &Mix, load: f64) -> Option<f64> {
    long_wait_with_blocking(mix, load, 0.0)
}

/// E(W_p), the mean wait of all packets in slots under preemption; eq. (5): the mean of (3) and (4) by their
/// shares.
///
/// `None` unless 0 ≤ ρ < 1. For low loads, as [`long_wait`].
pub fn overall_wait(mix: &Mix, load: f64) -> Option<f64> {
    stable(load, 1.0)?;
    mean_of_both(mix, short_wait(mix, load, Ports::Infinite), long_wait(mix, load))
}

/// E(W_G), the mean wait of all packets in slots when nothing is preempted; eq. (6), which is M/G/1:
/// (1 + C_v²)ρE(S) / (2(1 − ρ)).
///
/// `None` unless 0 ≤ ρ < 1. It neglects conflicts at inputs, and so it is too low: simulated waits of 4-iSLIP
/// are 1.01, 1.24, 1.52 and 1.66 times as long at loads of 0.2, 0.5, 0.8 and 0.9.
pub fn general_wait(mix: &Mix, load: f64) -> Option<f64> {
    stable(load, 1.0)?;
    Some((1.0 + mix.squared_variation()) * load * mix.mean() / (2.0 * (1.0 - load)))
}

/// G = E(W_G)/E(W_p), the gain: the factor by which preemption shortens the mean wait; eq. (7):
/// (1 + C_v²)(1 − ρ_s)ρ² / ((1 − ρ)λ_s² + 2(1 − ρ)ρ_sρ_l + λ_lλE(S²)).
///
/// `None` unless 0 ≤ ρ ≤ 1, and at ρ = 1 without long packets. At 0 and 1 it is the limit: 2.010 and 2.112
/// for the paper's mix. Accurate (4 %) up to a load of 0.5, 8 % too high at 0.6; at 0.8 simulations have
/// 1.45, and less than 1 from 0.87 on. [`corrected_gain`] is more accurate from 0.7 on.
pub fn gain(mix: &Mix, load: f64) -> Option<f64> {
    let short_load = mix.at(load)?.short_load;
    // (1 + C_v²)ρ² = λ²E(S²), and all terms are divided by λ², so ρ = 0 is not a special case.
    let (short, long) = (mix.short_share(), mix.long_share());
    let long_cells = mix.long_mean().unwrap_or(0.0) * long;
    let unserved = 1.0 - load;
    let preempted =
        unserved * short * short + 2.0 * unserved * short * long_cells + long * mix.second_moment();
    (preempted > 0.0).then(|| (1.0 - short_load) * mix.second_moment() / preempted)
}

/// B, the probability that an output is blocked: its long packet cannot continue because its input sends a
/// short packet to another output; eq. (8), λ_s(1 − 1/N)(1 − λ_s/N)^(N − 1), and (9) for N → ∞,
/// λ_s·exp(−λ_s).
///
/// `short_rate` is λ_s in short packets per slot and input. `None` unless 0 ≤ λ_s ≤ 1 and N ≥ 1. For an
/// output that is always matched. At N = 16 and a load of 1 it is 0.0603, simulated 0.0600.
///
/// The last factor is the probability that no short packet *arrives* for this output at other inputs. The
/// event that matters is that it *receives* none, see [`blocked_by_received`].
pub fn blocked(short_rate: f64, ports: Ports) -> Option<f64> {
    let away = departs_for_elsewhere(short_rate, ports)?;
    Some(match ports {
        Ports::Finite(n) => away * libm::pow(1.0 - short_rate / f64::from(n), f64::from(n - 1)),
        Ports::Infinite => away * libm::exp(-short_rate),
    })
}

/// The probability that an output is blocked because its input sends a short packet to another output and it
/// *receives* none itself: λ_s(1 − 1/N)(1 − λ_s).
///
/// Arguments and range as of [`blocked`]. Where (8) counts short packets that arrive, some of which wait for
/// each other, this counts those that cross. Let M short packets cross in a slot, by a matching that favours
/// no port. A given input is in it and leads elsewhere while a given output is not in it with probability M(N
/// − M)/N², whose mean is λ_s(1 − λ_s) − Var(M)/N². The formula is exact when M varies as if each input had
/// one by itself, Var(M) = Nλ_s(1 − λ_s).
///
/// Below (8) by 0.00016 for N → ∞ and the paper's λ_s = 0.0686, by 0.0004 at N = 16. Of simulated throughputs
/// at N = 8, 16, 32 and 64, 0.9439, 0.9400, 0.9381 and 0.9370, it is within 0.0002, (8) within 0.0005. At N =
/// 4 both are: it is 0.0005 too high and (8) 0.0004 too low.
pub fn blocked_by_received(short_rate: f64, ports: Ports) -> Option<f64> {
    Some(departs_for_elsewhere(short_rate, ports)? * (1.0 - short_rate))
}

/// λ_s(1 − 1/N), the probability that a given input has a short packet for another output than a given one.
fn departs_for_elsewhere(short_rate: f64, ports: Ports) -> Option<f64> {
    (0.0..=1.0).contains(&short_rate).then_some(short_rate * ports.others()?)
}

/// λ_s at an input whose line is full, in short packets per slot; eq. (11), aP_a / (aP_a + bP_b + cP_c) with
/// a = 1.
pub fn short_rate_at_full_load(mix: &Mix) -> f64 {
    mix.short_share() / mix.mean()
}

/// T_max, the throughput of an output when every input line is full, in cells per slot; eq. (10), 1 − B.
///
/// `None` for no ports. Within 0.0005 of simulations at N = 4 to 64. It is the throughput at a load of 1,
/// *not* the largest stable load: short packets take their share first, so throughput falls once the switch
/// is overloaded. The largest stable load is [`capacity`].
pub fn max_throughput(mix: &Mix, ports: Ports) -> Option<f64> {
    Some(1.0 - blocked(short_rate_at_full_load(mix), ports)?)
}

/// The largest load, in cells per slot, at which all queues are stable under preemption: the T at which T = 1
/// − B(ρ_sT), where ρ_s is the share of cells that are short and B is [`blocked`]. At a load of T only T
/// times as many short packets come as at a load of 1, and so fewer slots are lost than in
/// [`max_throughput`].
///
/// `None` for no ports. 0.9429 for the paper's mix and N = 16; a simulation offered 0.95 carried 0.9421.
pub fn capacity(mix: &Mix, ports: Ports) -> Option<f64> {
    let short_share = short_rate_at_full_load(mix);
    // T + B(ρ_sT) − 1 grows with T, because B does as long as λ_s ≤ 1. So bisection finds the only root, to
    // the last bit.
    let (mut stable, mut unstable) = (0.0, 1.0);
    if blocked(short_share, ports)? == 0.0 {
        return Some(1.0);
    }
    loop {
        let middle = (stable + unstable) / 2.0;
        if middle <= stable || middle >= unstable {
            return Some(stable);
        }
        if middle + blocked(short_share * middle, ports)? <= 1.0 {
            stable = middle;
        } else {
            unstable = middle;
        }
    }
}

/// (4'), the mean wait of long packets in slots with the slots that preemption wastes: (E(S_l) + λE(S²)/2 /
/// (1 − ρ − B)) / (1 − ρ_s − B) − E(S_l), with B = [`blocked`] at the rate of short packets at ρ.
///
/// `None` unless 0 ≤ ρ < [`capacity`], N ≥ 1 and some packets are long. Not in the paper: eq. (4) in which a
/// long packet is stopped not only while its output receives short packets but also while it is blocked.
///
/// It neglects that an input can accept only one grant, as (4) and (6) do. Multiplied with what that costs
/// 4-iSLIP in the simulation (its mean wait over [`general_wait`]) it has 3.0, 15.0, 24.8, 43.4, 88.8, 150
/// and 361 slots at loads of 0.2, 0.5, 0.6, 0.7, 0.8, 0.85 and 0.9, where simulations have 2.7, 14.4, 24.7,
/// 44.8, 96.7, 170 and 457. So, scaled, it is accurate (12 %) up to 0.85. Unscaled it has 12.1 slots at 0.5
/// and 58.4 at 0.8.
pub fn corrected_long_wait(mix: &Mix, load: f64, ports: Ports) -> Option<f64> {
    long_wait_with_blocking(mix, load, blocked(mix.at(load)?.short_rate, ports)?)
}

/// The mean wait of all packets in slots with the slots that preemption wastes: the mean of [`short_wait`],
/// eq. (2), and [`corrected_long_wait`] by their shares.
///
/// `None` unless 0 ≤ ρ < [`capacity`] and N ≥ 1. Accurate as far as (4') is.
pub fn corrected_overall_wait(mix: &Mix, load: f64, ports: Ports) -> Option<f64> {
    mean_of_both(mix, short_wait(mix, load, ports), corrected_long_wait(mix, load, ports))
}

/// The corrected gain, the factor by which preemption shortens the mean wait: [`general_wait`] over
/// [`corrected_overall_wait`].
///
/// `None` unless 0 < ρ < [`capacity`] and N ≥ 1, and where no packet ever waits. The costs of conflicts at
/// inputs cancel roughly, so the result can be compared with simulations directly: it has 1.82, 1.79, 1.74,
/// 1.66, 1.48, 1.29, 0.90 and 0.10 at loads of 0.2, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9 and 0.94, where simulations
/// have 2.10, 2.02, 1.91, 1.75, 1.45, 1.19, 0.73 and, at 0.95, 0.10. So it is 5 % off from 0.7 to 0.8, and 13
/// % too low at 0.2, where [`gain`] is more accurate.
pub fn corrected_gain(mix: &Mix, load: f64, ports: Ports) -> Option<f64> {
    let preempted = corrected_overall_wait(mix, load, ports)?;
    (preempted > 0.0).then_some(general_wait(mix, load)? / preempted)
}

/// Eq. (4) in which a long packet is stopped for a share `blocked` of the slots in addition.
fn long_wait_with_blocking(mix: &Mix, load: f64, blocked: f64) -> Option<f64> {
    let (offered, service) = (mix.at(load)?, mix.long_mean()?);
    stable(load, 1.0 - blocked)?;
    let found = offered.rate * mix.second_moment() / 2.0;
    Some((service + found / (1.0 - load - blocked)) / (1.0 - offered.short_load - blocked) - service)
}

/// The mean wait of both classes, λ_s/λ · E(W_s) + λ_l/λ · E(W_l). Without long packets it is the mean wait
/// of short ones.
fn mean_of_both(mix: &Mix, short: Option<f64>, long: Option<f64>) -> Option<f64> {
    if mix.long_share() == 0.0 {
        return short;
    }
    Some(mix.short_share() * short? + mix.long_share() * long?)
}

/// `None` unless the load is at least 0 and below the capacity.
fn stable(load: f64, capacity: f64) -> Option<()> {
    (0.0..capacity).contains(&load).then_some(())
}

#[cfg(test)]
mod tests;
