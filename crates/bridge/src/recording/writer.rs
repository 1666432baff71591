//! The thread that collects the data of a recording, which another process writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_control::Controller;
use giveway_control::config::{Direction, rate};
use giveway_live::clock::monotonic_ns;
use giveway_recording::Request;

use super::probe::{Channel, Part, lock};
use super::process::{WriteError, WritingProcess};
use super::series::Series;
use crate::Messages;

/// Time limit for a direction to hand its part over. It does so within 100 ms, unless it has failed.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause after a write is at least this many times the duration of the write.
const IDLE: u32 = 20;

/// The thread that writes.
pub struct Writer {
    process: WritingProcess,
    /// Interval between writes.
    every: Duration,
    /// True once the measurement interval starts. Nothing is written before.
    begun: Arc<AtomicBool>,
    /// True once the thread must end.
    stop: Arc<AtomicBool>,
    tables: Vec<Tables>,
    controller: Arc<Controller>,
    messages: Messages,
    /// True if the last attempt failed, which was reported.
    failed: bool,
}

/// The unwritten data of one direction.
struct Tables {
    channel: Channel,
    series: Series,
    newest: Option<Part>,
}

impl Tables {
    /// Takes the parts that the direction has handed over.
    fn take(&mut self) {
        for mut part in std::mem::take(&mut *lock(&self.channel.parts)) {
            self.series.add(part.recorder.take_samples());
            self.newest = Some(part);
        }
    }
}

impl Writer {
    /// A writer of these directions.
    pub fn new(
        process: WritingProcess,
        every: Duration,
        begun: Arc<AtomicBool>,
        stop: Arc<AtomicBool>,
        channels: &[Channel],
        controller: Arc<Controller>,
        messages: Messages,
    ) -> Writer {
        let tables = channels.iter().cloned();
        let tables = tables.map(|channel| Tables { channel, series: Series::default(), newest: None });
        let tables = tables.collect();
        Writer { process, every, begun, stop, tables, controller, messages, failed: false }
    }

    /// Writes at intervals until `stop` is set, and then once more. Failures before that are printed. The
    /// second result is the process that writes.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub fn run(mut self) -> (Result<(), WriteError>, WritingProcess) {
        let mut pause = self.every;
        loop {
            if self.sleep(pause) {
                break;
            }
            if !self.begun.load(Ordering::Relaxed) {
                continue;
            }
            self.collect();
            let before = monotonic_ns();
            let written = self.write();
            self.report(written.err());
            // Large tables are written less often, so that other programs get the disk and the processor.
            pause = self.every.max(Duration::from_nanos(monotonic_ns() - before) * IDLE);
        }
        self.tables.iter_mut().for_each(Tables::take);
        (self.write(), self.process)
    }

    /// Sleeps for this time. Returns true at once when the thread must end.
    fn sleep(&self, pause: Duration) -> bool {
        let until = monotonic_ns() + pause.as_nanos() as u64;
        loop {
            let left = until.saturating_sub(monotonic_ns());
            if self.stop.load(Ordering::Acquire) || left == 0 {
                return self.stop.load(Ordering::Acquire);
            }
            std::thread::park_timeout(Duration::from_nanos(left));
        }
    }

    /// Requests a part from each direction, and takes the parts.
    fn collect(&mut self) {
        self.tables.iter().for_each(|tables| tables.channel.wanted.store(true, Ordering::Relaxed));
        let until = monotonic_ns() + PATIENCE.as_nanos() as u64;
        let is_missing = |tables: &Tables| tables.channel.wanted.load(Ordering::Relaxed);
        while self.tables.iter().any(is_missing)
            && monotonic_ns() < until
            && !self.stop.load(Ordering::Acquire)
        {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        self.tables.iter_mut().for_each(Tables::take);
    }

    /// Prints the first failure of several, and the end of failures.
    fn report(&mut self, failure: Option<WriteError>) {
        let again = format!("and writing is tried again every {:.0} s", self.every.as_secs_f64());
        match (self.failed, &failure) {
            (false, Some(error)) => (self.messages)(&format!(
                "--record: {error}; earlier data stay intact, {}",
                if matches!(error, WriteError::Gone(_)) { "and nothing more is recorded" } else { &again }
            )),
            (true, None) => (self.messages)("--record: the recording is written again"),
            _ => {}
        }
        self.failed = failure.is_some();
    }

    /// Writes all directions. After a failure, the other ones are still written.
    fn write(&mut self) -> Result<(), WriteError> {
        let Writer { process, tables, controller, .. } = self;
        let mut first = Ok(());
        for tables in tables {
            let written = write_one(process, tables, controller);
            first = first.and(written);
        }
        first
    }
}

/// Writes the newest part of a direction, if there is one.
fn write_one(
    process: &mut WritingProcess,
    tables: &mut Tables,
    controller: &Controller,
) -> Result<(), WriteError> {
    let Some(Part { recorder, last }) = &mut tables.newest else { return Ok(()) };
    let mut record = recorder.part().ended(*last).finish();
    let direction = if tables.channel.name == "forward" { Direction::Forward } else { Direction::Reverse };
    let (from, to) = &controller.names()[direction as usize];
    let config = controller.config().of(direction).clone();
    record.queue = tables.series.lend();
    let mut request = Request::Write(Box::new(giveway_recording::Part {
        side: direction as u8,
        title: format!("{from} to {to}"),
        qdisc: config.qdisc.to_string(),
        rate: rate(config.rate),
        version: giveway_sources::TESTBED.to_owned(),
        commit: giveway_sources::COMMIT.map(str::to_owned),
        record,
    }));
    let written = process.ask(&request);
    if let Request::Write(part) = &mut request {
        tables.series.put_back(std::mem::take(&mut part.record.queue));
    }
    written
}
