//! Both directions of a bridge, each in a thread of its own, and who watches over them.
//!
//! For each direction a second thread stands by from the start, with sockets that are open and not yet bound.
//! When the first one panics, or gives no sign of life for [`SILENT`], the second one forwards plainly and
//! the reason is told. A thread that hangs cannot be ended; it loses its real-time priority, so that it takes
//! no processor from what still works.
//!
//! An interface that goes down may come back, and then frames pass again. One that is removed does not: what
//! is made under its name later is another interface, and the sockets are of the first ([`Bridge::removed`]).
//! Opening new ones takes privileges that were given up, so a bridge does not go on then; whoever runs it
//! starts it anew.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{self, JoinHandle};

use qdisc::hash::SipHasher;
use qdisc::{Probe, Rate, Span};

use crate::clock::monotonic_ns;
use crate::device::{Ends, Receiver, Sender, link_type};
use crate::direction::{Core, Order, Parts, run};
use crate::fragments::Joiner;
use crate::look::Frame;
use crate::privilege::{self, Role};
use crate::tally::Status;
use crate::{line, plain};

/// A direction that gives no sign of life for so long has failed.
pub const SILENT: Span = Span::s(5);

/// So many orders may wait that come from outside.
const WAITING: usize = 4096;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Yes.
    No,
    /// No new frames; send what is queued, for a while.
    Drain,
    /// At once.
    Now,
}

/// One of the two interfaces of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The one that frames come from.
    From,
    /// The one that they go to.
    To,
}

/// What the threads of a direction and those who watch it share.
#[derive(Default)]
pub struct Shared {
    stop: AtomicU8,
    patience_ps: AtomicU64,
    ordered: AtomicBool,
    orders: Mutex<VecDeque<Order>>,
    status: Mutex<Status>,
    /// When it last gave a sign of life, by the monotonic clock.
    beat_ns: AtomicU64,
    /// Wakes the thread that stands by.
    failed: AtomicBool,
    /// Why it failed.
    why: Mutex<Option<String>>,
    /// The thread that shapes, as the system numbers it.
    thread: AtomicI32,
    /// Whether it joins fragments. Not in `status`: what stands by must get it without a lock.
    joins: AtomicBool,
    /// Interfaces that are no more, by [`End`].
    removed: [AtomicBool; 2],
    /// See [`plain::Counts`].
    plain: [AtomicU64; 4],
}

/// A lock that a panic elsewhere does not take away: what it guards is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
    /// Whether it should stop.
    pub fn stop(&self) -> Stop {
        match self.stop.load(Ordering::Relaxed) {
            0 => Stop::No,
            1 => Stop::Drain,
            _ => Stop::Now,
        }
    }

    /// How long draining may take.
    pub fn patience(&self) -> Span {
        Span::from_ps(self.patience_ps.load(Ordering::Relaxed))
    }

    pub(crate) fn has_orders(&self) -> bool {
        self.ordered.load(Ordering::Acquire)
    }

    pub(crate) fn take_orders(&self) -> VecDeque<Order> {
        self.ordered.store(false, Ordering::Release);
        std::mem::take(&mut *lock(&self.orders))
    }

    /// Shows a new picture, unless somebody looks at the old one right now. `paint` is quick and calls no
    /// discipline.
    pub(crate) fn show(&self, paint: impl FnOnce(&mut Status), joins: bool) {
        if let Ok(mut status) = self.status.try_lock() {
            paint(&mut status);
        }
        self.joins.store(joins, Ordering::Relaxed);
        self.beat();
    }

    /// What is shown now.
    pub(crate) fn picture(&self) -> Status {
        lock(&self.status).clone()
    }

    /// Whether another thread forwards already.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// One of its interfaces is no more.
    pub(crate) fn mark_removed(&self, end: End) {
        self.removed[end as usize].store(true, Ordering::Release);
    }

    fn is_removed(&self, end: End) -> bool {
        self.removed[end as usize].load(Ordering::Acquire)
    }

    /// So much was forwarded plainly.
    pub(crate) fn passed_plainly(&self, counts: &plain::Counts) {
        let counts = [counts.passed, counts.unsent, counts.too_long, counts.checksums];
        for (sum, count) in self.plain.iter().zip(counts) {
            sum.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Adds what was forwarded plainly to what was counted before.
    fn add_plain(&self, status: &mut Status) {
        let [passed, unsent, too_long, checksums] =
            std::array::from_fn(|at| self.plain[at].load(Ordering::Relaxed));
        status.plain = lock(&self.why).clone();
        status.plain_frames = passed;
        status.losses.unsent += unsent;
        status.losses.too_long += too_long;
        status.checksums += checksums;
    }

    pub(crate) fn beat(&self) {
        self.beat_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    fn fail(&self, why: String) {
        let mut place = lock(&self.why);
        if place.is_none() {
            *place = Some(why);
        }
        drop(place);
        self.failed.store(true, Ordering::Release);
    }
}

/// One way over the bridge, before it starts.
pub struct Way {
    /// What it is called in sentences: `forward` or `back`.
    pub name: &'static str,
    /// The interfaces that frames come from and go to, as people call them.
    pub between: [String; 2],
    /// Where frames come from.
    pub receiver: Box<dyn Receiver>,
    /// Where they go.
    pub sender: Box<dyn Sender>,
    /// Stands by.
    pub spare: (Box<dyn Receiver>, Box<dyn Sender>),
    /// The rest.
    pub parts: Parts,
}

impl Way {
    /// Two interfaces become two ways: what comes in at the first leaves at the second, and the reverse.
    pub fn both(a: Ends, b: Ends, mut parts: impl FnMut(&'static str) -> Parts) -> [Way; 2] {
        let (forward, reverse) = (parts("forward"), parts("reverse"));
        [
            Way {
                name: "forward",
                between: [a.name.clone(), b.name.clone()],
                receiver: a.receiver,
                sender: b.sender,
                spare: (a.spare_receiver, b.spare_sender),
                parts: forward,
            },
            Way {
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

/// How somebody talks to a direction that runs.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Changes something; done at the next wake-up, within 50 ms.
    pub fn order(&self, order: Order) {
        lock(&self.0.orders).push_back(order);
        self.0.ordered.store(true, Ordering::Release);
    }

    /// The same for what comes from outside: not when the direction has failed, or so much waits already that nobody takes it. False then.
    pub(crate) fn order_if_taken(&self, order: Order) -> bool {
        let mut orders = lock(&self.0.orders);
        let takes = orders.len() < WAITING && !self.0.failed.load(Ordering::Acquire);
        if takes {
            orders.push_back(order);
            self.0.ordered.store(true, Ordering::Release);
        }
        takes
    }

    /// Another rate.
    pub fn rate(&self, rate: Rate) {
        self.order(Order::Rate(rate));
    }

    /// Another line.
    pub fn line(&self, settings: line::Settings) {
        self.order(Order::Line(settings));
    }

    /// The newest picture, at most 100 ms old while it shapes.
    pub fn status(&self) -> Status {
        let mut status = self.0.picture();
        self.0.add_plain(&mut status);
        status
    }

    /// Makes the direction fail on purpose: it forwards plainly from then on.
    pub fn fail(&self, why: impl Into<String>) {
        self.0.fail(why.into());
    }
}

/// What is left of a direction.
pub struct Ended {
    /// The last picture.
    pub status: Status,
    /// Its probe; `None` when it had none, or lost it by failing.
    pub probe: Option<Box<dyn Probe<Frame> + Send>>,
}

/// A bridge that runs.
pub struct Bridge {
    ways: Vec<Running>,
    removed: Vec<String>,
}

struct Running {
    name: &'static str,
    between: [String; 2],
    shared: Arc<Shared>,
    shaping: Option<JoinHandle<Option<Ended>>>,
    spare: Option<JoinHandle<()>>,
    told: bool,
}

impl Bridge {
    /// Starts the threads of each way. When it returns, all of them run as they will (scheduling class, privileges).
    ///
    /// # Errors
    /// What the system says when a thread cannot be started.
    pub fn start(ways: impl IntoIterator<Item = Way>, realtime: bool) -> io::Result<Bridge> {
        let mut running = Vec::new();
        for way in ways {
            running.push(start(way, realtime)?);
        }
        Ok(Bridge { ways: running, removed: Vec::new() })
    }

    /// How to talk to each way.
    pub fn handles(&self) -> Vec<Handle> {
        self.ways.iter().map(|way| Handle(Arc::clone(&way.shared))).collect()
    }

    /// Looks after the threads; call it several times a second. What failed since the last time is told in a sentence.
    pub fn watch(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        for way in &mut self.ways {
            let silent = monotonic_ns().saturating_sub(way.shared.beat_ns.load(Ordering::Relaxed));
            let limit = SILENT.as_ps() / 1000;
            if way.shared.stop() == Stop::No && !way.shared.has_failed() && silent > limit {
                let seconds = silent / 1_000_000_000;
                way.shared.fail(format!("it gave no sign of life for {seconds} s{}", way.lower_priority()));
                if let Some(spare) = &way.spare {
                    spare.thread().unpark();
                }
            }
            if way.shared.has_failed() && !way.told {
                way.told = true;
                let why = lock(&way.shared.why).clone().unwrap_or_default();
                said.push(format!(
                    "the {} direction has failed and only forwards from now on, without rate and discipline: {why}",
                    way.name
                ));
            }
            for (end, name) in [End::From, End::To].into_iter().zip(&way.between) {
                if way.shared.is_removed(end) && !self.removed.contains(name) {
                    self.removed.push(name.clone());
                    said.push(format!(
                        "the interface {name} was removed, and no frame passes without it. One that is made under the \
                         same name is another interface: start the bridge again to use it, or let a service manager do \
                         that (Restart=on-failure)"
                    ));
                }
            }
        }
        said
    }

    /// The interfaces that were removed, by name, as far as [`Bridge::watch`] has told. With one of them gone
    /// no direction can work: the bridge is to be stopped, and what the other interface still takes is sent
    /// then.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Whether every direction shapes, and both interfaces are there.
    pub fn is_whole(&self) -> bool {
        self.removed.is_empty() && !self.ways.iter().any(|way| way.shared.has_failed())
    }

    /// Ends: what is queued is sent, for at most `patience`. What is for an interface that was removed is
    /// dropped at once.
    pub fn stop(mut self, patience: Span) -> Vec<Ended> {
        for way in &self.ways {
            way.shared.patience_ps.store(patience.as_ps(), Ordering::Relaxed);
            let drains = !way.shared.is_removed(End::To) && !self.removed.contains(&way.between[1]);
            way.shared.stop.store(if drains { 1 } else { 2 }, Ordering::Relaxed);
        }
        let mut ended = Vec::new();
        for way in &mut self.ways {
            let failed = way.shared.has_failed();
            let shaping = way.shaping.take();
            // One that hangs cannot be waited for; the process ends with it.
            let finished = !failed || shaping.as_ref().is_some_and(JoinHandle::is_finished);
            let whole = shaping.filter(|_| finished).and_then(|thread| thread.join().ok()).flatten();
            way.shared.failed.store(true, Ordering::Release);
            if let Some(spare) = way.spare.take() {
                spare.thread().unpark();
                // It has nothing to lose.
                let _ = spare.join();
            }
            let mut whole = whole.unwrap_or_else(|| Ended { status: way.shared.picture(), probe: None });
            way.shared.add_plain(&mut whole.status);
            ended.push(whole);
        }
        ended
    }
}

impl Running {
    /// Gives the thread that shapes ordinary priority. It hangs, perhaps in a loop, and with real-time
    /// priority nothing else would get its processor. A process may lower the priority of its own threads
    /// without any privilege. Returns what went wrong, to be added to a sentence; empty when all went well.
    fn lower_priority(&self) -> String {
        let hangs = self.shaping.as_ref().is_some_and(|thread| !thread.is_finished());
        let thread = self.shared.thread.load(Ordering::Acquire);
        if !hangs || thread == 0 {
            return String::new();
        }
        let ordinary = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters live until the call returns. The thread has not finished, so the number is
        // still its own.
        match unsafe { libc::sched_setscheduler(thread, libc::SCHED_OTHER, &ordinary) } {
            0 => String::new(),
            _ => format!(", and it keeps its real-time priority: {}", io::Error::last_os_error()),
        }
    }
}

fn start(way: Way, realtime: bool) -> io::Result<Running> {
    let shared = Arc::new(Shared::default());
    shared.beat();
    let Way { name, between, mut receiver, mut sender, spare, parts } = way;
    let (mut spare_receiver, mut spare_sender) = spare;
    let (ready, settled) = mpsc::channel();

    let standing_by = Arc::clone(&shared);
    let (ether_type, longest) = (parts.fragments.ether_type, parts.longest_out);
    let link = link_type(parts.ethernet);
    let mut keys = parts.streams.within("spare").rng();
    let hasher = SipHasher::new(keys.word(), keys.word());
    shared.joins.store(parts.fragments.join && parts.ethernet, Ordering::Relaxed);
    let spare_ready = ready.clone();
    // The kernel keeps 15 characters of a thread's name.
    let spare = thread::Builder::new().name(format!("gw-{}-spare", &name[..3])).spawn(move || {
        let _ = privilege::settle(Role::Forward);
        let _ = spare_ready.send(String::new());
        while !standing_by.has_failed() {
            thread::park_timeout(std::time::Duration::from_millis(100));
        }
        let joins = standing_by.joins.load(Ordering::Relaxed);
        let joiner = joins.then(|| Joiner::new(ether_type, longest, hasher));
        let mut frames = plain::Frames { link, longest, joiner };
        if standing_by.stop() == Stop::No
            && let Err(error) =
                plain::run(&mut *spare_receiver, &mut *spare_sender, &standing_by, &mut frames)
        {
            standing_by.fail(error.to_string());
        }
    })?;
    let wakes = spare.thread().clone();

    let mine = Arc::clone(&shared);
    let shaping = thread::Builder::new().name(format!("gw-{name}")).spawn(move || {
        // SAFETY: no pointers are passed.
        mine.thread.store(unsafe { libc::gettid() }, Ordering::Release);
        let mut how = if realtime { privilege::realtime() } else { "ordinary scheduling".to_owned() };
        let mut core = Core::new(parts);
        if let Err(why) = privilege::settle(Role::Forward) {
            how.push_str(&format!("; {why}"));
        }
        lock(&mine.status).how.clone_from(&how);
        let _ = ready.send(how);
        let ran = catch_unwind(AssertUnwindSafe(|| run(&mut core, &mut *receiver, &mut *sender, &mine)));
        match ran {
            Ok(Ok(())) => {
                let mut status = lock(&mine.status).clone();
                let probe = core.finish(&mut status);
                *lock(&mine.status) = status.clone();
                Some(Ended { status, probe })
            }
            Ok(Err(error)) => {
                mine.fail(format!("the interface cannot be read: {error}"));
                wakes.unpark();
                None
            }
            Err(panic) => {
                mine.fail(said_in(panic.as_ref()));
                wakes.unpark();
                None
            }
        }
    })?;
    // Both say so when they run as they will.
    for _ in 0..2 {
        settled.recv().map_err(|_| io::Error::other(format!("the {name} direction did not start")))?;
    }
    Ok(Running { name, between, shared, shaping: Some(shaping), spare: Some(spare), told: false })
}

/// What a thread said when it panicked.
fn said_in(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
