//! Pauses of threads, by the clock of the machine.

use std::time::Duration;

/// Blocks the thread for this time. The rest of the program does not sleep.
pub fn pause(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the live backend waits for a real clock, and nothing else does"
    )]
    std::thread::sleep(span);
}
