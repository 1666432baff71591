//! Changes to a direction while it runs.

use giveway_qdisc::{Qdisc, Rate};

use crate::emulation::LinkEmulation;
use crate::headers::Frame;
use crate::reservations::change::Change;

/// Builds a discipline for a link of this rate.
pub type Build = Box<dyn FnMut(Rate) -> Box<dyn Qdisc<Frame>> + Send>;

/// A change to a direction while it runs. No queued packet is lost or overtaken.
pub enum Command {
    /// Sets the rate, and builds the discipline again for it.
    Rate(Rate),
    /// Replaces the discipline.
    Qdisc(Build),
    /// Sets delay, jitter and loss behind the link.
    Emulation(LinkEmulation),
    /// Cuts frames into fragments of this size, or stops cutting.
    Cut(Option<giveway_wire::fragment::Size>),
    /// Starts or stops to join fragments.
    Join(bool),
    /// Changes the reservation of a flow.
    Reserve(Change),
    /// Sends a frame that this program generated. It is queued like any other.
    Frame(Vec<u8>),
}
