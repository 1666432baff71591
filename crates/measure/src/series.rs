//! Sums over the packets of each traffic source over time.

use giveway_qdisc::{Span, Time};

use crate::layout::Layout;
use crate::quantile::mean_s;
use crate::rows::DelaySummary;

/// Approximate number of stretches of the measurement interval.
const STRETCHES: u64 = 100;

/// The largest number of stretches of a recording whose end is not known in advance.
const MAX: usize = 200;

/// Sums over the packets of one source in one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub packets: u64,
    /// Their IP lengths.
    pub bytes: u64,
    /// The sum of their delays. Only integers give the same sum in any order.
    delay_ps: u128,
    longest: Span,
}

impl Sums {
    #[inline]
    fn count(&mut self, bytes: u32, delay: Span) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.delay_ps += u128::from(delay.as_ps());
        self.longest = self.longest.max(delay);
    }

    /// Adds the packets of `other`.
    pub(crate) fn add(&mut self, other: &Sums) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.delay_ps += other.delay_ps;
        self.longest = self.longest.max(other.longest);
    }

    /// The delays; `None` without packets.
    pub(crate) fn delayed(&self) -> Option<DelaySummary> {
        let mean_s = mean_s(self.delay_ps, self.packets)?;
        Some(DelaySummary { packets: self.packets, mean_s, max_s: self.longest.as_s() })
    }
}

/// Sums over packets, by source and stretch of the measurement interval.
///
/// The number of stretches has a bound. If the end of the run is unknown, stretches start short, and two
/// become one whenever there are too many.
#[derive(Clone)]
pub(crate) struct Series {
    from: Time,
    until: Time,
    stretch: Span,
    /// The number of stretches that are kept for a source.
    slots: usize,
    /// The current stretch. Time only increases, so no division is needed.
    now: usize,
    /// End of the current stretch.
    ends: Time,
    /// The sums of each source, by its number, in each stretch. A source without packets has none.
    sums: Vec<Vec<Sums>>,
}

impl Series {
    pub(crate) fn new(layout: &Layout) -> Series {
        let stretch = length(layout);
        let slots = if layout.open_ended { MAX } else { number(layout.measured_time(), stretch) };
        Series {
            from: layout.from,
            until: layout.until,
            stretch,
            slots,
            now: 0,
            ends: layout.from + stretch,
            sums: vec![Vec::new(); layout.source_names.len()],
        }
    }

    /// Counts a packet of a source. Times must not decrease.
    #[inline]
    pub(crate) fn count(&mut self, source: u16, bytes: u32, delay: Span, now: Time) {
        if now < self.from || now >= self.until {
            return;
        }
        while now >= self.ends {
            self.next();
        }
        match self.sums.get_mut(usize::from(source)).and_then(|mine| mine.get_mut(self.now)) {
            Some(sums) => sums.count(bytes, delay),
            None => self.begin(usize::from(source)).count(bytes, delay),
        }
    }

    #[cold]
    fn next(&mut self) {
        self.now += 1;
        if self.now == self.slots {
            self.halve();
        }
        self.ends = self.from + self.stretch.scale(self.now as u64 + 1, 1);
    }

    /// Makes one stretch of two.
    fn halve(&mut self) {
        for mine in self.sums.iter_mut().filter(|mine| !mine.is_empty()) {
            for at in 0..self.slots / 2 {
                let second = mine[2 * at + 1];
                mine[at] = mine[2 * at];
                mine[at].add(&second);
            }
            mine[self.slots / 2..].fill(Sums::default());
        }
        self.now /= 2;
        self.stretch = self.stretch + self.stretch;
    }

    /// Adds the stretches of a source at its first packet, and returns the current one.
    #[cold]
    fn begin(&mut self, source: usize) -> &mut Sums {
        if source >= self.sums.len() {
            self.sums.resize_with(source + 1, Vec::new);
        }
        self.sums[source] = vec![Sums::default(); self.slots];
        &mut self.sums[source][self.now]
    }

    /// Sets the end of the measurement interval if the run ended earlier than planned.
    pub(crate) fn ends(&mut self, until: Time) {
        self.until = until;
    }

    /// Adds the packets of another part of the run.
    pub(crate) fn join(&mut self, other: Series) {
        debug_assert_eq!(self.stretch, other.stretch, "parts of a run have the same plan");
        if self.sums.len() < other.sums.len() {
            self.sums.resize_with(other.sums.len(), Vec::new);
        }
        for (own, theirs) in self.sums.iter_mut().zip(other.sums) {
            if own.is_empty() {
                *own = theirs;
            } else {
                own.iter_mut().zip(&theirs).for_each(|(own, theirs)| own.add(theirs));
            }
        }
    }

    /// Start and length of each stretch, in order. The last one may be shorter.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (Time, Span)> + use<> {
        stretches(self.from, self.until, self.stretch)
    }

    /// The numbers of the sources that have packets, in ascending order.
    pub(crate) fn sources(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&self.sums).filter(|(_, mine)| !mine.is_empty()).map(|(source, _)| source)
    }

    /// The sums of a source in a stretch.
    pub(crate) fn of(&self, source: u16, stretch: usize) -> Sums {
        let mine = self.sums.get(usize::from(source)).and_then(|mine| mine.get(stretch));
        mine.copied().unwrap_or_default()
    }
}

impl Layout {
    /// Start and length of each stretch over which series sum, in order, if the end of the run is known.
    /// There are about a hundred in the measurement interval, and they are not shorter than the interval of
    /// samples; only the last one may be.
    pub fn stretches(&self) -> Vec<(Time, Span)> {
        stretches(self.from, self.until, length(self)).collect()
    }
}

fn stretches(from: Time, until: Time, stretch: Span) -> impl Iterator<Item = (Time, Span)> {
    let start = move |at: usize| from + stretch.scale(at as u64, 1);
    let each = move |at: usize| (start(at), stretch.min(until.since(start(at))));
    (0..number(until.since(from), stretch)).map(each)
}

fn number(measured: Span, stretch: Span) -> usize {
    measured.as_ps().div_ceil(stretch.as_ps()) as usize
}

/// Length of the first stretch: a hundredth of the measurement interval, at least the interval of samples; or
/// that interval if the end is unknown. It is rounded up to 1, 2 or 5 times a power of ten.
fn length(layout: &Layout) -> Span {
    let hundredth = if layout.open_ended { 0 } else { layout.measured_time().as_ps() / STRETCHES };
    rounded_up(hundredth.max(layout.sample.as_ps()).max(1))
}

fn rounded_up(wanted: u64) -> Span {
    let mut decade = 1_u64;
    loop {
        for times in [1, 2, 5] {
            let found = decade.saturating_mul(times);
            if found >= wanted {
                return Span::from_ps(found);
            }
        }
        decade = decade.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_human() {
        let length = |measured: Span, sample| {
            length(&Layout { until: Time::ZERO + measured, sample, ..Layout::default() })
        };
        assert_eq!(length(Span::s(50), Span::ms(60)), Span::ms(500));
        assert_eq!(length(Span::s(60), Span::ZERO), Span::s(1));
        assert_eq!(length(Span::s(5), Span::ms(300)), Span::ms(500));
        assert_eq!(length(Span::s(100), Span::ZERO), Span::s(1));
        assert_eq!(length(Span::ZERO, Span::ZERO), Span::from_ps(1));
        assert!(length(Span::from_ps(u64::MAX), Span::ZERO) > Span::s(100_000));
    }

    /// An interval of 2.51 s has stretches of 50 ms. Sources 0 and 3 send, 1 and 2 do not. The start belongs
    /// to a stretch, and the end does not.
    #[test]
    fn packets_are_counted_in_their_stretches() {
        let layout = Layout {
            from: Time::s(1),
            until: Time::ms(3_510),
            source_names: vec!["a".into()],
            ..Layout::default()
        };
        let mut series = Series::new(&layout);
        let sent =
            [(0, 10, 999), (0, 20, 1_000), (3, 30, 1_049), (0, 40, 1_050), (0, 50, 3_505), (3, 60, 3_510)];
        for (source, bytes, ms) in sent {
            series.count(source, bytes, Span::ms(u64::from(bytes)), Time::ms(ms));
        }
        assert_eq!(series.sources().collect::<Vec<_>>(), [0, 3]);
        let stretches: Vec<_> = series.stretches().collect();
        assert_eq!((stretches.len(), stretches[50]), (51, (Time::ms(3_500), Span::ms(10))));
        assert_eq!(stretches, layout.stretches());
        let bytes = |source| (0..51).map(|at| series.of(source, at).bytes).collect::<Vec<_>>();
        assert_eq!((bytes(0)[0], bytes(0)[1], bytes(0)[50]), (20, 40, 50));
        assert_eq!((bytes(3)[0], bytes(3).iter().sum::<u64>()), (30, 30));
        assert_eq!(series.of(0, 50).delayed(), Some(DelaySummary { packets: 1, mean_s: 0.05, max_s: 0.05 }));
        assert_eq!((series.of(0, 7).delayed(), series.of(9, 0).delayed()), (None, None));
    }

    /// A recording without a known end has a packet each 100 ms for a minute. That is 300 stretches of 200
    /// ms, so two of them become one with four packets. The delay of a packet is its number in
    /// milliseconds.
    #[test]
    fn stretches_double_while_the_end_is_unknown() {
        let layout =
            Layout { until: Time::s(21_600), sample: Span::ms(200), open_ended: true, ..Layout::default() };
        let mut series = Series::new(&layout);
        for number in 0..600 {
            series.count(1, 100, Span::ms(number), Time::ms(number * 100));
        }
        series.ends(Time::s(60));
        let stretches: Vec<_> = series.stretches().collect();
        assert_eq!((stretches.len(), stretches[1]), (150, (Time::ms(400), Span::ms(400))));
        for (at, first) in (0..150).zip((0..).step_by(4)) {
            let found = series.of(1, at).delayed().unwrap();
            assert_eq!((found.packets, found.max_s), (4, Span::ms(first + 3).as_s()));
            assert!((found.mean_s - (first as f64 + 1.5) / 1e3).abs() < 1e-12);
        }
        assert_eq!(series.of(1, 150), Sums::default());
        // A pause of an hour doubles the stretches until there is room.
        series.ends(Time::s(21_600));
        series.count(1, 100, Span::ZERO, Time::s(3_660));
        let total: u64 = (0..MAX).map(|at| series.of(1, at).packets).sum();
        assert_eq!((series.stretch, total), (Span::ms(25_600), 601));
        assert_eq!(series.of(1, 3_660_000 / 25_600).packets, 1);
    }

    /// Parts of a run may see any packets: together they give the sums of the whole.
    #[test]
    fn parts_add_up() {
        let layout = Layout { until: Time::s(1), source_names: vec!["a".into()], ..Layout::default() };
        let (mut whole, mut parts) = (Series::new(&layout), [Series::new(&layout), Series::new(&layout)]);
        for number in 0..100_u64 {
            let (source, now) = ((number % 3) as u16, Time::ms(number * 9));
            whole.count(source, 100, Span::us(number), now);
            // Only the second part has packets of source 2.
            let part = usize::from(source == 2 || number % 7 < 3);
            parts[part].count(source, 100, Span::us(number), now);
        }
        let [mut joined, other] = parts;
        joined.join(other);
        assert_eq!(joined.sums, whole.sums);
    }
}
