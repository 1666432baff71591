//! Scenarios on a network: links, traffic and measurements.

mod bounds;
mod contest;
mod crossings;
mod equals;
mod keys;
mod lateness;
mod lints;
mod media;
mod model;
mod names;
mod paths;
mod quic;
mod read;
mod reservations;
mod run;
mod stepped;
mod timing;
mod topologies;
mod topology;
mod traffic;
mod varying;
mod varying_keys;

pub use self::bounds::{Bound, LinkBounds, StreamBounds};
pub use self::contest::Contest;
pub(crate) use self::contest::{ContestKeys, OWN as CONTEST_KEYS};
pub(crate) use self::keys::{
    DirectionKeys, EndKeys, MediumKeys, Parts, RecordKeys, TimingKeys, TopologyKeys, TrafficKeys,
};
pub use self::model::Network;
pub(crate) use self::read::{read, read_as};
pub use self::run::{Build, Finished, Measured, PortsOnRoute, discipline};
pub use self::stepped::{ChangeError, Stepped};
pub use self::topologies::{Edge, End, Size, TOPOLOGIES, TopologyEntry, TopologySpec};
pub use self::topology::{Port, Queue};
pub use self::traffic::Stream;
pub(crate) use self::varying::read as read_varying;
