//! The scoreboard of RFC 6675: the segments that were sent and not yet acknowledged, and the state of each.
//!
//! A segment keeps its boundaries: a retransmission has the same sequence numbers as the first transmission.
//! All sums are updated as segments change state, so the cost of an acknowledgement depends on the number of
//! segments that it changes, not on the number of outstanding segments.

use std::collections::VecDeque;

use giveway_qdisc::{Span, Time};

use super::ranges::Ranges;

/// One outstanding segment, in 16 bytes: a window may have many thousands.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// The sequence number after its last one, modulo 2^32.
    end: u32,
    /// Length in sequence space. A segment has at most 65,495 bytes of data, a SYN and a FIN.
    len: u16,
    /// Flags: the constants below.
    state: u8,
    /// Time of the last transmission.
    at: Time,
}

/// The receiver has reported the segment by SACK.
const SACKED: u8 = 1;
/// The segment counts as lost.
const LOST: u8 = 2;
/// The segment was retransmitted since it was marked as lost.
const RETRANSMITTED: u8 = 4;
/// The segment was sent more than once, so its round trip cannot be measured: RFC 6298, section 3 (Karn).
const AMBIGUOUS: u8 = 8;

impl Sent {
    /// The number of copies that the pipe counts, 0 to 2: RFC 6675, section 4, SetPipe.
    #[inline]
    fn weight(&self) -> u32 {
        if self.state & SACKED != 0 {
            return 0;
        }
        // One for the original unless it is lost, and one for the retransmission.
        u32::from(self.state & LOST == 0) + u32::from(self.state & RETRANSMITTED != 0)
    }
    #[inline]
    fn has(&self, state: u8) -> bool {
        self.state & state != 0
    }
    /// The sequence number after its last one. `una` is the first that is not acknowledged: a receive window
    /// is at most 2^30 bytes, so outstanding segments end less than 2^32 above it.
    #[inline]
    fn end(&self, una: u64) -> u64 {
        una + u64::from(self.end.wrapping_sub(una as u32))
    }
    #[inline]
    fn received(&self, index: usize, una: u64) -> Received {
        let ambiguous = self.has(AMBIGUOUS);
        Received { index, end: self.end(una), len: u32::from(self.len), at: self.at, ambiguous }
    }
    fn segment(&self, una: u64) -> Retransmission {
        let len = u32::from(self.len);
        Retransmission { seq: self.end(una) - u64::from(len), len }
    }
}

/// A segment to retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// First sequence number.
    pub seq: u64,
    /// Length in sequence space.
    pub len: u32,
}

/// The effect of an acknowledgement, cumulative or selective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Number of sequence numbers that are reported as received for the first time.
    pub len: u64,
    /// Send time of the newest of these segments whose round trip can be measured.
    pub measured: Option<Time>,
}

/// A segment that the peer reports as received for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Its place among the outstanding segments.
    pub index: usize,
    /// The sequence number after its last one.
    pub end: u64,
    /// Length in sequence space.
    pub len: u32,
    /// Time of the last transmission.
    pub at: Time,
    /// It was sent more than once.
    pub ambiguous: bool,
}

/// Observes which segments an acknowledgement reports as received. A sender that measures nothing passes
/// `()`.
pub trait Deliveries {
    /// A segment was received.
    fn on_receipt(&mut self, _: Received) {}
    /// The first outstanding segment is acknowledged cumulatively, and leaves the scoreboard.
    fn on_removal(&mut self) {}
}

impl Deliveries for () {}

/// The outstanding segments of one sender.
#[derive(Debug)]
pub struct Scoreboard {
    /// Outstanding segments in order of their sequence numbers.
    sent: VecDeque<Sent>,
    /// The first sequence number that is not acknowledged (SND.UNA).
    una: u64,
    /// The first sequence number that was never sent (SND.NXT).
    next: u64,
    /// SACKed ranges above `una`: disjoint, ascending.
    sacked: Ranges,
    /// Estimated number of sequence numbers in the network (pipe): each may count twice, and a receive window
    /// has at most 2^30.
    pipe: u32,
    /// Every segment below this number that is not SACKed counts as lost, or was retransmitted.
    lost_below: u64,
    /// Every lost segment below this number has been retransmitted (HighRxt).
    high_rxt: u64,
    /// The rescue retransmission of this recovery has been sent: RFC 6675, section 4, NextSeg, rule (4).
    rescued: bool,
}

impl Scoreboard {
    /// An empty scoreboard. The first segment will start with the sequence number `first`.
    pub fn new(first: u64) -> Scoreboard {
        Scoreboard {
            sent: VecDeque::new(),
            una: first,
            next: first,
            sacked: Ranges::default(),
            pipe: 0,
            lost_below: first,
            high_rxt: first,
            rescued: false,
        }
    }

    /// The first sequence number that is not acknowledged.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }
    /// The first sequence number that was never sent.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    /// FlightSize: number of sequence numbers sent and not cumulatively acknowledged.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }
    /// The pipe: estimated number of sequence numbers in the network.
    #[inline]
    pub fn pipe(&self) -> u64 {
        u64::from(self.pipe)
    }

    /// Adds a new segment of `len` sequence numbers that was sent at `now`.
    #[inline]
    pub fn push(&mut self, len: u32, now: Time) {
        self.next += u64::from(len);
        if self.sent.capacity() == 0 {
            // Twice as many are the usual initial window (RFC 6928), with nothing left over.
            self.sent.reserve_exact(5);
        }
        self.sent.push_back(Sent { end: self.next as u32, len: len as u16, state: 0, at: now });
        self.pipe += len;
    }

    /// Handles a cumulative acknowledgement: the receiver has everything below `to`.
    #[inline]
    pub fn ack(&mut self, to: u64, deliveries: &mut impl Deliveries) -> Acked {
        let mut acked = Acked::default();
        let mut ambiguous = false;
        while let Some(first) = self.sent.front() {
            if first.end(self.una) > to {
                break;
            }
            if !first.has(SACKED) {
                acked.len += u64::from(first.len);
                acked.measured = Some(first.at);
                ambiguous |= first.has(AMBIGUOUS);
                deliveries.on_receipt(first.received(0, self.una));
            }
            deliveries.on_removal();
            self.pipe -= first.weight() * u32::from(first.len);
            self.sent.pop_front();
        }
        // RFC 6298, section 3 (Karn): if a retransmission filled a gap, the segments above it arrived long
        // before this acknowledgement, so that none of them can be measured either.
        if ambiguous {
            acked.measured = None;
        }
        self.una = to;
        if !self.sacked.is_empty() {
            self.sacked.list_mut().retain(|(_, end)| *end > to);
        }
        self.lost_below = self.lost_below.max(to);
        self.high_rxt = self.high_rxt.max(to);
        acked
    }

    /// Handles a SACK block: the receiver has [from, to). Returns the part that was not known before.
    pub fn sack(&mut self, from: u64, to: u64, deliveries: &mut impl Deliveries) -> Acked {
        let (mut at, to) = (from.max(self.una), to.min(self.next));
        let mut new = Acked::default();
        while at < to {
            // A range that is known already is skipped as a whole: most of a block repeats earlier blocks.
            match self.sacked.list().iter().find(|(_, end)| *end > at) {
                Some((start, end)) if *start <= at => at = *end,
                range => {
                    let until = range.map_or(to, |(start, _)| to.min(*start));
                    self.sack_stretch(at, until, &mut new, deliveries);
                    self.add_sacked_range(at, until);
                    at = until;
                }
            }
        }
        new
    }

    /// Marks the segments within [from, to) as SACKed, none of which was.
    fn sack_stretch(&mut self, from: u64, to: u64, new: &mut Acked, deliveries: &mut impl Deliveries) {
        let (first, una) = (self.index_of(from), self.una);
        for (index, sent) in self.sent.range_mut(first..).enumerate() {
            if sent.end(una) > to {
                break;
            }
            self.pipe -= sent.weight() * u32::from(sent.len);
            sent.state |= SACKED;
            new.len += u64::from(sent.len);
            if !sent.has(AMBIGUOUS) {
                new.measured = Some(sent.at);
            }
            deliveries.on_receipt(sent.received(first + index, una));
        }
    }

    /// Inserts [from, to), joined with adjacent ranges.
    fn add_sacked_range(&mut self, from: u64, to: u64) {
        let sacked = self.sacked.list_mut();
        let at = sacked.partition_point(|(_, end)| *end < from);
        match sacked.get_mut(at) {
            Some(range) if range.1 == from => {
                range.1 = to;
                if sacked.get(at + 1).is_some_and(|(start, _)| *start == to) {
                    let (_, end) = sacked.remove(at + 1);
                    sacked[at].1 = end;
                }
            }
            Some(range) if range.0 == to => range.0 = from,
            _ => sacked.insert(at, (from, to)),
        }
    }

    /// Marks segments as lost by RFC 6675, section 4, IsLost: three SACKed ranges above a segment, or more
    /// than two segments of `mss` bytes within them. True when the first outstanding segment is lost and not
    /// retransmitted.
    pub fn find_losses(&mut self, mss: u64) -> bool {
        let (mut bytes, mut ranges) = (0, 0);
        // From the top: all that lies below the third range, or below more than two segments of SACKed data,
        // is lost.
        for (start, end) in self.sacked.list().iter().rev() {
            bytes += end - start;
            ranges += 1;
            if ranges >= 3 || bytes > 2 * mss {
                self.lose_below(*start);
                break;
            }
        }
        self.sent.front().is_some_and(|first| first.state & (LOST | RETRANSMITTED) == LOST)
    }

    /// Marks the first outstanding segment as lost, even if it was retransmitted already.
    pub fn lose_first(&mut self) {
        if let Some(first) = self.sent.front_mut()
            && !first.has(SACKED)
        {
            self.pipe -= first.weight() * u32::from(first.len);
            first.state = (first.state | LOST) & !RETRANSMITTED;
            // It may be below HighRxt: `next_lost` must find it again.
            self.high_rxt = self.una;
            self.lost_below = self.lost_below.max(first.end(self.una));
        }
    }

    /// Marks every segment below `limit` as lost that is not SACKed.
    fn lose_below(&mut self, limit: u64) {
        if limit <= self.lost_below {
            return;
        }
        let (first, una) = (self.index_of(self.lost_below), self.una);
        for sent in self.sent.range_mut(first..) {
            if sent.end(una) > limit {
                break;
            }
            if sent.state & (SACKED | LOST) == 0 {
                self.pipe -= u32::from(sent.len);
                sent.state |= LOST;
            }
        }
        self.lost_below = limit;
    }

    /// Marks every segment as lost that is not SACKed, after a timeout: RFC 6675, section 5.1.
    pub fn lose_all(&mut self) {
        for sent in &mut self.sent {
            if !sent.has(SACKED) {
                sent.state = (sent.state | LOST) & !RETRANSMITTED;
            }
        }
        // RFC 6675, section 5.1: nothing counts as in the network after a timeout; retransmissions start from
        // the first segment.
        self.pipe = 0;
        self.lost_below = self.next;
        self.high_rxt = self.una;
    }

    /// Starts a fast recovery: retransmissions start from the first outstanding segment.
    pub fn begin_recovery(&mut self) {
        self.high_rxt = self.una;
        self.rescued = false;
    }

    /// True if every lost segment has been retransmitted, without a search.
    #[inline]
    pub fn has_no_lost(&self) -> bool {
        self.high_rxt >= self.lost_below
    }

    /// The first lost segment that is not retransmitted: RFC 6675, section 4, NextSeg, rule (1).
    #[inline]
    pub fn next_lost(&mut self) -> Option<Retransmission> {
        if self.has_no_lost() {
            return None;
        }
        let first = self.index_of(self.high_rxt);
        for sent in self.sent.range(first..) {
            let end = sent.end(self.una);
            if end > self.lost_below {
                break;
            }
            if sent.state & (SACKED | LOST | RETRANSMITTED) == LOST {
                return Some(sent.segment(self.una));
            }
            // SACKed or retransmitted: later calls begin behind it.
            self.high_rxt = end;
        }
        None
    }

    /// A segment to retransmit although it is not known to be lost, when there is no new data to send. RFC
    /// 6675, section 4, NextSeg, rule (3): the first segment below the highest SACKed one. Rule (4): the last
    /// segment, once per recovery (the rescue retransmission).
    pub fn next_rescue(&mut self) -> Option<Retransmission> {
        let highest = self.sacked.list().last().map_or(self.una, |(_, end)| *end);
        let first = self.index_of(self.high_rxt.max(self.una));
        let between = self
            .sent
            .range(first..)
            .take_while(|sent| sent.end(self.una) <= highest)
            .find(|sent| sent.state & (SACKED | RETRANSMITTED) == 0);
        if let Some(sent) = between {
            return Some(sent.segment(self.una));
        }
        let last = self.sent.back()?;
        if self.rescued || last.state & (SACKED | RETRANSMITTED) != 0 {
            return None;
        }
        self.rescued = true;
        Some(last.segment(self.una))
    }

    /// Records that a segment was retransmitted at `now`.
    pub fn on_retransmission(&mut self, segment: Retransmission, now: Time) {
        let index = self.index_of(segment.seq);
        let sent = &mut self.sent[index];
        self.pipe -= sent.weight() * u32::from(sent.len);
        sent.state |= RETRANSMITTED | AMBIGUOUS;
        sent.at = now;
        self.pipe += sent.weight() * u32::from(sent.len);
        // RFC 6675, section 4, NextSeg, rule (4): a rescue retransmission does not update HighRxt.
        if !self.rescued {
            self.high_rxt = self.high_rxt.max(sent.end(self.una));
        }
    }

    /// True if a segment above the first is SACKed.
    pub fn has_sacked(&self) -> bool {
        !self.sacked.is_empty()
    }
    /// SACKed sequence numbers.
    pub fn sacked(&self) -> u64 {
        self.sacked.list().iter().map(|(from, to)| to - from).sum()
    }
    /// The last outstanding segment, unless it is SACKed.
    pub fn last(&self) -> Option<Retransmission> {
        self.sent.back().filter(|sent| !sent.has(SACKED)).map(|sent| sent.segment(self.una))
    }

    // -- losses by time: RFC 8985 -------------------------------------------------------------------

    /// Marks the segments as lost that were sent before the segment `newest` (time and end) and at least
    /// `window` before `now`: RFC 8985, section 6.2, step 5. Retransmissions are left out:
    /// [`lose_retransmission`](Scoreboard::lose_retransmission). Returns the length of those that were
    /// marked, and the last transmission of the others that were sent before `newest`.
    pub fn lose_originals(&mut self, newest: (Time, u64), window: Span, now: Time) -> (u64, Option<Time>) {
        let (mut lost, mut waits, mut waiting) = (0, None, false);
        let una = self.una;
        // Segments that were sent once are in order of their times, and those below `lost_below` have been
        // marked, or were retransmitted. A segment that was retransmitted before a spurious timeout is not a
        // retransmission any more, and has the time of its last transmission.
        let first = self.index_of(self.lost_below);
        for sent in self.sent.range_mut(first..) {
            let end = sent.end(una);
            let older = (sent.at, end) < newest;
            if !older && !sent.has(AMBIGUOUS) {
                break;
            }
            if sent.state & (SACKED | LOST | RETRANSMITTED) == 0 {
                if !older || sent.at + window > now {
                    waits = if older { waits.max(Some(sent.at)) } else { waits };
                    waiting = true;
                    continue;
                }
                lost += u64::from(sent.len);
                sent.state |= LOST;
                // A probe of the tail may have been retransmitted before it.
                self.high_rxt = self.high_rxt.min(end - u64::from(sent.len));
            }
            if !waiting {
                self.lost_below = end;
            }
        }
        self.pipe -= lost as u32;
        (lost, waits)
    }

    /// Marks a segment as lost that was retransmitted at `at` and ends at `end`. Zero if it was received, or
    /// retransmitted since; otherwise its length.
    pub fn lose_retransmission(&mut self, end: u64, at: Time) -> u64 {
        let Some(index) = self.pending_retransmission(end, at) else { return 0 };
        let sent = &mut self.sent[index];
        let len = u64::from(sent.len);
        self.pipe -= sent.weight() * u32::from(sent.len);
        sent.state = (sent.state | LOST) & !RETRANSMITTED;
        // `next_lost` must find it again, although it is below HighRxt.
        self.high_rxt = self.high_rxt.min(end - len);
        self.lost_below = self.lost_below.max(end);
        len
    }

    /// The place of the segment that ends at `end`, if its last transmission was at `at` and nothing says
    /// that it has arrived.
    pub fn pending_retransmission(&self, end: u64, at: Time) -> Option<usize> {
        if end <= self.una {
            return None;
        }
        let index = self.index_of(end - 1);
        let sent = self.sent.get(index)?;
        (sent.state & (SACKED | RETRANSMITTED) == RETRANSMITTED && sent.at == at).then_some(index)
    }

    /// Marks segments as lost after a timeout: the first, and each that was sent at least `window` before
    /// `now`. RFC 8985, section 6.3. Returns the length of those that were marked.
    pub fn lose_after_timeout(&mut self, window: Span, now: Time) -> u64 {
        let (una, before) = (self.una, self.pipe);
        for (index, sent) in self.sent.iter_mut().enumerate() {
            // RFC 8985, section 6.3: a segment that was sent a moment before the timeout may still arrive;
            // the first has waited for the whole timeout.
            let old = index == 0 || sent.at + window <= now;
            if old && !sent.has(SACKED) {
                self.pipe -= sent.weight() * u32::from(sent.len);
                sent.state = (sent.state | LOST) & !RETRANSMITTED;
                self.lost_below = self.lost_below.max(sent.end(una));
            }
        }
        self.high_rxt = self.una;
        u64::from(before - self.pipe)
    }

    /// The segments that count as lost do not after all: a timeout or a recovery was spurious.
    pub fn find_all(&mut self) {
        for sent in &mut self.sent {
            let before = sent.weight();
            sent.state &= !LOST;
            self.pipe += (sent.weight() - before) * u32::from(sent.len);
        }
        // Later losses are looked for from the first segment again.
        (self.lost_below, self.high_rxt) = (self.una, self.una);
    }

    /// The first sequence numbers of the segments that are lost and not retransmitted.
    #[cfg(test)]
    pub fn lost(&self) -> Vec<u64> {
        let lost = self.sent.iter().filter(|sent| sent.state & (SACKED | LOST | RETRANSMITTED) == LOST);
        lost.map(|sent| sent.segment(self.una).seq).collect()
    }

    /// Frees the memory of segments if none is outstanding.
    pub fn rest(&mut self) {
        if self.sent.is_empty() {
            self.sent = VecDeque::new();
            self.sacked = Ranges::default();
        }
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.sent.capacity() * size_of::<Sent>() + self.sacked.heap_bytes()
    }

    /// Index of the segment that contains `seq`, or of the first one above it.
    #[inline]
    pub fn index_of(&self, seq: u64) -> usize {
        if seq <= self.una {
            return 0;
        }
        self.sent.partition_point(|sent| sent.end(self.una) <= seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn board(segments: u32) -> Scoreboard {
        let mut board = Scoreboard::new(1);
        for i in 0..segments {
            board.push(100, Time::us(u64::from(i)));
        }
        board
    }

    #[test]
    fn three_segments_above_a_hole_make_it_lost() {
        let mut board = board(6);
        assert_eq!(board.sack(101, 201, &mut ()).len, 100);
        assert!(!board.find_losses(100));
        board.sack(101, 301, &mut ());
        assert!(!board.find_losses(100), "two segments above are not enough");
        board.sack(101, 401, &mut ());
        assert!(board.find_losses(100));
        assert_eq!(board.pipe(), 200, "600 sent, 300 arrived, 100 lost");
        let lost = board.next_lost().unwrap();
        assert_eq!(lost, Retransmission { seq: 1, len: 100 });
        board.on_retransmission(lost, Time::us(10));
        assert_eq!((board.pipe(), board.next_lost()), (300, None));
        assert_eq!(
            board.ack(401, &mut ()),
            Acked { len: 100, measured: None },
            "a retransmitted segment is not measured"
        );
        assert_eq!(board.outstanding(), 200);
    }

    #[test]
    fn three_sacked_ranges_make_the_holes_below_lost() {
        let mut board = board(8);
        for start in [101, 301, 501] {
            board.sack(start, start + 100, &mut ());
        }
        assert!(board.find_losses(1000), "three SACKed ranges above the first hole");
        assert_eq!(board.next_lost(), Some(Retransmission { seq: 1, len: 100 }));
        board.on_retransmission(Retransmission { seq: 1, len: 100 }, Time::ZERO);
        assert_eq!(board.next_lost(), None, "above the second hole there are only two");
        assert_eq!(board.next_rescue(), Some(Retransmission { seq: 201, len: 100 }));
    }

    proptest! {
        /// The sums equal a walk over all segments, after any acknowledgements, losses and retransmissions.
        #[test]
        fn the_sums_are_true(ops in prop::collection::vec((0..10u8, 0..30u64, 1..6u64), 1..200)) {
            let mut board = Scoreboard::new(1);
            for (op, at, len) in ops {
                match op {
                    0..3 => board.push(100, Time::us(1)),
                    3 => {
                        let to = (board.una() + at * 100).min(board.next());
                        // A receiver acknowledges everything that it has in order.
                        let range = board.sacked.list().iter().find(|(start, end)| *start <= to && to < *end);
                        let to = range.map_or(to, |(_, end)| *end);
                        board.ack(to, &mut ());
                    }
                    4 | 5 => {
                        let from = board.una() + at * 100;
                        // The first outstanding segment is never SACKed: that would be an acknowledgement.
                        if at > 0 && from < board.next() {
                            board.sack(from, from + len * 100, &mut ());
                        }
                    }
                    6 => {
                        board.find_losses(100);
                        if let Some(lost) = board.next_lost().or_else(|| board.next_rescue()) {
                            board.on_retransmission(lost, Time::us(2));
                        }
                    }
                    7 => board.lose_all(),
                    8 => board.find_all(),
                    9 => {
                        let newest = (Time::us(len % 3), board.una() + at * 100);
                        board.lose_originals(newest, Span::ZERO, Time::us(3));
                    }
                    _ => unreachable!("no such operation"),
                }
                let pipe: u32 = board.sent.iter().map(|sent| sent.weight() * u32::from(sent.len)).sum();
                prop_assert_eq!(board.pipe, pipe);
                let sacked: u64 = board.sent.iter().filter(|sent| sent.has(SACKED)).map(|sent| u64::from(sent.len)).sum();
                let ranges: u64 = board.sacked.list().iter().map(|(start, end)| end - start).sum();
                prop_assert_eq!(sacked, ranges);
                prop_assert!(board.sacked.list().windows(2).all(|pair| pair[0].1 < pair[1].0));
                for sent in &board.sent {
                    if sent.end(board.una) <= board.lost_below && !sent.has(SACKED) {
                        prop_assert!(sent.has(LOST | RETRANSMITTED));
                    }
                }
            }
        }
    }
}
