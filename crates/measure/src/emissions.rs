//! The packets that traffic sources send over time, and their self-similarity.

use giveway_qdisc::{Span, Time};
use giveway_theory::hurst::Estimate;

use crate::layout::Layout;

/// Packets are counted in bins of this length, as in the papers on self-similar traffic.
pub const BIN: Span = Span::ms(10);

/// Packets by source and bin of the measurement interval. An incomplete bin at its end does not count.
#[derive(Clone)]
pub(crate) struct Emissions {
    from: Time,
    bins: usize,
    /// The bins of each source, by its number. A source without packets has none.
    packets: Vec<Vec<u32>>,
}

impl Emissions {
    pub(crate) fn new(layout: &Layout) -> Emissions {
        let bins = (layout.measured_time().as_ps() / BIN.as_ps()) as usize;
        Emissions { from: layout.from, bins, packets: Vec::new() }
    }

    #[inline]
    pub(crate) fn on_emission(&mut self, source: u16, now: Time) {
        if now < self.from {
            return;
        }
        let bin = (now.since(self.from).as_ps() / BIN.as_ps()) as usize;
        if bin >= self.bins {
            return;
        }
        match self.packets.get_mut(usize::from(source)).and_then(|mine| mine.get_mut(bin)) {
            Some(count) => *count += 1,
            None => self.begin(usize::from(source), bin),
        }
    }

    /// Adds the bins of a source at its first packet.
    #[cold]
    fn begin(&mut self, source: usize, bin: usize) {
        if source >= self.packets.len() {
            self.packets.resize_with(source + 1, Vec::new);
        }
        self.packets[source] = vec![0; self.bins];
        self.packets[source][bin] = 1;
    }

    /// Adds the packets of other sources.
    pub(crate) fn join(&mut self, other: Emissions) {
        if self.packets.len() < other.packets.len() {
            self.packets.resize_with(other.packets.len(), Vec::new);
        }
        for (own, theirs) in self.packets.iter_mut().zip(other.packets) {
            if own.is_empty() {
                *own = theirs;
            }
        }
    }

    /// The Hurst parameter of the packets of these sources together; `None` without packets, or if the
    /// measurement interval is too short.
    pub(crate) fn hurst(&self, sources: impl Iterator<Item = usize>) -> Option<Estimate> {
        let mut series = vec![0.0; self.bins];
        for mine in sources.filter_map(|source| self.packets.get(source)) {
            series.iter_mut().zip(mine).for_each(|(sum, packets)| *sum += f64::from(*packets));
        }
        Estimate::of(&series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval from 5 ms to 48 ms has four whole bins.
    #[test]
    fn packets_are_counted_in_whole_bins() {
        let layout = Layout { from: Time::ms(5), until: Time::ms(48), ..Layout::default() };
        let mut emissions = Emissions::new(&layout);
        for (source, ms) in [(1, 4), (1, 5), (1, 14), (3, 15), (1, 44), (1, 45), (1, 60)] {
            emissions.on_emission(source, Time::ms(ms));
        }
        let counted: [&[u32]; 4] = [&[], &[2, 0, 0, 1], &[], &[0, 1, 0, 0]];
        assert_eq!(emissions.packets, counted);
        assert_eq!(emissions.hurst(0..4), None);
    }
}
