//! Closed forms that measurements are held against, each with its equation and where it comes from.
//!
//! A simulation that reproduces M/D/1 within its confidence interval has its clock, its queue and its arrivals right;
//! one that follows the square-root law has its TCP right. Tests, `explain` and verdicts use the same functions.
//!
//! Everything here takes and gives plain `f64`, because the papers calculate in real numbers. The unit of each
//! argument and result is in its name or in its comment: seconds, packets, packets per second. Outside the range in
//! which a formula holds (a queue with load 1 or more has no mean waiting time) the answer is `None`.

#![forbid(unsafe_code)]

pub mod crossbar;
pub mod distributions;
pub mod fairness;
pub mod hurst;
pub mod latency_rate;
pub mod pages;
pub mod queues;
pub mod tcp;
