//! State that the threads of a direction share with the thread that watches them, and the [`Handle`] through
//! which other threads control a direction.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use giveway_qdisc::{Rate, Span};
use giveway_watch::Status;

use crate::clock::monotonic_ns;
use crate::command::Command;
use crate::emulation::LinkEmulation;
use crate::window::{View, Window};

/// Limit on pending commands from [`Handle::try_send`].
const MAX_PENDING: usize = 4096;

/// A request to stop one direction of the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No request: the direction runs.
    No,
    /// Accept no new frames, and send the backlog for a limited time.
    Drain,
    /// Stop at once.
    Now,
}

/// One of the two interfaces of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    /// The interface from which frames are received.
    Incoming,
    /// The interface to which frames are sent.
    Outgoing,
}

/// Counters of plain forwarding.
#[derive(Clone, Copy, Default)]
pub(crate) struct PlainCounters {
    /// Frames that were forwarded.
    pub(crate) forwarded: u64,
    /// Frames that the outgoing interface refused.
    pub(crate) unsent: u64,
    /// Frames longer than the outgoing interface accepts.
    pub(crate) too_long: u64,
    /// Checksums that were completed.
    pub(crate) checksums: u64,
}

/// State that the threads of a direction share with the thread that watches them.
#[derive(Default)]
pub struct Shared {
    stop: AtomicU8,
    /// Time limit of draining, in picoseconds.
    drain_limit_ps: AtomicU64,
    /// True if `commands` is not empty, so that the forwarding thread need not take the lock to find out.
    pending: AtomicBool,
    commands: Mutex<VecDeque<Command>>,
    status: Mutex<Status>,
    /// Time of the last heartbeat of the forwarding thread, by the monotonic clock.
    heartbeat_ns: AtomicU64,
    /// Set when the direction has failed; the spare thread then forwards.
    failed: AtomicBool,
    /// Reason of the failure.
    reason: Mutex<Option<String>>,
    /// Thread id of the shaping thread; 0 before it starts.
    thread: AtomicI32,
    /// True if fragments are joined. It is not in `status` because the spare thread must read it without a
    /// lock.
    joins: AtomicBool,
    /// Interfaces that were removed, by [`Interface`].
    removed: [AtomicBool; 2],
    /// The fields of [`PlainCounters`], in order.
    plain: [AtomicU64; 4],
    /// The frames that are forwarded.
    window: Window,
}

/// Locks a mutex, also after another thread has panicked: no thread leaves the data inconsistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
    /// The state of a direction that ignores frames, and may not send, until it takes over.
    pub(crate) fn waiting() -> Shared {
        Shared { window: Window::closed(), ..Shared::default() }
    }

    /// The frames that are forwarded.
    pub(crate) fn window(&self) -> View {
        self.window.view()
    }

    /// Records that the window has ended, and that all its frames have left.
    pub(crate) fn set_drained(&self, window: View) {
        self.window.set_drained(window);
    }

    /// The current request to stop the direction.
    pub fn stop(&self) -> Stop {
        match self.stop.load(Ordering::Relaxed) {
            0 => Stop::No,
            1 => Stop::Drain,
            _ => Stop::Now,
        }
    }

    /// Requests the direction to stop. `drain_limit` bounds the time for [`Stop::Drain`].
    pub(crate) fn request_stop(&self, stop: Stop, drain_limit: Span) {
        self.drain_limit_ps.store(drain_limit.as_ps(), Ordering::Relaxed);
        let stop = match stop {
            Stop::No => 0,
            Stop::Drain => 1,
            Stop::Now => 2,
        };
        self.stop.store(stop, Ordering::Relaxed);
    }

    /// Time limit of draining.
    pub fn drain_limit(&self) -> Span {
        Span::from_ps(self.drain_limit_ps.load(Ordering::Relaxed))
    }

    pub(crate) fn has_commands(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    pub(crate) fn take_commands(&self) -> VecDeque<Command> {
        self.pending.store(false, Ordering::Release);
        std::mem::take(&mut *lock(&self.commands))
    }

    /// Updates the snapshot with `update`, unless another thread is reading it right now, and records a
    /// heartbeat. `update` must be quick and must not call a discipline, because readers wait for the lock.
    pub(crate) fn publish(&self, update: impl FnOnce(&mut Status), joins: bool) {
        if let Ok(mut status) = self.status.try_lock() {
            update(&mut status);
        }
        self.joins.store(joins, Ordering::Relaxed);
        self.heartbeat();
    }

    /// Replaces the snapshot.
    pub(crate) fn set_snapshot(&self, status: Status) {
        *lock(&self.status) = status;
    }

    /// Sets the scheduling class in the snapshot.
    pub(crate) fn set_scheduling(&self, scheduling: &str) {
        scheduling.clone_into(&mut lock(&self.status).scheduling);
    }

    /// A copy of the latest snapshot.
    pub(crate) fn snapshot(&self) -> Status {
        lock(&self.status).clone()
    }

    /// True if fragments are joined.
    pub(crate) fn joins(&self) -> bool {
        self.joins.load(Ordering::Relaxed)
    }

    /// Sets whether fragments are joined.
    pub(crate) fn set_joins(&self, joins: bool) {
        self.joins.store(joins, Ordering::Relaxed);
    }

    /// Thread id of the shaping thread; 0 before it starts.
    pub(crate) fn thread(&self) -> i32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Sets the thread id of the shaping thread.
    pub(crate) fn set_thread(&self, id: i32) {
        self.thread.store(id, Ordering::Release);
    }

    /// True if the direction has failed: the spare thread forwards.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Sets that the direction has failed, without a reason.
    pub(crate) fn set_failed(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Sets that the direction has failed. The first reason is kept.
    pub(crate) fn fail(&self, why: String) {
        let mut reason = lock(&self.reason);
        if reason.is_none() {
            *reason = Some(why);
        }
        drop(reason);
        self.set_failed();
    }

    /// Reason of the failure; empty if there is none.
    pub(crate) fn failure(&self) -> String {
        lock(&self.reason).clone().unwrap_or_default()
    }

    /// Sets that an interface was removed.
    pub(crate) fn mark_removed(&self, interface: Interface) {
        self.removed[interface as usize].store(true, Ordering::Release);
    }

    pub(crate) fn is_removed(&self, interface: Interface) -> bool {
        self.removed[interface as usize].load(Ordering::Acquire)
    }

    /// Adds to the counters of plain forwarding.
    pub(crate) fn count_plain(&self, counters: &PlainCounters) {
        let counters = [counters.forwarded, counters.unsent, counters.too_long, counters.checksums];
        for (sum, count) in self.plain.iter().zip(counters) {
            sum.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Adds the counters of plain forwarding to a snapshot.
    pub(crate) fn add_plain(&self, status: &mut Status) {
        let [forwarded, unsent, too_long, checksums] =
            std::array::from_fn(|at| self.plain[at].load(Ordering::Relaxed));
        status.plain = lock(&self.reason).clone();
        status.plain_frames = forwarded;
        status.losses.unsent += unsent;
        status.losses.too_long += too_long;
        status.checksums += checksums;
    }

    /// Records a heartbeat, which shows the supervising thread that this direction makes progress.
    pub(crate) fn heartbeat(&self) {
        self.heartbeat_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    /// Nanoseconds since the last heartbeat.
    pub(crate) fn since_heartbeat_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.heartbeat_ns.load(Ordering::Relaxed))
    }
}

/// Controls a running direction from any thread.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Sends a command. The direction applies it when it wakes up, within 50 ms.
    pub fn send(&self, command: Command) {
        lock(&self.0.commands).push_back(command);
        self.0.pending.store(true, Ordering::Release);
    }

    /// Sends a command that was caused by a frame of another machine. Returns false without effect if the
    /// direction has failed or too many commands are pending, so that other machines cannot use up the
    /// memory.
    pub(crate) fn try_send(&self, command: Command) -> bool {
        let mut commands = lock(&self.0.commands);
        let accepts = commands.len() < MAX_PENDING && !self.0.has_failed();
        if accepts {
            commands.push_back(command);
            self.0.pending.store(true, Ordering::Release);
        }
        accepts
    }

    /// Sets a constant rate.
    pub fn set_rate(&self, rate: Rate) {
        self.send(Command::Rate(rate));
    }

    /// Sets delay, loss and other impairments after the link.
    pub fn set_emulation(&self, emulation: LinkEmulation) {
        self.send(Command::Emulation(Box::new(emulation)));
    }

    /// The latest snapshot, at most 100 ms old while the direction shapes.
    pub fn status(&self) -> Status {
        let mut status = self.0.snapshot();
        self.0.add_plain(&mut status);
        status
    }

    /// Forwards frames with time stamps from `wall_ns` on, in nanoseconds since 1970, after
    /// [`Bridge::start_waiting`](crate::Bridge::start_waiting). They stay in the queue until
    /// [`Handle::release`].
    pub fn begin_at(&self, wall_ns: u64) {
        self.0.window.begin_at(wall_ns);
    }

    /// Sends from now on: the process that forwarded before has sent its queue.
    pub fn release(&self) {
        self.0.window.hold(false);
    }

    /// Sends no more frames until [`Handle::release`]; they stay in the queue.
    pub fn hold(&self) {
        self.0.window.hold(true);
    }

    /// Ignores frames with time stamps from `wall_ns` on, in nanoseconds since 1970, because another process
    /// forwards them. `None` forwards all again.
    pub fn end_at(&self, wall_ns: Option<u64>) {
        self.0.window.end_at(wall_ns);
    }

    /// Forwards frames with time stamps from `wall_ns` on, in nanoseconds since 1970, after
    /// [`Handle::end_at`]: the other process, which may have forwarded those before, has ended.
    pub fn resume_at(&self, wall_ns: u64) {
        self.0.window.resume_at(wall_ns);
    }

    /// True if all frames before the end of [`Handle::end_at`] have left.
    pub fn is_drained(&self) -> bool {
        self.0.window.is_drained()
    }

    /// Makes the direction fail on purpose: from then on it forwards plainly.
    pub fn fail(&self, why: impl Into<String>) {
        self.0.fail(why.into());
    }
}
