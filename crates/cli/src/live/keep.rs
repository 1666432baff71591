//! `--record`: keeps the tables that a simulation keeps, a folder for each direction, and writes them every
//! few seconds.
//!
//! - Each direction's thread has its recorder for itself. When a part is wanted, the thread copies its counts
//!   (some hundred kilobytes) and goes on; nobody else ever holds its lock. A thread without real-time
//!   priority makes tables of the parts and writes them.
//! - A folder is written beside the one that is there, flushed to the disk, and exchanged with it in one
//!   step. So whoever reads finds a whole recording, and so does whoever comes after a power failure. When
//!   the disk is full, the last one stays, and it is tried again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use giveway_control::Controller;
use giveway_control::config::{Direction, DirectionConfig, rate};
use giveway_live::Frame;
use giveway_live::clock::monotonic_ns;
use giveway_live::files;
use giveway_live::privilege::{self, Folder, Identity, Rights, Role};
use giveway_measure::{Discipline, Layout, QueueRow, Recorder, Trial};
use giveway_qdisc::{Backlog, DropReason, FlowTable, Meta, PortId, Probe, Span, Time};
use giveway_record::{Existing, Manifest, RECORDED_BY, RunFolder};

use crate::show;

/// After that recording ends, and says so: a bridge runs for weeks.
pub const LONGEST: Span = Span::s(6 * 3600);
/// The most samples that are kept of a direction: twenty minutes of five a second. When there are more, every
/// second one goes, and of those that come every second one is kept; and so on. So memory and files have a
/// bound.
const MOST_SAMPLES: usize = 6_000;

/// Samples are taken ten times a second by the host; one of so many is kept.
const ONE_OF: u32 = 2;
const SAMPLE: Span = Span::ms(200);
/// A direction's thread hands its part over within 100 ms. One that has failed never does.
const PATIENCE: Duration = Duration::from_secs(1);
/// Writing takes at most this part of the time: one of so many.
const IDLE: u32 = 20;

/// A recording that is prepared, and then runs.
pub struct Recording {
    dir: Dir,
    /// Packets up to this length are small.
    small: u32,
    every: Duration,
    /// Somebody has said that measuring begins, or nobody needs to.
    begun: Arc<AtomicBool>,
    directions: Vec<Shared>,
    writer: Option<Running>,
}

/// The thread that writes, and what ends it.
struct Running {
    thread: JoinHandle<Result<(), String>>,
    stop: Arc<AtomicBool>,
}

/// The folder of a recording.
#[derive(Clone)]
struct Dir {
    /// As people know it.
    shown: PathBuf,
    /// As it is reached when the folders above may not be searched any more: by a descriptor.
    path: PathBuf,
}

/// What the thread of a direction and the writer share.
#[derive(Clone)]
struct Shared {
    name: &'static str,
    kept: Arc<Mutex<State>>,
    /// The writer wants a part.
    wanted: Arc<AtomicBool>,
    /// Parts that the writer has not taken yet.
    handed: Arc<Mutex<Vec<Part>>>,
}

/// What was recorded until then.
struct Part {
    recorder: Recorder<Frame>,
    last: Time,
}

struct State {
    recorder: Option<Recorder<Frame>>,
    last: Time,
    over: bool,
    samples: u32,
    /// Measuring waits for a word.
    waits: bool,
}

/// The probe of one direction. Nobody else holds the lock of its state while it runs.
struct RecordingProbe {
    direction: Shared,
    begun: Arc<AtomicBool>,
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecordingProbe {
    fn tell(&self, now: Time, tell: impl FnOnce(&mut Recorder<Frame>)) {
        let mut state = lock(&self.direction.kept);
        if state.waits && self.begun.load(Ordering::Relaxed) {
            state.waits = false;
            if let Some(recorder) = &mut state.recorder {
                recorder.begin(now);
            }
        }
        // A direction's clock begins anew after months, when the recording is over. Until then it does not go
        // back.
        state.over |= now.since(Time::ZERO) > LONGEST;
        if !state.over {
            debug_assert!(now >= state.last, "{now} after {}", state.last);
            state.last = state.last.max(now);
            state.recorder.as_mut().map(tell);
        }
    }

    /// Hands a part over where one is wanted. It never waits: when the writer looks at the parts right now,
    /// the next sample is soon.
    fn hand_over(&self) {
        let Shared { kept, wanted, handed, .. } = &self.direction;
        if wanted.load(Ordering::Relaxed)
            && let Ok(mut parts) = handed.try_lock()
        {
            wanted.store(false, Ordering::Relaxed);
            let mut state = lock(kept);
            let last = state.last;
            parts.extend(state.recorder.as_mut().map(|recorder| Part { recorder: recorder.part(), last }));
        }
    }
}

impl Probe<Frame> for RecordingProbe {
    fn arrived(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.tell(now, |recorder| recorder.arrived(at, meta, now));
    }
    fn sent(&mut self, at: PortId, meta: &Meta, frame: &Frame, now: Time) {
        self.tell(now, |recorder| recorder.sent(at, meta, frame, now));
    }
    fn dropped(&mut self, at: PortId, meta: &Meta, frame: &Frame, why: DropReason, now: Time) {
        self.tell(now, |recorder| recorder.dropped(at, meta, frame, why, now));
    }
    fn marked(&mut self, at: PortId, meta: &Meta, now: Time) {
        self.tell(now, |recorder| recorder.marked(at, meta, now));
    }
    fn sample(
        &mut self,
        at: PortId,
        backlog: Backlog,
        table: &FlowTable,
        gauges: &[(&'static str, f64)],
        now: Time,
    ) {
        let mut state = lock(&self.direction.kept);
        state.samples += 1;
        let skip = !state.samples.is_multiple_of(ONE_OF);
        drop(state);
        if !skip {
            self.tell(now, |recorder| recorder.sample(at, backlog, table, gauges, now));
        }
        self.hand_over();
    }
}

impl Recording {
    /// Makes the folder, for the user that writes it later. What cannot be written is refused before anything
    /// runs. The second answer is what threads that watch must be allowed to write in.
    ///
    /// # Errors
    /// A sentence.
    pub fn prepare(
        dir: &Path,
        small: u32,
        every: Duration,
        later: bool,
        user: Option<&(Identity, String)>,
    ) -> Result<(Recording, Folder), String> {
        let told = |error: io::Error| format!("--record {}: {error}", dir.display());
        let new = !dir.exists();
        fs::create_dir_all(dir).map_err(told)?;
        let shown = dir.canonicalize().map_err(told)?;
        for side in ["forward", "reverse"] {
            RunFolder::inspect(&shown.join(side), Some(("", RECORDED_BY)), Existing::Keep)
                .map_err(|error| format!("--record: {error}"))?;
        }
        match user {
            Some((identity, name)) => give(&shown, new, *identity, name)
                .map_err(|what| format!("--record {}: {what}", dir.display()))?,
            // Nobody else writes it: then it can be tried.
            None => drop(tempfile::tempfile_in(&shown).map_err(told)?),
        }
        let folder = Folder::open(&shown, Rights::Write).map_err(told)?;
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", folder.descriptor()));
        let path = if by_descriptor.exists() { by_descriptor } else { shown.clone() };
        let begun = Arc::new(AtomicBool::new(!later));
        let dir = Dir { shown, path };
        Ok((Recording { dir, small, every, begun, directions: Vec::new(), writer: None }, folder))
    }

    /// What says that measuring begins.
    pub fn begun(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.begun)
    }

    /// The probe of one direction.
    pub fn probe(&mut self, config: &DirectionConfig, name: &'static str) -> Box<dyn Probe<Frame> + Send> {
        let waits = !self.begun.load(Ordering::Relaxed);
        let layout = Layout {
            from: if waits { Time::ZERO + LONGEST } else { Time::ZERO },
            small_packet_bytes: self.small,
            measured: vec![PortId(0)],
            port_names: vec![(PortId(0), name.to_owned())],
            source_names: vec!["all".to_owned()],
            until: Time::ZERO + LONGEST,
            rates: vec![(PortId(0), config.rate)],
            keep_series: true,
            sample: SAMPLE,
            ..Layout::default()
        };
        let recorder = Some(Recorder::new(layout));
        let direction = Shared {
            name,
            kept: Arc::new(Mutex::new(State { recorder, last: Time::ZERO, over: false, samples: 0, waits })),
            wanted: Arc::default(),
            handed: Arc::default(),
        };
        self.directions.push(direction.clone());
        Box::new(RecordingProbe { direction, begun: Arc::clone(&self.begun) })
    }

    /// Starts to write, in a thread of its own.
    ///
    /// # Errors
    /// What the system says when it has no thread.
    pub fn start(&mut self, controller: &Arc<Controller>) -> io::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let tables = self.directions.iter().cloned().map(|from| Tables {
            from,
            series: Series::default(),
            newest: None,
        });
        let writer = Writer {
            dir: self.dir.clone(),
            every: self.every,
            begun: self.begun(),
            stop: Arc::clone(&stop),
            tables: tables.collect(),
            controller: Arc::clone(controller),
            trouble: None,
        };
        let thread = std::thread::Builder::new().name("gw-record".to_owned()).spawn(move || {
            // Told once, by the thread that watches.
            let _ = privilege::settle(Role::Watch);
            writer.run()
        })?;
        self.writer = Some(Running { thread, stop });
        Ok(())
    }

    /// Writes the last part. Directions that failed are kept as far as they came.
    ///
    /// # Errors
    /// A sentence on what cannot be written.
    pub fn finish(self, probes: Vec<Option<Box<dyn Probe<Frame> + Send>>>) -> Result<String, String> {
        drop(probes);
        let mut cut = false;
        for direction in &self.directions {
            let mut state = lock(&direction.kept);
            cut |= state.over;
            let last = state.last;
            let part = state.recorder.take().map(|recorder| Part { recorder, last });
            lock(&direction.handed).extend(part);
        }
        if let Some(Running { thread, stop }) = self.writer {
            stop.store(true, Ordering::Release);
            thread.thread().unpark();
            thread.join().unwrap_or_else(|_| Err("the writer of the recording failed".to_owned()))?;
        }
        let hours = LONGEST.as_ps() / Span::s(3600).as_ps();
        let cut = if cut { format!("; recording ended after {hours} hours") } else { String::new() };
        Ok(format!("recorded in {}{cut}", self.dir.shown.display()))
    }
}

/// Gives the folder to the user who will write it: one that was made now, or one of root that is empty or has
/// nothing but a recording.
fn give(dir: &Path, new: bool, to: Identity, name: &str) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let of = fs::metadata(dir).map_err(told)?;
    if of.uid() == to.user || of.mode() & 0o002 != 0 {
        return Ok(());
    }
    let ours = |entry: &fs::DirEntry| {
        ["forward", "reverse"].iter().any(|of| {
            let name = entry.file_name();
            name == **of || name == *format!(".{of}.new")
        })
    };
    let only_ours = || -> io::Result<bool> {
        let entries: Vec<fs::DirEntry> = fs::read_dir(dir)?.collect::<io::Result<_>>()?;
        Ok(entries.iter().all(ours))
    };
    if new || (of.uid() == 0 && only_ours().map_err(told)?) {
        return give_folders(dir, to).map_err(told);
    }
    Err(format!(
        "the folder belongs to user {} and giveway writes it as {name}: name a folder that does not exist yet, or type chown {name} {}, or \
         choose another user with --user",
        of.uid(),
        dir.display()
    ))
}

/// Folders only: who may write a folder may replace the files in it.
fn give_folders(dir: &Path, to: Identity) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Of a link this says that it is one, and no folder.
        if entry.file_type()?.is_dir() {
            give_folders(&entry.path(), to)?;
        }
    }
    chown(dir, Some(to.user), Some(to.group))
}

/// The thread that writes.
struct Writer {
    dir: Dir,
    every: Duration,
    begun: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    tables: Vec<Tables>,
    controller: Arc<Controller>,
    /// Why the last attempt failed.
    trouble: Option<String>,
}

/// What there is to write of one direction.
struct Tables {
    from: Shared,
    series: Series,
    newest: Option<Part>,
}

/// The samples of a direction, thinned out where there are many.
#[derive(Default)]
struct Series {
    /// Each sample is one row with what is held, and one row for each gauge.
    rows: Vec<QueueRow>,
    /// How many there are.
    samples: usize,
    /// How many came.
    came: u64,
    /// One of 2 to this power is kept.
    thinned: u32,
    /// The sample that came last is kept.
    keeps: bool,
}

impl Series {
    fn add(&mut self, rows: Vec<QueueRow>) {
        for row in rows {
            if row.backlog.is_some() {
                self.keeps = self.came.is_multiple_of(1 << self.thinned);
                self.came += 1;
                self.samples += usize::from(self.keeps);
            }
            if self.keeps {
                self.rows.push(row);
            }
        }
        while self.samples > MOST_SAMPLES {
            self.thin();
        }
    }

    /// Keeps the first sample, the third, and so on: those whose numbers are multiples of the next power of
    /// two.
    fn thin(&mut self) {
        let mut number = 0;
        self.rows.retain(|row| {
            number += usize::from(row.backlog.is_some());
            number % 2 == 1
        });
        self.samples = self.samples.div_ceil(2);
        self.thinned += 1;
    }
}

impl Tables {
    fn take(&mut self) {
        for part in std::mem::take(&mut *lock(&self.from.handed)) {
            let mut part = part;
            self.series.add(part.recorder.take_samples());
            self.newest = Some(part);
        }
    }
}

impl Writer {
    fn run(mut self) -> Result<(), String> {
        let mut pause = self.every;
        loop {
            if self.waits(pause) {
                break;
            }
            if !self.begun.load(Ordering::Relaxed) {
                continue;
            }
            self.collect();
            let before = monotonic_ns();
            let written = self.write();
            self.tell(written.err());
            // Large tables are written less often, so that the disk and the processor are left to others.
            pause = self.every.max(Duration::from_nanos(monotonic_ns() - before) * IDLE);
        }
        self.tables.iter_mut().for_each(Tables::take);
        self.write()
    }

    /// Waits so long; true when it shall end.
    fn waits(&self, pause: Duration) -> bool {
        let until = monotonic_ns() + pause.as_nanos() as u64;
        loop {
            let left = until.saturating_sub(monotonic_ns());
            if self.stop.load(Ordering::Acquire) || left == 0 {
                return self.stop.load(Ordering::Acquire);
            }
            std::thread::park_timeout(Duration::from_nanos(left));
        }
    }

    /// Has every direction hand over its part.
    fn collect(&mut self) {
        self.tables.iter().for_each(|tables| tables.from.wanted.store(true, Ordering::Relaxed));
        let until = monotonic_ns() + PATIENCE.as_nanos() as u64;
        let waits = |tables: &Tables| tables.from.wanted.load(Ordering::Relaxed);
        while self.tables.iter().any(waits) && monotonic_ns() < until && !self.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        self.tables.iter_mut().for_each(Tables::take);
    }

    /// Says what is new about writing.
    fn tell(&mut self, trouble: Option<String>) {
        match (&self.trouble, &trouble) {
            (None, Some(why)) => show::sentence(&format!(
                "--record: {why}; what was written before stays as it is, and it is tried again every {:.0} s",
                self.every.as_secs_f64()
            )),
            (Some(_), None) => show::sentence("--record: the recording is written again"),
            _ => {}
        }
        self.trouble = trouble;
    }

    fn write(&mut self) -> Result<(), String> {
        let Writer { dir, tables, controller, .. } = self;
        let mut first = Ok(());
        for tables in tables {
            let written = write_one(dir, tables, controller);
            first = first.and(written);
        }
        // Paths as people know them.
        first.map_err(|error| error.replace(&*dir.path.to_string_lossy(), &dir.shown.to_string_lossy()))
    }
}

fn write_one(dir: &Dir, tables: &mut Tables, controller: &Controller) -> Result<(), String> {
    let Some(Part { recorder, last }) = &mut tables.newest else { return Ok(()) };
    let mut record = recorder.part().ended(*last).finish();
    let name = tables.from.name;
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
        created: Some(crate::provenance::now()),
        title: format!("Live, {title}"),
        description: String::new(),
        layout: record.layout.clone(),
    };
    let text = format!(
        "# Recorded by giveway live from {title}; not a scenario that can be run.\n# rate {}, qdisc {spec}\n",
        rate(config.rate)
    );
    let trial = Trial { qdisc: spec, seed: 1 };
    // Lent: the samples of all the time are not copied.
    record.queue = std::mem::take(&mut tables.series.rows);
    let beside = dir.path.join(format!(".{name}.new"));
    let write = || -> Result<(), String> {
        let told = |error: giveway_record::FolderError| error.to_string();
        remove(&beside)?;
        let folder = RunFolder::create(&beside, &text, manifest).map_err(told)?;
        let folder = folder.with_commit(giveway_sources::COMMIT.map(str::to_owned));
        folder.write(&trial, &record).map_err(told)?;
        folder.finish(&[(trial.clone(), record.summary.clone())]).map_err(told)?;
        publish(dir, &beside, &dir.path.join(name))
    };
    let written = write();
    tables.series.rows = std::mem::take(&mut record.queue);
    if written.is_err() {
        // The first error is the one to tell. What it had written makes room for others.
        let _ = remove(&beside);
    }
    written
}

/// Puts a folder that is whole into the place of the one that was there, which is removed.
fn publish(dir: &Dir, new: &Path, place: &Path) -> Result<(), String> {
    let told = |error: io::Error| format!("cannot write {}: {error}", place.display());
    if place.exists() {
        // Some file systems cannot: then there is a moment without a recording.
        if files::exchange(new, place).is_err() {
            let old = new.with_extension("old");
            remove(&old)?;
            fs::rename(place, &old).and_then(|()| fs::rename(new, place)).map_err(told)?;
            remove(&old)?;
        }
    } else {
        fs::rename(new, place).map_err(told)?;
    }
    File::open(&dir.path).and_then(|dir| dir.sync_all()).map_err(told)?;
    // Now it is the earlier one.
    remove(new)
}

/// Removes a folder with all that is in it; it need not be there.
fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample with a gauge each 200 ms, for three hours: samples are as far apart as they must be, and each
    /// has its gauge.
    #[test]
    fn samples_are_thinned_out_evenly() {
        let mut series = Series::default();
        let times: Vec<Time> = (0..3 * 3600 * 5).map(|number| Time::ms(200 * number)).collect();
        for part in times.chunks(50) {
            let row = |time, backlog, gauge| QueueRow { time, port: PortId(0), backlog, gauge };
            let sample = |time: &Time| {
                [row(*time, Some(Backlog::ZERO), None), row(*time, None, Some(("flow_table", 1.0)))]
            };
            series.add(part.iter().flat_map(sample).collect());
            assert!(series.samples <= MOST_SAMPLES);
        }
        let [first, .., last] = &series.rows[..] else { panic!("there are many") };
        assert_eq!((first.time, series.samples), (Time::ZERO, 54_000_usize.div_ceil(16)));
        assert!(last.time >= times[times.len() - 16]);
        for (pair, number) in series.rows.chunks(2).zip(0..) {
            assert_eq!((pair[0].time, pair[1].time), (Time::ms(3200 * number), Time::ms(3200 * number)));
            assert!(pair[0].backlog.is_some() && pair[1].gauge.is_some());
        }
    }

    #[test]
    fn a_recording_goes_on() {
        let layout = Layout { measured: vec![PortId(0)], until: Time::ZERO + LONGEST, ..Layout::default() };
        let recorder = Some(Recorder::new(layout));
        let state = State { recorder, last: Time::ZERO, over: false, samples: 0, waits: false };
        let kept = Arc::new(Mutex::new(state));
        let direction = Shared {
            name: "forward",
            kept: Arc::clone(&kept),
            wanted: Arc::default(),
            handed: Arc::default(),
        };
        let keeper = RecordingProbe { direction, begun: Arc::new(AtomicBool::new(true)) };
        let told = |at: Time| {
            let mut told = false;
            keeper.tell(at, |_| told = true);
            told
        };
        assert!(told(Time::s(1)) && told(Time::s(1)) && told(Time::ZERO + LONGEST));
        assert!(!told(Time::ZERO + LONGEST + Span::us(1)) && lock(&kept).over);
        assert!(!told(Time::s(1)), "the clock began anew");
    }
}
