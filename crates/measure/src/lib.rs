//! Measurement of a run: a probe that records it, metrics, tables over seeds, and findings.
//!
//! A [`Recorder`] is the probe of one run. [`Recorder::finish`] returns a [`Record`]: rows for each flow,
//! queue sample and link, and a [`Summary`] of named metrics. Summaries over seeds become a [`Table`], which
//! is printed ([`Table::render`]) or converted to JSON ([`Table::to_json`]). [`findings`] describes the
//! results of a table in sentences.
//!
//! ```
//! # use giveway_qdisc::{Meta, PortId, Probe, Rate, Time};
//! use giveway_measure::{Layout, Recorder};
//!
//! let mut recorder = Recorder::new(Layout {
//!     measured: vec![PortId(0)],
//!     rates: vec![(PortId(0), Rate::mbit(1))],
//!     until: Time::s(1),
//!     ..Layout::default()
//! });
//! // A backend makes these calls. A packet of 1,250 bytes arrives, and its sojourn time is 2 ms.
//! let meta = Meta { bytes: 1250, arrived: Time::ZERO, ..Meta::default() };
//! Probe::<()>::on_arrival(&mut recorder, PortId(0), &meta, Time::ZERO);
//! Probe::<()>::on_transmission(&mut recorder, PortId(0), &meta, &(), Time::ms(2));
//!
//! let metrics = recorder.finish().summary.metrics;
//! assert_eq!(metrics.value("utilization"), Some(0.01));
//! assert_eq!(metrics.value("sojourn_mean_s"), Some(0.002));
//! assert_eq!(metrics.value("fct_p50_s"), None); // there are no transfers
//! ```
//!
//! This crate knows the contract (`qdisc`), closed forms and estimators (`theory`), and no backend: a
//! simulation and a live measurement produce the same tables. It reads and writes no files.
//!
//! - A metric that could not be measured is missing (`None`, JSON `null`, `-` in the table), never zero.
//! - The measurement interval of a run is `from <= t < until`, after the warm-up.
//! - A packet causes no allocation, and a port that is not measured costs one array lookup per packet.

#![forbid(unsafe_code)]

mod amounts;
mod arrivals;
mod bursts;
mod classes;
mod contest;
mod counts;
mod crossing;
mod delays;
mod difference;
mod discipline;
mod emissions;
mod episodes;
pub mod figures;
mod findings;
mod fingerprint;
mod flow_tables;
mod holm;
mod layout;
mod level_tables;
mod meter;
mod metrics;
mod names;
mod plot;
mod quantile;
mod recorder;
mod rows;
mod series;
mod source_tables;
mod student;
mod summary;
mod table;
mod terminal;
mod trial;

pub use amounts::{amount, of_metric, unit_of};
pub use bursts::WINDOWS;
pub use contest::Contest;
pub use difference::{Difference, Ratio, is_time, least_effect};
pub use discipline::Discipline;
pub use emissions::BIN;
pub use findings::{findings, leaders};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use holm::holm;
pub use layout::{Layout, PortsOnRoute};
pub use level_tables::aligned;
pub use metrics::{
    Better, Definition, Label, METRICS, MetricName, Statistic, Subject, Unit, behind, better, completed,
    is_carried, jain, label, named, nearest, page as metrics_page, responses, short_label,
};
pub use names::{kind, short_names};
pub use plot::DelayPlot;
pub use recorder::Recorder;
pub use rows::{
    BurstRow, DelayRow, DelaySummary, EpisodeRow, LinkRow, Packets, ProgressRow, QueueRow, Record, ShareRow,
    SojournRow,
};
pub use student::t_quantile;
pub use summary::{Metrics, Summary, unnamed};
pub use table::{DisciplineRow, Estimate, Table};
pub use terminal::Style;
pub use trial::Trial;
