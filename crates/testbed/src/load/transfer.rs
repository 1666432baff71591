//! A transfer in one direction, which closes and reports itself.

use giveway_qdisc::{Ending, FlowKind, FlowReport, Time};
use giveway_sim::counters::Pauses;
use giveway_sim::traffic::flow;

/// A transfer from the client of a connection to its server.
pub(super) struct Transfer {
    pub id: u64,
    pub start: Time,
    /// `u64::MAX` for an endless flow.
    pub bytes: u64,
    pub pauses: Pauses,
    /// True once its report was returned.
    pub reported: bool,
}

impl Transfer {
    /// A transfer of so many bytes, or without an end.
    pub fn new(id: u64, start: Time, bytes: Option<u64>) -> Transfer {
        Transfer {
            id,
            start,
            bytes: bytes.unwrap_or(u64::MAX),
            pauses: Pauses::since(start),
            reported: false,
        }
    }

    /// The report at its end, or at the end of the run. `received` are all bytes that the server has read,
    /// and those within the measurement interval.
    pub fn report(
        &self,
        (source, ends): (u16, (u16, u16)),
        received: (u64, u64),
        now: Time,
        ending: Ending,
    ) -> FlowReport {
        let endless = self.bytes == u64::MAX;
        let (longest_pause, paused) = self.pauses.until(now);
        FlowReport {
            source,
            kind: if endless { FlowKind::Endless } else { FlowKind::Transfer },
            end: now,
            bytes: if endless { received.0 } else { self.bytes },
            delivered: received.0,
            goodput_bytes: received.1,
            longest_pause,
            paused,
            ending,
            ..flow(self.id, ends, self.start, 0)
        }
    }
}
