//! Snapshots of a bridge in this process.

use giveway_live::reservations::LinkReservations;
use giveway_watch::{Backend, Direction, Reservations, Settings, Snapshot, Status};

use crate::config::DirectionConfig;
use crate::reservations;

/// A snapshot of one direction from its counters and its current configuration.
pub(crate) fn snapshot(
    direction: Direction,
    (from, to): &(String, String),
    config: &DirectionConfig,
    status: Status,
    reserved: Option<&LinkReservations>,
) -> Snapshot {
    Snapshot {
        from: from.clone(),
        to: to.clone(),
        direction,
        spec: config.qdisc.to_string(),
        kind: config.qdisc.name().to_owned(),
        handle: format!("{:x}:", status.changes + 1),
        backend: Backend::Program,
        settings: Settings {
            delay: config.emulation.delay,
            jitter: config.emulation.jitter,
            loss: config.emulation.loss,
            fragment: config.fragment,
            reassemble: config.reassemble,
        },
        status,
        reservations: reserved.map(|link| Reservations {
            capacity: link.capacity,
            reserved: link.reserved,
            flows: link.list.len() as u64,
            open: link.open,
            messages: reservations::outcomes(link),
            malformed: reservations::malformed(link),
        }),
    }
}
