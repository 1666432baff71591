//! Random early detection: the average queue length, and the drop probability that follows from it (Floyd and
//! Jacobson 1993), with the later `gentle`, `wait` and adaptive rules (Floyd, Gummadi and Shenker 2001).
//!
//! Lengths and thresholds have the same unit, packets or bytes. The caller supplies the random draws, so that
//! examples can be computed by hand.

use crate::units::{Span, Time};

/// Drop probability as a function of the average queue length.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    /// `min_th`: the probability is zero below it.
    pub min: f64,
    /// `max_th`: the probability reaches `max_p` there.
    pub max: f64,
    /// If true, the probability rises from `max_p` at `max` to 1 at twice `max`; otherwise it jumps to 1 at
    /// `max`.
    pub gentle: bool,
}

impl Curve {
    /// `p_b`, the probability before [`spread`].
    pub fn base(&self, average: f64, max_p: f64) -> f64 {
        if average < self.min {
            0.0
        } else if average < self.max {
            max_p * ((average - self.min) / (self.max - self.min))
        } else if self.gentle && average < 2.0 * self.max {
            max_p + (1.0 - max_p) * ((average - self.max) / self.max)
        } else {
            1.0
        }
    }
}

/// `p_a`, the probability that spaces drops evenly. `count` is the number of packets since the last drop,
/// including this one.
///
/// The gap between two drops is uniform in 1 to 1/`p_b`; with `wait` it is uniform in 1/`p_b` to 2/`p_b`, so
/// that two drops are never close.
pub fn spread(p_b: f64, count: f64, wait: bool) -> f64 {
    let expected = count * p_b;
    match wait {
        false if expected < 1.0 => p_b / (1.0 - expected),
        true if expected < 1.0 => 0.0,
        true if expected < 2.0 => p_b / (2.0 - expected),
        _ => 1.0,
    }
    .min(1.0)
}

/// The weight `w_q` for a burst size: the largest power of two with which a burst of `burst` packets into an
/// empty queue keeps the average below `min` packets (Floyd and Jacobson, section 6.1; the kernel stores it
/// as a shift).
///
/// `None` if the burst is shorter than `min`, which every weight satisfies.
pub fn weight_for_burst(burst: u64, min: f64) -> Option<f64> {
    let length = burst as f64;
    if length < min {
        return None;
    }
    let mut weight = 0.5;
    // 2^-31 is the end of the kernel's scale. The average hardly moves with much larger weights already.
    for _ in 1..31 {
        let reached = length + 1.0 + (libm::pow(1.0 - weight, length + 1.0) - 1.0) / weight;
        if reached < min {
            break;
        }
        weight /= 2.0;
    }
    Some(weight)
}

/// The weight `w_q` with which the average follows the queue within a second, at any link rate: 1 - exp(-1/C)
/// with C in packets per second (Floyd, Gummadi and Shenker 2001: ten round trips of 100 ms).
pub fn weight_for_rate(packets_per_s: f64) -> f64 {
    -libm::expm1(-1.0 / packets_per_s)
}

/// Adaptation of `max_p`, which keeps the average in the middle between the thresholds.
#[derive(Clone, Copy, Debug)]
pub struct Adapt {
    /// Shortest time between two steps.
    pub interval: Span,
    /// Increment of a step, limited to a quarter of `max_p`.
    pub alpha: f64,
    /// Factor of a decrease.
    pub beta: f64,
    /// Lower bound of `max_p`.
    pub bottom: f64,
    /// Upper bound of `max_p`.
    pub top: f64,
}

impl Default for Adapt {
    fn default() -> Adapt {
        Adapt { interval: Span::ms(500), alpha: 0.01, beta: 0.9, bottom: 0.01, top: 0.5 }
    }
}

impl Adapt {
    /// Target range of the average: the middle fifth between the thresholds.
    pub fn band(curve: &Curve) -> (f64, f64) {
        let part = 0.4 * (curve.max - curve.min);
        (curve.min + part, curve.max - part)
    }

    /// `max_p` after one step.
    pub fn step(&self, max_p: f64, average: f64, curve: &Curve) -> f64 {
        let (low, high) = Adapt::band(curve);
        if average > high && max_p < self.top {
            // Floyd, Gummadi and Shenker: up by addition and down by a factor, slowly enough that
            // the average can follow.
            (max_p + self.alpha.min(max_p / 4.0)).min(self.top)
        } else if average < low && max_p > self.bottom {
            (max_p * self.beta).max(self.bottom)
        } else {
            max_p
        }
    }
}

/// Decision of RED about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedDecision {
    /// Enqueue the packet.
    Accept,
    /// Signal congestion: drop or mark the packet.
    Signal,
    /// Signal congestion while the average is at `max` or above.
    SignalAboveMax,
}

/// RED detector of one queue: parameters and state.
#[derive(Clone, Debug)]
pub struct Detector {
    curve: Curve,
    weight: f64,
    wait: bool,
    adapt: Option<Adapt>,
    /// Initial `max_p`, for a reset.
    initial_max_p: f64,
    max_p: f64,
    adapted_at: Option<Time>,
    average: f64,
    /// Packets since the last signal, in mean packets if sizes count.
    count: f64,
    /// True if the average was above `min` at the previous arrival, too: `old` in ns-2.
    armed: bool,
}

impl Detector {
    /// A detector with weight `w_q`, whose `max_p` adapts if there is an `adapt`.
    pub fn new(curve: Curve, weight: f64, max_p: f64, wait: bool, adapt: Option<Adapt>) -> Detector {
        Detector {
            curve,
            weight,
            wait,
            adapt,
            initial_max_p: max_p,
            max_p,
            adapted_at: None,
            average: 0.0,
            count: 0.0,
            armed: false,
        }
    }

    /// Updates the average for an arrival at a queue of `length`. `missed` is the number of packets that the
    /// link could have sent while it was idle before.
    #[inline]
    pub fn observe(&mut self, length: f64, missed: u64, now: Time) {
        let kept = match missed {
            0 => 1.0 - self.weight,
            // Floyd and Jacobson, section 4: an idle link counts as arrivals at an empty queue, one for each
            // packet that it could have sent.
            missed => libm::pow(1.0 - self.weight, missed as f64 + 1.0),
        };
        self.average = kept * self.average + self.weight * length;
        if let Some(adapt) = self.adapt {
            let since = *self.adapted_at.get_or_insert(now);
            if now.since(since) >= adapt.interval {
                self.max_p = adapt.step(self.max_p, self.average, &self.curve);
                self.adapted_at = Some(now);
            }
        }
    }

    /// Decides on the packet that [`observe`](Detector::observe) counted. It counts as `size` mean packets
    /// (1 unless sizes count). `draw` returns a uniform number in 0 to 1; it is called only if the decision
    /// is random.
    #[inline]
    pub fn decide(&mut self, length: f64, size: f64, draw: impl FnOnce() -> f64) -> RedDecision {
        self.count += size;
        // A queue of at most one packet is not congested, even if the average is still high.
        if self.average < self.curve.min || length <= 1.0 {
            self.armed = false;
            return RedDecision::Accept;
        }
        self.decide_above(size, draw)
    }

    /// The buffer overflowed. Its drops signal congestion, so the count of packets since the last signal
    /// restarts.
    pub fn on_overflow(&mut self) {
        self.count = 0.0;
    }

    /// Continues another detector, whose average is `average` in the unit of this one's thresholds. A `max_p`
    /// that has adapted stays, if it started with the same value.
    pub fn take_over(&mut self, old: &Detector, average: f64) {
        self.average = average;
        (self.count, self.armed) = (old.count, old.armed);
        if self.adapt.is_some() && self.initial_max_p == old.initial_max_p {
            (self.max_p, self.adapted_at) = (old.max_p, old.adapted_at);
        }
    }

    /// Returns to the initial state.
    pub fn reset(&mut self) {
        *self = Detector::new(self.curve, self.weight, self.initial_max_p, self.wait, self.adapt);
    }

    /// Average queue length, in the unit of the thresholds.
    pub fn average(&self) -> f64 {
        self.average
    }
    /// Current `max_p`.
    pub fn max_p(&self) -> f64 {
        self.max_p
    }
    /// Current `p_b`.
    pub fn base(&self) -> f64 {
        self.curve.base(self.average, self.max_p)
    }

    fn decide_above(&mut self, size: f64, draw: impl FnOnce() -> f64) -> RedDecision {
        let p_b = self.base();
        let certain = p_b >= 1.0;
        if !certain && !self.armed {
            // The average has just crossed `min` from below: the count begins, without a signal.
            self.armed = true;
            self.count = size;
            return RedDecision::Accept;
        }
        // Spread over the packets since the last signal, so that signals come at even distances and not in
        // clusters.
        let p_a = (spread(p_b, self.count, self.wait) * size).min(1.0);
        if !certain && draw() >= p_a {
            return RedDecision::Accept;
        }
        self.count = 0.0;
        if self.average < self.curve.max { RedDecision::Signal } else { RedDecision::SignalAboveMax }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    const KB: Curve = Curve { min: 25_000.0, max: 75_000.0, gentle: true };

    #[test]
    fn the_probability_rises_in_two_straight_lines() {
        close(KB.base(50_000.0, 0.1), 0.05, 1e-15);
        close(KB.base(90_000.0, 0.1), 0.28, 1e-15);
        assert_eq!(KB.base(24_999.0, 0.1), 0.0);
        assert_eq!(KB.base(150_000.0, 0.1), 1.0);
        assert_eq!(Curve { gentle: false, ..KB }.base(75_000.0, 0.1), 1.0);
    }

    #[test]
    fn wait_keeps_drops_apart() {
        for (count, p_a) in [(19.0, 0.0), (20.0, 0.05), (30.0, 0.1), (40.0, 1.0)] {
            close(spread(0.05, count, true), p_a, 1e-15);
        }
        // Without `wait` the gap is uniform: probabilities of 1/20, 1/19, 1/18 and so on.
        for (count, p_a) in [(0.0, 1.0 / 20.0), (1.0, 1.0 / 19.0), (18.0, 0.5), (20.0, 1.0)] {
            close(spread(0.05, count, false), p_a, 1e-12);
        }
    }

    #[test]
    fn the_average_follows_slowly() {
        let mut detector = Detector::new(KB, 0.002, 0.1, true, None);
        let expected = [0.0, 0.004, 0.011992, 0.023968, 0.03992, 0.05984, 0.083721, 0.111553];
        for (i, average) in expected.into_iter().enumerate() {
            detector.observe(2.0 * i as f64, 0, Time::ZERO);
            close(detector.average(), average, 5e-7);
        }
    }

    #[test]
    fn an_idle_link_counts_as_short_queues() {
        let mut detector = Detector::new(KB, 0.25, 0.1, false, None);
        detector.observe(100.0, 0, Time::ZERO);
        let mut stepwise = detector.clone();
        detector.observe(0.0, 3, Time::ZERO);
        for _ in 0..4 {
            stepwise.observe(0.0, 0, Time::ZERO);
        }
        close(detector.average(), stepwise.average(), 1e-12);
        close(detector.average(), 25.0 * 0.75 * 0.75 * 0.75 * 0.75, 1e-12);
    }

    /// A small queue without departures, step by step.
    #[test]
    fn eight_arrivals() {
        let curve = Curve { min: 2.0, max: 6.0, gentle: true };
        let mut detector = Detector::new(curve, 0.25, 0.5, true, None);
        let averages = [0.0, 0.25, 0.6875, 1.2656, 1.9492, 2.7119, 3.5339, 4.4005];
        let probabilities = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0890, 0.1917, 0.3001];
        for (queued, (average, p_b)) in averages.into_iter().zip(probabilities).enumerate() {
            detector.observe(queued as f64, 0, Time::ZERO);
            close(detector.average(), average, 5e-5);
            close(detector.base(), p_b, 5e-5);
            assert_eq!(detector.decide(queued as f64, 1.0, || 0.999), RedDecision::Accept);
        }
    }

    #[test]
    fn the_first_packet_above_min_only_starts_the_count() {
        let curve = Curve { min: 2.0, max: 6.0, gentle: true };
        let mut detector = Detector::new(curve, 1.0, 0.5, false, None);
        detector.observe(4.0, 0, Time::ZERO);
        assert_eq!(detector.decide(4.0, 1.0, || unreachable!("no draw")), RedDecision::Accept);
        // Second packet: count 2, p_b 0.25, p_a 0.25 / (1 - 0.5) = 0.5.
        let mut other = detector.clone();
        detector.observe(4.0, 0, Time::ZERO);
        assert_eq!(detector.decide(4.0, 1.0, || 0.499), RedDecision::Signal);
        other.observe(4.0, 0, Time::ZERO);
        assert_eq!(other.decide(4.0, 1.0, || 0.5), RedDecision::Accept);
        // An empty queue prevents a signal, although the average is still high.
        assert_eq!(other.decide(1.0, 1.0, || unreachable!("no draw")), RedDecision::Accept);
        assert_eq!(other.decide(4.0, 1.0, || unreachable!("no draw")), RedDecision::Accept);
        // Above twice max every packet is signalled.
        other.observe(12.0, 0, Time::ZERO);
        assert_eq!(other.decide(12.0, 1.0, || unreachable!("no draw")), RedDecision::SignalAboveMax);
    }

    /// At 5 % with `wait`, none of the 19 packets after an overflow is signalled, and the 20th may be.
    #[test]
    fn an_overflow_restarts_the_count() {
        let mut detector = Detector::new(KB, 1.0, 0.1, true, None);
        detector.observe(50_000.0, 0, Time::ZERO);
        for count in 1..=19 {
            assert_eq!(detector.decide(50_000.0, 1.0, || 0.0), RedDecision::Accept, "{count}");
        }
        detector.on_overflow();
        for count in 1..=19 {
            assert_eq!(
                detector.decide(50_000.0, 1.0, || 0.0),
                RedDecision::Accept,
                "{count} after the overflow"
            );
        }
        assert_eq!(detector.decide(50_000.0, 1.0, || 0.0), RedDecision::Signal);
    }

    #[test]
    fn large_packets_are_likelier_when_sizes_count() {
        let curve = Curve { min: 2.0, max: 6.0, gentle: true };
        let armed = |size| {
            let mut detector = Detector::new(curve, 1.0, 0.1, false, None);
            detector.observe(4.0, 0, Time::ZERO);
            assert_eq!(detector.decide(4.0, 1.0, || 1.0), RedDecision::Accept);
            detector.observe(4.0, 0, Time::ZERO);
            // The decision for a draw.
            move |u: f64| detector.clone().decide(4.0, size, || u)
        };
        // p_b 0.05. One mean packet: count 2, p_a 0.05/0.9. Two: count 3, p_a 2 * 0.05/0.85.
        assert_eq!(armed(1.0)(0.0555), RedDecision::Signal);
        assert_eq!(armed(1.0)(0.0556), RedDecision::Accept);
        assert_eq!(armed(2.0)(0.1176), RedDecision::Signal);
        assert_eq!(armed(2.0)(0.1177), RedDecision::Accept);
    }

    #[test]
    fn weights() {
        // Floyd and Jacobson, section 6.1: min 5 packets, bursts of 50, so the weight is at most 0.0042 (two
        // digits).
        assert_eq!(weight_for_burst(50, 5.0), Some(1.0 / 256.0));
        let reached = |w: f64| 51.0 + (libm::pow(1.0 - w, 51.0) - 1.0) / w;
        assert!(reached(0.00415) < 5.0 && reached(0.00425) > 5.0);
        assert_eq!(weight_for_burst(4, 5.0), None);
        close(weight_for_rate(3125.0), 3.1995e-4, 5e-9);
        close(weight_for_rate(2500.0), 0.0004, 1e-7);
    }

    /// 12.5 Mbit/s, 500-byte packets, 5 ms: thresholds 7.8125 and 23.4375 packets.
    #[test]
    fn max_p_follows_the_average() {
        let curve = Curve { min: 7.8125, max: 23.4375, gentle: true };
        let (low, high) = Adapt::band(&curve);
        close(low, 14.0625, 1e-12);
        close(high, 17.1875, 1e-12);
        let mut max_p = 0.1;
        for (average, expected) in
            [(20.0, 0.11), (20.0, 0.12), (20.0, 0.13), (10.0, 0.117), (10.0, 0.1053), (15.0, 0.1053)]
        {
            max_p = Adapt::default().step(max_p, average, &curve);
            close(max_p, expected, 1e-12);
        }
    }

    #[test]
    fn max_p_adapts_once_per_interval() {
        let curve = Curve { min: 2.0, max: 6.0, gentle: true };
        let mut detector = Detector::new(curve, 1.0, 0.1, true, Some(Adapt::default()));
        let mut steps = 0;
        for ms in 0..2001 {
            let before = detector.max_p();
            detector.observe(6.0, 0, Time::ms(ms));
            steps += u32::from(detector.max_p() != before);
        }
        assert_eq!(steps, 4);
        close(detector.max_p(), 0.14, 1e-12);
    }

    proptest! {
        #[test]
        fn the_probability_never_falls_as_the_average_rises(
            min in 1.0..100.0f64, width in 0.1..300.0f64, max_p in 0.0..1.0f64, gentle: bool,
            a in 0.0..1000.0f64, b in 0.0..1000.0f64,
        ) {
            let curve = Curve { min, max: min + width, gentle };
            let (low, high) = (curve.base(a.min(b), max_p), curve.base(a.max(b), max_p));
            prop_assert!(low <= high + 1e-12);
            prop_assert!((0.0..=1.0).contains(&low) && high <= 1.0 + 1e-12);
        }

        /// The average equals its definition as a sum over all past lengths, with idle time as arrivals at an
        /// empty queue.
        #[test]
        fn the_average_is_the_sum_of_its_past(
            weight in 0.0005..1.0f64,
            seen in prop::collection::vec((0..200u32, 0..20u64), 1..60),
        ) {
            let curve = Curve { min: 5.0, max: 15.0, gentle: true };
            let mut detector = Detector::new(curve, weight, 0.1, true, None);
            let mut history: Vec<f64> = Vec::new();
            let mut most = 0.0f64;
            for (length, missed) in seen {
                // The link can only have been idle if the queue is empty.
                let (length, missed) = if missed > 0 { (0.0, missed) } else { (f64::from(length), 0) };
                history.extend(std::iter::repeat_n(0.0, missed as usize));
                history.push(length);
                most = most.max(length);
                detector.observe(length, missed, Time::ZERO);
                // The sum of w (1-w)^age q.
                let mut expected = 0.0;
                let mut factor = weight;
                for q in history.iter().rev() {
                    expected += factor * q;
                    factor *= 1.0 - weight;
                }
                prop_assert!((detector.average() - expected).abs() <= 1e-9 * (1.0 + expected));
                prop_assert!(detector.average() >= 0.0 && detector.average() <= most * (1.0 + 1e-12));
            }
        }

        /// There are no drops below min, and with `wait` none before 1/p_b packets have arrived. max_p stays
        /// in its range once it is inside.
        #[test]
        fn drops_and_max_p_stay_in_their_ranges(
            lengths in prop::collection::vec((0..40u32, 0.0..1.0f64), 1..400), wait: bool, start in 0.01..0.5f64,
        ) {
            let curve = Curve { min: 5.0, max: 15.0, gentle: true };
            let adapt = Adapt::default();
            let mut detector = Detector::new(curve, 0.1, start, wait, Some(adapt));
            let mut now = Time::ZERO;
            let mut since = 0.0;
            for (length, u) in lengths {
                now += Span::ms(100);
                let length = f64::from(length);
                detector.observe(length, 0, now);
                let verdict = detector.decide(length, 1.0, || u);
                since += 1.0;
                if verdict != RedDecision::Accept {
                    prop_assert!(detector.average() >= curve.min && length > 1.0);
                    prop_assert!(!wait || detector.base() >= 1.0 || since * detector.base() >= 1.0);
                    since = 0.0;
                }
                prop_assert!((adapt.bottom..=adapt.top).contains(&detector.max_p()));
            }
        }
    }
}
