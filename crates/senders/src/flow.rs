//! The results of a connection, from the data packets at both sides of the bottleneck.

use crate::error::SendersError;
use crate::sniffer::{Sighting, Way};

/// Results of a connection in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowResult {
    /// Bytes of data that left the bottleneck for the first time.
    pub delivered: u64,
    /// Data packets that reached the bottleneck.
    pub arrived: u64,
    /// Data packets that reached the bottleneck with bytes that had reached it before.
    pub retransmitted: u64,
    /// Data packets that the queue dropped.
    pub dropped: u64,
    /// Data packets that the queue marked.
    pub marked: u64,
    /// Waiting times of the packets that left, in nanoseconds, sorted: from the arrival at the router until
    /// the first bit leaves.
    pub waits: Vec<u64>,
}

/// A packet on its way through the router.
#[derive(Clone, Copy)]
struct Waiting {
    at: u64,
    marked: bool,
}

/// Bytes by their distance from the first one, in units of segments.
#[derive(Default)]
struct Seen {
    first: Option<u32>,
    units: Vec<bool>,
}

/// Largest payload of a segment.
const SEGMENT: u32 = 1448;

/// Computes the results of the connection with this port. `sightings` contains the data packets at both
/// interfaces of the router in the order of time, until all packets that arrived in the interval have left.
/// The interval is in nanoseconds since 1970.
///
/// # Errors
/// If a packet leaves that never arrived.
pub(crate) fn result(
    sightings: &[Sighting],
    port: u16,
    from: u64,
    until: u64,
) -> Result<FlowResult, SendersError> {
    let mut result = FlowResult::default();
    let mut waiting: Vec<Option<Waiting>> = vec![None; 1 << 16];
    let (mut sent, mut delivered) = (Seen::default(), Seen::default());
    let measures = |at: u64| from <= at && at < until;
    for Sighting { at, way, segment } in sightings.iter().filter(|of| of.segment.port == port) {
        let measured = measures(*at);
        let place = &mut waiting[usize::from(segment.id)];
        match way {
            Way::In => {
                let again = !sent.add(segment.seq, segment.bytes);
                // A packet with the same identification was dropped 65,536 packets ago.
                let earlier = place.replace(Waiting { at: *at, marked: segment.marked });
                result.dropped += u64::from(earlier.is_some_and(|earlier| measures(earlier.at)));
                result.arrived += u64::from(measured);
                result.retransmitted += u64::from(measured && again);
            }
            Way::Out => {
                let what =
                    || format!("packet {} of port {port} leaves the router, but never arrived", segment.id);
                let entered = place.take().ok_or_else(|| SendersError::Inconsistent { what: what() })?;
                let new = delivered.add(segment.seq, segment.bytes);
                if measured {
                    result.delivered += u64::from(if new { segment.bytes } else { 0 });
                    result.marked += u64::from(segment.marked && !entered.marked);
                    result.waits.push(at - entered.at);
                }
            }
        }
    }
    result.dropped += waiting.iter().flatten().filter(|never_left| measures(never_left.at)).count() as u64;
    result.waits.sort_unstable();
    Ok(result)
}

impl Seen {
    /// Adds the bytes of a packet. True if they are new.
    fn add(&mut self, seq: u32, bytes: u32) -> bool {
        let first = *self.first.get_or_insert(seq);
        let begin = (seq.wrapping_sub(first) / SEGMENT) as usize;
        let end = begin + bytes.div_ceil(SEGMENT) as usize;
        if self.units.len() < end {
            self.units.resize(end, false);
        }
        let new = self.units[begin..end].iter().any(|seen| !seen);
        self.units[begin..end].fill(true);
        new
    }
}

impl FlowResult {
    /// Mean of the waiting times in nanoseconds.
    pub(crate) fn mean_wait(&self) -> f64 {
        self.waits.iter().sum::<u64>() as f64 / self.waits.len().max(1) as f64
    }

    /// Quantile of the waiting times in nanoseconds, by the nearest rank.
    pub(crate) fn wait(&self, percent: usize) -> u64 {
        let rank = (self.waits.len() * percent).div_ceil(100).max(1);
        self.waits.get(rank - 1).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Flags, Segment};

    /// A data packet of port 1 at a time in microseconds.
    fn seen(at: u64, way: Way, id: u16, segment: u32) -> Sighting {
        let segment = Segment {
            from: [10, 0, 1, 1],
            port: 1,
            id,
            marked: way == Way::Out && id == 3,
            seq: 100 + segment * SEGMENT,
            ack: 0,
            bytes: SEGMENT,
            flags: Flags(16),
            sack: Vec::new(),
        };
        Sighting { at: at * 1000, way, segment }
    }

    /// Segments 0, 1 and 2 are sent; the queue drops segment 1 and marks segment 2; segment 1 is
    /// retransmitted.
    fn connection() -> [Sighting; 7] {
        [
            seen(10, Way::In, 1, 0),
            seen(11, Way::In, 2, 1),
            seen(12, Way::In, 3, 2),
            seen(13, Way::Out, 1, 0),
            seen(17, Way::Out, 3, 2),
            seen(20, Way::In, 4, 1),
            seen(21, Way::Out, 4, 1),
        ]
    }

    #[test]
    fn a_dropped_packet_never_leaves_and_its_retransmission_delivers_its_bytes() {
        assert_eq!(
            result(&connection(), 1, 0, 100_000).unwrap(),
            FlowResult {
                delivered: u64::from(3 * SEGMENT),
                arrived: 4,
                retransmitted: 1,
                dropped: 1,
                marked: 1,
                waits: vec![1000, 3000, 5000],
            }
        );
    }

    #[test]
    fn only_the_interval_is_measured() {
        let late = result(&connection(), 1, 20_000, 100_000).unwrap();
        assert_eq!((late.arrived, late.retransmitted, late.dropped, late.waits), (1, 1, 0, vec![1000]));
        let other = result(&connection(), 2, 0, 100_000).unwrap();
        assert_eq!(other, FlowResult::default());
    }

    #[test]
    fn a_packet_that_leaves_without_an_arrival_is_an_error() {
        let error = result(&connection()[3..], 1, 0, 100_000).unwrap_err();
        assert_eq!(error.to_string(), "packet 1 of port 1 leaves the router, but never arrived");
    }

    #[test]
    fn a_quantile_is_the_wait_of_the_nearest_rank() {
        let result = FlowResult { waits: (1..=20).collect(), ..FlowResult::default() };
        assert_eq!((result.wait(95), result.wait(50), result.mean_wait()), (19, 10, 10.5));
        assert_eq!(FlowResult::default().wait(95), 0);
    }
}
