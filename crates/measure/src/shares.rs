//! The bytes that a port sends for each source over time.

use giveway_qdisc::{PortId, Span, Time};

use crate::layout::Layout;
use crate::rows::ShareRow;

/// Approximate number of stretches of the measurement interval.
const STRETCHES: u64 = 100;

/// Bytes sent, by source and stretch of the measurement interval.
#[derive(Clone)]
pub(crate) struct Shares {
    from: Time,
    until: Time,
    stretch: Span,
    /// The current stretch. Time only increases, so no division is needed.
    now: usize,
    /// End of the current stretch.
    ends: Time,
    /// The bytes of each source, by its number, in each stretch. A source without packets has none.
    bytes: Vec<Vec<u64>>,
}

impl Shares {
    pub(crate) fn new(layout: &Layout) -> Shares {
        let stretch = stretch(layout.measured_time(), layout.sample);
        let named = layout.source_names.len();
        Shares {
            from: layout.from,
            until: layout.until,
            stretch,
            now: 0,
            ends: layout.from + stretch,
            bytes: vec![Vec::new(); named],
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, source: u16, bytes: u32, now: Time) {
        if now < self.from || now >= self.until {
            return;
        }
        while now >= self.ends {
            self.now += 1;
            self.ends += self.stretch;
        }
        match self.bytes.get_mut(usize::from(source)).and_then(|mine| mine.get_mut(self.now)) {
            Some(count) => *count += u64::from(bytes),
            None => self.begin(source, bytes),
        }
    }

    /// Adds the stretches of a source at its first packet.
    #[cold]
    fn begin(&mut self, source: u16, bytes: u32) {
        let source = usize::from(source);
        if source >= self.bytes.len() {
            self.bytes.resize_with(source + 1, Vec::new);
        }
        self.bytes[source] = vec![0; self.stretches()];
        self.bytes[source][self.now] = u64::from(bytes);
    }

    fn stretches(&self) -> usize {
        self.until.since(self.from).as_ps().div_ceil(self.stretch.as_ps()) as usize
    }

    /// A row for each stretch of each source that sent anything, in the order of time.
    pub(crate) fn rows(&self, port: PortId) -> Vec<ShareRow> {
        let mut rows = Vec::new();
        let mut time = self.from;
        for stretch in 0..self.stretches() {
            let span = self.stretch.min(self.until.since(time));
            for (source, mine) in self.bytes.iter().enumerate().filter(|(_, mine)| !mine.is_empty()) {
                rows.push(ShareRow { time, span, port, source: source as u16, bytes: mine[stretch] });
            }
            time += self.stretch;
        }
        rows
    }
}

/// Length of a stretch: a hundredth of the measurement interval, rounded up to 1, 2 or 5 times a power of
/// ten; at least the interval of samples.
fn stretch(measured: Span, sample: Span) -> Span {
    let wanted = (measured.as_ps() / STRETCHES).max(sample.as_ps()).max(1);
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
        assert_eq!(stretch(Span::s(50), Span::ms(60)), Span::ms(500));
        assert_eq!(stretch(Span::s(60), Span::ZERO), Span::s(1));
        assert_eq!(stretch(Span::s(5), Span::ms(300)), Span::ms(500));
        assert_eq!(stretch(Span::s(100), Span::ZERO), Span::s(1));
        assert_eq!(stretch(Span::ZERO, Span::ZERO), Span::from_ps(1));
        assert!(stretch(Span::from_ps(u64::MAX), Span::ZERO) > Span::s(100_000));
    }

    /// An interval of 2.5 s has stretches of 50 ms. Sources 0 and 3 send, 1 and 2 do not. The start belongs
    /// to a stretch, and the end does not.
    #[test]
    fn who_got_how_much_when() {
        let layout = Layout {
            from: Time::s(1),
            until: Time::ms(3_510),
            source_names: vec!["a".into()],
            ..Layout::default()
        };
        let mut shares = Shares::new(&layout);
        let sent =
            [(0, 10, 999), (0, 20, 1_000), (3, 30, 1_049), (0, 40, 1_050), (0, 50, 3_505), (3, 60, 3_510)];
        for (source, bytes, ms) in sent {
            shares.sent(source, bytes, Time::ms(ms));
        }
        let rows = shares.rows(PortId(7));
        assert_eq!(rows.len(), 51 * 2);
        let some: Vec<(u64, u64, u16, u64)> = rows
            .iter()
            .filter(|row| row.bytes > 0)
            .map(|row| {
                (row.time.as_ps() / 1_000_000_000, row.span.as_ps() / 1_000_000_000, row.source, row.bytes)
            })
            .collect();
        assert_eq!(some, [(1_000, 50, 0, 20), (1_000, 50, 3, 30), (1_050, 50, 0, 40), (3_500, 10, 0, 50)]);
        assert!(rows.iter().all(|row| row.port == PortId(7)));
        assert!(Shares::new(&layout).rows(PortId(7)).is_empty());
    }
}
