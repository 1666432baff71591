//! `--record`: writes the tables of a simulation at intervals, in a folder for each direction.
//!
//! - The thread of each direction uses its own recorder. When the writer requests a part, the thread copies
//!   its counters (some hundred kilobytes) and continues; no other thread ever holds its lock. The writer is
//!   a thread without real-time priority, which makes rows of the parts.
//! - The rows go to another process: `giveway write-recording`, as the user that owns the folder. It is
//!   started before privileges are dropped. A reader finds a complete recording at any time: while the disk
//!   is full, the earlier one stays, and writing is tried again. Without that process frames pass, and
//!   nothing is recorded.

mod probe;
mod process;
mod series;
mod writer;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use giveway_control::Controller;
use giveway_control::config::DirectionConfig;
use giveway_files::Dir as OpenDir;
use giveway_live::Frame;
use giveway_live::privilege::outputs::{self, OutputFolder};
use giveway_live::privilege::{self, Identity, Role};
use giveway_measure::Layout;
use giveway_qdisc::{PortId, Probe, Span, Time};
use giveway_recording::{Request, SIDES};

use crate::Messages;
use crate::error::OutputError;
use probe::{Channel, LONGEST, RecordingProbe};
pub use process::WriteError;
use process::WritingProcess;
use writer::Writer;

/// Interval between recorded samples.
const SAMPLE: Span = Span::ms(200);

/// A recording that is prepared, and then runs.
pub struct Recording {
    /// The folder, for messages.
    shown: PathBuf,
    process: Option<WritingProcess>,
    /// Largest length of a small packet, in bytes.
    small: u32,
    /// Interval between writes.
    every: Duration,
    /// True once the measurement interval starts.
    begun: Arc<AtomicBool>,
    channels: Vec<Channel>,
    /// True once the bridge has ended.
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Result<(), WriteError>, WritingProcess)>>,
}

impl Recording {
    /// Creates the folder with the ids of the user that writes it, and starts the program `giveway` as that
    /// user, which writes it. A folder that cannot be used is an error now, and not while the bridge runs.
    /// The measurement interval starts with the bridge, or `later`, at a signal.
    ///
    /// # Errors
    /// If the folder contains other files, or cannot be written, or the program cannot be started.
    pub fn prepare(
        dir: &Path,
        giveway: &Path,
        small: u32,
        every: Duration,
        later: bool,
        user: Option<&(Identity, String)>,
    ) -> Result<Recording, OutputError> {
        let system_error = OutputError::path("--record", dir);
        let identity = user.map(|(identity, _)| *identity);
        let opened = outputs::folder(dir, identity).map_err(|error| match user {
            Some((_, name)) if error.kind() == io::ErrorKind::PermissionDenied && dir.exists() => {
                foreign(dir, name)
            }
            _ => system_error(error),
        })?;
        let (OutputFolder::Writable(open) | OutputFolder::OfRoot(open)) = &opened;
        let of_root = user.filter(|_| matches!(opened, OutputFolder::OfRoot(_)));
        if let Some((identity, name)) = of_root {
            if !has_only_recordings(open).map_err(&system_error)? {
                return Err(foreign(dir, name));
            }
            outputs::give(open, *identity).map_err(&system_error)?;
        }
        let shown = dir.canonicalize().map_err(&system_error)?;
        let stop = Arc::new(AtomicBool::new(false));
        let process = WritingProcess::start(giveway, open, &shown, identity, Arc::clone(&stop));
        let mut process = process.map_err(OutputError::path("--record: cannot start", giveway))?;
        if let Err(error) = process.ask(&Request::Check) {
            process.end();
            if of_root.is_some() {
                outputs::give(open, Identity { user: 0, group: 0 }).map_err(&system_error)?;
            }
            return Err(OutputError::Recording(error));
        }
        let begun = Arc::new(AtomicBool::new(!later));
        let process = Some(process);
        Ok(Recording { shown, process, small, every, begun, channels: Vec::new(), stop, thread: None })
    }

    /// The flag that starts the measurement interval.
    pub fn begun(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.begun)
    }

    /// The probe of a direction with this configuration and name.
    pub fn probe(&mut self, config: &DirectionConfig, name: &'static str) -> Box<dyn Probe<Frame> + Send> {
        let warms_up = !self.begun.load(Ordering::Relaxed);
        let layout = Layout {
            from: if warms_up { Time::ZERO + LONGEST } else { Time::ZERO },
            small_packet_bytes: self.small,
            measured: vec![PortId(0)],
            port_names: vec![(PortId(0), name.to_owned())],
            source_names: vec!["all".to_owned()],
            until: Time::ZERO + LONGEST,
            rates: vec![(PortId(0), config.rate)],
            keep_series: true,
            sample: SAMPLE,
            open_ended: true,
            ..Layout::default()
        };
        let channel = Channel::new(name, layout, warms_up);
        self.channels.push(channel.clone());
        Box::new(RecordingProbe { channel, begun: Arc::clone(&self.begun) })
    }

    /// Starts the writing thread. Messages about a full disk go to `messages`.
    ///
    /// # Errors
    /// The error of the system if it cannot start a thread.
    pub fn start(&mut self, controller: &Arc<Controller>, messages: &Messages) -> io::Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        let writer = Writer::new(
            process,
            self.every,
            self.begun(),
            Arc::clone(&self.stop),
            &self.channels,
            Arc::clone(controller),
            Arc::clone(messages),
        );
        self.thread = Some(std::thread::Builder::new().name("gw-record".to_owned()).spawn(move || {
            // The watching thread reports privileges that cannot be dropped, once for all threads.
            let _ = privilege::settle(Role::Write);
            writer.run()
        })?);
        Ok(())
    }

    /// Writes the last part, after the threads of the directions have ended. The data of a failed direction
    /// end at its failure.
    ///
    /// # Errors
    /// If the last part cannot be written.
    pub fn finish(self, probes: Vec<Option<Box<dyn Probe<Frame> + Send>>>) -> Result<String, OutputError> {
        drop(probes);
        let mut cut = false;
        for channel in &self.channels {
            cut |= channel.close();
        }
        if let Some(thread) = self.thread {
            self.stop.store(true, Ordering::Release);
            thread.thread().unpark();
            let ended = thread.join().map_err(|_| OutputError::Thread("the writer of the recording"));
            let (written, process) = ended?;
            process.end();
            written.map_err(OutputError::Recording)?;
        }
        let hours = LONGEST.as_ps() / Span::s(3600).as_ps();
        let cut = if cut { format!("; recording ended after {hours} hours") } else { String::new() };
        Ok(format!("recorded in {}{cut}", self.shown.display()))
    }
}

/// True if the folder contains the recordings of an earlier bridge at most.
fn has_only_recordings(dir: &OpenDir) -> io::Result<bool> {
    let is_recording = |name: &str| SIDES.iter().any(|side| name == *side || name == format!(".{side}.new"));
    Ok(dir.entries()?.iter().all(|(name, _)| is_recording(&name.to_string_lossy())))
}

/// The error for a folder of another user.
fn foreign(dir: &Path, name: &str) -> OutputError {
    let owner = fs::metadata(dir).map_or("another user".to_owned(), |of| format!("user {}", of.uid()));
    OutputError::Foreign(format!(
        "--record {}: the folder belongs to {owner} and giveway writes it as {name}: name a folder that does not exist yet, or type \
         chown {name} {}, or choose another user with --user",
        dir.display(),
        dir.display()
    ))
}
