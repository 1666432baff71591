//! The sets of values for the keys of TCP that are not written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of values for the keys of [`TcpConfig`](super::TcpConfig) that are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// The RFCs.
    Rfc,
    /// A current Linux with its default sysctls.
    #[default]
    Linux,
}
