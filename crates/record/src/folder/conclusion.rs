//! Conclusions of a comparison, which its caller draws from the table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Findings, and the action that follows from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conclusion {
    /// Findings, a sentence each.
    pub findings: Vec<String>,
    /// The recommendation, if the caller gives one.
    pub recommendation: Option<Recommendation>,
    /// Titles of ports by name, such as "upstream" for `local->far`. A port without a title has its name.
    pub port_titles: BTreeMap<String, String>,
}

/// A recommendation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendation {
    /// The recommendation in a few words, as in "cake at 1.9 Mbit/s".
    pub summary: String,
    /// The changes that it makes, as a table; `None` if there are none.
    #[serde(default)]
    pub effects: Option<Effects>,
    /// Reasons, cost and certainty: a heading and a sentence each.
    pub reasons: Vec<(String, String)>,
    /// Commands that put it into effect or undo it.
    pub commands: Vec<Commands>,
}

/// The effects of a recommendation: times and shares before and after, as texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// The heading of each column.
    pub head: [String; 5],
    /// The name of a time or share, its values before and after, the change, and whether it is certain.
    pub rows: Vec<[String; 5]>,
}

/// Commands with a title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// The title, without a colon.
    pub title: String,
    /// The commands, a line each.
    pub lines: Vec<String>,
}
