//! The writer's side of a trace: a thread that takes records out of the rings, encodes and writes them.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use giveway_disciplines::Spec;
use giveway_qdisc::{Invalid, LinkContext, Qdisc, Time};
use rtrb::{Consumer, RingBuffer};

use crate::encode::{Encoder, Section};
use crate::format::{Build, Call, Close, Operation};
use crate::traced::{Line, Record, Stamped, Traced};

/// How a trace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Records that a ring has room for, one ring per discipline: an operation is one, a drop or a mark another. They have 80 bytes.
    pub slots: usize,
    /// What to do when a ring is full.
    pub when_full: WhenFull,
}

/// What to do when the writer does not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The trace of that discipline ends and says so; the host goes on. For hosts with a clock.
    Cut,
    /// The host waits. For simulations, where nothing is late. A single call that says more than a ring holds cuts the
    /// trace all the same.
    Wait,
}

impl Default for Options {
    /// 2^16 records, and a cut.
    fn default() -> Options {
        Options { slots: 1 << 16, when_full: WhenFull::Cut }
    }
}

/// A trace that is being written. Dropped, it is finished, and nobody hears whether that went well.
#[derive(Debug)]
pub struct Recording {
    tracer: Tracer,
    thread: Option<JoinHandle<io::Result<Written>>>,
}

/// Gives disciplines to be traced; each has a section of the trace. Cheap to clone, and may be sent to other threads.
#[derive(Clone, Debug)]
pub struct Tracer {
    commands: mpsc::Sender<Command>,
    options: Options,
    cut: Arc<AtomicU64>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Disciplines.
    pub sections: u64,
    /// Their calls.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
    /// Disciplines of which not everything was written, since the writer did not keep up or the trace was closed before.
    pub cut: u64,
}

enum Command {
    Begin(Box<Build>, Consumer<Record>),
    Finish,
}

impl Recording {
    /// Begins a trace, and starts its thread. The thread has the scheduling class of the one that calls; start it before that
    /// becomes a real-time one, and before privileges are given up that a thread needs.
    ///
    /// `out` gets some ten kilobytes at a time, and need not be buffered. What was traced is in it within milliseconds.
    ///
    /// # Errors
    /// When the header cannot be written, or the thread cannot be started.
    pub fn start(out: impl Write + Send + 'static, program: &str, options: Options) -> io::Result<Recording> {
        Recording::start_after(out, program, options, || {})
    }

    /// The same; the thread does `first` before anything else: gives up privileges, say.
    ///
    /// # Errors
    /// As [`Recording::start`].
    pub fn start_after(
        out: impl Write + Send + 'static,
        program: &str,
        options: Options,
        first: impl FnOnce() + Send + 'static,
    ) -> io::Result<Recording> {
        let encoder = Encoder::new(out, program)?;
        let (commands, heard) = mpsc::channel();
        let cut = Arc::new(AtomicU64::new(0));
        let tracer = Tracer { commands, options, cut: Arc::clone(&cut) };
        let writer = Writer {
            encoder,
            lines: Vec::new(),
            next: 0,
            written: Written::default(),
            nap: match options.when_full {
                WhenFull::Cut => Duration::from_millis(5),
                WhenFull::Wait => Duration::from_micros(500),
            },
            operation: Operation {
                now: Time::ZERO,
                call: Call::Reset,
                dropped: Vec::new(),
                marked: Vec::new(),
            },
        };
        let thread = std::thread::Builder::new().name("trace".to_owned());
        let thread = thread.spawn(move || {
            first();
            writer.run(&heard).map(|written| (written, cut)).map(counted)
        })?;
        Ok(Recording { tracer, thread: Some(thread) })
    }

    /// Gives disciplines to be traced.
    pub fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }

    /// Writes what the rings have, and the end mark. Disciplines that still live are cut here.
    ///
    /// # Errors
    /// What the output said first; what was written before is a trace that is cut off.
    pub fn finish(mut self) -> io::Result<Written> {
        self.end().expect("it is ended once")
    }

    fn end(&mut self) -> Option<io::Result<Written>> {
        let thread = self.thread.take()?;
        // Where the thread has ended already, it has a reason to tell.
        let _ = self.tracer.commands.send(Command::Finish);
        Some(thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer of the trace panicked"))))
    }
}

/// Cuts are counted where they happen.
fn counted((written, cut): (Written, Arc<AtomicU64>)) -> Written {
    Written { cut: written.cut + cut.load(Ordering::Relaxed), ..written }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
    }
}

impl Tracer {
    /// Builds a discipline that is traced from now on, to the end of its life. `name` says where it stands.
    ///
    /// Nothing in here waits; it allocates the ring. Where the trace is over already, the discipline works untraced.
    ///
    /// # Errors
    /// The parameter that makes no sense at that site.
    pub fn build<P: 'static>(
        &self,
        name: &str,
        spec: &Spec,
        context: &LinkContext,
    ) -> Result<Traced<P>, Invalid> {
        Ok(self.wrap(name, &spec.to_string(), context, spec.build(context)?))
    }

    /// The same with a discipline that the caller built. That `spelling` says how is the caller's word; where it does not, or
    /// where it was used before, the check will find a difference.
    pub fn wrap<P: 'static>(
        &self,
        name: &str,
        spelling: &str,
        context: &LinkContext,
        inner: Box<dyn Qdisc<Stamped<P>>>,
    ) -> Traced<P> {
        // A call, and the close.
        let (producer, consumer) = RingBuffer::new(self.options.slots.max(2));
        let line = Line::new(producer, self.options.when_full, Arc::clone(&self.cut));
        let build = Build { name: name.to_owned(), spelling: spelling.to_owned(), context: context.clone() };
        // Where nobody listens any more the ring has no reader, which the line notices.
        let _ = self.commands.send(Command::Begin(Box::new(build), consumer));
        Traced::new(inner, line)
    }

    /// How many disciplines are not traced any more although they live, or were not traced to the end of their lives.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

struct Writer<W: Write> {
    encoder: Encoder<W>,
    lines: Vec<(Section, Consumer<Record>)>,
    /// The number of the next section.
    next: u32,
    written: Written,
    /// How long it sleeps between two passes, so that what it writes comes in pieces of some size and the processor is the host's. A
    /// ring of 2^16 records is full after 5 ms at 13 million records per second. A host that waits should not wait long.
    nap: Duration,
    operation: Operation,
}

/// What a pass over the rings found.
#[derive(Clone, Copy, Default)]
struct Pass {
    /// Records that were taken out, and sections that ended.
    moved: usize,
    /// A ring was so full that the next pass should come at once.
    hurry: bool,
}

impl<W: Write> Writer<W> {
    fn run(mut self, commands: &mpsc::Receiver<Command>) -> io::Result<Written> {
        let mut finishing = false;
        loop {
            finishing |= self.listen(commands)?;
            // What is there now and no more: then it is flushed, however much comes meanwhile.
            let Pass { moved, hurry } = self.pass()?;
            if moved > 0 {
                self.encoder.flush()?;
            }
            if hurry || (finishing && moved > 0) {
                continue;
            }
            if finishing {
                break;
            }
            match commands.recv_timeout(self.nap) {
                Ok(command) => finishing |= self.obey(command)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => finishing = true,
            }
        }
        for (section, _) in std::mem::take(&mut self.lines) {
            self.written.cut += 1;
            self.close(section, Close::Early)?;
        }
        self.written.bytes = self.encoder.bytes() + crate::format::HEAD as u64;
        self.encoder.finish()?;
        Ok(self.written)
    }

    /// Whether somebody asked it to finish.
    fn listen(&mut self, commands: &mpsc::Receiver<Command>) -> io::Result<bool> {
        let mut finishing = false;
        loop {
            match commands.try_recv() {
                Ok(command) => finishing |= self.obey(command)?,
                Err(TryRecvError::Empty) => return Ok(finishing),
                Err(TryRecvError::Disconnected) => return Ok(true),
            }
        }
    }

    fn obey(&mut self, command: Command) -> io::Result<bool> {
        match command {
            Command::Finish => Ok(true),
            Command::Begin(build, ring) => {
                let section = self.encoder.begin(self.next, &build)?;
                self.next = self.next.checked_add(1).ok_or_else(|| io::Error::other("2^32 sections"))?;
                self.written.sections += 1;
                self.lines.push((section, ring));
                Ok(false)
            }
        }
    }

    /// Writes what is in the rings.
    fn pass(&mut self) -> io::Result<Pass> {
        let mut pass = Pass::default();
        let mut at = 0;
        while at < self.lines.len() {
            let (section, ring) = &mut self.lines[at];
            // Looked at before the records: whoever gave up the ring puts nothing in afterwards.
            let abandoned = ring.is_abandoned();
            let there = ring.slots();
            pass.moved += there;
            pass.hurry |= there * 4 >= ring.buffer().capacity();
            let mut close = None;
            let records = ring.read_chunk(there).expect("so many were there");
            let mut records = records.into_iter();
            while let Some(record) = records.next() {
                match record {
                    Record::Call { now, call, dropped, marked } => {
                        let operation = &mut self.operation;
                        (operation.now, operation.call) = (now, call);
                        operation.dropped.clear();
                        operation.marked.clear();
                        for record in records.by_ref().take(dropped as usize + marked as usize) {
                            match record {
                                Record::Dropped(number, why) => operation.dropped.push((number, why)),
                                Record::Marked(mark) => operation.marked.push(mark),
                                Record::Call { .. } | Record::Close(_) => {
                                    unreachable!("the records of a call come together")
                                }
                            }
                        }
                        self.written.operations += 1;
                        self.encoder.operation(section, operation)?;
                    }
                    Record::Close(how) => close = Some(how),
                    Record::Dropped(..) | Record::Marked(_) => {
                        unreachable!("the records of a call come together")
                    }
                }
            }
            drop(records);
            self.encoder.push(section)?;
            if close.is_none() && abandoned {
                // The host forgot the discipline without ending its life.
                self.written.cut += 1;
                close = Some(Close::Early);
            }
            match close {
                Some(close) => {
                    let (section, _) = self.lines.swap_remove(at);
                    self.close(section, close)?;
                    pass.moved += 1;
                }
                None => at += 1,
            }
        }
        Ok(pass)
    }

    fn close(&mut self, section: Section, close: Close) -> io::Result<()> {
        self.encoder.end(section, close)
    }
}
