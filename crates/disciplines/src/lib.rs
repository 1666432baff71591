//! Queue disciplines, one file each.
//!
//! # Families
//! A discipline belongs to the first of these families that describes its purpose:
//!
//! - `reserved`: it keeps rates that flows have reserved, each with a bound on delay.
//! - `size`: it favours short flows, by the amount that a flow has sent or has still to send.
//! - `fair`: it divides the link into fair shares among flows, by their turns, by tags, or by early drops.
//! - `aqm`: it keeps one queue short by early drops or marks, so that senders slow down.
//! - `shape`: it sets order or pace by arrival, class, rate or downstream link.
//!
//! `common` holds parts that several disciplines share, and `testing` the support for tests.
//!
//! # Example
//! A discipline is built from text for a link, and a [`Port`](giveway_qdisc::Port) feeds it and takes packets
//! from it:
//!
//! ```
//! use giveway_disciplines::Spec;
//! use giveway_qdisc::{FlowKey, LinkContext, Next, Packet, Port, PortId, Rate, Streams, Time};
//!
//! let rate = Rate::mbit(10);
//! let context = LinkContext::new(rate, Streams::new(1));
//! let spec: Spec = "drr limit 1000p quantum 1500b".parse()?;
//! let mut port = Port::new(PortId(0), spec.build::<&str>(&context)?, rate);
//!
//! port.offer(Packet::new(FlowKey(1), 1500, "bulk 1"), Time::ZERO, &mut ());
//! port.offer(Packet::new(FlowKey(1), 1500, "bulk 2"), Time::ZERO, &mut ());
//! port.offer(Packet::new(FlowKey(2), 100, "voice"), Time::ZERO, &mut ());
//!
//! let mut order = Vec::new();
//! while let Next::Packet(pkt) = port.pull(port.free_at(), &mut ()) {
//!     order.push(pkt.payload);
//! }
//! assert_eq!(order, ["bulk 1", "voice", "bulk 2"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A file
//! Each file has, from top to bottom: a summary, the principles, deviations from the paper, the cost, and the
//! references; then the `Config`, the state, the methods of the contract, their helpers, and the tests. Start
//! with [`fifo`], then [`drr`], then [`efd`].
//!
//! Disciplines do not depend on a backend. A new discipline is a file in its family, a line in the registry
//! below, and `scenarios/disciplines/NAME.toml`. The line adds its name in scenarios and on the command line,
//! the schema, `giveway list` and `explain`, the reference page, the contract suite, the fuzz target and the
//! benchmark.

#![forbid(unsafe_code)]
// A second variable of the same name is how the wrong packet gets dropped.
#![cfg_attr(not(test), deny(clippy::shadow_unrelated))]

#[macro_use]
mod common;
#[macro_use]
mod registry;
mod spec;
#[cfg(test)]
mod testing;

pub use common::classes::ClassService;
pub use common::frame;
pub use common::sent::Source;
pub use giveway_spec::{Family, SpecError};
pub use registry::{Advice, Discipline, Entry, InLinux, Needs, Visit};

registry! {
    /// Order or pace by arrival, class, rate or downstream link.
    shape {
        fifo,
        pfifo,
        bfifo,
        pfifo_fast,
        prio,
        tbf,
        ets,
        wrr,
        htb,
        hfsc,
        netem,
        bsq,
        bsqred,
    }

    /// Fair shares of the link among flows, by turns, by tags or by early drops.
    fair {
        drr,
        srr,
        sfq,
        fq,
        fq_codel,
        fq_pie,
        cake,
        cake_mq,
        scfq,
        stfq,
        afd,
        csfq,
        fpip,
        fpip_edge,
    }

    /// Short flows first, by the amount that a flow has sent or has left.
    size {
        efd,
        run2c,
        xprotect,
        pias,
        las,
        lars,
        srpt,
    }

    /// Active queue management: one queue, kept short by early drops or marks, so that senders slow down.
    aqm {
        red,
        ared,
        gred,
        choke,
        sfb,
        codel,
        cobalt,
        pie,
        pi2,
        dualpi2,
        pip,
    }

    /// Rates that flows have reserved, with bounds on delay.
    reserved {
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
}
