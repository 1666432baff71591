//! The frames that a direction forwards while one process hands its interfaces over to another: those with
//! time stamps in a window.
//!
//! Both processes receive every frame, and the kernel gives a frame the same time stamp in both. So one
//! instant divides the frames between them: the first process forwards those before it, the second one the
//! others, and no frame is lost or sent twice. The second process sends nothing before the queue of the first
//! one is empty, so that the rate holds and the order stays.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Time in which a frame gets from the interface, where it is stamped, to the ring, in nanoseconds. A later
/// frame is forwarded, too, but may overtake.
const IN_FLIGHT_NS: u64 = 2_000_000;

/// The window of a direction. Times are in nanoseconds since 1970.
#[derive(Debug)]
pub(crate) struct Window {
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    /// True while another process still sends frames of this direction.
    held: AtomicBool,
    /// The end of the window whose frames have all left; zero if there is none.
    drained_ns: AtomicU64,
}

/// The window at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    from_ns: u64,
    until_ns: u64,
    /// True while this direction may not send.
    pub(crate) held: bool,
}

impl Default for Window {
    /// Without limits.
    fn default() -> Window {
        Window {
            from_ns: AtomicU64::new(0),
            until_ns: AtomicU64::new(u64::MAX),
            held: AtomicBool::new(false),
            drained_ns: AtomicU64::new(0),
        }
    }
}

impl Window {
    /// A window without frames. None is sent before [`Window::hold`] permits it.
    pub(crate) fn closed() -> Window {
        Window { from_ns: AtomicU64::new(u64::MAX), held: AtomicBool::new(true), ..Window::default() }
    }

    pub(crate) fn view(&self) -> View {
        // The end first: who sees that `resume_at` has removed it sees the new beginning, too.
        let until_ns = self.until_ns.load(Ordering::Acquire);
        View {
            from_ns: self.from_ns.load(Ordering::Acquire),
            until_ns,
            held: self.held.load(Ordering::Acquire),
        }
    }

    /// Sets the beginning: frames from then on are forwarded.
    pub(crate) fn begin_at(&self, ns: u64) {
        self.from_ns.store(ns, Ordering::Release);
    }

    /// Permits to send, or forbids it.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Release);
    }

    /// Sets the end: frames from then on are ignored. `None` removes it.
    pub(crate) fn end_at(&self, ns: Option<u64>) {
        self.until_ns.store(ns.unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Removes the end. Frames before `ns` are ignored, because another process may have sent them.
    pub(crate) fn resume_at(&self, ns: u64) {
        self.begin_at(ns);
        self.end_at(None);
    }

    /// Records that all frames of this view of the window have left. The window may have changed meanwhile.
    pub(crate) fn set_drained(&self, view: View) {
        self.drained_ns.store(view.until_ns, Ordering::Release);
    }

    /// True if the window has ended, and all its frames have left.
    pub(crate) fn is_drained(&self) -> bool {
        let until_ns = self.until_ns.load(Ordering::Acquire);
        until_ns != u64::MAX && self.drained_ns.load(Ordering::Acquire) == until_ns
    }
}

impl View {
    /// True if a frame with this time stamp is forwarded.
    pub(crate) fn contains(&self, stamp_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&stamp_ns)
    }

    /// True if the window has an end, and no further frame of it is expected at this time.
    pub(crate) fn has_ended(&self, wall_ns: impl FnOnce() -> u64) -> bool {
        self.until_ns != u64::MAX && wall_ns() >= self.until_ns.saturating_add(IN_FLIGHT_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_is_in_one_of_two_windows() {
        let (old, new) = (Window::default(), Window::closed());
        assert!(old.view().contains(99) && !new.view().contains(99), "before the hand-over");
        assert!(new.view().held && !old.view().held);
        old.end_at(Some(100));
        new.begin_at(100);
        for stamp in [0, 99, 100, 101, u64::MAX - 1] {
            assert_ne!(old.view().contains(stamp), new.view().contains(stamp), "{stamp}");
        }
        let late = old.view();
        old.set_drained(late);
        assert!(old.is_drained());
        old.end_at(None);
        assert!(old.view().contains(101) && !old.is_drained(), "the hand-over was cancelled");
        old.end_at(Some(200));
        old.set_drained(late);
        assert!(!old.is_drained(), "a thread that was late has seen the window before");
        old.resume_at(300);
        assert!(!old.view().contains(299) && old.view().contains(300) && !old.is_drained());
    }

    #[test]
    fn a_window_without_an_end_has_not_ended() {
        let window = Window::default();
        assert!(!window.view().has_ended(|| unreachable!("reading the clock takes time")));
        window.end_at(Some(100));
        assert!(!window.view().has_ended(|| 100), "frames may be on their way to the ring");
        assert!(window.view().has_ended(|| 100 + IN_FLIGHT_NS));
    }
}
