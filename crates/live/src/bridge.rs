//! Both directions of a bridge, each in a thread of its own, and who watches over them.
//!
//! For each direction a second thread stands by from the start, with sockets that are open and not yet bound. When the
//! first one panics, or gives no sign of life for [`SILENT`], the second one forwards plainly and the reason is told.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{self, JoinHandle};

use qdisc::hash::SipHasher;
use qdisc::{Probe, Rate, Span};

use crate::clock::monotonic_ns;
use crate::device::{Ends, Receiver, Sender};
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
    pub(crate) plain_frames: AtomicU64,
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

    /// Shows a new picture, unless somebody looks at the old one right now.
    pub(crate) fn show(&self, paint: impl FnOnce(&mut Status)) {
        if let Ok(mut status) = self.status.try_lock() {
            paint(&mut status);
        }
        self.beat();
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
    /// Two interfaces become two ways: what comes in at the first leaves at the second, and back.
    pub fn both(a: Ends, b: Ends, mut parts: impl FnMut(&'static str) -> Parts) -> [Way; 2] {
        let way = |name, receiver, sender, spare, parts| Way { name, receiver, sender, spare, parts };
        let (forward, back) = (parts("forward"), parts("back"));
        [
            way("forward", a.receiver, b.sender, (a.spare_receiver, b.spare_sender), forward),
            way("back", b.receiver, a.sender, (b.spare_receiver, a.spare_sender), back),
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
        let mut status = lock(&self.0.status).clone();
        status.plain = lock(&self.0.why).clone();
        status.plain_frames = self.0.plain_frames.load(Ordering::Relaxed);
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
}

struct Running {
    name: &'static str,
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
        Ok(Bridge { ways: running })
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
            if way.shared.stop() == Stop::No && !way.shared.failed.load(Ordering::Acquire) && silent > limit {
                way.shared.fail(format!("it gave no sign of life for {} s", silent / 1_000_000_000));
            }
            if way.shared.failed.load(Ordering::Acquire) && !way.told {
                way.told = true;
                let why = lock(&way.shared.why).clone().unwrap_or_default();
                said.push(format!(
                    "the {} direction has failed and only forwards from now on, without rate and discipline: {why}",
                    way.name
                ));
            }
        }
        said
    }

    /// Whether every direction shapes.
    pub fn is_whole(&self) -> bool {
        !self.ways.iter().any(|way| way.shared.failed.load(Ordering::Acquire))
    }

    /// Ends: what is queued is sent, for at most `patience`.
    pub fn stop(mut self, patience: Span) -> Vec<Ended> {
        for way in &self.ways {
            way.shared.patience_ps.store(patience.as_ps(), Ordering::Relaxed);
            way.shared.stop.store(1, Ordering::Relaxed);
        }
        let mut ended = Vec::new();
        for way in &mut self.ways {
            let failed = way.shared.failed.load(Ordering::Acquire);
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
            let last = Handle(Arc::clone(&way.shared)).status();
            ended.push(whole.map_or_else(
                || Ended { status: last.clone(), probe: None },
                |ended| Ended {
                    status: Status {
                        plain: last.plain.clone(),
                        plain_frames: last.plain_frames,
                        ..ended.status
                    },
                    probe: ended.probe,
                },
            ));
        }
        ended
    }
}

fn start(way: Way, realtime: bool) -> io::Result<Running> {
    let shared = Arc::new(Shared::default());
    shared.beat();
    let Way { name, mut receiver, mut sender, spare: (mut spare_receiver, mut spare_sender), parts } = way;
    let (ready, settled) = mpsc::channel();

    let standing_by = Arc::clone(&shared);
    let (ether_type, longest) = (parts.fragments.ether_type, parts.longest_out);
    let mut keys = parts.streams.within("spare").rng();
    let hasher = SipHasher::new(keys.word(), keys.word());
    shared.show(|status| status.fragments.joins = parts.fragments.join && parts.ethernet);
    let spare_ready = ready.clone();
    let spare = thread::Builder::new().name(format!("gw-{name}-spare")).spawn(move || {
        let _ = privilege::settle(Role::Forward);
        let _ = spare_ready.send(String::new());
        while !standing_by.failed.load(Ordering::Acquire) {
            thread::park_timeout(std::time::Duration::from_millis(100));
        }
        let joins = lock(&standing_by.status).fragments.joins;
        let joiner = joins.then(|| Joiner::new(ether_type, longest, hasher));
        if standing_by.stop() == Stop::No
            && let Err(error) = plain::run(&mut *spare_receiver, &mut *spare_sender, &standing_by, joiner)
        {
            standing_by.fail(error.to_string());
        }
    })?;
    let wakes = spare.thread().clone();

    let mine = Arc::clone(&shared);
    let shaping = thread::Builder::new().name(format!("gw-{name}")).spawn(move || {
        let mut how = if realtime { privilege::realtime() } else { "ordinary scheduling".to_owned() };
        let mut core = Core::new(parts);
        if let Err(why) = privilege::settle(Role::Forward) {
            how.push_str(&format!("; {why}"));
        }
        mine.show(|status| status.how.clone_from(&how));
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
    Ok(Running { name, shared, shaping: Some(shaping), spare: Some(spare), told: false })
}

/// What a thread said when it panicked.
fn said_in(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
