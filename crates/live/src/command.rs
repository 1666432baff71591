//! Commands that change a running direction.

use giveway_qdisc::{Qdisc, Rate};

use crate::emulation::LinkEmulation;
use crate::headers::Frame;
use crate::reservations::change::Change;

/// Builds a discipline for a link of this rate.
pub type Build = Box<dyn FnMut(Rate) -> Box<dyn Qdisc<Frame>> + Send>;

/// A change to a running direction. It loses and reorders no queued packet.
pub enum Command {
    /// Sets the rate, and builds the discipline again for it.
    Rate(Rate),
    /// Replaces the discipline.
    Qdisc(Build),
    /// Sets delay, jitter and loss after the link.
    Emulation(LinkEmulation),
    /// Cuts frames into fragments of this size, or stops cutting.
    Cut(Option<giveway_wire::fragment::Size>),
    /// Starts or stops to join fragments.
    Join(bool),
    /// Changes the reservation of a flow.
    Reserve(Change),
    /// Sends a frame that this program generated. It is queued like a received frame.
    Frame(Vec<u8>),
}
