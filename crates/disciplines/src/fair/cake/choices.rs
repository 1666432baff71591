//! The choices of `cake`, which tc writes as single words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tins: how the DSCP of a packet selects its tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tins {
    /// One tin for all packets.
    Besteffort,
    /// Eight tins by the upper three bits of the DSCP, the former precedence.
    Precedence,
    /// Bulk, best effort and voice.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video and voice.
    Diffserv4,
    /// Eight tins, from background to network control.
    Diffserv8,
}

/// The flows and hosts among which a tin divides its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// One queue for all packets.
    Flowblind,
    /// A queue for each source.
    Srchost,
    /// A queue for each destination.
    Dsthost,
    /// A queue for each pair of a source and a destination.
    Hosts,
    /// A queue for each flow.
    Flows,
    /// Equal shares for sources, then for flows.
    DualSrchost,
    /// Equal shares for destinations, then for flows.
    DualDsthost,
    /// Equal shares for sources and for destinations, then for flows.
    #[default]
    TripleIsolate,
}

/// The framing of the link, which adds to the length of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// None.
    #[default]
    Noatm,
    /// ATM, as on ADSL: 48 bytes of each cell of 53.
    Atm,
    /// PTM, as on VDSL2: 64 bytes of each 65.
    Ptm,
}

/// A kind of link, with its overhead, smallest length and framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkLayer {
    /// No compensation.
    Raw,
    /// More than almost any link needs: overhead 48 atm.
    Conservative,
    /// overhead 8 atm.
    IpoaVcmux,
    /// overhead 16 atm.
    IpoaLlcsnap,
    /// overhead 24 atm.
    BridgedVcmux,
    /// overhead 32 atm.
    BridgedLlcsnap,
    /// overhead 10 atm.
    PppoaVcmux,
    /// overhead 14 atm.
    PppoaLlc,
    /// overhead 32 atm.
    PppoeVcmux,
    /// overhead 40 atm.
    PppoeLlcsnap,
    /// overhead 30 ptm.
    PppoePtm,
    /// overhead 22 ptm.
    BridgedPtm,
    /// overhead 18 mpu 64.
    Docsis,
    /// overhead 38 mpu 84: preamble, gap between frames and checksum of Ethernet included.
    Ethernet,
}

impl LinkLayer {
    /// Overhead and smallest length in bytes, and framing, by tc-cake(8).
    pub fn parts(self) -> (i32, u32, Framing) {
        match self {
            LinkLayer::Raw => (0, 0, Framing::Noatm),
            LinkLayer::Conservative => (48, 0, Framing::Atm),
            LinkLayer::IpoaVcmux => (8, 0, Framing::Atm),
            LinkLayer::IpoaLlcsnap => (16, 0, Framing::Atm),
            LinkLayer::BridgedVcmux => (24, 0, Framing::Atm),
            LinkLayer::BridgedLlcsnap => (32, 0, Framing::Atm),
            LinkLayer::PppoaVcmux => (10, 0, Framing::Atm),
            LinkLayer::PppoaLlc => (14, 0, Framing::Atm),
            LinkLayer::PppoeVcmux => (32, 0, Framing::Atm),
            LinkLayer::PppoeLlcsnap => (40, 0, Framing::Atm),
            LinkLayer::PppoePtm => (30, 0, Framing::Ptm),
            LinkLayer::BridgedPtm => (22, 0, Framing::Ptm),
            LinkLayer::Docsis => (18, 64, Framing::Noatm),
            LinkLayer::Ethernet => (38, 84, Framing::Noatm),
        }
    }
}
