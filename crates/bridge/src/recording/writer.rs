//! The thread that collects the data of a recording, which another process writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_control::Controller;
use giveway_control::config::{Direction, rate};
use giveway_live::clock::monotonic_ns;
use giveway_measure::Record;
use giveway_recording::{Request, Stretch};

use super::probe::{Channel, Part, lock};
use super::process::{WriteError, WritingProcess};
use super::series::Series;
use crate::Messages;

/// Time limit for a direction to hand its part over. It does so within 100 ms, unless it has failed.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause after a write is at least this many times the duration of the write.
const IDLE: u32 = 20;
/// Interval between two looks at the settings of the bridge.
const LOOK: Duration = Duration::from_millis(50);
/// The most stretches of a recording, which bounds the length of a request. Later changes do not divide it.
const MAX_STRETCHES: usize = 8;
/// The words behind the discipline of a stretch with later changes.
const OTHERS: &str = ", then others";

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
    /// The stretches that have ended.
    ended: Vec<Stretch>,
    /// The settings of the current stretch.
    settings: Settings,
    /// The settings of the next stretch, which the direction has not started yet.
    next: Option<Settings>,
}

/// The settings that divide a recording when they change, in words.
#[derive(Clone, PartialEq, Eq)]
struct Settings {
    qdisc: String,
    rate: String,
}

impl Settings {
    fn of(controller: &Controller, direction: Direction) -> Settings {
        let config = controller.config();
        let config = config.of(direction);
        Settings { qdisc: config.qdisc.to_string(), rate: rate(config.rate) }
    }

    fn stretch(&self, record: Record) -> Stretch {
        Stretch { qdisc: self.qdisc.clone(), rate: self.rate.clone(), record }
    }
}

impl Tables {
    /// Takes the parts that the direction has handed over.
    fn take(&mut self) {
        for mut part in std::mem::take(&mut *lock(&self.channel.parts)) {
            self.series.add(part.recorder.take_samples());
            if part.ends_stretch {
                let mut record = part.recorder.ended(part.last).finish();
                record.queue = std::mem::take(&mut self.series).lend();
                self.ended.push(self.settings.stretch(record));
                self.settings = self.next.take().unwrap_or_else(|| self.settings.clone());
                self.newest = None;
            } else {
                self.newest = Some(part);
            }
        }
    }

    /// Has the direction start a new stretch if its settings have changed.
    fn look(&mut self, controller: &Controller, begun: bool) {
        let now = Settings::of(controller, self.direction());
        if !begun {
            // Nothing is measured yet, so there is nothing to divide.
            self.settings = now;
            return;
        }
        if now == *self.next.as_ref().unwrap_or(&self.settings) {
            return;
        }
        if self.ended.len() + 1 < MAX_STRETCHES {
            let rate = controller.config().of(self.direction()).rate;
            *lock(&self.channel.changed) = Some(rate);
            self.next = Some(now);
        } else if !self.settings.qdisc.ends_with(OTHERS) {
            self.settings.qdisc.push_str(OTHERS);
        }
    }

    fn direction(&self) -> Direction {
        if self.channel.name == "forward" { Direction::Forward } else { Direction::Reverse }
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
        let tables = tables.map(|channel| {
            let direction = if channel.name == "forward" { Direction::Forward } else { Direction::Reverse };
            Tables {
                channel,
                series: Series::default(),
                newest: None,
                ended: Vec::new(),
                settings: Settings::of(&controller, direction),
                next: None,
            }
        });
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

    /// Sleeps for this time, and meanwhile looks for changes of the settings. Returns true at once when the
    /// thread must end.
    fn sleep(&mut self, pause: Duration) -> bool {
        let until = monotonic_ns() + pause.as_nanos() as u64;
        loop {
            let left = until.saturating_sub(monotonic_ns());
            if self.stop.load(Ordering::Acquire) || left == 0 {
                return self.stop.load(Ordering::Acquire);
            }
            let begun = self.begun.load(Ordering::Relaxed);
            self.tables.iter_mut().for_each(|tables| {
                tables.look(&self.controller, begun);
                if tables.next.is_some() {
                    tables.take();
                }
            });
            std::thread::park_timeout(Duration::from_nanos(left).min(LOOK));
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

/// Writes the stretches of a direction that have ended, and the newest part of the current one, if there are
/// any.
fn write_one(
    process: &mut WritingProcess,
    tables: &mut Tables,
    controller: &Controller,
) -> Result<(), WriteError> {
    let direction = tables.direction();
    let mut stretches = std::mem::take(&mut tables.ended);
    let ended = stretches.len();
    if let Some(Part { recorder, last, .. }) = &mut tables.newest {
        let mut record = recorder.part().ended(*last).finish();
        record.queue = tables.series.lend();
        stretches.push(tables.settings.stretch(record));
    }
    if stretches.is_empty() {
        return Ok(());
    }
    let (from, to) = &controller.names()[direction as usize];
    let mut request = Request::Write(Box::new(giveway_recording::Part {
        side: direction as u8,
        title: format!("{from} to {to}"),
        stretches,
        version: giveway_sources::TESTBED.to_owned(),
        commit: giveway_sources::COMMIT.map(str::to_owned),
    }));
    let written = process.ask(&request);
    if let Request::Write(part) = &mut request {
        let mut stretches = std::mem::take(&mut part.stretches);
        for mut current in stretches.drain(ended..) {
            tables.series.put_back(std::mem::take(&mut current.record.queue));
        }
        tables.ended = stretches;
    }
    written
}
