//! Plain forwarding: what remains when a direction has failed. No discipline, no rate, no line: traffic
//! passes. Frames that come in pieces are joined as before, because nobody behind here could do it; none is
//! cut. Checksums that senders leave to their card are completed as before, because receivers throw away what
//! has none. Frames that are several packets (GSO) are lost and counted, as they are when all is well.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use capture::LinkType;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use qdisc::{Span, Time};
use wire::fragment::Taken;

use crate::bridge::{End, Shared, Stop};
use crate::clock::Clock;
use crate::device::{Arrival, Receiver, Sender};
use crate::fragments::Joiner;

/// How often it looks whether it should stop.
const LOOK_MS: u16 = 50;
/// How often it looks whether the interface is still there.
const CHECK_REMOVED: Span = Span::ms(100);

/// What a plain forwarder needs to know of the frames.
pub(crate) struct Frames {
    /// How they begin.
    pub(crate) link: LinkType,
    /// The longest that the other side takes, in bytes.
    pub(crate) longest: usize,
    /// Joins fragments.
    pub(crate) joiner: Option<Joiner>,
}

/// What became of frames that were forwarded plainly.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) unsent: u64,
    pub(crate) too_long: u64,
    pub(crate) checksums: u64,
}

/// Forwards until it is asked to stop.
///
/// # Errors
/// What the system says when the interface cannot be read at all.
pub(crate) fn run(
    receiver: &mut dyn Receiver,
    sender: &mut dyn Sender,
    shared: &Arc<Shared>,
    frames: &mut Frames,
) -> io::Result<()> {
    match receiver.activate() {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
            shared.mark_removed(End::From);
            return Ok(());
        }
        activated => activated?,
    }
    let clock = Clock::start();
    let mut whole = vec![0; 1 << 16];
    let mut looked = Time::ZERO;
    while shared.stop() == Stop::No {
        let mut counts = Counts::default();
        let now = clock.now();
        receiver.receive(256, &mut |arrival| {
            forward(&arrival, sender, shared, frames, &mut whole, now, &mut counts);
        })?;
        shared.passed_plainly(&counts);
        if now.since(looked) >= CHECK_REMOVED {
            looked = now;
            if receiver.is_gone() {
                shared.mark_removed(End::From);
            }
        }
        // SAFETY: the descriptor stays open as long as the receiver, which outlives the call.
        let fd = unsafe { BorrowedFd::borrow_raw(receiver.fd()) };
        let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
        // An interrupted wait is only a shorter one.
        let _ = poll(&mut fds, PollTimeout::from(LOOK_MS));
        if fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR)) {
            receiver.recover();
            let _ = poll(&mut [], PollTimeout::from(LOOK_MS));
        }
    }
    Ok(())
}

/// Sends one arrival on, or the frame that it makes whole.
fn forward(
    arrival: &Arrival<'_>,
    sender: &mut dyn Sender,
    shared: &Shared,
    frames: &mut Frames,
    whole: &mut [u8],
    now: Time,
    counts: &mut Counts,
) {
    let frame = match frames.joiner.as_mut().map_or(Taken::Other, |joiner| joiner.take(arrival, now)) {
        Taken::Kept => return,
        // Its checksum was completed before it was cut.
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
                let look = capture::look(frames.link, frame, frame.len() as u32);
                look.ip.map(|_| look.at)
            };
            counts.checksums += u64::from(arrival.complete_checksum(whole, ip_at));
            whole
        }
    };
    match sender.send(&[frame]) {
        Ok(1) => counts.passed += 1,
        // What the interface does not take now is lost, as it is in a switch.
        Ok(_) => counts.unsent += 1,
        Err(refused) => {
            counts.unsent += 1;
            if refused.is_gone() {
                shared.mark_removed(End::To);
            }
        }
    }
}
