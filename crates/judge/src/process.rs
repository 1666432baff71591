//! Candidates in a process of their own.
//!
//! A program in Python can read and write everything in its process, whatever is checked before: it needs
//! only an annotation that a function of the standard library evaluates. So the process of a candidate must
//! hold no secret, and its word must decide nothing. This end of the channel is in the process of
//! the judge, which keeps the secret, simulates, observes, and makes the verdict. It asks the other end
//! ([`crate::serve`]) for each call of a queue, which answers what it drops, marks and sends. Each answer is
//! checked here as a call of a module in WebAssembly is.
//!
//! # Decisions
//! - A process that ran whole simulations, and returned their outcomes, could return other outcomes. Checking
//!   them takes a second simulation of the same calls, so the first would be for nothing.
//! - The process knows the packets that arrive, the time, and the rate of its link. It has no name of a cell
//!   or of a link, and no seed: the word for its random numbers comes from the seed by a hash.
//! - A new process for each run: state that lasts would tell a candidate how many runs came before, and so
//!   which of them are held out.
//! - One question and one answer for each call, and no batch. A packet that is dropped at its arrival changes
//!   what the sender does next, so nothing can be answered later.
//! - A process that does not answer for a minute has used too many instructions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_qdisc::{Backlog, Cx, DropReason, LinkContext, Next, Packet, Qdisc, Rate, Time};
use giveway_scenario::{Build, Scenario};
use giveway_sim::Segment;

use crate::candidate::{Candidate, Failed, Ran, STAND_IN, run_built};
use crate::perturbation::Perturbation;
use crate::rejected::{Code, Rejected};
use crate::wire::{Answer, Effects, Leaves, Mistake, Question, UNCONFINED, receive, send};

/// The longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a process, and returns the end of its channel.
pub type Connect<'a> = dyn Fn() -> io::Result<UnixStream> + Sync + 'a;

/// A candidate that runs in a process of its own, a new one for each run.
pub struct Process<'a> {
    name: String,
    connect: &'a Connect<'a>,
    has_open_process: AtomicBool,
}

impl<'a> Process<'a> {
    /// The candidate whose processes `connect` starts. [`io::ErrorKind::Interrupted`] from it says that the
    /// caller stopped.
    pub fn new(name: &str, connect: &'a Connect<'a>) -> Process<'a> {
        Process { name: name.to_owned(), connect, has_open_process: AtomicBool::new(false) }
    }

    /// True if a process could not give its files and its network up: only limits of resources hold it.
    pub fn has_open_process(&self) -> bool {
        self.has_open_process.load(Ordering::Relaxed)
    }
}

impl Candidate for Process<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn stands_for(&self) -> &str {
        STAND_IN
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        perturbation: Option<&Perturbation>,
        keep_running: &dyn Fn(f64) -> bool,
    ) -> Result<Ran, Failed> {
        let channel = (self.connect)().and_then(Channel::new).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => Failed::Stopped,
            _ => Failed::Rejected(Rejected::new(Code::Crash, format!("its process does not start: {error}"))),
        })?;
        let channel = Rc::new(RefCell::new(channel));
        // It says that it is ready, or why not.
        if channel.borrow_mut().answer().is_some_and(|ready| ready.leaves == UNCONFINED) {
            self.has_open_process.store(true, Ordering::Relaxed);
        }
        if let Some(rejected) = channel.borrow_mut().rejected.take() {
            return Err(Failed::Rejected(rejected));
        }
        let build: Build<'_> = &|_, _, context| Ok(Box::new(Remote::new(&channel, context)));
        let watched = |done: f64| channel.borrow().rejected.is_none() && keep_running(done);
        let ran = run_built(scenario, seed, perturbation, build, &watched);
        if let Some(rejected) = channel.borrow_mut().rejected.take() {
            return Err(Failed::Rejected(rejected));
        }
        let (record, seen) = ran.ok_or(Failed::Stopped)?;
        Ok(Ran { record, seen, fuel: (0, 0) })
    }
}

/// The channel to a process. All queues of a run share it.
struct Channel {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    buffer: Vec<u8>,
    queues: u16,
    /// The first mistake, after which nothing is asked.
    rejected: Option<Rejected>,
}

impl Channel {
    fn new(stream: UnixStream) -> io::Result<Channel> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Channel { stream, reader, buffer: Vec::new(), queues: 0, rejected: None })
    }

    /// Asks, and returns the effects. `None` after a mistake.
    fn ask(&mut self, question: Question) -> Option<Effects> {
        if self.rejected.is_some() {
            return None;
        }
        if let Err(error) = send(&mut self.stream, &mut self.buffer, |body| question.write(body)) {
            self.ended(&error);
            return None;
        }
        self.answer()
    }

    fn answer(&mut self) -> Option<Effects> {
        match receive(&mut self.reader, &mut self.buffer) {
            Ok(true) => {}
            Ok(false) => {
                self.ended(&io::ErrorKind::UnexpectedEof.into());
                return None;
            }
            Err(error) => {
                self.ended(&error);
                return None;
            }
        }
        match Answer::read(&self.buffer) {
            Some(Answer::Done(effects)) => Some(effects),
            Some(Answer::Failed(Mistake { code, sentence })) => {
                let sentence = sentence.chars().take(500).collect();
                self.reject(Rejected::new(code, sentence));
                None
            }
            None => {
                self.breaks("its process sent something else than an answer".to_owned());
                None
            }
        }
    }

    fn ended(&mut self, error: &io::Error) {
        let rejected = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Rejected::new(Code::Fuel, format!("a call took more than {} s", PATIENCE.as_secs()))
            }
            _ => Rejected::new(Code::Crash, "its process ended: it crashed, or reached a limit".to_owned()),
        };
        self.reject(rejected);
    }

    fn breaks(&mut self, sentence: String) {
        self.reject(Rejected::new(Code::Contract, sentence));
    }

    fn reject(&mut self, rejected: Rejected) {
        self.rejected.get_or_insert(rejected);
    }
}

/// A queue whose decisions another process makes. After a mistake it drops everything.
struct Remote {
    channel: Rc<RefCell<Channel>>,
    queue: u16,
    packets: BTreeMap<u64, Packet<Segment>>,
    count: u64,
    backlog: Backlog,
}

impl Remote {
    fn new(channel: &Rc<RefCell<Channel>>, context: &LinkContext) -> Remote {
        let seed = context.streams.rng().word();
        let mut open = channel.borrow_mut();
        let queue = open.queues;
        open.queues += 1;
        open.ask(Question::New { rate: context.rate, mtu: context.mtu.0, seed });
        Remote {
            channel: Rc::clone(channel),
            queue,
            packets: BTreeMap::new(),
            count: 0,
            backlog: Backlog::ZERO,
        }
    }

    fn take(&mut self, number: u64) -> Option<Packet<Segment>> {
        let packet = self.packets.remove(&number)?;
        self.backlog.sub(packet.meta.bytes);
        Some(packet)
    }

    /// Asks, and applies the drops and marks.
    fn ask(&mut self, question: Question, cx: &mut Cx<'_, Segment>) -> Option<Leaves> {
        let Effects { drops, marks, leaves } = self.channel.borrow_mut().ask(question)?;
        for number in marks {
            if let Some(packet) = self.packets.get_mut(&number) {
                cx.mark(packet);
            }
        }
        for (number, why) in drops {
            match self.take(number) {
                Some(packet) => cx.drop(packet, why),
                None => self.breaks(format!("it drops packet {number}, which is not in the queue")),
            }
        }
        Some(leaves)
    }

    fn breaks(&self, sentence: String) {
        self.channel.borrow_mut().breaks(sentence);
    }

    fn has_failed(&self) -> bool {
        self.channel.borrow().rejected.is_some()
    }

    /// After a mistake nobody would send the packets.
    fn give_up(&mut self, cx: &mut Cx<'_, Segment>) {
        for packet in std::mem::take(&mut self.packets).into_values() {
            cx.drop(packet, DropReason::Reset);
        }
        self.backlog = Backlog::ZERO;
    }
}

impl Qdisc<Segment> for Remote {
    fn enqueue(&mut self, pkt: Packet<Segment>, cx: &mut Cx<'_, Segment>) {
        let number = self.count;
        self.count += 1;
        let question = Question::Enqueue { queue: self.queue, now: cx.now(), number, meta: pkt.meta };
        self.backlog.add(pkt.meta.bytes);
        self.packets.insert(number, pkt);
        if self.ask(question, cx).is_none() || self.has_failed() {
            self.give_up(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_, Segment>) -> Next<Segment> {
        let now = cx.now();
        let next = match self.ask(Question::Dequeue { queue: self.queue, now }, cx) {
            None => Next::Empty,
            Some(Leaves::Packet(number)) => match self.take(number) {
                Some(packet) => Next::Packet(packet),
                None => {
                    self.breaks(format!("it sends packet {number}, which is not in the queue"));
                    Next::Empty
                }
            },
            Some(_) if self.backlog.packets == 0 => Next::Empty,
            Some(Leaves::At(time)) if time > now => Next::At(time),
            Some(_) => {
                let packets = self.backlog.packets;
                self.breaks(format!("it sends nothing and does not wait, and {packets} packets are queued"));
                Next::Empty
            }
        };
        if self.has_failed() {
            self.give_up(cx);
        }
        next
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn reset(&mut self, cx: &mut Cx<'_, Segment>) {
        self.give_up(cx);
    }

    fn rate_changed(&mut self, rate: Rate, now: Time) {
        let asked = self.channel.borrow_mut().ask(Question::Rate { queue: self.queue, now, rate });
        // A call without a context cannot drop.
        if asked.is_some_and(|done| !done.drops.is_empty() || !done.marks.is_empty()) {
            self.breaks("rate_changed drops or marks packets, and may not".to_owned());
        }
    }
}
