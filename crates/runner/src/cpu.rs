//! The processor time of the program.

use nix::sys::resource::{UsageWho, getrusage};

/// The user time of all threads since the start, seconds; 0 if the system does not report it.
pub fn user_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    usage.map_or(0.0, |usage| usage.user_time().tv_sec() as f64 + usage.user_time().tv_usec() as f64 * 1e-6)
}
