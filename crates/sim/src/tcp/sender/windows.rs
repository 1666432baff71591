//! The windows of a sender beyond the congestion window: the receive window that grows, and the validation of
//! a window that is not used.

use giveway_qdisc::{Span, Time};

use super::{Recovery, Sender};
use crate::tcp::TcpConfig;
use crate::tcp::outlet::Outlet;

impl Sender {
    /// The receive window of the peer, bytes.
    #[inline]
    pub(super) fn receivable(&self, config: &TcpConfig) -> u64 {
        let sized = self.extra.as_ref().and_then(|extra| extra.right_sizing.as_ref());
        sized.map_or(config.receive_window.0, |sized| sized.window())
    }

    /// Observes an acknowledgement.
    pub(super) fn observe_windows(&mut self, rtt: Span, now: Time, config: &TcpConfig) {
        let Some(extra) = self.extra.as_deref_mut() else { return };
        let (una, next) = (self.board.una(), self.board.next());
        if let Some(sized) = &mut extra.right_sizing {
            sized.on_ack(una, next, config.mss.0);
        }
        if let Some(validation) = &mut extra.validation {
            validation.on_ack(una, next, rtt, now);
        }
    }

    /// True if the window may grow.
    #[inline]
    pub(super) fn is_validated(&self) -> bool {
        let validation = self.extra.as_ref().and_then(|extra| extra.validation.as_ref());
        validation.is_none_or(|validation| validation.is_validated(self.controller.window()))
    }

    /// The bytes from which a loss reduces the window: those in flight, at most the window, or what is known
    /// to have been used.
    pub(super) fn used_by(&mut self, flight: u64) -> u64 {
        let window = self.controller.window();
        let validation = self.extra.as_ref().and_then(|extra| extra.validation.as_ref());
        if let Some(used) = validation.and_then(|validation| validation.lost(flight, window)) {
            self.controller.on_unused(used, 0);
            return used.min(window);
        }
        flight.min(window)
    }

    /// A segment is about to leave after more than a timeout without one.
    pub(super) fn on_idle(&mut self, outlet: &Outlet, now: Time, config: &TcpConfig) {
        let initial = config.initial_window.0 * config.mss.0;
        let windows = (self.controller.window(), initial);
        let (idle, timeout) = (now.since(outlet.last_sent), outlet.rtt.timeout());
        match self.extra.as_deref_mut().and_then(|extra| extra.validation.as_mut()) {
            None => self.controller.on_idle(now),
            Some(validation) => {
                if let Some(reduced) = validation.on_idle(idle, windows, timeout, now) {
                    self.controller.on_unused(reduced.window, reduced.threshold);
                }
            }
        }
    }

    /// All that may leave has left: a window that is not used may shrink.
    pub(super) fn validate(&mut self, outlet: &Outlet, now: Time, config: &TcpConfig) {
        let initial = config.initial_window.0 * config.mss.0;
        let windows = (self.controller.window(), initial);
        let flight = self.board.outstanding();
        // In slow start Linux counts a window of which more than half is used as full.
        let growing = windows.0 < self.controller.threshold() && windows.0 < 2 * flight;
        let limited = self.cwnd_limited || growing;
        let steady = self.recovery == Recovery::None;
        let Some(validation) = self.extra.as_deref_mut().and_then(|extra| extra.validation.as_mut()) else {
            return;
        };
        if let Some(reduced) = validation.on_send(limited, flight, windows, outlet.rtt.timeout(), now)
            && steady
        {
            self.controller.on_unused(reduced.window, reduced.threshold);
        }
    }
}
