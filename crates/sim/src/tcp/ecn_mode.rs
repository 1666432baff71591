//! The kinds of feedback of ECN.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Feedback of ECN: what one end supports, or what both ends of a connection have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EcnMode {
    /// No ECN: packets are not ECN-capable, and congestion is a loss.
    #[default]
    Off,
    /// One signal per round trip: RFC 3168.
    Classic,
    /// A count of marked packets and bytes: RFC 9768.
    Accurate,
}
