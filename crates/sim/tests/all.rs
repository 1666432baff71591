//! The tests of this crate, in one program, which is linked once.

#[global_allocator]
static COUNTING: giveway_counting::Counting = giveway_counting::Counting;

mod applications;
mod controls;
mod cubic;
mod fabric_traffic;
mod linux_traces;
mod media;
mod memory;
mod negotiation;
mod outages;
mod parallel;
mod plain;
mod queues;
mod quic;
mod recovery_by_time;
mod sources;
mod tcp_rates;
mod tcp_scenarios;
mod timing;
mod varying;

#[path = "support/quic_trace.rs"]
mod quic_trace;
mod support;
#[path = "support/trace.rs"]
mod trace;
