//! The time at which finished trials are written.

use std::time::{Duration, Instant};

/// Rows are written after this time, or after [`SHARE`] of the time so far: a long run writes few parts.
const OFTEN: Duration = Duration::from_secs(2);
const SHARE: u32 = 20;

/// The maximum is a minute, which a kill would lose.
const SELDOM: Duration = Duration::from_secs(60);

/// The time at which finished trials are written.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    began: Instant,
    written: Instant,
}

impl Default for Due {
    #[expect(clippy::disallowed_methods, reason = "the time decides when a part is written, and no result")]
    fn default() -> Due {
        let now = Instant::now();
        Due { began: now, written: now }
    }
}

impl Due {
    /// The time until the next part is due.
    pub fn patience(&self) -> Duration {
        (self.began.elapsed() / SHARE).clamp(OFTEN, SELDOM).saturating_sub(self.written.elapsed())
    }

    /// Notes that everything is written now.
    #[expect(clippy::disallowed_methods, reason = "the time decides when a part is written, and no result")]
    pub fn written(&mut self) {
        self.written = Instant::now();
    }
}
