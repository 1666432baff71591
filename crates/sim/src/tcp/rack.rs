//! RACK-TLP: losses are detected by time, and a lost tail by a probe. RFC 8985.
//!
//! # Principles
//! - A segment is lost when one that was sent later has arrived, and a reordering window has passed since. So
//!   a retransmission that is lost is detected, too, which counting duplicates never can.
//! - The reordering window is zero until the network is seen to reorder. Then it is a quarter of the smallest
//!   round-trip time, and grows with each round in which a D-SACK shows that a retransmission was needless.
//! - Two round-trip times after the last segment without an acknowledgement, a probe leaves: new data, or the
//!   last segment again. Its acknowledgement starts fast recovery where the timeout would have had to.
//!
//! # Deviations
//! - A segment that was retransmitted and whose acknowledgement comes sooner than the smallest round-trip
//!   time is ignored (RFC 8985, section 6.2, step 2); timestamps, which could tell more, are not echoed here.
//!   So after a spurious timeout or recovery RACK returns to the newest segment that was sent once.
//! - The probe's timeout has no allowance for timers of the host.
//!
//! # Cost
//! - 16 bytes for each retransmission in the network. An acknowledgement looks at the segments between the
//!   first that is not marked and the newest that arrived; without reordering each is looked at once.
//!
//! # References
//! - RFC 8985, sections 5 to 7.

use std::collections::VecDeque;

use giveway_qdisc::{Span, Time};

use super::scoreboard::{Deliveries, Received, Scoreboard};

/// The allowance for delayed acknowledgements if one segment is in flight: RFC 8985, section 7.2.
const MAX_ACK_DELAY: Span = Span::ms(200);
/// The number of segments above a hole that makes it a loss without reordering: RFC 8985, section 6.2, step
/// 4.
const DUP_THRESH: u64 = 3;
/// Recoveries without D-SACK after which the reordering window is the initial one: RFC 8985, section 6.2.
const PERSIST: u8 = 16;

/// State of the loss detection of a sender.
#[derive(Debug)]
pub struct Rack {
    /// Last transmission and end of the segment that was sent last among those that have arrived.
    newest: (Time, u64),
    /// Last transmission and end of the newest among those that were sent once, and its round-trip time.
    original: ((Time, u64), Span),
    /// The round-trip time of the segment that arrived last, and of those the one that was sent last
    /// (RACK.rtt).
    rtt: Span,
    /// Smallest round-trip time (RACK.min_RTT); the largest span before the first.
    least: Span,
    /// The highest sequence number that has arrived (RACK.fack).
    highest: u64,
    /// The network has reordered segments.
    reordering: bool,
    /// Multiplier of the reordering window.
    multiplier: u32,
    /// Recoveries left until the multiplier returns to one.
    persist: u8,
    /// No D-SACK widens the window until this is acknowledged.
    dsack_round: Option<u64>,
    /// Segments that have been retransmitted and not marked since: end and time, in order of the times.
    retransmitted: VecDeque<(u64, Time)>,
    /// Time at which the losses are to be looked for again; never if not.
    pub reorder_at: Time,
    /// Time at which a probe is due; never if none is.
    pub probe_at: Time,
    /// The probe in the network: the end of the data at its time, and whether it was a retransmission.
    pub probe: Option<(u64, bool)>,
}

impl Rack {
    pub fn new() -> Rack {
        Rack {
            newest: (Time::ZERO, 0),
            original: ((Time::ZERO, 0), Span::ZERO),
            rtt: Span::ZERO,
            least: Span::from_ps(u64::MAX),
            highest: 0,
            reordering: false,
            multiplier: 1,
            persist: PERSIST,
            dsack_round: None,
            retransmitted: VecDeque::new(),
            reorder_at: Time::NEVER,
            probe_at: Time::NEVER,
            probe: None,
        }
    }

    /// Smallest round-trip time; zero before the first.
    pub fn least(&self) -> Span {
        if self.least == Span::from_ps(u64::MAX) { Span::ZERO } else { self.least }
    }
    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.retransmitted.capacity() * size_of::<(u64, Time)>()
    }

    /// A round-trip time was measured: RFC 8985, section 6.2, step 1. The filter is the smallest of all.
    pub fn add_sample(&mut self, rtt: Span) {
        self.least = self.least.min(rtt);
    }

    /// Observes the segments of an acknowledgement that arrives at `now`.
    pub fn at(&mut self, now: Time) -> Arriving<'_> {
        let highest = self.highest;
        Arriving { rack: self, now, highest, latest: (Time::ZERO, 0) }
    }

    /// The segment that ends at `end` was retransmitted.
    pub fn on_retransmission(&mut self, end: u64, now: Time) {
        self.retransmitted.push_back((end, now));
    }

    /// A D-SACK arrived. `una` and `next` are the bounds of what is outstanding: RFC 8985, section 6.2, step
    /// 4.
    pub fn on_dsack(&mut self, una: u64, next: u64) {
        self.end_dsack_round(una);
        if self.dsack_round.is_none() {
            self.dsack_round = Some(next);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    fn end_dsack_round(&mut self, una: u64) {
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
    }

    /// A recovery has ended: RFC 8985, section 6.2, step 4.
    pub fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }

    /// The reordering window: RFC 8985, section 6.2, step 4. `recovering` is true in fast recovery and after
    /// a timeout.
    pub fn window(&self, board: &Scoreboard, mss: u64, srtt: Span, recovering: bool) -> Span {
        // Without reordering, three segments above a hole mean a loss at once, as three duplicate
        // acknowledgements would.
        if !self.reordering && (recovering || board.sacked() >= DUP_THRESH * mss) {
            return Span::ZERO;
        }
        // More than a round-trip time would delay a repair longer than most reordering lasts.
        (self.least() / 4 * u64::from(self.multiplier)).min(srtt)
    }

    /// Marks segments as lost: RFC 8985, section 6.2, step 5. Returns their length, and sets the timer for
    /// those that the reordering window spares.
    pub fn detect(&mut self, board: &mut Scoreboard, window: Span, now: Time) -> u64 {
        let patience = self.rtt + window;
        let (mut lost, mut waits) = board.lose_originals(self.newest, patience, now);
        while let Some((end, at)) = self.retransmitted.front().copied() {
            if board.pending_retransmission(end, at).is_some() {
                // Segments of one burst have the same time: the sequence number decides which was sent first
                // (RFC 8985, section 6.2, step 2, RACK_sent_after).
                if (at, end) >= self.newest {
                    break;
                }
                if at + patience > now {
                    waits = waits.max(Some(at));
                    break;
                }
                lost += board.lose_retransmission(end, at);
            }
            self.retransmitted.pop_front();
        }
        // One timer, for the last segment that still waits: RFC 8985, section 6.2, step 5.
        self.reorder_at = waits.map_or(Time::NEVER, |at| at + patience);
        lost
    }

    /// The timeout: marks the first segment as lost, and all that are older than the reordering window. RFC
    /// 8985, section 6.3. Returns their length.
    pub fn on_timeout(&mut self, board: &mut Scoreboard, window: Span, now: Time) -> u64 {
        (self.reorder_at, self.probe_at, self.probe) = (Time::NEVER, Time::NEVER, None);
        let lost = board.lose_after_timeout(self.rtt + window, now);
        // A retransmission that is too young to count as lost may be lost nevertheless.
        self.retransmitted.retain(|(end, at)| board.pending_retransmission(*end, *at).is_some());
        lost
    }

    /// A timeout or a recovery was spurious. So what seemed to acknowledge a retransmission acknowledged the
    /// original, which RFC 8985, section 6.2, step 2, ignores. Otherwise the originals that are still on the
    /// way, all sent before that retransmission, would count as lost at once.
    pub fn on_spurious(&mut self) {
        (self.newest, self.rtt) = self.original;
    }

    /// Sets the timer of the probe: RFC 8985, section 7.2. `srtt` is zero before the first measurement, and
    /// `alone` is true if one segment is in flight.
    pub fn schedule_probe(&mut self, srtt: Span, alone: bool, timeout_at: Time, now: Time) {
        // RFC 8985, section 7.2: a receiver may delay the acknowledgement of a single segment, so the probe
        // of one waits for that, too.
        let wait = match srtt.is_zero() {
            true => Span::s(1),
            false => srtt * 2 + if alone { MAX_ACK_DELAY } else { Span::ZERO },
        };
        // A probe after the timeout would come too late.
        self.probe_at = (now + wait).min(timeout_at);
    }

    /// Handles an acknowledgement with respect to the probe: RFC 8985, section 7.4. True if the probe
    /// repaired a loss, so that the window must shrink. `ack` is cumulative; `dsack` if it reports a
    /// duplicate; `pure` if it acknowledges nothing new.
    pub fn on_probe_ack(&mut self, ack: u64, dsack: bool, pure: bool) -> bool {
        let Some((end, repeats)) = self.probe else { return false };
        if ack < end {
            return false;
        }
        if !repeats || dsack {
            // New data, or the original arrived, too.
            self.probe = None;
            return false;
        }
        // RFC 8985, section 7.4.2: data after the probe is acknowledged without a D-SACK, so the probe has
        // filled a hole.
        if ack > end {
            self.probe = None;
            return true;
        }
        if pure {
            // Original and probe were both acknowledged.
            self.probe = None;
        }
        false
    }
}

/// Observes the segments of one acknowledgement.
pub struct Arriving<'a> {
    rack: &'a mut Rack,
    now: Time,
    /// The highest sequence number that had arrived before: the blocks of one acknowledgement have no order.
    highest: u64,
    /// The segment of this acknowledgement that was sent last: time and end.
    latest: (Time, u64),
}

impl Deliveries for Arriving<'_> {
    /// RFC 8985, section 6.2, steps 2 and 3.
    #[inline]
    fn on_receipt(&mut self, segment: Received) {
        let rack = &mut *self.rack;
        let rtt = self.now.since(segment.at);
        rack.highest = rack.highest.max(segment.end);
        // RFC 8985, section 6.2, step 3: an original that arrives below what has arrived was overtaken.
        if segment.end <= self.highest && !segment.ambiguous {
            rack.reordering = true;
        }
        if !segment.ambiguous && (segment.at, segment.end) > rack.original.0 {
            rack.original = ((segment.at, segment.end), rtt);
        }
        // The acknowledgement of a retransmission that comes too soon is for the original.
        if segment.ambiguous && rtt < rack.least {
            return;
        }
        rack.least = rack.least.min(rtt);
        // RFC 8985, section 6.2, step 2: of the segments that arrive together, the one that was sent last.
        if (segment.at, segment.end) >= self.latest {
            self.latest = (segment.at, segment.end);
            rack.rtt = rtt;
        }
        if (segment.at, segment.end) > rack.newest {
            rack.newest = (segment.at, segment.end);
        }
    }
}

/// Two observers.
impl<A: Deliveries, B: Deliveries> Deliveries for (A, B) {
    #[inline]
    fn on_receipt(&mut self, segment: Received) {
        self.0.on_receipt(segment);
        self.1.on_receipt(segment);
    }
    #[inline]
    fn on_removal(&mut self) {
        self.0.on_removal();
        self.1.on_removal();
    }
}

/// An observer that may be missing.
impl<A: Deliveries> Deliveries for Option<A> {
    #[inline]
    fn on_receipt(&mut self, segment: Received) {
        if let Some(one) = self {
            one.on_receipt(segment);
        }
    }
    #[inline]
    fn on_removal(&mut self) {
        if let Some(one) = self {
            one.on_removal();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tcp::scoreboard::Retransmission;

    /// A connection that is driven by the rows of a table.
    struct Driven {
        board: Scoreboard,
        rack: Rack,
        mss: u64,
        recovering: bool,
        recovery_point: u64,
        /// The reordering window that the last event used.
        window: Span,
    }

    impl Driven {
        fn retransmit(&mut self, seq: u64, len: u32, now: Time) {
            self.board.on_retransmission(Retransmission { seq, len }, now);
            self.rack.on_retransmission(seq + u64::from(len), now);
        }

        fn detect(&mut self, srtt: Span, now: Time) {
            self.window = self.rack.window(&self.board, self.mss, srtt, self.recovering);
            if self.rack.detect(&mut self.board, self.window, now) > 0 && !self.recovering {
                (self.recovering, self.recovery_point) = (true, self.board.next());
            }
        }

        fn acknowledged(&mut self, row: &BTreeMap<&str, &str>, srtt: Span, now: Time) {
            let ack: u64 = row["ack"].parse().unwrap();
            let dsack = row["dsack"] == "1";
            let mut arriving = self.rack.at(now);
            if ack > self.board.una() {
                self.board.ack(ack, &mut arriving);
            }
            for block in row["sacks"].split(';').filter(|block| !block.is_empty()).skip(usize::from(dsack)) {
                let (from, to) = block.split_once('-').unwrap();
                self.board.sack(from.parse().unwrap(), to.parse().unwrap(), &mut arriving);
            }
            if let Ok(sample) = row["sample_us"].parse() {
                self.rack.add_sample(Span::us(sample));
            }
            if dsack {
                self.rack.on_dsack(self.board.una(), self.board.next());
            }
            if self.recovering && self.board.una() >= self.recovery_point {
                self.recovering = false;
                self.rack.on_recovery_end();
            }
            self.detect(srtt, now);
        }
    }

    /// A timeout counts four segments as lost. It was spurious, so none of them is. Then the last one
    /// arrives, and the three before it are lost after all.
    #[test]
    fn a_loss_is_detected_after_a_spurious_timeout() {
        let (mut board, mut rack) = (Scoreboard::new(1), Rack::new());
        for ms in 0..4 {
            board.push(100, Time::ms(ms));
        }
        assert_eq!(rack.on_timeout(&mut board, Span::ZERO, Time::ms(300)), 400);
        board.find_all();
        assert_eq!((board.lost(), board.pipe()), (vec![], 400));
        let now = Time::ms(310);
        board.sack(301, 401, &mut rack.at(now));
        assert_eq!(rack.detect(&mut board, Span::ZERO, now), 300);
        assert_eq!((board.lost(), board.pipe()), (vec![1, 101, 201], 0));
        assert_eq!(board.next_lost(), Some(Retransmission { seq: 1, len: 100 }));
    }

    fn retransmit(board: &mut Scoreboard, rack: &mut Rack, seq: u64, now: Time) {
        board.on_retransmission(Retransmission { seq, len: 100 }, now);
        rack.on_retransmission(seq + 100, now);
    }

    /// Four segments leave together, and the path takes 400 ms of a sudden. The first leaves again after the
    /// timeout. The acknowledgement of the first two seems to be for that, a round trip of 100 ms. Since the
    /// second was sent once, the timeout was spurious, and the last two are not late.
    #[test]
    fn a_spurious_timeout_makes_no_segment_late() {
        let (mut board, mut rack) = (Scoreboard::new(1), Rack::new());
        rack.add_sample(Span::ms(50));
        for _ in 0..4 {
            board.push(100, Time::ZERO);
        }
        rack.on_timeout(&mut board, Span::ZERO, Time::ms(300));
        retransmit(&mut board, &mut rack, 1, Time::ms(300));
        let now = Time::ms(400);
        board.ack(201, &mut rack.at(now));
        board.find_all();
        rack.on_spurious();
        assert_eq!(rack.detect(&mut board, Span::ZERO, now), 0);
        assert_eq!((rack.rtt, rack.reorder_at), (Span::ms(400), Time::NEVER));
    }

    /// The second of four segments was retransmitted before a spurious timeout, and the first after it. New
    /// data arrives: all four are lost.
    #[test]
    fn a_retransmission_from_before_a_spurious_timeout_may_be_lost() {
        let (mut board, mut rack) = (Scoreboard::new(1), Rack::new());
        for ms in 0..4 {
            board.push(100, Time::ms(ms));
        }
        retransmit(&mut board, &mut rack, 101, Time::ms(50));
        rack.on_timeout(&mut board, Span::ZERO, Time::ms(300));
        retransmit(&mut board, &mut rack, 1, Time::ms(300));
        board.find_all();
        board.push(100, Time::ms(320));
        let now = Time::ms(400);
        board.sack(401, 501, &mut rack.at(now));
        rack.detect(&mut board, Span::ZERO, now);
        assert_eq!((board.lost(), board.pipe()), (vec![1, 101, 201, 301], 0));
    }

    /// The second of four segments is retransmitted shortly before a timeout, so it is too young to count as
    /// lost then. New data arrives: it is lost, too.
    #[test]
    fn a_retransmission_from_shortly_before_a_timeout_may_be_lost() {
        let (mut board, mut rack) = (Scoreboard::new(1), Rack::new());
        for ms in 0..4 {
            board.push(100, Time::ms(ms));
        }
        board.sack(301, 401, &mut rack.at(Time::ms(103)));
        rack.detect(&mut board, Span::ZERO, Time::ms(103));
        retransmit(&mut board, &mut rack, 101, Time::ms(250));
        rack.on_timeout(&mut board, Span::ZERO, Time::ms(300));
        assert_eq!(board.lost(), [1, 201]);
        retransmit(&mut board, &mut rack, 1, Time::ms(300));
        retransmit(&mut board, &mut rack, 201, Time::ms(300));
        board.push(100, Time::ms(310));
        let now = Time::ms(411);
        board.sack(401, 501, &mut rack.at(now));
        rack.detect(&mut board, Span::ZERO, now);
        assert_eq!(board.lost(), [1, 101, 201]);
    }

    /// RACK against a second implementation, written from RFC 8985 alone: `validation/rack/oracle.py`. The
    /// table contains the events of that program's traces, and the state after each. The timer of the probe
    /// is not compared: there the delay of acknowledgements is a parameter.
    #[test]
    fn equals_the_second_implementation() {
        let mut lines = include_str!("../../tests/data/rack_trace.csv").lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let mut driven: Option<Driven> = None;
        let mut rows = 0;
        for line in lines {
            let row: BTreeMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
            let number = |name: &str| row[name].parse::<u64>().unwrap_or_default();
            let now = Time::us(number("time_us"));
            let srtt = Span::from_s_f64(row["srtt_us"].parse::<f64>().unwrap_or_default() / 1e6);
            let (seq, len) = (number("seq"), number("len") as u32);
            if row["event"] == "start" {
                let (board, rack) = (Scoreboard::new(seq), Rack::new());
                let mss = u64::from(len);
                let (recovering, recovery_point, window) = (false, 0, Span::ZERO);
                driven = Some(Driven { board, rack, mss, recovering, recovery_point, window });
                continue;
            }
            let this = driven.as_mut().expect("a trace starts");
            let before = this.board.lost();
            match (row["event"], row["retransmission"], row["probe"]) {
                ("send", "0", _) | ("pto_timer", _, "new") => this.board.push(len, now),
                ("send", _, _) => this.retransmit(seq, len, now),
                ("ack", _, _) => this.acknowledged(&row, srtt, now),
                ("reo_timer", _, _) => this.detect(srtt, now),
                ("rto_timer", _, _) => {
                    this.rack.on_timeout(&mut this.board, this.window, now);
                    (this.recovering, this.recovery_point) = (true, this.board.next());
                }
                ("pto_timer", _, "none") => {}
                ("pto_timer", _, probe) => {
                    let last = this.board.last().expect("something is repeated");
                    assert_eq!(probe, last.seq.to_string(), "{line}");
                    this.retransmit(last.seq, last.len, now);
                }
                (other, ..) => panic!("unknown event {other}"),
            }
            let lost: Vec<String> = this
                .board
                .lost()
                .iter()
                .filter(|seq| !before.contains(seq))
                .map(|seq| seq.to_string())
                .collect();
            assert_eq!(lost.join(";"), row["lost"], "{line}");
            assert_eq!(this.recovering, row["recovery"] == "1", "{line}");
            let near = |name: &str, value: Span| {
                let expected: f64 = row[name].parse().unwrap_or_default();
                let off = (value.as_s() * 1e6 - expected).abs();
                assert!(off < 1.0, "{name}: {value} instead of {expected} us at {line}");
            };
            near("rack_rtt_us", this.rack.rtt);
            near("min_rtt_us", this.rack.least());
            if row["event"] == "ack" {
                near("reo_wnd_us", this.window);
                let timer = this.rack.reorder_at;
                near("reo_timer_us", if timer == Time::NEVER { Span::ZERO } else { timer.since(Time::ZERO) });
            }
            rows += 1;
        }
        assert!(rows > 1000, "{rows} rows");
    }
}
