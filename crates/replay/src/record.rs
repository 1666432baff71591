//! The writing side of a trace: a thread that reads records from the rings, encodes them and writes them.

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
use crate::traced::{Record, RingWriter, Stamped, Traced, WhenFull};

/// Options of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Capacity of the ring of each discipline, in records of 80 bytes. Each operation, drop and mark is a
    /// record.
    pub slots: usize,
    /// Reaction to a full ring.
    pub when_full: WhenFull,
}

impl Default for Options {
    /// 2^16 records; a full ring cuts the trace.
    fn default() -> Options {
        Options { slots: 1 << 16, when_full: WhenFull::Cut }
    }
}

/// A trace that is being written. Dropping it finishes the trace and ignores errors; [`Recording::finish`]
/// returns them.
#[derive(Debug)]
pub struct Recording {
    tracer: Tracer,
    thread: Option<JoinHandle<io::Result<Written>>>,
}

/// Builds traced disciplines, each with a section of the trace. It is cheap to clone and can be sent to other
/// threads.
#[derive(Clone, Debug)]
pub struct Tracer {
    commands: mpsc::Sender<Command>,
    options: Options,
    cut: Arc<AtomicU64>,
}

/// Counters of a finished trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of sections: traced disciplines.
    pub sections: u64,
    /// Number of operations.
    pub operations: u64,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Number of incomplete sections: the ring was full, or the trace was closed while the discipline lived.
    pub cut: u64,
}

enum Command {
    Begin(Box<Build>, Consumer<Record>),
    Finish,
}

impl Recording {
    /// Begins a trace, and starts its thread. The thread inherits the scheduling class of the caller, so call
    /// this before the caller becomes a real-time thread, and before it drops privileges that are needed to
    /// start a thread.
    ///
    /// `out` need not be buffered: it gets tens of kilobytes at a time. Operations are written within
    /// milliseconds.
    ///
    /// # Errors
    /// If the header cannot be written, or the thread cannot be started.
    pub fn start(out: impl Write + Send + 'static, program: &str, options: Options) -> io::Result<Recording> {
        Recording::start_after(out, program, options, || {})
    }

    /// Like [`Recording::start`], but the thread calls `first` before anything else, for example to drop
    /// privileges.
    ///
    /// # Errors
    /// If the header cannot be written, or the thread cannot be started.
    pub fn start_after(
        out: impl Write + Send + 'static,
        program: &str,
        options: Options,
        first: impl FnOnce() + Send + 'static,
    ) -> io::Result<Recording> {
        let encoder = Encoder::new(out, program)?;
        let (commands, receiver) = mpsc::channel();
        let cut = Arc::new(AtomicU64::new(0));
        let tracer = Tracer { commands, options, cut: Arc::clone(&cut) };
        let writer = Writer {
            encoder,
            rings: Vec::new(),
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
            writer.run(&receiver).map(|written| (written, cut)).map(counted)
        })?;
        Ok(Recording { tracer, thread: Some(thread) })
    }

    /// A handle that builds traced disciplines.
    pub fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }

    /// Writes the rest of the rings and the end mark. Sections of disciplines that still live end here.
    ///
    /// # Errors
    /// The first error of the output. The file is then a truncated trace.
    pub fn finish(mut self) -> io::Result<Written> {
        self.end().expect("only finish and drop end it, and finish consumes it")
    }

    fn end(&mut self) -> Option<io::Result<Written>> {
        let thread = self.thread.take()?;
        // If the thread has ended already, joining it returns the error.
        let _ = self.tracer.commands.send(Command::Finish);
        Some(thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer of the trace panicked"))))
    }
}

/// Adds the sections that the backends cut.
fn counted((written, cut): (Written, Arc<AtomicU64>)) -> Written {
    Written { cut: written.cut + cut.load(Ordering::Relaxed), ..written }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
    }
}

impl Tracer {
    /// Builds a discipline that is traced until it is dropped. `name` is the name of its port.
    ///
    /// This does not block, but it allocates the ring. If the trace has ended already, the discipline is not
    /// traced.
    ///
    /// # Errors
    /// The parameter that is invalid on that link.
    pub fn build<P: 'static>(
        &self,
        name: &str,
        spec: &Spec,
        context: &LinkContext,
    ) -> Result<Traced<P>, Invalid> {
        Ok(self.wrap(name, &spec.to_string(), context, spec.build(context)?))
    }

    /// Traces a discipline that the caller has built from `spec`. If it was built differently or was used
    /// before, the check finds a difference.
    pub fn wrap<P: 'static>(
        &self,
        name: &str,
        spec: &str,
        context: &LinkContext,
        inner: Box<dyn Qdisc<Stamped<P>>>,
    ) -> Traced<P> {
        // At least a call and the close.
        let (producer, consumer) = RingBuffer::new(self.options.slots.max(2));
        let ring = RingWriter::new(producer, self.options.when_full, Arc::clone(&self.cut));
        let build = Build { name: name.to_owned(), spec: spec.to_owned(), context: context.clone() };
        // If the writer has ended, the ring has no reader, and the discipline is not traced.
        let _ = self.commands.send(Command::Begin(Box::new(build), consumer));
        Traced::new(inner, ring)
    }

    /// Number of disciplines whose trace ended before the discipline did.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

struct Writer<W: Write> {
    encoder: Encoder<W>,
    rings: Vec<(Section, Consumer<Record>)>,
    /// Number of the next section.
    next: u32,
    written: Written,
    /// Sleep between two passes, so that writes are large and the processor is free for the backend. At 13
    /// million records per second, a ring of 2^16 records is full after 5 ms. A backend that waits for the
    /// writer gets a shorter sleep.
    nap: Duration,
    operation: Operation,
}

/// The result of a pass over the rings.
#[derive(Clone, Copy, Default)]
struct Pass {
    /// Number of records that were read, and of sections that ended.
    moved: usize,
    /// True if a ring was so full that the next pass must follow at once.
    hurry: bool,
}

impl<W: Write> Writer<W> {
    fn run(mut self, commands: &mpsc::Receiver<Command>) -> io::Result<Written> {
        let mut finishing = false;
        loop {
            finishing |= self.take_commands(commands)?;
            // Each pass is bounded, so that output is flushed even if records arrive all the time.
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
                Ok(command) => finishing |= self.apply(command)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => finishing = true,
            }
        }
        for (section, _) in std::mem::take(&mut self.rings) {
            self.written.cut += 1;
            self.close(section, Close::Early)?;
        }
        self.written.bytes = self.encoder.bytes() + crate::format::HEAD as u64;
        self.encoder.finish()?;
        Ok(self.written)
    }

    /// Carries out pending commands. Returns true if the trace is to be finished.
    fn take_commands(&mut self, commands: &mpsc::Receiver<Command>) -> io::Result<bool> {
        let mut finishing = false;
        loop {
            match commands.try_recv() {
                Ok(command) => finishing |= self.apply(command)?,
                Err(TryRecvError::Empty) => return Ok(finishing),
                Err(TryRecvError::Disconnected) => return Ok(true),
            }
        }
    }

    /// Carries out a command. Returns true if the trace is to be finished.
    fn apply(&mut self, command: Command) -> io::Result<bool> {
        match command {
            Command::Finish => Ok(true),
            Command::Begin(build, ring) => {
                let section = self.encoder.begin(self.next, &build)?;
                self.next = self.next.checked_add(1).ok_or_else(|| io::Error::other("2^32 sections"))?;
                self.written.sections += 1;
                self.rings.push((section, ring));
                Ok(false)
            }
        }
    }

    /// Writes the records that are in the rings now.
    fn pass(&mut self) -> io::Result<Pass> {
        let mut pass = Pass::default();
        let mut at = 0;
        while at < self.rings.len() {
            let (section, ring) = &mut self.rings[at];
            // Read before the records: no record follows once the writing end is dropped.
            let abandoned = ring.is_abandoned();
            let available = ring.slots();
            pass.moved += available;
            pass.hurry |= available * 4 >= ring.buffer().capacity();
            let mut close = None;
            let records = ring.read_chunk(available).expect("so many are available");
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
                // The backend leaked the discipline instead of dropping it.
                self.written.cut += 1;
                close = Some(Close::Early);
            }
            match close {
                Some(close) => {
                    let (section, _) = self.rings.swap_remove(at);
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
