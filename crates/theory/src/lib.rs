//! Closed forms and bounds to compare measurements with, each with its equation and its source.
//!
//! A simulation that reproduces M/D/1 within its confidence interval has a correct clock, queue and arrivals;
//! one that follows the square-root law has a correct TCP. Tests, `explain` and verdicts use the same
//! functions.
//!
//! All functions take and return plain `f64`, because the papers calculate in real numbers. The unit of each
//! argument and result is in its name or in its comment: seconds, packets, packets per second. Outside the
//! range in which a formula holds (a queue with load 1 or more has no mean waiting time) the result is
//! `None`.
//!
//! ```
//! // M/D/1 with load 0.5: packets wait for half a service time on average.
//! let waiting_s = giveway_theory::queues::md1_waiting(0.5, 1.0).unwrap();
//! assert!((waiting_s - 0.5).abs() < 1e-12);
//! ```

#![forbid(unsafe_code)]

pub mod crossbar;
pub mod distributions;
pub mod fairness;
pub mod hurst;
pub mod latency_rate;
pub mod pages;
pub mod queues;
pub mod tcp;
