//! The equipment on which a recommended discipline is to run.

use std::fmt;

/// The equipment on which a discipline is to be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Linux with `tc`.
    Tc,
    /// OpenWrt with sqm-scripts.
    Openwrt,
    /// A machine with Giveway.
    Giveway,
    /// Whatever the discipline needs.
    Any,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Tc => "tc",
            Target::Openwrt => "OpenWrt's sqm",
            Target::Giveway => "Giveway",
            Target::Any => "anything",
        })
    }
}
