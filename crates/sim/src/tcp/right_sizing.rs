//! The receive window of a receiver that sizes its buffer by what arrives: dynamic right-sizing. And the
//! acknowledgements of a receiver whose window opens.
//!
//! # Principles
//! - The window is twice what the application has read in a round trip, so that it never limits a sender
//!   whose window doubles in each. It only grows.
//! - A receiver whose data grow faster than before gets more than twice, since the next round trip will have
//!   more.
//! - The receiver announces a larger window step by step, twice the data that arrived with each segment, and
//!   acknowledges each of these segments at once. So a sender in slow start gets an acknowledgement for each
//!   segment, until the window is as large as the receiver wants it.
//!
//! # Deviations
//! - The receiver takes the round-trip time of the handshake. Linux measures it from timestamps, or as the
//!   time of a window of data, and so starts later: in five captures of Linux 7.2 it acknowledged the first
//!   22 segments at once, the next 24 in pairs, and then 280 to 440 at once; here all of them are at once.
//! - A segment has no window field. The sender computes the window of its peer from the acknowledgements,
//!   half a round trip later than the receiver would. The application reads at once, so what is acknowledged
//!   is read.
//! - The amount beyond twice the data is the same as in Linux, found by observation: sixteen segments, and
//!   twice the relative growth.
//!
//! # References
//! - Fisk and Feng 2001: Dynamic right-sizing in TCP. tcp(7), `tcp_rmem` and `tcp_moderate_rcvbuf`.

use giveway_qdisc::{Span, Time};

use super::TcpConfig;

/// A receive window that grows.
#[derive(Debug)]
pub(super) struct RightSizing {
    /// The window, bytes.
    window: u64,
    /// The maximum of the window.
    most: u64,
    /// Sequence number acknowledged when this round trip started, and the one that ends it.
    from: u64,
    until: u64,
    /// The maximum that was read in a round trip.
    read: u64,
}

impl RightSizing {
    /// A window that starts with `window`, and grows up to `most`. `initial` is what a sender sends first.
    pub fn new(window: u64, most: u64, initial: u64) -> RightSizing {
        RightSizing { window: window.min(most), most, from: 1, until: 1, read: initial.min(window) }
    }

    /// The initial window of a receiver; `None` if its window is constant.
    pub fn of(config: &TcpConfig) -> Option<RightSizing> {
        let first = config.initial_window.0 * config.mss.0;
        let initial = config.receive_window_initial?;
        Some(RightSizing::new(initial.0, config.receive_window.0, first))
    }

    /// The window, bytes.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// An acknowledgement arrived: everything below `una`, and everything below `next` was sent.
    #[inline]
    pub fn on_ack(&mut self, una: u64, next: u64, mss: u64) {
        if una < self.until {
            return;
        }
        self.until = next.max(una + 1);
        self.on_round(una, mss);
    }

    /// A round trip has ended, and everything below `una` was read.
    fn on_round(&mut self, una: u64, mss: u64) {
        // What was acknowledged between two round trips was read in the first.
        let read = una - self.from;
        self.from = una;
        if read <= self.read {
            return;
        }
        let twice = 2 * read + 16 * mss;
        let growth = (twice as f64 * (read - self.read) as f64 / self.read.max(1) as f64) as u64;
        self.window = self.window.max(twice.saturating_add(2 * growth).min(self.most));
        self.read = read;
    }
}

/// The window that a receiver announces, which opens as segments arrive.
#[derive(Debug)]
pub(super) struct Opening {
    sizing: RightSizing,
    /// The announced window, bytes.
    announced: u64,
    /// The data that had arrived in order with the last segment, bytes.
    delivered: u64,
    /// The beginning of the round trip; `None` before the first segment.
    begun: Option<Time>,
}

impl Opening {
    /// A receiver that has no data yet; `None` if its window is constant.
    pub fn new(config: &TcpConfig) -> Option<Opening> {
        let sizing = RightSizing::of(config)?;
        Some(Opening { announced: sizing.window, sizing, delivered: 0, begun: None })
    }

    /// A segment arrived in order: `delivered` bytes have arrived so far. True if it opens the window, which
    /// the sender must know at once.
    #[inline]
    pub fn on_arrival(&mut self, delivered: u64, rtt: Span, now: Time, mss: u64) -> bool {
        let begun = *self.begun.get_or_insert(now);
        if now.since(begun) >= rtt {
            self.begun = Some(now);
            self.sizing.on_round(1 + self.delivered, mss);
        }
        let arrived = delivered - self.delivered;
        self.delivered = delivered;
        let opens = arrived > 0 && self.announced < self.sizing.window;
        if opens {
            self.announced = (self.announced + 2 * arrived.max(mss)).min(self.sizing.window);
        }
        opens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow start of a doubling window never fills the receive window; then it stays.
    #[test]
    fn a_window_that_doubles_is_not_limited() {
        let mut sizing = RightSizing::new(64_240, 3 << 20, 14_480);
        let (mut una, mut flight) = (1, 14_480);
        for _ in 0..6 {
            assert!(sizing.window() >= flight, "{} is below {flight}", sizing.window());
            sizing.on_ack(una, una + flight, 1448);
            una += flight;
            flight *= 2;
        }
        let grown = sizing.window();
        sizing.on_ack(una, una + 1000, 1448);
        sizing.on_ack(una + 1000, una + 2000, 1448);
        assert_eq!(sizing.window(), grown.max(sizing.window()), "it does not shrink");
        assert!(sizing.window() <= 3 << 20);
    }

    /// A sender that doubles its window, at 1,000 segments a second, and then sends 40 in a round trip.
    #[test]
    fn a_window_that_opens_is_acknowledged_segment_by_segment() {
        let mut opening = Opening::new(&TcpConfig::linux()).expect("the window grows");
        let rtt = Span::ms(40);
        let mut delivered = 0;
        let mut round = |number: u64, count: u64| {
            let mut at_once = 0;
            for at in 0..count {
                delivered += 1448;
                at_once += u64::from(opening.on_arrival(delivered, rtt, Time::ms(40 * number + at), 1448));
            }
            at_once
        };
        assert_eq!(round(0, 10), 0, "nothing is known of the first round trip");
        assert_eq!((round(1, 20), round(2, 40)), (0, 40), "twice as much was read in the second one");
        let more: u64 = (3..30).map(|number| round(number, 40)).sum();
        assert!((40..400).contains(&more), "{more}");
        assert_eq!(round(30, 40), 0, "it is as large as the receiver wants it");
    }
}
