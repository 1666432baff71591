//! Gaps of the link: how many there were, and the drops at their ends.
//!
//! During a gap CoDel and COBALT miss the times of many drops. A comparison across gaps says little if the
//! queue had nothing to make up for, so the drops are counted.

use std::fmt;

use super::calls::Call;

/// Shortest time without a departure, with packets in the queue, that is a gap, in nanoseconds.
const SHORTEST: u64 = 250_000_000;
/// Time after a gap whose drops are counted, in nanoseconds: some packets, but no round-trip time.
const END: u64 = 50_000_000;

/// Gaps of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Number of gaps.
    pub count: u64,
    /// Packets that were queued at the ends of the gaps, in total.
    pub queued: u64,
    /// Packets that dequeue calls dropped within 50 ms of the ends.
    pub dropped: u64,
}

impl Gaps {
    /// The gaps in these calls.
    pub fn of(calls: &[Call]) -> Gaps {
        let mut gaps = Gaps::default();
        let mut queued = 0u64;
        // Time of the last departure, if it left packets behind, and end of the last gap.
        let (mut last, mut ended) = (None, None);
        for call in calls {
            if call.sent.is_some() {
                if last.is_some_and(|last| call.now.saturating_sub(last) >= SHORTEST) {
                    gaps.count += 1;
                    gaps.queued += queued;
                    ended = Some(call.now);
                }
                if ended.is_some_and(|ended| call.now.saturating_sub(ended) < END) {
                    gaps.dropped += call.dropped.len() as u64;
                }
            }
            let gone = call.dropped.len() as u64 + u64::from(call.sent.is_some());
            queued = (queued + u64::from(call.arrival.is_some())).saturating_sub(gone);
            if call.arrival.is_none() {
                last = (call.sent.is_some() && queued > 0).then_some(call.now);
            }
        }
        gaps
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gaps { count, queued, dropped } = self;
        write!(f, "{count} gaps, {dropped} of {queued} queued packets dropped at their ends")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::calls::Arrival;

    /// Three packets; the first leaves at 10 ms, and the link stops until 300 ms. The second is dropped then.
    #[test]
    fn a_gap_is_a_time_without_departures_from_a_backlog() {
        let arrives = |number, ms: u64| Call {
            now: ms * 1_000_000,
            arrival: Some(Arrival { number, bytes: 1000, mark: 0 }),
            ..Call::default()
        };
        let leaves = |number, ms: u64, dropped: &[u64]| Call {
            now: ms * 1_000_000,
            sent: Some(number),
            dropped: dropped.to_vec(),
            ..Call::default()
        };
        let calls = [arrives(0, 1), arrives(1, 1), leaves(0, 10, &[]), arrives(2, 200), leaves(2, 300, &[1])];
        assert_eq!(Gaps::of(&calls), Gaps { count: 1, queued: 2, dropped: 1 });
        // Nothing is queued while an idle link waits, so this is not a gap.
        let idle = [arrives(0, 1), leaves(0, 10, &[]), arrives(1, 400), leaves(1, 401, &[])];
        assert_eq!(Gaps::of(&idle), Gaps::default());
    }
}
