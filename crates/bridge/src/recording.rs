//! `--record`: writes the tables of a simulation at intervals, in a folder for each direction.
//!
//! - The thread of each direction uses its own recorder. When the writer requests a part, the thread copies
//!   its counters (some hundred kilobytes) and continues; no other thread ever holds its lock. The writer is
//!   a thread without real-time priority, which makes tables of the parts and writes them.
//! - A folder is written under another name, flushed to the disk, and exchanged with the earlier folder in
//!   one step. So a reader always finds a complete recording, also after a power failure. While the disk is
//!   full, the earlier recording stays, and writing is tried again.

mod probe;
mod series;
mod writer;

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
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
use giveway_live::privilege::{self, Folder, Identity, Rights, Role};
use giveway_measure::Layout;
use giveway_qdisc::{PortId, Probe, Span, Time};
use giveway_record::{Existing, RECORDED_BY, RunFolder};

use crate::Messages;
use crate::error::OutputError;
use probe::{Channel, LONGEST, RecordingProbe};
use writer::{Dir, Writer};

pub use writer::RecordingError;

/// Interval between recorded samples.
const SAMPLE: Span = Span::ms(200);
/// The folders in the folder of a recording.
const SIDES: [&str; 2] = ["forward", "reverse"];

/// A recording that is prepared, and then runs.
pub struct Recording {
    dir: Dir,
    /// Largest length of a small packet, in bytes.
    small: u32,
    /// Interval between writes.
    every: Duration,
    /// True once the measurement interval starts.
    begun: Arc<AtomicBool>,
    channels: Vec<Channel>,
    writer: Option<Running>,
}

/// The writing thread, and the flag that ends it.
struct Running {
    thread: JoinHandle<Result<(), RecordingError>>,
    stop: Arc<AtomicBool>,
}

impl Recording {
    /// Creates the folder, with the ids of the user that writes it later. A folder that cannot be used is an
    /// error now, and not while the bridge runs. The measurement interval begins at the start, or `later`, at
    /// a signal. The second result is the folder that the writing thread must be allowed to use.
    ///
    /// # Errors
    /// If the folder contains other files, or cannot be written.
    pub fn prepare(
        dir: &Path,
        small: u32,
        every: Duration,
        later: bool,
        user: Option<&(Identity, String)>,
    ) -> Result<(Recording, Folder), OutputError> {
        let system_error = OutputError::path("--record", dir);
        let identity = user.map(|(identity, _)| *identity);
        let opened = outputs::folder(dir, identity).map_err(|error| match user {
            Some((_, name)) if error.kind() == io::ErrorKind::PermissionDenied && dir.exists() => {
                foreign(dir, name)
            }
            _ => system_error(error),
        })?;
        let (OutputFolder::Writable(open) | OutputFolder::OfRoot(open)) = &opened;
        // Whatever has the name of the folder later, this is the folder that was opened.
        let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        for side in SIDES {
            RunFolder::inspect(&path.join(side), Some(("", RECORDED_BY)), Existing::Keep)
                .map_err(OutputError::Folder)?;
        }
        if let (OutputFolder::OfRoot(open), Some((identity, name))) = (&opened, user) {
            if !has_only_recordings(open).map_err(&system_error)? {
                return Err(foreign(dir, name));
            }
            outputs::give(open, *identity).map_err(&system_error)?;
        }
        let shown = dir.canonicalize().map_err(&system_error)?;
        let folder = Folder::of(open, Rights::Write).map_err(&system_error)?;
        // The descriptor of `open` is closed here, and that of the folder stays.
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.descriptor()));
        let begun = Arc::new(AtomicBool::new(!later));
        let dir = Dir { shown, path };
        Ok((Recording { dir, small, every, begun, channels: Vec::new(), writer: None }, folder))
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

    /// Starts the writing thread. `now` returns the time that is recorded with the results, and messages
    /// about a full disk go to `messages`.
    ///
    /// # Errors
    /// The error of the system if it cannot start a thread.
    pub fn start(
        &mut self,
        controller: &Arc<Controller>,
        messages: &Messages,
        now: fn() -> String,
    ) -> io::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let writer = Writer::new(
            self.dir.clone(),
            self.every,
            self.begun(),
            Arc::clone(&stop),
            &self.channels,
            Arc::clone(controller),
            (Arc::clone(messages), now),
        );
        let thread = std::thread::Builder::new().name("gw-record".to_owned()).spawn(move || {
            // Recordings have the addresses and the times of other people's traffic.
            outputs::keep_private();
            // The watching thread reports privileges that cannot be dropped, once for all threads.
            let _ = privilege::settle(Role::Watch);
            writer.run()
        })?;
        self.writer = Some(Running { thread, stop });
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
        if let Some(Running { thread, stop }) = self.writer {
            stop.store(true, Ordering::Release);
            thread.thread().unpark();
            let written = thread.join().map_err(|_| OutputError::Thread("the writer of the recording"))?;
            written?;
        }
        let hours = LONGEST.as_ps() / Span::s(3600).as_ps();
        let cut = if cut { format!("; recording ended after {hours} hours") } else { String::new() };
        Ok(format!("recorded in {}{cut}", self.dir.shown.display()))
    }
}

/// True if the folder has the recordings of an earlier bridge at most.
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
