//! The data units of a connection with their times, and the epochs that they form.

use crate::model::{Adu, Epoch, Side, Trigger};

/// Smallest pause within the data of one side that ends an epoch, ns.
const APART: u64 = 1_000_000_000;

/// A data unit, and the times at which its first and last bytes passed.
pub struct TimedAdu {
    pub adu: Adu,
    pub first: u64,
    last: u64,
}

impl TimedAdu {
    /// A data unit that passes at `now`.
    pub fn new(adu: Adu, now: u64) -> TimedAdu {
        TimedAdu { adu, first: now, last: now }
    }

    /// Adds bytes that pass at `now`.
    pub fn extend(&mut self, bytes: u64, now: u64) {
        self.adu.bytes = self.adu.bytes.saturating_add(bytes);
        self.last = self.last.max(now);
    }
}

/// The epochs of a connection that started at `start`: each begins with a request after a response, or after
/// a long pause.
pub fn epochs(adus: &[TimedAdu], start: u64) -> Vec<Epoch> {
    let mut epochs: Vec<Epoch> = Vec::new();
    let (mut since, mut until) = (start, start);
    let mut before = None;
    for TimedAdu { adu, first, last } in adus {
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
