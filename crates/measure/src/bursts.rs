//! Burstiness at a port: of its arrivals, and of its departures to each next hop.
//!
//! Burstiness has no single measure, so there are three. The tests compare them with the known values of
//! simple streams.
//!
//! - **Run lengths** of departures: a run is consecutive packets to the same next hop. They arrive at the
//!   queue of that next hop as a burst. Darlagiannis, Karsten and Steinmetz, "Burst Shaping Queueing", 2003,
//!   section 3.
//! - **Index of dispersion for counts**, variance over mean of the packets in windows of one length: 1 for
//!   Poisson arrivals whatever the length, k for batches of k, 0 for a steady beat, and without bound for
//!   self-similar traffic as the windows grow. Cox and Lewis, "The Statistical Analysis of Series of Events",
//!   1966; Gusella, "Characterizing the variability of arrival processes with indexes of dispersion", 1991.
//! - **Peakedness**, variance over mean of the busy servers if there were one for every packet and each was
//!   busy for an exponential time, here of 10 ms on average: 1 for Poisson arrivals, (k + 1)/2 for batches of
//!   k. It depends on the gaps between packets, not on a division of time into windows. Eckberg, "Generalized
//!   peakedness of teletraffic processes", 1983.

use giveway_qdisc::{Meta, PortId, Span, Time};

use crate::layout::Layout;
use crate::rows::BurstRow;

/// The windows in which packets are counted, with their names in metrics.
pub const WINDOWS: [(&str, Span); 4] =
    [("1ms", Span::ms(1)), ("10ms", Span::ms(10)), ("100ms", Span::ms(100)), ("1s", Span::s(1))];

/// Indices of dispersion for [`WINDOWS`]; `None` if fewer than two windows fit, or no packet arrived.
pub(crate) type Dispersions = [Option<f64>; WINDOWS.len()];

/// Mean time for which a server of the peakedness is busy.
const HOLDING: Span = Span::ms(10);

/// The streams of one port.
#[derive(Clone)]
pub(crate) struct Bursts {
    part: Interval,
    /// All packets offered to the port.
    pub arrivals: Stream,
    /// Departures by next hop, in the order of their first packets.
    next_hops: Vec<NextHop>,
    /// The index of each next hop in `next_hops`, plus one; 0 if it has no packet yet. The position is the
    /// number of the node, plus one; packets that end at the neighbour have position 0.
    places: Vec<u32>,
    /// The current run: the index of its next hop in `next_hops`, and its packets; 0 packets at first.
    run: (usize, u64),
}

/// The measurement interval.
#[derive(Clone, Copy)]
struct Interval {
    from: Time,
    until: Time,
}

/// The packets to one next hop.
#[derive(Clone)]
struct NextHop {
    /// The node behind the neighbour; `None` for packets that end at the neighbour.
    node: Option<u16>,
    runs: Runs,
    stream: Stream,
}

/// Completed runs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Runs {
    /// The packets of all runs.
    pub packets: u64,
    /// The number of runs.
    pub runs: u64,
    /// The length of the longest run, packets.
    pub longest: u64,
    /// Sum of the squared lengths.
    squares: u128,
}

/// The times of packets.
#[derive(Clone)]
pub(crate) struct Stream {
    part: Interval,
    windows: [Windows; WINDOWS.len()],
    servers: Servers,
}

/// Packets per window. Only whole windows of the measurement interval count.
#[derive(Clone, Copy)]
struct Windows {
    length: Span,
    /// End of the current window.
    ends: Time,
    /// Packets in the current window.
    packets: u64,
    /// Packets in the earlier windows.
    total: u64,
    /// Sum of the squared numbers of packets in the earlier windows.
    squares: u128,
}

/// The expected number of busy servers, given the packets so far: Y, the sum of exp(-t/10 ms) over the
/// packets, where t is the time since the arrival of each.
///
/// For given packets, the number of busy servers is a sum of independent variables. Its variance is therefore
/// the variance of Y plus each server's: Var Y + E Y - E Y/2. Divided by the mean, E Y, this is 1/2 + Var Y /
/// E Y.
#[derive(Clone)]
struct Servers {
    y: f64,
    at: Time,
    /// The integral of Y over the measurement interval so far, in units of the holding time.
    sum: f64,
    /// The integral of the square of Y, likewise.
    squares: f64,
}

impl Bursts {
    pub(crate) fn new(layout: &Layout) -> Bursts {
        let part = Interval { from: layout.from, until: layout.until };
        Bursts { part, arrivals: Stream::new(part), next_hops: Vec::new(), places: Vec::new(), run: (0, 0) }
    }

    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Time) {
        self.arrivals.add(now);
    }

    #[inline]
    pub(crate) fn on_departure(&mut self, meta: &Meta, now: Time) {
        let node = meta.next_hops.iter().next();
        let slot = node.map_or(0, |node| usize::from(node) + 1);
        let place = match self.places.get(slot) {
            Some(place) if *place > 0 => *place as usize - 1,
            _ => self.begin(node, slot),
        };
        self.next_hops[place].stream.add(now);
        if !self.part.measures(now) {
            return;
        }
        if place != self.run.0 {
            self.end_run();
            self.run.0 = place;
        }
        self.run.1 += 1;
    }

    /// Adds a next hop at its first packet.
    #[cold]
    fn begin(&mut self, node: Option<u16>, slot: usize) -> usize {
        if slot >= self.places.len() {
            self.places.resize(slot + 1, 0);
        }
        self.next_hops.push(NextHop { node, runs: Runs::default(), stream: Stream::new(self.part) });
        self.places[slot] = self.next_hops.len() as u32;
        self.next_hops.len() - 1
    }

    fn end_run(&mut self) {
        let (place, packets) = std::mem::take(&mut self.run);
        if packets > 0 {
            self.next_hops[place].runs.add(packets);
        }
    }

    /// Ends the measurement interval.
    pub(crate) fn close(&mut self) {
        self.end_run();
        self.arrivals.close();
        self.next_hops.iter_mut().for_each(|hop| hop.stream.close());
    }

    /// The runs of all next hops together.
    pub(crate) fn runs(&self) -> Runs {
        self.next_hops.iter().fold(Runs::default(), |all, hop| all.and(hop.runs))
    }

    /// The mean of `number` over the next hops, weighted with their packets: the value for the mean packet.
    pub(crate) fn next_hop_mean(&self, number: impl Fn(&Stream) -> Option<f64>) -> Option<f64> {
        let (mut sum, mut packets) = (0.0, 0.0);
        for hop in &self.next_hops {
            if let Some(value) = number(&hop.stream) {
                sum += hop.runs.packets as f64 * value;
                packets += hop.runs.packets as f64;
            }
        }
        (packets > 0.0).then(|| sum / packets)
    }

    /// A row for each next hop with packets, in the order of the numbers of the nodes; packets that end at
    /// the neighbour come first.
    pub(crate) fn rows(&self, port: PortId) -> Vec<BurstRow> {
        let mut next_hops: Vec<&NextHop> = self.next_hops.iter().filter(|hop| hop.runs.packets > 0).collect();
        next_hops.sort_by_key(|hop| hop.node);
        let row = |hop: &NextHop| BurstRow {
            port,
            next_hop: hop.node,
            packets: hop.runs.packets,
            runs: hop.runs.runs,
            run_longest: hop.runs.longest,
            run_weighted: hop.runs.weighted().unwrap_or_default(),
            dispersions: hop.stream.dispersions(),
            peakedness: hop.stream.peakedness(),
        };
        next_hops.into_iter().map(row).collect()
    }
}

impl Interval {
    fn measures(self, now: Time) -> bool {
        self.from <= now && now < self.until
    }
}

impl Runs {
    fn add(&mut self, packets: u64) {
        self.packets += packets;
        self.runs += 1;
        self.longest = self.longest.max(packets);
        self.squares += u128::from(packets) * u128::from(packets);
    }

    fn and(self, other: Runs) -> Runs {
        Runs {
            packets: self.packets + other.packets,
            runs: self.runs + other.runs,
            longest: self.longest.max(other.longest),
            squares: self.squares + other.squares,
        }
    }

    /// The mean over the runs, packets.
    pub(crate) fn mean(self) -> Option<f64> {
        (self.runs > 0).then(|| self.packets as f64 / self.runs as f64)
    }

    /// The mean over the packets of the length of their run, packets.
    pub(crate) fn weighted(self) -> Option<f64> {
        (self.packets > 0).then(|| self.squares as f64 / self.packets as f64)
    }
}

impl Stream {
    fn new(part: Interval) -> Stream {
        let windows = WINDOWS.map(|(_, length)| Windows::new(length, part.from));
        Stream { part, windows, servers: Servers { y: 0.0, at: Time::ZERO, sum: 0.0, squares: 0.0 } }
    }

    #[inline]
    fn add(&mut self, now: Time) {
        self.servers.advance(now, self.part);
        self.servers.y += 1.0;
        if self.part.measures(now) {
            self.windows.iter_mut().for_each(|windows| windows.add(now));
        }
    }

    fn close(&mut self) {
        self.servers.advance(self.part.until, self.part);
        self.windows.iter_mut().for_each(|windows| windows.close(self.part.until));
    }

    /// Indices of dispersion, window by window.
    pub(crate) fn dispersions(&self) -> Dispersions {
        let measured = self.part.until.since(self.part.from);
        self.windows.map(|windows| windows.dispersion(measured))
    }

    /// Peakedness for exponential holding times of 10 ms; `None` if no packet arrived.
    pub(crate) fn peakedness(&self) -> Option<f64> {
        let time = holdings(self.part.until.since(self.part.from));
        let mean = self.servers.sum / time;
        let variance = self.servers.squares / time - mean * mean;
        (mean > 0.0).then(|| 0.5 + variance / mean)
    }
}

impl Windows {
    fn new(length: Span, from: Time) -> Windows {
        Windows { length, ends: from + length, packets: 0, total: 0, squares: 0 }
    }

    #[inline]
    fn add(&mut self, now: Time) {
        if now >= self.ends {
            self.turn(now);
        }
        self.packets += 1;
    }

    /// Ends the current window and starts the window of `now`. The windows between them are empty.
    fn turn(&mut self, now: Time) {
        self.total += self.packets;
        self.squares += u128::from(self.packets) * u128::from(self.packets);
        self.packets = 0;
        let over = now.since(self.ends).as_ps() / self.length.as_ps() + 1;
        self.ends += self.length * over;
    }

    /// Ends the last window, which counts only if it is whole.
    fn close(&mut self, until: Time) {
        if self.ends <= until {
            self.turn(until);
        }
    }

    /// Index of dispersion, with the variance of a sample (divisor n - 1). Computed in integers up to the
    /// only division.
    fn dispersion(&self, measured: Span) -> Option<f64> {
        let windows = u128::from(measured.as_ps() / self.length.as_ps());
        let total = u128::from(self.total);
        let spread = windows * self.squares - total * total;
        (windows > 1 && total > 0).then(|| spread as f64 / ((windows - 1) * total) as f64)
    }
}

impl Servers {
    /// Decays Y until `now`, and integrates it over the part of that time within the measurement interval.
    #[inline]
    fn advance(&mut self, now: Time, part: Interval) {
        if self.at < part.from {
            self.decay(now.min(part.from));
        }
        if self.at >= part.from {
            let y = self.y;
            let gone = self.decay(now.min(part.until));
            self.sum += y * gone;
            self.squares += y * y * gone * (2.0 - gone) / 2.0;
        }
    }

    /// Decays Y. Returns the lost part of Y, 1 - exp(-t), which is also the integral of exp(-t) from 0 to t.
    #[inline]
    fn decay(&mut self, now: Time) -> f64 {
        if now <= self.at {
            return 0.0;
        }
        let gone = -libm::expm1(-holdings(now.since(self.at)));
        self.y -= self.y * gone;
        self.at = now;
        gone
    }
}

/// A time in units of the holding time.
fn holdings(span: Span) -> f64 {
    span.as_ps() as f64 / HOLDING.as_ps() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use giveway_qdisc::{NextHops, Rng, Streams};

    /// A stream of packets at these times, measured from 1 s to `until`.
    fn stream(until: Time, times: impl IntoIterator<Item = Time>) -> Stream {
        let mut stream = Stream::new(Interval { from: Time::s(1), until });
        times.into_iter().for_each(|now| stream.add(now));
        stream.close();
        stream
    }

    /// Times with independent exponential gaps, up to `until`, with `batch` packets at each time.
    fn poisson(mean: Span, batch: usize, until: Time) -> impl Iterator<Item = Time> {
        let mut rng: Rng = Streams::new(1).within("arrivals").rng();
        let mut now = Time::ZERO;
        let next = move || {
            now += Span::from_s_f64(rng.exponential(mean.as_s()));
            (now < until).then_some(now)
        };
        std::iter::from_fn(next).flat_map(move |now| std::iter::repeat_n(now, batch))
    }

    fn close(found: Option<f64>, expected: f64, error: f64) {
        let found = found.expect("the stream has packets");
        assert!((found - expected).abs() <= error, "{found} is not {expected}");
    }

    /// The counts of a Poisson stream have equal mean and variance in windows of every length, and so does
    /// the number of busy servers. The standard deviation of an index over n windows is sqrt(2/n): 0.045 for
    /// windows of 1 s in 1,000 s.
    #[test]
    fn poisson_arrivals_are_the_measure() {
        let until = Time::s(1_001);
        let stream = stream(until, poisson(Span::ms(1), 1, until));
        for ((_, length), found) in WINDOWS.iter().zip(stream.dispersions()) {
            close(found, 1.0, 3.0 * (2.0 * length.as_s() / 1_000.0).sqrt());
        }
        close(stream.peakedness(), 1.0, 0.02);
    }

    /// Batches of k that arrive like a Poisson stream: the variance of counts is k² times the batches'
    /// variance, the mean k times, so the index is k. E Y = k c and Var Y = k² c/2 for c batches per holding
    /// time, so the peakedness is 1/2 + k/2.
    #[test]
    fn batches_by_formula() {
        let until = Time::s(1_001);
        for k in [2, 5, 20] {
            let stream = stream(until, poisson(Span::ms(4), k, until));
            let k = k as f64;
            for ((_, length), found) in WINDOWS.iter().zip(stream.dispersions()) {
                let windows = 1_000.0 / length.as_s();
                // The fourth moment of a Poisson count adds 1/mean to the 2.
                let batches = length.as_s() / 0.004;
                close(found, k, 3.0 * k * ((2.0 + 1.0 / batches) / windows).sqrt());
            }
            close(stream.peakedness(), (k + 1.0) / 2.0, 0.04 * k);
        }
    }

    /// Equal gaps of T holding times: right after a packet Y is 1/(1 - q), q = exp(-T), and over a period E Y
    /// = 1/T and E Y² = (1 + q)/(1 - q)/2T, so the peakedness is 1/2 + (1 + q)/(1 - q)/2 - 1/T: below 1 for
    /// every T, and 1/2 + T/12 for small ones. All windows have the same number of packets, or 0 and 1 by
    /// turns.
    #[test]
    fn a_steady_beat_by_formula() {
        let until = Time::s(3);
        for (us, periods) in [(100_u64, 0.01), (2_000, 0.2), (20_000, 2.0)] {
            let beat = (0..3_000_000 / us).map(|i| Time::us(i * us));
            let stream = stream(until, beat);
            let q = libm::exp(-periods);
            let expected = 0.5 + (1.0 + q) / (1.0 - q) / 2.0 - 1.0 / periods;
            assert!(expected < 1.0);
            close(stream.peakedness(), expected, 1e-9);
            let [.., tenths, seconds] = stream.dispersions();
            assert_eq!((tenths, seconds), (Some(0.0), Some(0.0)));
        }
        // Every other millisecond has one: of 2,000 counts half are 1, mean 1/2, variance 1/4 · 2000/1999.
        let stream = stream(until, (0..1_500).map(|i| Time::ms(2 * i)));
        close(stream.dispersions()[0], 1_000.0 / 1_999.0, 1e-15);
    }

    /// The interval from 1 s to 1.35 s has three whole windows of 100 ms, with 2, 0 and 1 packets. Packets
    /// before the interval, in the incomplete window and at the end do not count. The mean is 1, the squares
    /// are 4 + 0 + 1, and the variance is (5 - 3)/2 = 1.
    #[test]
    fn only_whole_windows_of_the_measured_part_count() {
        let times = [999, 1_000, 1_099, 1_200, 1_300, 1_349, 1_350];
        let found = stream(Time::ms(1_350), times.map(Time::ms));
        assert_eq!(found.dispersions()[2..], [Some(1.0), None]);
        let nothing = stream(Time::ms(1_350), []);
        assert_eq!(nothing.dispersions(), [None; 4]);
        assert_eq!(nothing.peakedness(), None);
        // Three windows end with the measurement interval, and the last one is whole.
        let times = [1_000, 1_099, 1_299].map(Time::ms);
        assert_eq!(stream(Time::ms(1_300), times).dispersions()[2], Some(1.0));
    }

    /// Packets before the measurement interval contribute to Y within it.
    #[test]
    fn servers_are_busy_when_the_measured_part_begins() {
        let before = stream(Time::ms(1_010), [Time::ms(990)]);
        // Y is e⁻¹ at 1 s and e⁻² at its end, one holding time later.
        let e = libm::exp(-1.0);
        let (mean, square) = (e * (1.0 - e), e * e * (1.0 - e * e) / 2.0);
        close(before.peakedness(), 0.5 + (square - mean * mean) / mean, 1e-12);
    }

    /// Packets to B, to C and to the neighbour (a dot): C B B B . . C C | B B. The first one is before the
    /// measurement interval. The run at the end of the interval counts with its packets within the interval.
    #[test]
    fn runs_by_hand() {
        let layout = Layout { from: Time::ms(10), until: Time::ms(18), ..Layout::default() };
        let mut bursts = Bursts::new(&layout);
        let (b, c) = (Some(4), Some(2));
        for (ms, hop) in (9..).zip([c, b, b, b, None, None, c, c, b, b]) {
            let meta = Meta { next_hops: NextHops::new(hop), ..Meta::default() };
            bursts.on_departure(&meta, Time::ms(ms));
        }
        bursts.close();
        let all = bursts.runs();
        assert_eq!((all.packets, all.runs, all.longest), (8, 4, 3));
        close(all.mean(), 2.0, 0.0);
        // (3² + 2² + 2² + 1²) / 8.
        close(all.weighted(), 18.0 / 8.0, 0.0);
        let rows = bursts.rows(PortId(3));
        let listed: Vec<_> = rows
            .iter()
            .map(|row| (row.next_hop, row.packets, row.runs, row.run_longest, row.run_weighted))
            .collect();
        assert_eq!(listed, [(None, 2, 1, 2, 2.0), (c, 2, 1, 2, 2.0), (b, 4, 2, 3, 2.5)]);
        // Three streams, with packets that are 1 ms apart.
        assert_eq!(rows[0].dispersions[1..], [None; 3]);
        close(bursts.next_hop_mean(|_| Some(7.0)), 7.0, 0.0);
        assert_eq!(Bursts::new(&layout).runs().mean(), None);
    }
}
