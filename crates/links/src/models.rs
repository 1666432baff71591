//! Models of links, which are traces that are computed.
//!
//! Each is the simplest process with the property of its name, and none is fitted to measurements. They fix
//! their mean, so that links of one mean and different kinds can be compared.
//!
//! - **lte**: a Markov chain of rates. The states lie evenly on a logarithmic scale. From each state the
//!   chain steps up or down with equal probability, after an exponential time; at the ends it may stay.
//!   So all states are equally frequent. Winstein, Sivaraman and Balakrishnan (NSDI 2013, section 3.1) model
//!   a cellular link by a rate that wanders in Brownian motion, of which this chain is a discrete form. Their
//!   outages and the Poisson arrivals of packets are left out.
//! - **wifi**: the same chain over the rates of IEEE 802.11n with one stream in 20 MHz (MCS 0 to 7), scaled
//!   to the highest. Aggregation is left out.
//! - **satellite**: a rate or a delay that is drawn anew, uniformly, at each hand-over, in constant intervals
//!   (15 s on Starlink). The loss at the seam is a model of [`Loss`](crate::Loss).
//! - **cable**: grants of the upstream of DOCSIS. In each interval there is one grant, at a uniform place,
//!   with the bytes of the mean rate in that interval. A real grant follows a request; here grants
//!   come without, so the model has the burstiness and the waiting, and not the delay of the first request.
//! - **diurnal**: the rate that other users leave over, a cosine between the highest at the beginning and the
//!   lowest in the middle of the period, in 1,440 steps.

use giveway_qdisc::{Rate, Rng, Span, Streams};

use crate::error::TraceError;
use crate::piece::Piece;
use crate::quantity::{HIGHEST, Quantity};

/// A model with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// A Markov chain of rates on a logarithmic scale.
    Lte {
        /// The mean rate.
        mean: Rate,
        /// The ratio of the highest to the lowest rate.
        spread: f64,
        /// The mean time in a state.
        hold: Span,
    },
    /// A Markov chain of the rates of 802.11n.
    Wifi {
        /// The highest rate.
        high: Rate,
        /// The mean time in a state.
        hold: Span,
    },
    /// A rate or a delay that changes at each hand-over.
    Satellite {
        /// The quantity that changes.
        quantity: Quantity,
        /// The lowest value, in bit/s or in picoseconds.
        low: u64,
        /// The highest value.
        high: u64,
        /// The time between two hand-overs.
        every: Span,
    },
    /// Grants at instants.
    Cable {
        /// The mean rate.
        mean: Rate,
        /// The interval that has one grant.
        every: Span,
    },
    /// A rate that follows the time of day.
    Diurnal {
        /// The highest rate, at the beginning.
        high: Rate,
        /// The lowest rate, half a period later.
        low: Rate,
        /// The length of a day.
        period: Span,
    },
}

/// Number of states of `lte`.
const STATES: usize = 9;
/// The rates of 802.11n, MCS 0 to 7, as shares of the highest: 6.5 to 65 Mbit/s.
const MCS: [f64; 8] = [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 0.9, 1.0];
/// Number of steps of a day: one per minute.
const MINUTES: u64 = 1440;
/// The shortest interval of a model.
const SHORTEST: Span = Span::us(100);

impl Model {
    /// The names in scenarios.
    pub const NAMES: [&'static str; 5] = ["lte", "wifi", "satellite", "cable", "diurnal"];

    /// The quantity that it is a model of.
    pub fn quantity(&self) -> Quantity {
        match self {
            Model::Satellite { quantity, .. } => *quantity,
            _ => Quantity::Rate,
        }
    }

    /// True if it offers bytes at instants.
    pub(crate) fn bursts(&self) -> bool {
        matches!(self, Model::Cable { .. })
    }

    /// Checks the parameters.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let wrong = |message: String, help: &str| Err(TraceError::whole(message, help));
        let (rates, interval) = match self {
            Model::Lte { mean, spread, hold } => {
                if !(1.0..=10_000.0).contains(spread) {
                    return wrong(
                        format!("spread: {spread} is not between 1 and 10000"),
                        "write for example spread = 20",
                    );
                }
                (vec![("mean", *mean)], ("hold", *hold))
            }
            Model::Wifi { high, hold } => (vec![("high", *high)], ("hold", *hold)),
            Model::Satellite { quantity, low, high, every } => {
                if low > high {
                    return wrong("low: it is above high".to_owned(), "write the lower value as low");
                }
                if *quantity == Quantity::Delay && *high > Span::s(3600).as_ps() {
                    return wrong("high: the delay exceeds an hour".to_owned(), "write at most \"1h\"");
                }
                let rates =
                    if *quantity == Quantity::Rate { vec![("high", Rate::bit(*high))] } else { vec![] };
                (rates, ("every", *every))
            }
            Model::Cable { mean, every } => {
                if mean.bytes_in(*every) < 1 {
                    let message = format!("mean: {mean} is less than a byte in each interval of {every}");
                    return wrong(message, "write a higher mean, or a longer every");
                }
                (vec![("mean", *mean)], ("every", *every))
            }
            Model::Diurnal { high, low, period } => {
                if low > high {
                    return wrong("low: it is above high".to_owned(), "write the lower rate as low");
                }
                (vec![("high", *high)], ("period", *period / MINUTES))
            }
        };
        for (name, rate) in rates {
            if rate.as_bit() == 0 {
                return wrong(format!("{name}: must be above 0"), "write for example \"20mbit\"");
            }
            if rate > HIGHEST {
                return wrong(format!("{name}: {rate} exceeds 10 Tbit/s"), "write at most \"10tbit\"");
            }
        }
        if interval.1 < SHORTEST {
            let message = format!("{}: the rate would change more often than each {SHORTEST}", interval.0);
            return wrong(message, "write a longer time");
        }
        Ok(())
    }

    /// The mean value.
    pub(crate) fn mean(&self) -> u64 {
        match self {
            Model::Lte { mean, .. } | Model::Cable { mean, .. } => mean.as_bit(),
            Model::Wifi { .. } => mean(&self.states()),
            Model::Satellite { low, high, .. } => low.midpoint(*high),
            Model::Diurnal { low, high, .. } => low.as_bit().midpoint(high.as_bit()),
        }
    }

    /// The lowest and the highest value.
    pub(crate) fn range(&self) -> (u64, u64) {
        match self {
            Model::Lte { .. } | Model::Wifi { .. } => {
                let states = self.states();
                (states[0], states[states.len() - 1])
            }
            Model::Satellite { low, high, .. } => (*low, *high),
            Model::Cable { mean, .. } => (mean.as_bit(), mean.as_bit()),
            Model::Diurnal { low, high, .. } => (low.as_bit(), high.as_bit()),
        }
    }

    /// Its trace.
    pub(crate) fn walk(&self, seed: u64) -> Walk {
        let mut rng = Streams::new(seed).within("link model").rng();
        let states = self.states();
        let state = if states.is_empty() { 0 } else { rng.below(states.len() as u64) as usize };
        Walk { model: self.clone(), rng, states, state, step: 0, rest: Span::ZERO }
    }

    /// The rates of a chain, the lowest first; none for other models.
    fn states(&self) -> Vec<u64> {
        let shares: Vec<f64> = match self {
            Model::Lte { spread, .. } => {
                let step = libm::log(*spread) / (STATES - 1) as f64;
                (0..STATES).map(|state| libm::exp(step * state as f64)).collect()
            }
            Model::Wifi { .. } => MCS.to_vec(),
            _ => return Vec::new(),
        };
        let scale = match self {
            Model::Lte { mean, .. } => {
                mean.as_bit() as f64 * shares.len() as f64 / shares.iter().sum::<f64>()
            }
            Model::Wifi { high, .. } => high.as_bit() as f64,
            _ => unreachable!("other models have no states"),
        };
        shares.into_iter().map(|share| ((share * scale) as u64).max(1)).collect()
    }
}

fn mean(states: &[u64]) -> u64 {
    states.iter().sum::<u64>() / states.len().max(1) as u64
}

/// A trace of a model.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    model: Model,
    rng: Rng,
    states: Vec<u64>,
    state: usize,
    /// Number of pieces or intervals so far.
    step: u64,
    /// Time from the last grant to the end of its interval.
    rest: Span,
}

impl Walk {
    pub fn next(&mut self) -> Piece {
        let step = self.step;
        self.step += 1;
        match self.model {
            Model::Lte { hold, .. } | Model::Wifi { hold, .. } => {
                let value = self.states[self.state];
                let up = self.rng.word() >> 63 == 1;
                self.state = match up {
                    true => (self.state + 1).min(self.states.len() - 1),
                    false => self.state.saturating_sub(1),
                };
                let length = Span::from_s_f64(self.rng.exponential(hold.as_s()));
                Piece::constant(length.max(Span::us(1)), value)
            }
            Model::Satellite { low, high, every, .. } => {
                Piece::constant(every, low + self.rng.below(high - low + 1))
            }
            Model::Cable { mean, every } => {
                // The silence before the first grant, and then each grant with the silence behind it.
                let before = Span::from_ps(self.rng.below(every.as_ps()));
                let length = self.rest + before;
                self.rest = every - before;
                if step == 0 {
                    return Piece::constant(length.max(Span::from_ps(1)), 0);
                }
                // Whole bytes, whose sum is that of the rate.
                let [so_far, now] = [step - 1, step].map(|grants| mean.bytes_in(every * grants));
                Piece { length, value: 0, burst: now - so_far }
            }
            Model::Diurnal { high, low, period } => {
                let minute = step % MINUTES;
                let angle = std::f64::consts::TAU * (minute as f64 + 0.5) / MINUTES as f64;
                let swing = (high.as_bit() - low.as_bit()) as f64 / 2.0;
                let value = low.as_bit() as f64 + swing * (1.0 + libm::cos(angle));
                let [from, until] = [minute, minute + 1].map(|minute| period.scale(minute, MINUTES));
                Piece::constant(until - from, value as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use giveway_qdisc::Time;

    fn mean_over(model: Model, time: Time) -> f64 {
        let profile = Profile::model(model, 5).unwrap();
        profile.integral(Time::ZERO, time) as f64 / time.as_s()
    }

    /// The chain of nine states has a relaxation time of about 16 holding times, so 10,000 s have some 3,000
    /// independent values, and the standard error of the mean is below 2 %. The bound is three of them.
    #[test]
    fn chains_have_their_mean() {
        let mean = mean_over(
            Model::Lte { mean: Rate::mbit(20), spread: 20.0, hold: Span::ms(200) },
            Time::s(10_000),
        );
        assert!((mean / 20e6 - 1.0).abs() < 0.06, "{mean}");
        let high = Rate::mbit(65);
        let profile = Profile::model(Model::Wifi { high, hold: Span::ms(200) }, 1).unwrap();
        assert_eq!(profile.most(), 65_000_000);
        assert_eq!(profile.least(), 6_500_000);
        // (6.5 + 13 + 19.5 + 26 + 39 + 52 + 58.5 + 65) / 8.
        assert_eq!(profile.mean(), 34_937_500);
        let mean = mean_over(Model::Wifi { high, hold: Span::ms(200) }, Time::s(10_000));
        assert!((mean / 34_937_500.0 - 1.0).abs() < 0.06, "{mean}");
    }

    #[test]
    fn the_states_of_lte_have_the_mean_and_the_spread() {
        let profile =
            Profile::model(Model::Lte { mean: Rate::mbit(20), spread: 16.0, hold: Span::s(1) }, 1).unwrap();
        assert!((profile.most() as f64 / profile.least() as f64 - 16.0).abs() < 1e-4);
        let states = Model::Lte { mean: Rate::mbit(20), spread: 16.0, hold: Span::s(1) }.states();
        assert_eq!(states.len(), 9);
        assert!((states.iter().sum::<u64>() as f64 / 9.0 - 20e6).abs() < 2.0);
    }

    /// All grants of a whole number of intervals are in it, so the mean is exact to a byte.
    #[test]
    fn cable_grants_its_mean_exactly() {
        let profile =
            Profile::model(Model::Cable { mean: Rate::bit(12_345_678), every: Span::ms(2) }, 3).unwrap();
        let bits = profile.integral(Time::ZERO, Time::s(100)) as f64;
        assert!((bits - 1_234_567_800.0).abs() <= 8.0, "{bits}");
    }

    #[test]
    fn a_day_has_the_mean_of_its_extremes_and_begins_high() {
        let model = Model::Diurnal { high: Rate::mbit(100), low: Rate::mbit(20), period: Span::s(24 * 3600) };
        let mean = mean_over(model.clone(), Time::s(24 * 3600));
        assert!((mean - 60e6).abs() < 2.0, "{mean}");
        let profile = Profile::model(model, 1).unwrap();
        let at = |hour: u64| profile.integral(Time::s(hour * 3600), Time::s(hour * 3600 + 60)) / 60;
        assert!(at(0) > 99_990_000 && (20_000_000..20_010_000).contains(&at(12)), "{} {}", at(0), at(12));
    }

    #[test]
    fn a_seed_selects_a_trace() {
        let walk = |seed| {
            let model = Model::Lte { mean: Rate::mbit(20), spread: 20.0, hold: Span::ms(200) };
            let mut walk = model.walk(seed);
            (0..50).map(|_| walk.next()).collect::<Vec<_>>()
        };
        assert_eq!(walk(1), walk(1));
        assert_ne!(walk(1), walk(2));
    }
}
