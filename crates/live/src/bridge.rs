//! A bridge: two directions, each in a separate thread, and the supervision of these threads.
//!
//! For each direction a spare thread exists from the start, with sockets that are open but not yet bound.
//! When the shaping thread panics, or sends no heartbeat for [`SILENT`], the spare thread forwards plainly
//! and the reason is reported. A thread that hangs cannot be ended. It loses its real-time priority, so that
//! it takes no processor time from the threads that still work.
//!
//! When an interface goes down and comes up again, frames pass again. After an interface was removed they do
//! not: an interface that is created later under the same name is another one, and the sockets belong to the
//! first ([`Bridge::removed`]). New sockets need privileges that the bridge has dropped, so it must be
//! stopped and started again.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Probe, Span};
use giveway_watch::Status;

use crate::clock::monotonic_ns;
use crate::device::{Ends, Receiver, Sender, link_type};
use crate::direction::driver::run;
use crate::direction::{Core, Parts};
use crate::fragments::Joiner;
use crate::headers::Frame;
use crate::plain;
use crate::privilege::{self, Role};
use crate::shared::{Handle, Interface, Shared, Stop};

/// A direction without a heartbeat for this long has failed.
pub const SILENT: Span = Span::s(5);

/// After a pause of this length between two calls of [`Bridge::watch`], in nanoseconds, the threads of the
/// directions get the time for another heartbeat.
const STOPPED_NS: u64 = SILENT.as_ps() / 2000;

/// One direction of a bridge, before it starts.
pub struct DirectionSetup {
    /// Name of the direction in messages: `forward` or `reverse`.
    pub name: &'static str,
    /// Names of the incoming and of the outgoing interface.
    pub between: [String; 2],
    /// Receives frames.
    pub receiver: Box<dyn Receiver>,
    /// Sends frames.
    pub sender: Box<dyn Sender>,
    /// Sockets of the spare thread.
    pub spare: (Box<dyn Receiver>, Box<dyn Sender>),
    /// Configuration of the direction.
    pub parts: Parts,
}

impl DirectionSetup {
    /// The two directions between two interfaces: `forward` from `a` to `b`, and `reverse` from `b` to `a`.
    pub fn both(a: Ends, b: Ends, mut parts: impl FnMut(&'static str) -> Parts) -> [DirectionSetup; 2] {
        let (forward, reverse) = (parts("forward"), parts("reverse"));
        [
            DirectionSetup {
                name: "forward",
                between: [a.name.clone(), b.name.clone()],
                receiver: a.receiver,
                sender: b.sender,
                spare: (a.spare_receiver, b.spare_sender),
                parts: forward,
            },
            DirectionSetup {
                name: "reverse",
                between: [b.name, a.name],
                receiver: b.receiver,
                sender: a.sender,
                spare: (b.spare_receiver, a.spare_sender),
                parts: reverse,
            },
        ]
    }
}

/// The result of a direction that has ended.
pub struct Ended {
    /// Last snapshot.
    pub status: Status,
    /// Probe of the direction; `None` if it had none, or if the direction failed and its probe was lost.
    pub probe: Option<Box<dyn Probe<Frame> + Send>>,
}

/// A running bridge.
pub struct Bridge {
    directions: Vec<Running>,
    removed: Vec<String>,
    /// Time of the last [`Bridge::watch`] by the monotonic clock, in nanoseconds.
    watched_ns: u64,
}

/// A running direction.
struct Running {
    name: &'static str,
    between: [String; 2],
    shared: Arc<Shared>,
    shaping: Option<JoinHandle<Option<Ended>>>,
    spare: Option<JoinHandle<()>>,
    /// True once the failure of the direction was reported.
    reported: bool,
}

impl Bridge {
    /// Starts the threads of each direction. When it returns, each thread has its final scheduling class and
    /// privileges.
    ///
    /// # Errors
    /// The error of the system if a thread cannot be started.
    pub fn start(directions: impl IntoIterator<Item = DirectionSetup>, realtime: bool) -> io::Result<Bridge> {
        Bridge::start_with(directions, realtime, Shared::default)
    }

    /// Starts the threads of a bridge that takes over from another process. It ignores frames until
    /// [`Handle::begin_at`], and sends none until [`Handle::release`].
    ///
    /// # Errors
    /// The errors of [`Bridge::start`].
    pub fn start_waiting(
        directions: impl IntoIterator<Item = DirectionSetup>,
        realtime: bool,
    ) -> io::Result<Bridge> {
        Bridge::start_with(directions, realtime, Shared::waiting)
    }

    fn start_with(
        directions: impl IntoIterator<Item = DirectionSetup>,
        realtime: bool,
        shared: fn() -> Shared,
    ) -> io::Result<Bridge> {
        let mut running = Vec::new();
        for setup in directions {
            running.push(start(setup, realtime, shared())?);
        }
        Ok(Bridge { directions: running, removed: Vec::new(), watched_ns: monotonic_ns() })
    }

    /// A handle for each direction.
    pub fn handles(&self) -> Vec<Handle> {
        self.directions.iter().map(|direction| Handle(Arc::clone(&direction.shared))).collect()
    }

    /// Supervises the threads; call it several times a second. Returns a message for each failure and each
    /// removed interface since the last call.
    pub fn watch(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        let now = monotonic_ns();
        // A process that was stopped was stopped whole: its threads have not failed.
        if now.saturating_sub(std::mem::replace(&mut self.watched_ns, now)) > STOPPED_NS {
            self.directions.iter().for_each(|direction| direction.shared.heartbeat());
        }
        for direction in &mut self.directions {
            let shared = &direction.shared;
            let silent = shared.since_heartbeat_ns();
            let limit = SILENT.as_ps() / 1000;
            if shared.stop() == Stop::No && !shared.has_failed() && silent > limit {
                let seconds = silent / 1_000_000_000;
                shared.fail(format!("no heartbeat for {seconds} s{}", direction.lower_priority()));
                if let Some(spare) = &direction.spare {
                    spare.thread().unpark();
                }
            }
            if direction.shared.has_failed() && !direction.reported {
                direction.reported = true;
                messages.push(format!(
                    "the {} direction has failed; from now on it only forwards, without rate and discipline: {}",
                    direction.name,
                    direction.shared.failure()
                ));
            }
            for (interface, name) in
                [Interface::Incoming, Interface::Outgoing].into_iter().zip(&direction.between)
            {
                if direction.shared.is_removed(interface) && !self.removed.contains(name) {
                    self.removed.push(name.clone());
                    messages.push(format!(
                        "the interface {name} was removed, and no frame passes without it. An interface that is \
                         created under the same name is another one: start the bridge again to use it, or let a \
                         service manager do so (Restart=on-failure)"
                    ));
                }
            }
        }
        messages
    }

    /// Names of the interfaces that were removed, as far as [`Bridge::watch`] has reported them. Without one
    /// of its interfaces no direction can work: stop the bridge, which still sends the backlog for the other
    /// interface.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// True if both directions shape and both interfaces exist.
    pub fn is_whole(&self) -> bool {
        self.removed.is_empty() && !self.directions.iter().any(|direction| direction.shared.has_failed())
    }

    /// Stops the bridge. The backlog is sent for at most `drain_limit`; the backlog for a removed interface
    /// is dropped at once.
    pub fn stop(mut self, drain_limit: Span) -> Vec<Ended> {
        for direction in &self.directions {
            let gone = direction.shared.is_removed(Interface::Outgoing)
                || self.removed.contains(&direction.between[1]);
            direction.shared.request_stop(if gone { Stop::Now } else { Stop::Drain }, drain_limit);
        }
        let mut ended = Vec::new();
        for direction in &mut self.directions {
            let failed = direction.shared.has_failed();
            let shaping = direction.shaping.take();
            // A thread that hangs cannot be joined; it ends with the process.
            let finished = !failed || shaping.as_ref().is_some_and(JoinHandle::is_finished);
            let whole = shaping.filter(|_| finished).and_then(|thread| thread.join().ok()).flatten();
            direction.shared.set_failed();
            if let Some(spare) = direction.spare.take() {
                spare.thread().unpark();
                // A panic of the spare thread loses nothing.
                let _ = spare.join();
            }
            let mut whole =
                whole.unwrap_or_else(|| Ended { status: direction.shared.snapshot(), probe: None });
            direction.shared.add_plain(&mut whole.status);
            ended.push(whole);
        }
        ended
    }
}

impl Running {
    /// Gives the shaping thread ordinary priority if it hangs: it may be in an endless loop, and with
    /// real-time priority nothing else would get its processor. A process may lower the priority of its own
    /// threads without any privilege. Returns text to append to a message: empty on success, else the error.
    fn lower_priority(&self) -> String {
        let hangs = self.shaping.as_ref().is_some_and(|thread| !thread.is_finished());
        let thread = self.shared.thread();
        if !hangs || thread == 0 {
            return String::new();
        }
        // The thread has not finished, so no other thread has its id.
        match privilege::schedule(thread, libc::SCHED_OTHER, 0) {
            Ok(()) => String::new(),
            Err(error) => format!(", and it keeps its real-time priority: {error}"),
        }
    }
}

fn start(setup: DirectionSetup, realtime: bool, shared: Shared) -> io::Result<Running> {
    let shared = Arc::new(shared);
    shared.heartbeat();
    let DirectionSetup { name, between, mut receiver, mut sender, spare, parts } = setup;
    let (mut spare_receiver, mut spare_sender) = spare;
    let (ready, settled) = mpsc::channel();

    let spare_shared = Arc::clone(&shared);
    let (ether_type, longest) = (parts.fragments.ether_type, parts.longest_out);
    let link = link_type(parts.ethernet);
    let mut keys = parts.streams.within("spare").rng();
    let hasher = SipHasher::new(keys.word(), keys.word());
    shared.set_joins(parts.fragments.join && parts.ethernet);
    let spare_ready = ready.clone();
    // The kernel keeps 15 characters of a thread's name.
    let spare = thread::Builder::new().name(format!("gw-{}-spare", &name[..3])).spawn(move || {
        let _ = privilege::settle(Role::Forward);
        let _ = spare_ready.send(String::new());
        while !spare_shared.has_failed() {
            thread::park_timeout(std::time::Duration::from_millis(100));
        }
        let joiner = spare_shared.joins().then(|| Joiner::new(ether_type, longest, hasher));
        let mut frames = plain::Frames { link, longest, joiner };
        if spare_shared.stop() == Stop::No
            && let Err(error) =
                plain::run(&mut *spare_receiver, &mut *spare_sender, &spare_shared, &mut frames)
        {
            spare_shared.fail(error.to_string());
        }
    })?;
    let spare_thread = spare.thread().clone();

    let shaping_shared = Arc::clone(&shared);
    let shaping = thread::Builder::new().name(format!("gw-{name}")).spawn(move || {
        // SAFETY: no pointers are passed.
        shaping_shared.set_thread(unsafe { libc::gettid() });
        let mut scheduling = if realtime { privilege::realtime() } else { "ordinary scheduling".to_owned() };
        let mut core = Core::new(parts);
        if let Err(error) = privilege::settle(Role::Forward) {
            scheduling.push_str(&format!("; {error}"));
        }
        shaping_shared.set_scheduling(&scheduling);
        let _ = ready.send(scheduling);
        let ran =
            catch_unwind(AssertUnwindSafe(|| run(&mut core, &mut *receiver, &mut *sender, &shaping_shared)));
        match ran {
            Ok(Ok(())) => {
                let mut status = shaping_shared.snapshot();
                let probe = core.finish(&mut status);
                shaping_shared.set_snapshot(status.clone());
                Some(Ended { status, probe })
            }
            Ok(Err(error)) => {
                shaping_shared.fail(format!("the interface cannot be read: {error}"));
                spare_thread.unpark();
                None
            }
            Err(panic) => {
                shaping_shared.fail(panic_message(panic.as_ref()));
                spare_thread.unpark();
                None
            }
        }
    })?;
    // Each thread sends a message when its scheduling class and privileges are final.
    for _ in 0..2 {
        settled.recv().map_err(|_| io::Error::other(format!("the {name} direction did not start")))?;
    }
    Ok(Running { name, between, shared, shaping: Some(shaping), spare: Some(spare), reported: false })
}

/// The message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
