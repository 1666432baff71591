//! The description of a comparison before it starts, and the format of its folder.

use giveway_measure::{Discipline, Layout};

/// The description of a comparison before it starts. The caller sets the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// The version of Giveway, with a digest of the sources that results depend on if that is known. Trials
    /// of another version are repeated.
    pub version: String,
    /// The disciplines, in order.
    pub disciplines: Vec<Discipline>,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// A description of the machine.
    pub machine: String,
    /// The command of the comparison, with all flags.
    pub created_by: String,
    /// The start of the comparison: RFC 3339, UTC.
    pub created: Option<String>,
    /// The title of the scenario.
    pub title: String,
    /// The description of the scenario.
    pub description: String,
    /// The plan of the recordings.
    pub layout: Layout,
}

/// The number of the format of run folders. It grows if a table or a column is added or changes its meaning,
/// so that readers can refuse other formats.
///
/// 2: the tables `delays` and `shares`; in the manifest the measured ports; in `flows` the columns `kind` and
/// `measured`; in `links` the drops within the measurement interval.
///
/// 3: in `flows` the columns `longest_pause_s` and `paused_s`; optionally, the tables `senders` and
/// `episodes`.
///
/// 4: optionally, the table `bursts`.
///
/// 5: digests of all tables, in the summaries and in the manifest; both files have a digest of their own
/// content.
///
/// 6: every column states its unit and its description in the file; columns and metrics have other names; the
/// tables `gauges`, which was in `queue`, `sojourn`, which was `delays`, and `metrics`; in `summary` the
/// columns of parameters; in the manifest each discipline as the scenario has it, and the command with its
/// flags. Some metrics have other definitions.
///
/// 7: trials are in the folder `trials`, which was `cells`, and in the list `trials` of the manifest.
///
/// 8: the table `delays`, of delays over time. Up to format 5, this was the name of `sojourn`.
///
/// 9: in `flows` the columns `after_timeout_packets`, `probe_packets` and `needless_packets`; in `senders`
/// the columns `inflight_bytes`, `rtt_s`, `pacing_bps` and `delivery_bps`.
pub(crate) const FORMAT: u64 = 10;
