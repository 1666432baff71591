//! Commands that change a running direction.

use giveway_links::Profile;
use giveway_qdisc::{Qdisc, Rate};

use crate::emulation::LinkEmulation;
use crate::headers::Frame;
use crate::reservations::change::Change;

/// Builds a discipline for a link of this rate.
pub type Build = Box<dyn FnMut(Rate) -> Box<dyn Qdisc<Frame>> + Send>;

/// A change to a running direction. It loses and reorders no queued packet.
pub enum Command {
    /// Sets a constant rate, and builds the discipline again for it.
    Rate(Rate),
    /// Lets the rate follow a profile from now on, and builds the discipline again for its mean, which is the
    /// first value.
    VaryingRate(Rate, Profile),
    /// Replaces the discipline.
    Qdisc(Build),
    /// Sets delay, loss and other impairments after the link. The rate stays.
    Emulation(Box<LinkEmulation>),
    /// Cuts frames into fragments of this size, or stops cutting.
    Cut(Option<giveway_wire::fragment::Size>),
    /// Starts or stops to join fragments.
    Join(bool),
    /// Changes the reservation of a flow.
    Reserve(Change),
    /// Sends a frame that this program generated. It is queued like a received frame.
    Frame(Vec<u8>),
}
