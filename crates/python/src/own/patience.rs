//! Calls that follow each other too fast, so that a run with them would hardly end.

use giveway_qdisc::{Span, Time};

/// The calls of one object since the last one that counted for all before.
#[derive(Default)]
pub struct Patience {
    calls: u32,
    since: Time,
}

impl Patience {
    /// Forgets the calls so far.
    #[inline]
    pub fn renew(&mut self) {
        self.calls = 0;
    }

    /// Counts a call at this time. Returns false if a number of calls in a row took less than a time.
    #[inline]
    pub fn lasts(&mut self, now: Time, (number, time): (u32, Span)) -> bool {
        if self.calls == 0 {
            self.since = now;
        }
        self.calls += 1;
        if self.calls < number {
            return true;
        }
        self.calls = 0;
        now.since(self.since) >= time
    }
}
