//! The loop of a direction's thread: receives frames, advances the link, sends frames, and sleeps until the
//! next event.
//!
//! While the link is busy the thread sleeps at least [`SLEEP_LEAST`], because waking up for each frame of a
//! fast link costs more than it gains.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use giveway_qdisc::{Span, Time};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use crate::clock::wall_ns;
use crate::device::{BATCH, Receiver, Sender};
use crate::direction::Core;
use crate::shared::{Interface, Shared, Stop};

/// Shortest sleep while the link is busy.
pub const SLEEP_LEAST: Span = Span::us(50);
/// Longest sleep while the link is busy: a ring of 4,096 frames does not fill up in this time.
const SLEEP_MOST: Span = Span::ms(1);
/// Longest wait while there is no work.
const IDLE: Span = Span::ms(50);
/// Interval between snapshots.
const SNAPSHOT_INTERVAL: Span = Span::ms(100);

/// Runs a direction until the bridge requests a stop, or until the direction was declared to have failed:
/// then the spare thread forwards, and this thread would send each frame a second time.
///
/// # Errors
/// The error of the system if the interface cannot be read any more.
pub fn run(
    core: &mut Core,
    receiver: &mut dyn Receiver,
    sender: &mut dyn Sender,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut published = Time::ZERO;
    let mut drain_end = None;
    let mut snapshot = shared.snapshot();
    while !shared.has_failed() {
        let mut now = core.clock().now();
        if shared.has_commands() {
            for command in shared.take_commands() {
                core.apply(command);
            }
        }
        let window = shared.window();
        core.hold(window.held, now);
        core.catch_up(now);
        let (mut received, mut accepted) = (0, 0);
        if drain_end.is_none() {
            received = receiver.receive(4 * BATCH, &mut |arrival| {
                if window.contains(arrival.wall_ns) {
                    accepted += 1;
                    core.arrive(&arrival, now);
                }
            })?;
            core.statistics().receives += u64::from(received > 0);
        }
        core.advance(now);
        let out_full = !core.flush(now, sender) && core.next().is_some_and(|next| next <= now);
        if accepted == 0 && core.backlog() == 0 && window.has_ended(wall_ns) {
            shared.set_drained(window);
        }
        match shared.stop() {
            Stop::No => {}
            Stop::Drain if core.backlog() > 0 && drain_end.is_none_or(|end| now < end) => {
                drain_end.get_or_insert(now + shared.drain_limit());
            }
            Stop::Drain | Stop::Now => return Ok(()),
        }
        if now.since(Time::ZERO) >= published.since(Time::ZERO) + SNAPSHOT_INTERVAL || now < published {
            published = now;
            core.statistics().losses.ring += receiver.missed();
            core.compare_clocks();
            core.sample(now);
            if receiver.is_gone() {
                shared.mark_removed(Interface::Incoming);
            }
            if core.out_gone() {
                shared.mark_removed(Interface::Outgoing);
            }
            // The snapshot is made outside of the lock: a discipline that hangs while it returns its gauges
            // would keep the lock.
            core.snapshot(now, &mut snapshot);
            shared.publish(|latest| std::mem::swap(latest, &mut snapshot), core.joins());
            core.rebase(now);
            now = core.clock().now();
            published = published.min(now);
        }
        // A full batch: more frames are probably in the ring.
        if received == 4 * BATCH {
            continue;
        }
        wait(core, receiver, sender, out_full, now, shared);
    }
    Ok(())
}

/// Sleeps until the next event: a departure, an arrival, or free space at the outgoing interface.
fn wait(
    core: &mut Core,
    receiver: &mut dyn Receiver,
    sender: &dyn Sender,
    out_full: bool,
    now: Time,
    shared: &Arc<Shared>,
) {
    let next = core.next();
    if core.is_held() || core.busy(now) && !out_full {
        // Arrivals can stay in the ring: they have time stamps, and nothing can leave before the link is
        // free.
        let until = next.unwrap_or(now + SLEEP_MOST).max(now + SLEEP_LEAST).min(now + SLEEP_MOST);
        let ns = core.clock().to_monotonic_ns(until);
        let until = TimeSpec::new((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64);
        // An interrupted sleep is only a shorter one.
        let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until);
        return;
    }
    // SAFETY: the devices own open descriptors and close them only when they are dropped. Both are borrowed
    // for the whole function.
    let (incoming, outgoing) =
        unsafe { (BorrowedFd::borrow_raw(receiver.fd()), BorrowedFd::borrow_raw(sender.fd())) };
    let mut fds = [PollFd::new(incoming, PollFlags::POLLIN), PollFd::new(outgoing, PollFlags::POLLOUT)];
    let watched = if out_full { &mut fds[..] } else { &mut fds[..1] };
    let until = match next {
        Some(_) if out_full => now + SLEEP_MOST,
        Some(next) => next.max(now).min(now + IDLE),
        None => now + IDLE,
    };
    let span = until.since(core.clock().now().min(until)).as_ps() / 1000;
    let timeout = TimeSpec::new((span / 1_000_000_000) as i64, (span % 1_000_000_000) as i64);
    let _ = ppoll(watched, Some(timeout), None);
    let has_error = fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
    if has_error {
        if receiver.recover() {
            core.statistics().downs += 1;
        }
        // The error of a removed interface stays set: without a pause the thread would spin.
        let pause = TimeSpec::new(0, 10_000_000);
        let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty(), &pause);
    }
    shared.heartbeat();
}
