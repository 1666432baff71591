//! Papers, done again: what a paper claims, what we measure, and a verdict for each claim.
//!
//! A paper is a folder (`papers/efd`): scenarios, `paper.toml` with what is run and drawn and what the paper leaves open,
//! `claims.toml` with what it says, in our words, and the band that we take each word to mean. Nothing of it is code, so a
//! claim is read, changed and added without compiling. The way through:
//!
//! ```text
//! paper.rs     paper.toml: decisions, variants, experiments, figures, sections
//! family.rs    experiments at several points along an axis
//! claim.rs     claims.toml: claims and their tests
//! measure.rs   a number of one run, which tests, bars and lines over an axis are about
//! cost.rs      what a packet costs, timed here: in place of a scenario
//! fact.rs      numbers that need no run, computed or measured elsewhere
//! curve.rs     what a figure draws of one run, put together over seeds
//! observe.rs   a run with a recorder
//! study.rs     which runs are needed, one of them, and all their results
//! verdict.rs   tests against results
//! drawing.rs   figures from curves
//! report.rs    the page; listing.rs JSON and the book
//! ```
//!
//! This crate brings scenarios and records together and knows neither threads nor terminals: a front end runs
//! [`Study::jobs`] in whatever order, and hands the results to [`Study::finish`].

#![forbid(unsafe_code)]

mod claim;
mod cost;
mod curve;
mod drawing;
mod fact;
mod family;
mod formula;
mod listing;
mod measure;
mod observe;
mod paper;
mod report;
mod study;
mod verdict;

pub use listing::{counted, json, markdown};
pub use observe::{disciplines, layout, observe, observe_network};
pub use paper::{Paper, PaperError};
pub use report::document;
pub use study::{Job, Results, Scope, Study};
pub use verdict::{Judged, Verdict, judge};

/// The files of a paper that is shipped.
pub struct Shipped {
    /// How it is called on the command line.
    pub id: &'static str,
    /// Its files: name and text.
    pub files: &'static [(&'static str, &'static str)],
}

/// Every paper that is shipped, in the order of listing.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        id: "efd",
        files: &[
            ("paper.toml", include_str!("../../../papers/efd/paper.toml")),
            ("claims.toml", include_str!("../../../papers/efd/claims.toml")),
            ("transfers.toml", include_str!("../../../papers/efd/transfers.toml")),
            ("multimedia.toml", include_str!("../../../papers/efd/multimedia.toml")),
        ],
    },
    Shipped {
        id: "fpip",
        files: &[
            ("paper.toml", include_str!("../../../papers/fpip/paper.toml")),
            ("claims.toml", include_str!("../../../papers/fpip/claims.toml")),
            ("unresponsive.toml", include_str!("../../../papers/fpip/unresponsive.toml")),
            ("tcp-udp.toml", include_str!("../../../papers/fpip/tcp-udp.toml")),
            ("mixed.toml", include_str!("../../../papers/fpip/mixed.toml")),
            ("chain-tcp.toml", include_str!("../../../papers/fpip/chain-tcp.toml")),
            ("chain-udp.toml", include_str!("../../../papers/fpip/chain-udp.toml")),
            ("chain-web.toml", include_str!("../../../papers/fpip/chain-web.toml")),
            ("flows.toml", include_str!("../../../papers/fpip/flows.toml")),
        ],
    },
    Shipped {
        id: "bsq",
        files: &[
            ("paper.toml", include_str!("../../../papers/bsq/paper.toml")),
            ("claims.toml", include_str!("../../../papers/bsq/claims.toml")),
            ("backbone.toml", include_str!("../../../papers/bsq/backbone.toml")),
            ("cascade.toml", include_str!("../../../papers/bsq/cascade.toml")),
        ],
    },
    Shipped {
        id: "trr",
        files: &[
            ("paper.toml", include_str!("../../../papers/trr/paper.toml")),
            ("claims.toml", include_str!("../../../papers/trr/claims.toml")),
            ("measured.toml", include_str!("../../../papers/trr/measured.toml")),
            ("delay.toml", include_str!("../../../papers/trr/delay.toml")),
            ("shares.toml", include_str!("../../../papers/trr/shares.toml")),
            ("excess.toml", include_str!("../../../papers/trr/excess.toml")),
        ],
    },
    Shipped {
        id: "p-spf",
        files: &[
            ("paper.toml", include_str!("../../../papers/p-spf/paper.toml")),
            ("claims.toml", include_str!("../../../papers/p-spf/claims.toml")),
            ("switch.toml", include_str!("../../../papers/p-spf/switch.toml")),
        ],
    },
];
