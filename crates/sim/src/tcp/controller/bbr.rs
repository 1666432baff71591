//! BBR: a rate that follows the measured bandwidth, and a window of twice what the path holds. Versions 1 and
//! 3.
//!
//! # Principles
//! - The largest delivery rate of the last round trips tells the bandwidth of the bottleneck, and the
//!   smallest round-trip time of the last ten seconds tells the path without a queue. Both can be measured
//!   only at different times, so the sender alternates.
//! - The sender paces at the bandwidth times a gain. Startup doubles the rate each round trip until the
//!   bandwidth stops to grow, drain empties the queue that this has built, and then the gain cycles: above
//!   one to look for more, below one to drain, and one.
//! - When the smallest round-trip time is old, the window shrinks to four segments for 200 ms, so that the
//!   queue empties and the time can be measured.
//! - Version 3 also keeps the data in flight below what has led to loss above 2 % before, answers a loss at
//!   once in its phases that do not probe, and looks for more bandwidth every two to three seconds only.
//!
//! # Deviations
//! - Version 1 is the draft of 2017 and the article of 2016. Linux has additions of 2018 and 2019: the window
//!   counts bursts of acknowledgements, and policers are detected.
//! - Version 3 has no answer to marks: neither has the draft.
//!
//! # Cost
//! - Some twenty floating-point operations per acknowledgement; 400 bytes per connection, and the delivery
//!   record of the sender, 48 bytes for each outstanding segment.
//!
//! # References
//! - Version 1: Cardwell, Cheng, Gunn, Yeganeh and Jacobson, "BBR: congestion-based congestion control", ACM
//!   Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00.
//! - Version 3: draft-ietf-ccwg-bbr.

mod draws;
mod v1;
mod v3;

use giveway_qdisc::{Invalid, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Control, Controller, Start};
use crate::tcp::Preset;

/// Parameters of this control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Version: 1, which Linux has, or 3, the draft of the IETF.
    pub version: u8,
    /// The part of the bandwidth by which pacing stays below it. Default: 0.01, as in Linux and in version 3;
    /// with version 1 and the preset "rfc" of TCP, and over QUIC, 0, as in its draft.
    pub margin: Option<Share>,
}

impl Default for Config {
    fn default() -> Config {
        Config { version: 1, margin: None }
    }
}

impl Control for Config {
    const SUMMARY: &'static str = "paces at the measured bandwidth (Cardwell et al. 2016)";
    const IMPLIES: &'static [(&'static str, bool)] = &[("pacing", true), ("rack", true)];

    fn check(&self) -> Result<(), Invalid> {
        match self.version {
            1 | 3 => Ok(()),
            other => Err(Invalid::new("version", format!("there is no version {other}: write 1 or 3"))),
        }
    }

    fn build(&self, start: Start) -> Box<dyn Controller> {
        // `bbr_pacing_margin_percent` of Linux, and PacingMarginPercent of version 3.
        let usual = if self.version == 1 && start.preset == Preset::Rfc { 0.0 } else { 0.01 };
        let part = 1.0 - self.margin.map_or(usual, Share::get);
        match self.version {
            3 => Box::new(v3::Bbr::new(start, part)),
            _ => Box::new(v1::Bbr::new(start, part)),
        }
    }
}
