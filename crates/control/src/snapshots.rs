//! The state of both directions, in the form that `watch` shows.

use std::time::Duration;

use giveway_qdisc::Backlog;
use giveway_watch::{Direction, Flow, Recent, Reservations, Snapshot, tuple_text};

use crate::controller::Controller;
use crate::reservations;

/// The state of both directions now. The names follow what was changed meanwhile.
pub fn snapshots(controller: &Controller) -> Vec<Snapshot> {
    let statuses = controller.statuses();
    let config = controller.config();
    let nothing = giveway_live::fragments::Fragments::default();
    let directions = Direction::ALL.into_iter().zip(controller.names()).zip(statuses).zip(controller.kept());
    directions
        .map(|(((direction, (from, to)), status), reserved)| {
            let config = config.of(direction);
            let flow = |top: &giveway_live::statistics::TopFlow| Flow {
                key: top.flow,
                text: top.tuple.as_ref().map_or_else(|| "not IP".to_owned(), tuple_text),
                sent: top.arrived,
            };
            Snapshot {
                from: from.clone(),
                to: to.clone(),
                direction,
                spelling: config.qdisc.to_string(),
                kind: config.qdisc.name().to_owned(),
                handle: format!("{:x}:", status.changes + 1),
                rate: status.rate,
                uptime: Duration::from_nanos(status.uptime.as_ps() / 1000),
                plain_forwarding: status.plain.is_some(),
                arrived: status.counters.arrived,
                sent: status.counters.sent,
                dropped: status.dropped,
                marked: Backlog { packets: status.counters.marked, bytes: 0 },
                held: status.backlog,
                line_lost: Backlog { packets: status.losses.emulated, bytes: 0 },
                ring_drops: status.losses.ring,
                stalls: status.stalls,
                fragments: (config.fragment.is_some() || config.reassemble || status.fragments != nothing)
                    .then(|| {
                        let of = &status.fragments;
                        giveway_watch::Fragments {
                            cut: of.cut,
                            pieces: of.pieces,
                            spared: of.spared,
                            whole: of.whole,
                            joined: of.joined.joined,
                            frames: of.joined.packets,
                            lost: of.joined.lost().map(|(why, lost)| (why.name(), lost)).collect(),
                        }
                    }),
                sojourn: status.sojourn[0],
                lateness: status.lateness[0],
                recent: Recent {
                    arrived: status.last_second,
                    sent: status.last_second,
                    sojourn: status.sojourn[1],
                    lateness: status.lateness[1],
                    flows: status.top.iter().map(flow).collect(),
                },
                reservations: reserved.map(|link| Reservations {
                    capacity: link.capacity,
                    reserved: link.reserved,
                    flows: link.list.len() as u64,
                    messages: reservations::counts(&link),
                }),
                gauges: status.gauges.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            }
        })
        .collect()
}
