//! The thread that makes tables of a recording and writes them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giveway_control::Controller;
use giveway_control::config::{Direction, rate};
use giveway_live::clock::monotonic_ns;
use giveway_live::files;
use giveway_measure::{Discipline, Trial};
use giveway_record::{FolderError, Manifest, RECORDED_BY, RunFolder, chain};

use super::probe::{Channel, Part, lock};
use super::series::Series;
use crate::Messages;

/// Time limit for a direction to hand its part over. It does so within 100 ms, unless it has failed.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause after a write is at least this many times the duration of the write.
const IDLE: u32 = 20;

/// The folder of a recording.
#[derive(Clone, Debug)]
pub struct Dir {
    /// The path for messages.
    pub shown: PathBuf,
    /// The path for system calls. It names a descriptor, since the folders above may not be searchable any
    /// more.
    pub path: PathBuf,
}

/// A recording cannot be written. The causes are in the text and not in `source()`: they have the path for
/// system calls, and the text has the path for messages in its place.
#[derive(Debug, thiserror::Error)]
#[error("{}", chain(&**.error).replace(&*.dir.path.to_string_lossy(), &.dir.shown.to_string_lossy()))]
pub struct RecordingError {
    error: Box<WriteError>,
    dir: Dir,
}

/// Reason why a part of a recording cannot be written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    /// The tables cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A folder cannot be moved to its place.
    #[error("cannot write {}", .0.display())]
    Publish(PathBuf, #[source] io::Error),
    /// A folder cannot be removed.
    #[error("cannot remove {}", .0.display())]
    Remove(PathBuf, #[source] io::Error),
}

/// The thread that writes.
pub struct Writer {
    dir: Dir,
    /// Interval between writes.
    every: Duration,
    /// True once the measurement interval starts. Nothing is written before.
    begun: Arc<AtomicBool>,
    /// True once the thread must end.
    stop: Arc<AtomicBool>,
    tables: Vec<Tables>,
    controller: Arc<Controller>,
    messages: Messages,
    /// The time for the manifest.
    now: fn() -> String,
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
        dir: Dir,
        every: Duration,
        begun: Arc<AtomicBool>,
        stop: Arc<AtomicBool>,
        channels: &[Channel],
        controller: Arc<Controller>,
        (messages, now): (Messages, fn() -> String),
    ) -> Writer {
        let tables = channels.iter().cloned();
        let tables = tables.map(|channel| Tables { channel, series: Series::default(), newest: None });
        let tables = tables.collect();
        Writer { dir, every, begun, stop, tables, controller, messages, now, failed: false }
    }

    /// Writes at intervals until `stop` is set, and then once more. Failures before that are printed.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub fn run(mut self) -> Result<(), RecordingError> {
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
        self.write()
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
    fn report(&mut self, failure: Option<RecordingError>) {
        match (self.failed, &failure) {
            (false, Some(error)) => (self.messages)(&format!(
                "--record: {error}; earlier data stay intact, and writing is tried again every {:.0} s",
                self.every.as_secs_f64()
            )),
            (true, None) => (self.messages)("--record: the recording is written again"),
            _ => {}
        }
        self.failed = failure.is_some();
    }

    /// Writes all directions. After a failure, the other ones are still written.
    fn write(&mut self) -> Result<(), RecordingError> {
        let Writer { dir, tables, controller, now, .. } = self;
        let mut first = Ok(());
        for tables in tables {
            let written = write_one(dir, tables, controller, *now);
            first = first.and(written);
        }
        first.map_err(|error| RecordingError { error: Box::new(error), dir: dir.clone() })
    }
}

/// Writes the newest part of a direction, if there is one.
fn write_one(
    dir: &Dir,
    tables: &mut Tables,
    controller: &Controller,
    now: fn() -> String,
) -> Result<(), WriteError> {
    let Some(Part { recorder, last }) = &mut tables.newest else { return Ok(()) };
    let mut record = recorder.part().ended(*last).finish();
    let name = tables.channel.name;
    let (config, title) = {
        let config = controller.config();
        let direction = if name == "forward" { Direction::Forward } else { Direction::Reverse };
        let (from, to) = &controller.names()[direction as usize];
        (config.of(direction).clone(), format!("{from} to {to}"))
    };
    let spec = config.qdisc.to_string();
    let manifest = Manifest {
        scenario: format!("live-{name}"),
        version: giveway_sources::TESTBED.to_owned(),
        disciplines: vec![Discipline::named(&spec)],
        seeds: vec![1],
        machine: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        created_by: RECORDED_BY.to_owned(),
        created: Some(now()),
        title: format!("Live, {title}"),
        description: String::new(),
        layout: record.layout.clone(),
    };
    let text = format!(
        "# Recorded by giveway live from {title}; not a scenario that can be run.\n# rate {}, qdisc {spec}\n",
        rate(config.rate)
    );
    let trial = Trial { qdisc: spec, seed: 1 };
    record.queue = tables.series.lend();
    let new = dir.path.join(format!(".{name}.new"));
    let write = || -> Result<(), WriteError> {
        remove(&new)?;
        let folder = RunFolder::create(&new, &text, manifest)?;
        let folder = folder.with_commit(giveway_sources::COMMIT.map(str::to_owned));
        folder.write(&trial, &record)?;
        folder.finish(&[(trial.clone(), record.summary.clone())])?;
        publish(dir, &new, &dir.path.join(name))
    };
    let written = write();
    tables.series.put_back(std::mem::take(&mut record.queue));
    if written.is_err() {
        // A partial folder would fill the disk. The first error is the one to report.
        let _ = remove(&new);
    }
    written
}

/// Moves a complete folder to its place, and removes the folder that was there.
fn publish(dir: &Dir, new: &Path, place: &Path) -> Result<(), WriteError> {
    let publish_error = |error| WriteError::Publish(place.to_owned(), error);
    if place.exists() {
        // Some file systems cannot exchange two names. Then there is a moment without a recording.
        if files::exchange(new, place).is_err() {
            let old = new.with_extension("old");
            remove(&old)?;
            fs::rename(place, &old).and_then(|()| fs::rename(new, place)).map_err(publish_error)?;
            remove(&old)?;
        }
    } else {
        fs::rename(new, place).map_err(publish_error)?;
    }
    // After a power failure, the folder has either the earlier entry or this one.
    File::open(&dir.path).and_then(|dir| dir.sync_all()).map_err(publish_error)?;
    // After an exchange, this name has the earlier recording.
    remove(new)
}

/// Removes a folder with its contents, if it exists.
fn remove(folder: &Path) -> Result<(), WriteError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WriteError::Remove(folder.to_owned(), error))
        }
        _ => Ok(()),
    }
}
