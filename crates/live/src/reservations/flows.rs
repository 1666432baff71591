//! Reservations in the forwarding thread of a direction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use giveway_qdisc::blocks::FlowMap;
use giveway_qdisc::{FiveTuple, FlowKey, Rate};
use giveway_reserve::EtherTypes;

use crate::device::Arrival;
use crate::reservations::change::Change;
use crate::reservations::frame::{ControlFrame, HEADER};
use crate::reservations::request::Request;

/// Intercepts control packets of a direction, and looks up the reservations of its flows.
pub struct ReservedFlows {
    types: EtherTypes,
    direction: usize,
    requests: SyncSender<Request>,
    overflow: Arc<AtomicU64>,
    flows: FlowMap<Change>,
}

impl ReservedFlows {
    /// Creates the table of `direction`. Control packets go to `requests`; those that do not fit are counted
    /// in `overflow`.
    pub(super) fn new(
        types: EtherTypes,
        direction: usize,
        requests: SyncSender<Request>,
        overflow: Arc<AtomicU64>,
        most: usize,
    ) -> ReservedFlows {
        // New reservations may arrive before expired ones are removed.
        let flows = FlowMap::with_capacity(2 * most);
        ReservedFlows { types, direction, requests, overflow, flows }
    }

    /// Returns true if the frame is a control packet. It was then passed to the reservation service, or
    /// counted as lost.
    #[inline]
    pub(crate) fn intercept(&mut self, arrival: &Arrival<'_>) -> bool {
        let Some([high, low]) = arrival.bytes.get(12..HEADER).and_then(|kind| kind.first_chunk()) else {
            return false;
        };
        let kind = u16::from_be_bytes([*high, *low]);
        (kind == self.types.start || kind == self.types.end) && self.hand_over(arrival)
    }

    #[cold]
    fn hand_over(&mut self, arrival: &Arrival<'_>) -> bool {
        let Some(frame) = ControlFrame::of(self.direction, arrival) else { return false };
        match self.requests.try_send(Request::Frame(frame)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.overflow.fetch_add(1, Ordering::Relaxed);
                true
            }
            // The service has ended: the frame passes like any other.
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Applies a change. `key` is the keyed hash of the flow.
    pub(crate) fn apply(&mut self, key: FlowKey, change: Change) {
        if change.until == 0 {
            self.flows.retire(key, |known| known.tuple == change.tuple);
        } else {
            self.flows.upsert(key, |known| *known = change, || change);
        }
    }

    /// True if no flow has a reservation.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The rate that a flow has reserved at a Unix time, in nanoseconds. `now` is called only if the flow has
    /// a reservation.
    #[inline]
    pub(crate) fn reserved(&self, key: FlowKey, tuple: &FiveTuple, now: impl FnOnce() -> u64) -> Rate {
        let Some(known) = self.flows.get(key).filter(|known| known.tuple == *tuple) else {
            return Rate::default();
        };
        let now = now();
        if known.start <= now && now < known.until { known.rate } else { Rate::default() }
    }
}
