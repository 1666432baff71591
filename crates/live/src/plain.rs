//! Plain forwarding, for a direction that has failed: no discipline, no rate, no link emulation. Fragments
//! are still joined, because no later hop could do it; no frame is cut. Checksums that senders left to their
//! network card are still completed, because receivers discard packets without one. Frames that are several
//! packets (GSO) are still lost and counted.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use giveway_capture::LinkType;
use giveway_qdisc::{Span, Time};
use giveway_wire::fragment::Taken;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::clock::{Clock, wall_ns};
use crate::device::{Arrival, Receiver, Sender};
use crate::fragments::Joiner;
use crate::shared::{Interface, PlainCounters, Shared, Stop};

/// Interval between checks for a request to stop, in milliseconds.
const CHECK_STOP_MS: u16 = 50;
/// Interval between checks that the interface still exists.
const CHECK_REMOVED: Span = Span::ms(100);

/// Properties of the frames of a direction.
pub(crate) struct Frames {
    /// Type of the link header.
    pub(crate) link: LinkType,
    /// Length of the longest frame that the outgoing interface accepts, in bytes.
    pub(crate) longest: usize,
    /// Joins fragments, if configured.
    pub(crate) joiner: Option<Joiner>,
}

/// Forwards frames until the bridge requests a stop.
///
/// # Errors
/// The error of the system if the interface cannot be read.
pub(crate) fn run(
    receiver: &mut dyn Receiver,
    sender: &mut dyn Sender,
    shared: &Arc<Shared>,
    frames: &mut Frames,
) -> io::Result<()> {
    match receiver.activate() {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
            shared.mark_removed(Interface::Incoming);
            return Ok(());
        }
        activated => activated?,
    }
    let clock = Clock::start();
    let mut whole = vec![0; 1 << 16];
    let mut checked = Time::ZERO;
    while shared.stop() == Stop::No {
        let mut counts = PlainCounters::default();
        let now = clock.now();
        let window = shared.window();
        if window.held {
            // Another process still sends; frames stay in the ring.
            let _ = poll(&mut [], PollTimeout::from(1_u16));
            continue;
        }
        let mut accepted = 0;
        receiver.receive(256, &mut |arrival| {
            if window.contains(arrival.wall_ns) {
                accepted += 1;
                forward(&arrival, sender, shared, frames, &mut whole, now, &mut counts);
            }
        })?;
        if accepted == 0 && window.has_ended(wall_ns) {
            shared.set_drained(window);
        }
        shared.count_plain(&counts);
        if now.since(checked) >= CHECK_REMOVED {
            checked = now;
            if receiver.is_gone() {
                shared.mark_removed(Interface::Incoming);
            }
        }
        // SAFETY: the receiver owns an open descriptor and closes it only when it is dropped. It is borrowed
        // for the whole function, so it outlives `fd`.
        let fd = unsafe { BorrowedFd::borrow_raw(receiver.fd()) };
        let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
        // An interrupted wait is only a shorter one.
        let _ = poll(&mut fds, PollTimeout::from(CHECK_STOP_MS));
        if fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR)) {
            receiver.recover();
            let _ = poll(&mut [], PollTimeout::from(CHECK_STOP_MS));
        }
    }
    Ok(())
}

/// Forwards a received frame. If it is a fragment, keeps it, or forwards the frame that it completes.
fn forward(
    arrival: &Arrival<'_>,
    sender: &mut dyn Sender,
    shared: &Shared,
    frames: &mut Frames,
    whole: &mut [u8],
    now: Time,
    counts: &mut PlainCounters,
) {
    let frame = match frames.joiner.as_mut().map_or(Taken::Other, |joiner| joiner.take(arrival, now)) {
        Taken::Kept => return,
        // The bridge that cut the frame completed its checksum before.
        Taken::Whole(frame) => frame,
        Taken::Other => {
            let length = arrival.whole();
            if arrival.is_too_long(frames.longest) || length > whole.len() {
                counts.too_long += 1;
                return;
            }
            let whole = &mut whole[..length];
            arrival.write(whole);
            let ip_at = |frame: &[u8]| {
                let headers = giveway_capture::parse_headers(frames.link, frame, frame.len() as u32);
                headers.ip.map(|_| headers.at)
            };
            counts.checksums += u64::from(arrival.complete_checksum(whole, ip_at));
            whole
        }
    };
    match sender.send(&[frame]) {
        Ok(1) => counts.forwarded += 1,
        // There is no queue: a frame that the interface does not accept now is lost, as in a switch.
        Ok(_) => counts.unsent += 1,
        Err(refused) => {
            counts.unsent += 1;
            if refused.is_gone() {
                shared.mark_removed(Interface::Outgoing);
            }
        }
    }
}
