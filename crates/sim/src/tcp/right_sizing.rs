//! The receive window of a receiver that sizes its buffer by what arrives: dynamic right-sizing.
//!
//! # Principles
//! - The window is twice what the application has read in a round trip, so that it never limits a sender
//!   whose window doubles in each. It only grows.
//! - A receiver whose data grow faster than before gets more than twice, since the next round trip will have
//!   more.
//!
//! # Deviations
//! - A segment has no window field. The sender computes the window of its peer from the acknowledgements,
//!   half a round trip later than the receiver would. The application reads at once, so what is acknowledged
//!   is read.
//! - The amount beyond twice the data is the same as in Linux, found by observation: sixteen segments, and
//!   twice the relative growth.
//!
//! # References
//! - Fisk and Feng 2001: Dynamic right-sizing in TCP. tcp(7), `tcp_rmem` and `tcp_moderate_rcvbuf`.

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
        // What was acknowledged between two round trips was read in the first.
        let read = una - self.from;
        (self.from, self.until) = (una, next.max(una + 1));
        if read <= self.read {
            return;
        }
        let twice = 2 * read + 16 * mss;
        let growth = (twice as f64 * (read - self.read) as f64 / self.read.max(1) as f64) as u64;
        self.window = self.window.max(twice.saturating_add(2 * growth).min(self.most));
        self.read = read;
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
}
