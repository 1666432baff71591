//! How much processor time the program has taken.

use nix::sys::resource::{UsageWho, getrusage};

/// User time of all threads so far, in seconds; zero where the system does not say.
pub fn user_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    usage.map_or(0.0, |usage| usage.user_time().tv_sec() as f64 + usage.user_time().tv_usec() as f64 * 1e-6)
}
