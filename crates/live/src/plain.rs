//! Plain forwarding: what remains when a direction has failed. No discipline, no rate, no line: traffic passes. Frames that come in pieces
//! are joined as before, because nobody behind here could do it; none is cut.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use wire::fragment::Taken;

use crate::bridge::{Shared, Stop};
use crate::clock::Clock;
use crate::device::{Receiver, Sender};
use crate::fragments::Joiner;

/// How often it looks whether it should stop.
const LOOK_MS: u16 = 50;

/// Forwards until it is asked to stop.
///
/// # Errors
/// What the system says when the interface cannot be read at all.
pub(crate) fn run(
    receiver: &mut dyn Receiver,
    sender: &mut dyn Sender,
    shared: &Arc<Shared>,
    mut joiner: Option<Joiner>,
) -> io::Result<()> {
    receiver.activate()?;
    let clock = Clock::start();
    let mut whole = vec![0; 1 << 16];
    while shared.stop() == Stop::No {
        let mut passed = 0;
        let now = clock.now();
        receiver.receive(256, &mut |arrival| {
            let length = arrival.whole();
            if length > whole.len() {
                return;
            }
            let frame = match joiner.as_mut().map_or(Taken::Other, |joiner| joiner.take(&arrival, now)) {
                Taken::Kept => return,
                Taken::Whole(frame) => frame,
                Taken::Other => {
                    arrival.write(&mut whole[..length]);
                    &whole[..length]
                }
            };
            // What the interface does not take now is lost, as it is in a switch.
            passed += u64::from(matches!(sender.send(&[frame]), Ok(1)));
        })?;
        shared.plain_frames.fetch_add(passed, Ordering::Relaxed);
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
