//! The part of a capture between `--from` and `--until`.

use ::giveway_capture::{Moment, utc};

use giveway_runner::RunnerError;

/// The part of a capture that is used, as its packets are read.
pub(super) struct Chosen {
    from: Option<Moment>,
    until: Option<Moment>,
    /// Both as times since 1970, once the first packet is known, ns.
    bounds: (u64, u64),
    /// The times of the first packet and of the last one, ns.
    span: Option<(u64, u64)>,
    inside: u64,
}

/// The place of a packet.
pub(super) enum Place {
    Before,
    Inside,
    /// After the end, but packets inside may follow.
    Behind,
    /// After the end, and nothing inside can follow.
    After,
}

/// Packets of several interfaces may be out of order by this time, ns.
const DISORDER: u64 = 10_000_000_000;

impl Chosen {
    pub(super) fn new(from: Option<Moment>, until: Option<Moment>) -> Chosen {
        Chosen { from, until, bounds: (0, u64::MAX), span: None, inside: 0 }
    }

    /// The place of the next packet.
    pub(super) fn place(&mut self, time: u64) -> Place {
        let span = self.span.get_or_insert_with(|| {
            let resolved = |moment: Option<Moment>, or: u64| moment.map_or(or, |moment| moment.resolve(time));
            self.bounds = (resolved(self.from, 0), resolved(self.until, u64::MAX));
            (time, time)
        });
        span.1 = span.1.max(time);
        let (from, until) = self.bounds;
        if time < from {
            return Place::Before;
        }
        if time <= until {
            self.inside += 1;
            return Place::Inside;
        }
        // Without packets inside, reading goes on, so that a message can name the whole span.
        if self.inside > 0 && time - until > DISORDER { Place::After } else { Place::Behind }
    }

    /// The error for a part without packets.
    pub(super) fn check(&self, name: &str) -> Result<(), RunnerError> {
        let Some((first, last)) = self.span.filter(|_| self.inside == 0) else { return Ok(()) };
        let (from, until) = self.bounds;
        let why = if from > until {
            format!("--from is {} and --until is {}: the end is before the beginning", utc(from), utc(until))
        } else {
            format!("no packet is between {}", self.bounds_in_words())
        };
        Err(RunnerError::Usage(format!("{why}; {name} spans {} to {}", utc(first), utc(last))))
    }

    /// A sentence on the part.
    pub(super) fn note(&self) -> Option<String> {
        (self.from.is_some() || self.until.is_some())
            .then(|| format!("used: the {} packets between {}", self.inside, self.bounds_in_words()))
    }

    fn bounds_in_words(&self) -> String {
        let from = self.from.map_or_else(|| "the beginning".to_owned(), |_| utc(self.bounds.0));
        let until = self.until.map_or_else(|| "the end".to_owned(), |_| utc(self.bounds.1));
        format!("{from} and {until}")
    }
}
