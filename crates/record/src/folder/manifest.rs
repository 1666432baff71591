//! The description of a comparison before it starts, and the format of its folder.

use giveway_measure::{Discipline, Layout};

/// What is known about a comparison before it starts. It has no clock of its own: whoever has one fills it in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// Which Giveway this is, with a digest of the sources that results depend on if that is known. Cells of another
    /// version are run again.
    pub version: String,
    /// The disciplines, in order.
    pub disciplines: Vec<Discipline>,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// The machine, in words.
    pub machine: String,
    /// The command that made it, with all its flags.
    pub created_by: String,
    /// When it began to be made: RFC 3339, UTC.
    pub created: Option<String>,
    /// What the scenario is about, in a line.
    pub title: String,
    /// The same at length.
    pub description: String,
    /// What is measured.
    pub layout: Layout,
}

/// The number of the folder's format. It grows when a table or a column is added or changes its meaning, so that what
/// reads a folder can say so.
///
/// 2: the tables `delays` and `shares`; what is measured; in `flows` the columns `kind` and `measured`; in `links` the
/// drops within the measurement interval.
///
/// 3: in `flows` the columns `longest_pause_s` and `paused_s`; where they were asked for, the tables `senders` and
/// `episodes`.
///
/// 4: where it was asked for, the table `bursts`.
///
/// 5: digests of all tables, in the summaries and in the manifest; both have one of their own content.
///
/// 6: every column has its unit and its description in the file; columns and metrics have other names; the tables `gauges`,
/// which was in `queue`, `sojourn`, which was `delays`, and `metrics`; in `summary` the columns of parameters; in the manifest
/// how the scenario spells each discipline, and the command with its flags. Measures count otherwise: see the table of
/// metrics.
pub(crate) const FORMAT: u64 = 7;
