//! Proportional rate reduction: in fast recovery the window shrinks in proportion to what arrives. RFC 9937.
//!
//! # Principles
//! - While more is in the network than the new threshold, each byte that arrives lets threshold / flight
//!   bytes out. So the window reaches the threshold at the end of the recovery, without a pause of half a
//!   round trip.
//! - When losses leave less in the network than the threshold, as much leaves as arrives, and one segment
//!   more for an acknowledgement that shows progress without further losses.
//!
//! # Deviations
//! - The share is rounded up to whole segments, as Linux counts. RFC 9937 counts bytes, and a sender of whole
//!   segments would wait for the rest of one.
//!
//! # Cost
//! - 40 bytes in the sender, and a division for each acknowledgement in recovery.
//!
//! # References
//! - RFC 9937, sections 6.1 and 6.2; RFC 6937.

/// A reduction that is under way; all sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    /// Target (ssthresh).
    threshold: u64,
    /// Bytes in flight when it started (RecoverFS).
    flight: u64,
    /// Bytes delivered since.
    delivered: u64,
    /// Bytes sent since (prr_out).
    out: u64,
    /// The window.
    window: u64,
}

impl Prr {
    /// Starts a reduction from `flight` bytes to `threshold`: RFC 9937, section 6.1.
    pub fn begin(flight: u64, threshold: u64, window: u64) -> Prr {
        Prr { threshold, flight: flight.max(1), delivered: 0, out: 0, window }
    }

    /// The window.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Bytes have been sent.
    pub fn on_send(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// An acknowledgement has delivered `delivered` bytes, and `pipe` are left in the network. `safe` is true
    /// if it advances without further losses: RFC 9937, section 6.2.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, safe: bool, mss: u64) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let mut send = if pipe > self.threshold {
            // RFC 9937, section 6.2, the proportional part: what has left follows what has arrived, in the
            // ratio of the two windows.
            let share = (self.delivered * self.threshold).div_ceil(self.flight);
            share.next_multiple_of(mss).saturating_sub(self.out)
        } else {
            // RFC 9937, section 6.2, the reduction bound: as much leaves as arrives, and with progress one
            // segment more, but never above the threshold.
            let most = self.delivered.saturating_sub(self.out).max(delivered) + if safe { mss } else { 0 };
            most.min(self.threshold - pipe)
        };
        // The first retransmission is never delayed.
        if self.out == 0 {
            send = send.max(mss);
        }
        self.window = pipe + send;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred segments of 1,000 bytes are in flight, the first is lost, and the threshold is 70. Each
    /// acknowledgement lets 0.7 segments out, and after all have arrived 70 are in the network.
    #[test]
    fn the_window_reaches_the_threshold_in_one_round() {
        let (mss, mut pipe) = (1000, 99_000u64);
        let mut prr = Prr::begin(99_000, 70_000, 100_000);
        let mut sent = 0;
        for _ in 0..98 {
            pipe -= mss;
            prr.on_ack(mss, pipe, false, mss);
            while pipe + mss <= prr.window() {
                pipe += mss;
                sent += 1;
                prr.on_send(mss);
            }
        }
        assert_eq!((sent, pipe), (69, 70_000));
    }

    /// Half of the window is lost: less than the threshold is in the network. Each acknowledgement lets out
    /// what arrived, and one more if it shows progress.
    #[test]
    fn many_losses_are_followed_by_slow_start_to_the_threshold() {
        let mut prr = Prr::begin(100_000, 70_000, 100_000);
        prr.on_ack(1000, 50_000, false, 1000);
        assert_eq!(prr.window(), 51_000, "conservation of packets");
        prr.on_send(1000);
        prr.on_ack(1000, 50_000, true, 1000);
        assert_eq!(prr.window(), 52_000, "and one segment");
        prr.on_send(2000);
        prr.on_ack(1000, 69_500, true, 1000);
        assert_eq!(prr.window(), 70_000, "never above the threshold");
    }
}
