//! What was sent and not yet acknowledged, and what became of it: the bookkeeping of RFC 6675.
//!
//! Each transmission keeps its boundaries: a retransmission repeats a segment as it was. All sums are kept as
//! segments change state, so an acknowledgement costs what it changes, not what is on its way.

use std::collections::VecDeque;

use qdisc::Time;

/// One segment on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Sequence number after its last.
    end: u64,
    /// Sequence numbers that it takes.
    room: u32,
    state: u8,
    /// When it was last sent.
    at: Time,
}

/// The receiver has it, although not everything before it.
const SACKED: u8 = 1;
/// It is taken for lost.
const LOST: u8 = 2;
/// It was sent again since it was taken for lost.
const REPEATED: u8 = 4;
/// It was sent more than once at some time: its round trip cannot be measured (Karn).
const AMBIGUOUS: u8 = 8;

impl Sent {
    /// How often it counts as being on its way: RFC 6675 section 4, SetPipe.
    #[inline]
    fn weight(&self) -> u64 {
        if self.state & SACKED != 0 {
            return 0;
        }
        u64::from(self.state & LOST == 0) + u64::from(self.state & REPEATED != 0)
    }
    #[inline]
    fn has(&self, state: u8) -> bool {
        self.state & state != 0
    }
    fn start(&self) -> u64 {
        self.end - u64::from(self.room)
    }
}

/// A stretch of sequence numbers to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// First sequence number.
    pub seq: u64,
    /// How many.
    pub room: u32,
}

/// What a cumulative acknowledgement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Sequence numbers newly known to have arrived.
    pub room: u64,
    /// When the newest segment that can be measured was sent.
    pub measured: Option<Time>,
}

/// The scoreboard.
#[derive(Debug)]
pub struct Scoreboard {
    sent: VecDeque<Sent>,
    /// First sequence number that is not acknowledged (SND.UNA).
    una: u64,
    /// First that was never sent (SND.NXT).
    next: u64,
    /// What the receiver has beyond `una`: disjoint, ascending.
    islands: Vec<(u64, u64)>,
    /// Sequence numbers on their way (pipe).
    pipe: u64,
    /// Everything below this that is not SACKed is lost.
    lost_below: u64,
    /// Lost segments below this were sent again (HighRxt).
    repeated_below: u64,
    /// Rescue of section 4, rule (4): once per recovery.
    rescued: bool,
}

impl Scoreboard {
    /// Nothing sent; the next sequence number is `first`.
    pub fn new(first: u64) -> Scoreboard {
        Scoreboard {
            sent: VecDeque::new(),
            una: first,
            next: first,
            islands: Vec::new(),
            pipe: 0,
            lost_below: first,
            repeated_below: first,
            rescued: false,
        }
    }

    /// First sequence number that is not acknowledged.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }
    /// First sequence number that was never sent.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Sequence numbers sent and not cumulatively acknowledged (FlightSize).
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }
    /// Sequence numbers estimated to be in the network.
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// New data was sent.
    #[inline]
    pub fn push(&mut self, room: u32, now: Time) {
        self.next += u64::from(room);
        self.sent.push_back(Sent { end: self.next, room, state: 0, at: now });
        self.pipe += u64::from(room);
    }

    /// Everything before `to` arrived.
    #[inline]
    pub fn ack(&mut self, to: u64) -> Acked {
        let mut acked = Acked::default();
        let mut ambiguous = false;
        while let Some(first) = self.sent.front() {
            if first.end > to {
                break;
            }
            if !first.has(SACKED) {
                acked.room += u64::from(first.room);
                acked.measured = Some(first.at);
                ambiguous |= first.has(AMBIGUOUS);
            }
            self.pipe -= first.weight() * u64::from(first.room);
            self.sent.pop_front();
        }
        // What a repeated segment set free arrived long before it is acknowledged: none of it can be measured (Karn).
        if ambiguous {
            acked.measured = None;
        }
        self.una = to;
        if !self.islands.is_empty() {
            self.islands.retain(|(_, end)| *end > to);
        }
        self.lost_below = self.lost_below.max(to);
        self.repeated_below = self.repeated_below.max(to);
        acked
    }

    /// The receiver has what lies in [from, to); returns how much of that is news.
    pub fn sack(&mut self, from: u64, to: u64) -> Acked {
        let (mut at, to) = (from.max(self.una), to.min(self.next));
        let mut news = Acked::default();
        while at < to {
            // What is known already is skipped as a whole.
            match self.islands.iter().find(|(_, end)| *end > at) {
                Some((start, end)) if *start <= at => at = *end,
                island => {
                    let until = island.map_or(to, |(start, _)| to.min(*start));
                    self.sack_stretch(at, until, &mut news);
                    self.add_island(at, until);
                    at = until;
                }
            }
        }
        news
    }

    fn sack_stretch(&mut self, from: u64, to: u64, news: &mut Acked) {
        let first = self.index_of(from);
        for sent in self.sent.range_mut(first..) {
            if sent.end > to {
                break;
            }
            self.pipe -= sent.weight() * u64::from(sent.room);
            sent.state |= SACKED;
            news.room += u64::from(sent.room);
            if !sent.has(AMBIGUOUS) {
                news.measured = Some(sent.at);
            }
        }
    }

    /// Joins [from, to) with its neighbours.
    fn add_island(&mut self, from: u64, to: u64) {
        let at = self.islands.partition_point(|(_, end)| *end < from);
        match self.islands.get_mut(at) {
            Some(island) if island.1 == from => {
                island.1 = to;
                if self.islands.get(at + 1).is_some_and(|(start, _)| *start == to) {
                    let (_, end) = self.islands.remove(at + 1);
                    self.islands[at].1 = end;
                }
            }
            Some(island) if island.0 == to => island.0 = from,
            _ => self.islands.insert(at, (from, to)),
        }
    }

    /// Takes for lost what RFC 6675 section 4, IsLost, says is lost: three islands above it, or more than two segments
    /// of `mss` within them. True when the first outstanding segment is lost and was not sent again.
    pub fn find_losses(&mut self, mss: u64) -> bool {
        let (mut bytes, mut islands) = (0, 0);
        for (start, end) in self.islands.iter().rev() {
            bytes += end - start;
            islands += 1;
            if islands >= 3 || bytes > 2 * mss {
                self.lose_below(*start);
                break;
            }
        }
        self.sent.front().is_some_and(|first| first.state & (LOST | REPEATED) == LOST)
    }

    /// Takes the first outstanding segment for lost, even if it was sent again.
    pub fn lose_first(&mut self) {
        if let Some(first) = self.sent.front_mut()
            && !first.has(SACKED)
        {
            self.pipe -= first.weight() * u64::from(first.room);
            first.state = (first.state | LOST) & !REPEATED;
            self.repeated_below = self.una;
            self.lost_below = self.lost_below.max(first.end);
        }
    }

    fn lose_below(&mut self, limit: u64) {
        if limit <= self.lost_below {
            return;
        }
        let first = self.index_of(self.lost_below);
        for sent in self.sent.range_mut(first..) {
            if sent.end > limit {
                break;
            }
            if sent.state & (SACKED | LOST) == 0 {
                self.pipe -= u64::from(sent.room);
                sent.state |= LOST;
            }
        }
        self.lost_below = limit;
    }

    /// The retransmission timer ran out: everything that the receiver is not known to have is lost.
    pub fn lose_all(&mut self) {
        for sent in &mut self.sent {
            if !sent.has(SACKED) {
                sent.state = (sent.state | LOST) & !REPEATED;
            }
        }
        self.pipe = 0;
        self.lost_below = self.next;
        self.repeated_below = self.una;
    }

    /// A recovery begins.
    pub fn begin_recovery(&mut self) {
        self.repeated_below = self.una;
        self.rescued = false;
    }

    /// The first lost segment that was not sent again: rule (1) of NextSeg.
    #[inline]
    pub fn next_lost(&mut self) -> Option<Repeat> {
        if self.repeated_below >= self.lost_below {
            return None;
        }
        let first = self.index_of(self.repeated_below);
        for sent in self.sent.range(first..) {
            if sent.end > self.lost_below {
                break;
            }
            if sent.state & (SACKED | LOST | REPEATED) == LOST {
                return Some(Repeat { seq: sent.start(), room: sent.room });
            }
            self.repeated_below = sent.end;
        }
        None
    }

    /// What may be sent again although it is not known to be lost, when there is nothing new to send: rules (3) and
    /// (4) of NextSeg.
    pub fn next_doubtful(&mut self) -> Option<Repeat> {
        let highest = self.islands.last().map_or(self.una, |(_, end)| *end);
        let first = self.index_of(self.repeated_below.max(self.una));
        let between = self
            .sent
            .range(first..)
            .take_while(|sent| sent.end <= highest)
            .find(|sent| sent.state & (SACKED | REPEATED) == 0);
        if let Some(sent) = between {
            return Some(Repeat { seq: sent.start(), room: sent.room });
        }
        let last = self.sent.back()?;
        if self.rescued || last.state & (SACKED | REPEATED) != 0 {
            return None;
        }
        self.rescued = true;
        Some(Repeat { seq: last.start(), room: last.room })
    }

    /// It was sent again.
    pub fn repeated(&mut self, repeat: Repeat, now: Time) {
        let index = self.index_of(repeat.seq);
        let sent = &mut self.sent[index];
        self.pipe -= sent.weight() * u64::from(sent.room);
        sent.state |= REPEATED | AMBIGUOUS;
        sent.at = now;
        self.pipe += sent.weight() * u64::from(sent.room);
        // Rule (4): the rescue does not move HighRxt.
        if !self.rescued {
            self.repeated_below = self.repeated_below.max(sent.end);
        }
    }

    /// Whether the receiver has anything beyond a gap.
    #[inline]
    pub fn has_islands(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Bytes of memory beyond the struct itself.
    pub fn heap_bytes(&self) -> usize {
        self.sent.capacity() * size_of::<Sent>() + self.islands.capacity() * size_of::<(u64, u64)>()
    }

    /// The segment that begins at or after `seq`.
    #[inline]
    fn index_of(&self, seq: u64) -> usize {
        if seq <= self.una {
            return 0;
        }
        self.sent.partition_point(|sent| sent.end <= seq)
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
        assert_eq!(board.sack(101, 201).room, 100);
        assert!(!board.find_losses(100));
        board.sack(101, 301);
        assert!(!board.find_losses(100), "two segments above are not enough");
        board.sack(101, 401);
        assert!(board.find_losses(100));
        assert_eq!(board.pipe(), 200, "600 sent, 300 arrived, 100 lost");
        let lost = board.next_lost().unwrap();
        assert_eq!(lost, Repeat { seq: 1, room: 100 });
        board.repeated(lost, Time::us(10));
        assert_eq!((board.pipe(), board.next_lost()), (300, None));
        assert_eq!(board.ack(401), Acked { room: 100, measured: None }, "a repeated segment is not measured");
        assert_eq!(board.outstanding(), 200);
    }

    #[test]
    fn three_islands_make_the_holes_below_lost() {
        let mut board = board(8);
        for island in [101, 301, 501] {
            board.sack(island, island + 100);
        }
        assert!(board.find_losses(1000), "three islands above the first hole");
        assert_eq!(board.next_lost(), Some(Repeat { seq: 1, room: 100 }));
        board.repeated(Repeat { seq: 1, room: 100 }, Time::ZERO);
        assert_eq!(board.next_lost(), None, "above the second hole there are only two");
        assert_eq!(board.next_doubtful(), Some(Repeat { seq: 201, room: 100 }));
    }

    proptest! {
        /// The sums equal what a walk over the segments gives, whatever is acknowledged, lost and sent again.
        #[test]
        fn the_sums_are_true(ops in prop::collection::vec((0..8u8, 0..30u64, 1..6u64), 1..200)) {
            let mut board = Scoreboard::new(1);
            for (op, at, len) in ops {
                match op {
                    0..3 => board.push(100, Time::us(1)),
                    3 => {
                        let to = (board.una() + at * 100).min(board.next());
                        // A receiver acknowledges everything that it has in order.
                        let island = board.islands.iter().find(|(start, end)| *start <= to && to < *end);
                        let to = island.map_or(to, |(_, end)| *end);
                        board.ack(to);
                    }
                    4 | 5 => {
                        let from = board.una() + at * 100;
                        // The first outstanding segment is never SACKed: that would be an acknowledgement.
                        if at > 0 && from < board.next() {
                            board.sack(from, from + len * 100);
                        }
                    }
                    6 => {
                        board.find_losses(100);
                        if let Some(lost) = board.next_lost().or_else(|| board.next_doubtful()) {
                            board.repeated(lost, Time::us(2));
                        }
                    }
                    _ => board.lose_all(),
                }
                let pipe: u64 = board.sent.iter().map(|sent| sent.weight() * u64::from(sent.room)).sum();
                prop_assert_eq!(board.pipe(), pipe);
                let sacked: u64 = board.sent.iter().filter(|sent| sent.has(SACKED)).map(|sent| u64::from(sent.room)).sum();
                let islands: u64 = board.islands.iter().map(|(start, end)| end - start).sum();
                prop_assert_eq!(sacked, islands);
                prop_assert!(board.islands.windows(2).all(|pair| pair[0].1 < pair[1].0));
                for sent in &board.sent {
                    if sent.end <= board.lost_below && !sent.has(SACKED) {
                        prop_assert!(sent.has(LOST));
                    }
                }
            }
        }
    }
}
