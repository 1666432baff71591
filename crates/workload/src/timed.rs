//! The data units of a connection with their times, and the epochs that they form.

use crate::model::{Adu, Epoch, Side, Trigger};
use crate::think::Reaction;

/// Smallest pause within the data of one side that ends an epoch, ns.
const APART: u64 = 1_000_000_000;

/// Maximum number of times that are kept of a data unit. Of a longer one they are farther apart.
const ARRIVALS: usize = 64;

/// A data unit, and the times at which its first and last bytes passed.
pub struct TimedAdu {
    pub adu: Adu,
    pub first: u64,
    last: u64,
    /// The packets that show its think time; `None` if none do.
    pub reaction: Option<Reaction>,
    /// Times at which its data passed, and its bytes so far.
    pub arrivals: Vec<(u64, u64)>,
    /// Every so many packets are in `arrivals`; 0: none.
    every: u32,
    packets: u32,
}

impl TimedAdu {
    /// A data unit that passes at `now`.
    pub fn new(adu: Adu, now: u64) -> TimedAdu {
        let (reaction, arrivals) = (None, Vec::new());
        TimedAdu { adu, first: now, last: now, reaction, arrivals, every: 0, packets: 0 }
    }

    /// The data unit, which keeps from now on the times at which its data pass.
    pub fn with_arrivals(self) -> TimedAdu {
        let arrivals = vec![(self.first, self.adu.bytes)];
        TimedAdu { arrivals, every: 1, ..self }
    }

    /// Adds bytes that pass at `now`.
    pub fn extend(&mut self, bytes: u64, now: u64) {
        self.adu.bytes = self.adu.bytes.saturating_add(bytes);
        self.last = self.last.max(now);
        self.packets = self.packets.wrapping_add(1);
        if self.every == 0 || !self.packets.is_multiple_of(self.every) {
            return;
        }
        if self.arrivals.len() == ARRIVALS {
            let mut number = 0..;
            self.arrivals.retain(|_| number.next().is_some_and(|number: usize| number.is_multiple_of(2)));
            self.every = self.every.saturating_mul(2);
        }
        self.arrivals.push((self.last, self.adu.bytes));
    }
}

/// The epochs of a connection that started at `start`: each begins with a request after a response, or after
/// a long pause.
pub fn epochs(adus: &[TimedAdu], start: u64) -> Vec<Epoch> {
    let mut epochs: Vec<Epoch> = Vec::new();
    let (mut since, mut until) = (start, start);
    let mut before = None;
    for TimedAdu { adu, first, last, .. } in adus {
        let next_request = adu.side == Side::Client && before == Some(Side::Server);
        let after_pause = adu.trigger == Trigger::Own && adu.think_time > APART;
        if before.is_none() || next_request || after_pause {
            // The first epoch includes the handshake.
            (since, until) = if before.is_none() { (start, start) } else { (*first, *first) };
            epochs.push(Epoch { adus: 0, took: 0, page: None, whole: true });
        }
        before = Some(adu.side);
        until = until.max(*last);
        if let Some(epoch) = epochs.last_mut() {
            epoch.adus += 1;
            epoch.took = until.saturating_sub(since);
        }
    }
    epochs
}
