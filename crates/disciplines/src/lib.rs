//! Queue disciplines, one file each.
//!
//! A file reads top-down: what it is, its principles, where it departs from its paper, what it costs, the
//! references; then its `Config`, its state, the verbs of the contract, their steps, and its tests. Start with
//! [`fifo`], then [`drr`], then [`efd`].
//!
//! Nothing here knows a host. To add a discipline: write its file, add its line below, add
//! `scenarios/disciplines/NAME.toml`. From the line come the spelling in scenarios and on the command line, the
//! schema, `giveway list` and `explain`, the reference page, the contract suite, the fuzz target and the benchmark.

#![forbid(unsafe_code)]
// A second variable of the same name is how the wrong packet gets dropped.
#![cfg_attr(not(test), deny(clippy::shadow_unrelated))]

#[macro_use]
mod registry;
mod guaranteed;
#[cfg(test)]
mod line;
#[cfg(test)]
mod rates;
#[cfg(test)]
mod reserved;
mod sent;
#[cfg(test)]
mod shares;
mod spec;
mod thresholds;
#[cfg(test)]
mod trace;

pub use giveway_spec::SpecError;
pub use registry::{Advice, Discipline, Entry, Visit};
pub use sent::Source;

registry! {
    fifo,
    prio,
    tbf,
    drr,
    sfq,
    efd,
    run2c,
    xprotect,
    pias,
    las,
    lars,
    scfq,
    stfq,
    srpt,
    srr,
    bsq,
    bsqred,
    red,
    ared,
    choke,
    sfb,
    afd,
    codel,
    fq_codel,
    pie,
    pip,
    fpip,
    fpip_edge,
    csfq,
    vc,
    wfq,
    wf2q,
    tss,
    trr,
    trr_round,
    trr_sound,
    vtrr,
    qfq,
}
