//! The timing of real machines: how late threads and timers wake up.
//!
//! A distribution is written as cumulative shares with their delays, in CSV with the columns `what`, `share`
//! and `delay`:
//! ```text
//! # any comment
//! what,share,delay
//! timer,0,1.2us
//! timer,0.5,58us
//! timer,1,2.1ms
//! receive,0,4us
//! receive,1,900us
//! ```
//! Between two rows the delay is interpolated on a line. `giveway testbed --measure-timing` writes such a
//! file. One is part of the program: `virtual-machine`, an idle virtual machine with two processors.

use std::sync::Arc;

use giveway_qdisc::{Rng, Span, Time};

use crate::error::TraceError;

/// The event that is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A thread or a timer that waits for a time.
    Timer,
    /// A thread that waits for a packet.
    Receive,
}

impl Wake {
    fn word(self) -> &'static str {
        match self {
            Wake::Timer => "timer",
            Wake::Receive => "receive",
        }
    }
}

/// A distribution of delays.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    /// Cumulative shares with their delays, from share 0 to share 1, both ascending.
    points: Arc<[(f64, Span)]>,
}

impl Lateness {
    /// The longest delay. A machine that is later than this does not run.
    pub const LONGEST: Span = Span::s(10);

    /// The names of the distributions that are part of the program.
    pub const NAMES: [&str; 1] = ["virtual-machine"];

    /// Uniform delays from zero to `most`.
    pub fn uniform(most: Span) -> Lateness {
        Lateness { points: [(0.0, Span::ZERO), (1.0, most)].into() }
    }

    /// A distribution that is part of the program; `None` if there is none with that name.
    pub fn named(name: &str, wake: Wake) -> Option<Lateness> {
        let text = match name {
            "virtual-machine" => include_str!("../timing/virtual-machine.csv"),
            _ => return None,
        };
        Some(Lateness::parse(text, wake).expect("it is tested"))
    }

    /// Reads a distribution from the text of a file.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str, wake: Wake) -> Result<Lateness, TraceError> {
        const EXAMPLE: &str = "write a line such as timer,0.5,58us";
        let mut points: Vec<(f64, Span)> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || line.starts_with("what") {
                continue;
            }
            let columns: Vec<&str> = line.split(',').map(str::trim).collect();
            let [word, share, delay] = columns[..] else {
                let message = format!("it has {} columns, not what, share and delay", columns.len());
                return Err(TraceError::at(number, message, EXAMPLE));
            };
            if ![Wake::Timer, Wake::Receive].iter().any(|known| known.word() == word) {
                let message = format!("\"{}\" is neither timer nor receive", shortened(word));
                return Err(TraceError::at(number, message, EXAMPLE));
            }
            let Ok(share) = share.parse::<f64>() else {
                let message = format!("the share \"{}\" is not a number", shortened(share));
                return Err(TraceError::at(number, message, "write a share from 0 to 1, such as 0.99"));
            };
            let delay: Span =
                delay.parse().map_err(|error| TraceError::at(number, format!("delay: {error}"), EXAMPLE))?;
            if word == wake.word() {
                let last = points.last().copied();
                check((share, delay), last).map_err(|message| {
                    let help = "write rows in the order of shares, from 0 to 1";
                    TraceError::at(number, message, help)
                })?;
                points.push((share, delay));
            }
        }
        let ends = points.first().zip(points.last()).map(|(first, last)| (first.0, last.0));
        if ends != Some((0.0, 1.0)) {
            let message = format!("the shares of \"{}\" do not go from 0 to 1", wake.word());
            return Err(TraceError::whole(message, "write a first row with 0 and a last row with 1"));
        }
        Ok(Lateness { points: points.into() })
    }

    /// The delay that this share of the wakes does not exceed.
    pub fn quantile(&self, share: f64) -> Span {
        let above = self.points.partition_point(|(at, _)| *at <= share).clamp(1, self.points.len() - 1);
        let ((from, low), (to, high)) = (self.points[above - 1], self.points[above]);
        let part = if to > from { (share - from) / (to - from) } else { 1.0 };
        let (low, high) = (low.as_ps() as f64, high.as_ps() as f64);
        Span::from_ps((low + (high - low) * part.clamp(0.0, 1.0)) as u64)
    }

    /// A random delay.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> Span {
        self.quantile(rng.uniform())
    }
}

/// Checks a point of a distribution against the one before it. Returns what is wrong.
fn check((share, delay): (f64, Span), last: Option<(f64, Span)>) -> Result<(), String> {
    if !(0.0..=1.0).contains(&share) {
        return Err(format!("the share {share} is not between 0 and 1"));
    }
    if delay > Lateness::LONGEST {
        return Err(format!("a delay of {delay} is longer than {}", Lateness::LONGEST));
    }
    match last {
        Some((before, _)) if share <= before => {
            Err(format!("the share {share} does not follow {before}: shares grow"))
        }
        Some((_, shorter)) if delay < shorter => {
            Err(format!("the delay {delay} follows {shorter}: delays do not fall"))
        }
        _ => Ok(()),
    }
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(20).collect()
}

/// A thread that handles what is due when it wakes up, late each time. What becomes due before it wakes up is
/// handled at the same time.
#[derive(Debug)]
pub struct Waker {
    lateness: Lateness,
    rng: Rng,
    /// The time of the last wake-up, which may lie ahead.
    awake_at: Time,
}

impl Waker {
    /// A thread that has not woken up yet.
    pub fn new(lateness: Lateness, rng: Rng) -> Waker {
        Waker { lateness, rng, awake_at: Time::ZERO }
    }

    /// The time at which the thread handles what is due at `due`.
    #[inline]
    pub fn handles(&mut self, due: Time) -> Time {
        // What becomes due before the thread wakes up is handled with the rest, and draws no lateness of its
        // own.
        if due > self.awake_at {
            self.awake_at = due + self.lateness.draw(&mut self.rng);
        }
        self.awake_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::Streams;

    const FILE: &str = "# measured by hand\nwhat,share,delay\ntimer,0,10us\ntimer,0.5,20us\n\
                        receive,0,1us\nreceive,1,2us\ntimer,1,1ms\n";

    #[test]
    fn delays_are_interpolated_between_the_rows() {
        let timer = Lateness::parse(FILE, Wake::Timer).unwrap();
        assert_eq!(timer.quantile(0.0), Span::us(10));
        assert_eq!(timer.quantile(0.25), Span::us(15));
        assert_eq!(timer.quantile(0.75), Span::us(510));
        assert_eq!(timer.quantile(1.0), Span::ms(1));
        assert_eq!(Lateness::parse(FILE, Wake::Receive).unwrap().quantile(0.5), Span::ns(1500));
    }

    #[test]
    fn drawn_delays_have_the_quantiles_of_the_file() {
        const DRAWS: usize = 100_000;
        let timer = Lateness::parse(FILE, Wake::Timer).unwrap();
        let mut rng = Streams::new(5).rng();
        let drawn: Vec<Span> = (0..DRAWS).map(|_| timer.draw(&mut rng)).collect();
        for (share, delay) in [(0.25, Span::us(15)), (0.5, Span::us(20)), (0.9, Span::us(804))] {
            let below = drawn.iter().filter(|drawn| **drawn <= delay).count() as f64;
            // Four standard errors.
            let error = 4.0 * f64::sqrt(share * (1.0 - share) / DRAWS as f64);
            assert!((below / DRAWS as f64 - share).abs() < error, "{share}: {below}");
        }
    }

    #[test]
    fn what_becomes_due_before_a_thread_wakes_up_is_handled_with_it() {
        let mut waker = Waker::new(Lateness::uniform(Span::us(100)), Streams::new(1).rng());
        let first = waker.handles(Time::ms(1));
        assert!((Time::ms(1)..=Time::us(1100)).contains(&first));
        assert_eq!(waker.handles(first), first);
        let next = waker.handles(first + Span::ns(1));
        assert!(next > first);
    }

    #[test]
    fn the_distributions_of_the_program_are_valid() {
        for name in Lateness::NAMES {
            for wake in [Wake::Timer, Wake::Receive] {
                let lateness = Lateness::named(name, wake).unwrap();
                assert!(lateness.quantile(0.5) > Span::ZERO && lateness.quantile(1.0) < Span::s(1));
            }
        }
        assert_eq!(Lateness::named("mainframe", Wake::Timer), None);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let wrong = |text: &str| Lateness::parse(text, Wake::Timer).unwrap_err().to_string();
        assert_eq!(wrong("timer,0"), "line 1: it has 2 columns, not what, share and delay");
        assert_eq!(wrong("#\nclock,0,1us"), "line 2: \"clock\" is neither timer nor receive");
        assert_eq!(wrong("timer,a,1us"), "line 1: the share \"a\" is not a number");
        assert_eq!(wrong("timer,0,1us\ntimer,0,2us"), "line 2: the share 0 does not follow 0: shares grow");
        assert_eq!(
            wrong("timer,0,2us\ntimer,1,1us"),
            "line 2: the delay 1us follows 2us: delays do not fall"
        );
        assert_eq!(wrong("timer,0,1us"), "the shares of \"timer\" do not go from 0 to 1");
        assert_eq!(wrong(""), "the shares of \"timer\" do not go from 0 to 1");
        assert_eq!(wrong("timer,nan,1us"), "line 1: the share NaN is not between 0 and 1");
        assert_eq!(wrong("timer,1.5,1us"), "line 1: the share 1.5 is not between 0 and 1");
        assert_eq!(wrong("timer,0,1h"), "line 1: a delay of 3600s is longer than 10s");
    }
}
