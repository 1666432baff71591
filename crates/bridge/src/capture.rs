//! `--pcap`: writes sent frames, and dropped frames with the reason as a comment, to a pcapng file of bounded
//! length.
//!
//! The thread of each direction writes frames into a ring of bytes and never blocks; a thread of the capture
//! reads them. Frames that do not fit are left out and counted.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use giveway_capture::{EnhancedPacket, LinkType};
use giveway_live::clock::monotonic_ns;
use giveway_live::direction::{Outcome, Tap};
use giveway_live::privilege::{Identity, Role, settle};
use giveway_qdisc::{Bytes, DropReason};
use giveway_watch::{Bounded, Interface, Kept};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::Messages;
use crate::error::OutputError;
use crate::files::{Patience, PatientFile};
use crate::pause::pause;

/// Bytes of each ring: about 100 ms of complete frames at 300 Mbit/s.
const RING: usize = 4 << 20;
/// Length of the header of a frame in a ring, in bytes: time, length, captured length, outcome.
const HEAD: usize = 8 + 4 + 4 + 1;
/// Size of a write at a high frame rate, in bytes.
const PIECE: usize = 64 << 10;
/// Interval between writes at a low frame rate, in nanoseconds.
const FLUSH_NS: u64 = 1_000_000_000;
/// Pause when the rings are empty.
const PAUSE: Duration = Duration::from_millis(10);
/// Outcome of a frame that was sent without a mark. No drop reason has this number.
const SENT: u8 = 0xff;
/// Outcome of a frame that was marked and sent. No drop reason has this number.
const MARKED: u8 = 0xfe;

/// Writes the frames of a direction to its ring. A frame that does not fit is counted and left out.
struct Frames {
    ring: Producer<u8>,
    snap: usize,
    missed: Arc<AtomicU64>,
}

impl Tap for Frames {
    fn frame(&mut self, bytes: &[u8], outcome: Outcome, wall_ns: u64) {
        let kept = &bytes[..bytes.len().min(self.snap)];
        if self.ring.slots() < HEAD + kept.len() {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let outcome = match outcome {
            Outcome::Sent { marked: false } => SENT,
            Outcome::Sent { marked: true } => MARKED,
            Outcome::Dropped(why) => why as u8,
        };
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&wall_ns.to_le_bytes());
        head[8..12].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        head[12..16].copy_from_slice(&(kept.len() as u32).to_le_bytes());
        head[16] = outcome;
        let put = self.ring.push_entire_slice(&head).and_then(|()| self.ring.push_entire_slice(kept));
        put.expect("the space was checked, and this is the only writer");
    }
}

/// A capture that is being written.
pub struct Capture {
    rings: Vec<Producer<u8>>,
    snap: usize,
    missed: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<giveway_watch::CaptureSummary>>,
    file: PathBuf,
    patience: Patience,
}

/// A buffer of pcapng blocks. The capture fills it with complete blocks, and its contents are written to the
/// file.
#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<Vec<u8>>>);

impl Blocks {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
    fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Capture {
    /// Opens the file and starts the capture. `directions` has the name, discipline and rate in bit/s of each
    /// direction. At most `snap` bytes of a frame are captured; 0 for all.
    ///
    /// # Errors
    /// The error of the system, with the flag.
    pub fn begin(
        file: &Path,
        limit: Bytes,
        snap: u32,
        ethernet: bool,
        directions: &[(String, String, u64)],
        user: Option<Identity>,
        messages: &Messages,
    ) -> Result<Capture, OutputError> {
        let system_error = OutputError::path("--pcap", file);
        let snap = if snap == 0 { usize::from(u16::MAX) } else { snap as usize };
        let link = if ethernet { LinkType::ETHERNET } else { LinkType::RAW };
        let interfaces: Vec<Interface> = directions
            .iter()
            .map(|(name, description, speed)| Interface {
                name: name.clone(),
                description: description.clone(),
                link,
                speed: *speed,
                snap: snap as u32,
            })
            .collect();
        let blocks = Blocks::default();
        let buffer = blocks.clone();
        let open = move |_| Ok(buffer.clone());
        let application = concat!("giveway ", env!("CARGO_PKG_VERSION"));
        let bounded = Bounded::new(open, application, interfaces, limit.0, 1).map_err(&system_error)?;
        let mut out = PatientFile::create("--pcap", file, user, messages)?;
        out.write_all(&blocks.take()).map_err(&system_error)?;
        let patience = out.patience();
        patience.set(true);
        let (rings, readers): (Vec<_>, Vec<Consumer<u8>>) =
            directions.iter().map(|_| RingBuffer::new(RING)).unzip();
        let (missed, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&stop);
        let readers = readers.into_iter().map(|ring| Reader { ring, head: None }).collect();
        let messages = Arc::clone(messages);
        let thread = std::thread::Builder::new().name("gw-pcap".into());
        let thread = thread.spawn(move || {
            // The watching thread reports privileges that cannot be dropped, once for all threads.
            let _ = settle(Role::Write);
            write(bounded, &blocks, out, readers, &until, &messages)
        });
        let thread = thread.map_err(system_error)?;
        Ok(Capture { rings, snap, missed, stop, thread, file: file.to_owned(), patience })
    }

    /// The tap of the next direction, in the order of `directions`.
    pub fn tap(&mut self) -> Box<dyn Tap> {
        let ring = self.rings.remove(0);
        Box::new(Frames { ring, snap: self.snap, missed: Arc::clone(&self.missed) })
    }

    /// Writes the frames that are still in the rings, and returns a summary of the file.
    ///
    /// # Errors
    /// If the file cannot be written, or the thread of the capture has failed.
    pub fn finish(self) -> Result<String, OutputError> {
        // The program must end, so it does not wait for space on the disk any more.
        self.patience.set(false);
        self.stop.store(true, Ordering::Release);
        let written = self.thread.join().map_err(|_| OutputError::Thread("the capture"))?;
        let summary = written.map_err(OutputError::path("--pcap", &self.file))?;
        let missed = self.missed.load(Ordering::Relaxed);
        let left_out = match (summary.left_out, missed) {
            (0, 0) => String::new(),
            (full, missed) => {
                format!("; {full} left out because it is full, {missed} because the disk was too slow")
            }
        };
        Ok(format!("{} has {} frames{left_out}", self.file.display(), summary.packets))
    }
}

/// Writes frames from the rings to the file until `until` is set and the rings are empty. The thread of the
/// capture runs this.
fn write<F: FnMut(u32) -> io::Result<Blocks>>(
    mut bounded: Bounded<Blocks, F>,
    blocks: &Blocks,
    mut out: PatientFile,
    mut rings: Vec<Reader>,
    until: &AtomicBool,
    messages: &Messages,
) -> io::Result<giveway_watch::CaptureSummary> {
    let mut limit_reported = false;
    let mut bytes = Vec::with_capacity(1 << 16);
    let mut flushed = monotonic_ns();
    loop {
        // Read before the rings are emptied, so that frames that were added before are not lost.
        let last = until.load(Ordering::Acquire);
        loop {
            // The older one of the next frames of both directions.
            let times = rings.iter_mut().enumerate();
            let times = times.filter_map(|(number, ring)| Some((ring.next()?.time, number)));
            let Some((_, number)) = times.min() else { break };
            let Some(head) = rings[number].take(&mut bytes) else { break };
            let comment = match head.outcome {
                SENT => None,
                MARKED => Some("marked"),
                why => DropReason::ALL.get(usize::from(why)).map(|why| giveway_watch::comment(*why)),
            };
            let packet = EnhancedPacket {
                interface: number as u32,
                time: head.time,
                bytes: head.length,
                data: &bytes,
                comment,
            };
            if bounded.packet(&packet)? == Kept::Full && !limit_reported {
                limit_reported = true;
                messages("the capture has reached its limit (--pcap-limit) and gets no more frames");
            }
            if blocks.bytes() >= PIECE {
                out.write_all(&blocks.take())?;
                flushed = monotonic_ns();
            }
        }
        if last {
            let summary = bounded.finish()?;
            out.write_all(&blocks.take())?;
            return Ok(summary);
        }
        if monotonic_ns() > flushed + FLUSH_NS {
            flushed = monotonic_ns();
            out.write_all(&blocks.take())?;
        }
        pause(PAUSE);
    }
}

/// The header of a frame in a ring.
#[derive(Clone, Copy)]
struct Head {
    /// Unix time in nanoseconds.
    time: u64,
    /// Length of the frame on the link, in bytes.
    length: u32,
    /// Number of captured bytes, which follow the header.
    kept: usize,
    /// [`SENT`], [`MARKED`] or the number of a drop reason.
    outcome: u8,
}

/// Reads frames from a ring.
struct Reader {
    ring: Consumer<u8>,
    /// Header of the next frame, once it was read.
    head: Option<Head>,
}

impl Reader {
    /// The header of the next frame, if the frame is complete.
    fn next(&mut self) -> Option<Head> {
        if self.head.is_none() {
            let mut head = [0; HEAD];
            self.ring.pop_entire_slice(&mut head).ok()?;
            let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
            let time = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
            self.head = Some(Head { time, length: word(8), kept: word(12) as usize, outcome: head[16] });
        }
        self.head.filter(|head| self.ring.slots() >= head.kept)
    }

    /// Moves the next frame to `bytes`, and returns its header.
    fn take(&mut self, bytes: &mut Vec<u8>) -> Option<Head> {
        let head = self.next()?;
        bytes.resize(head.kept, 0);
        self.ring.pop_entire_slice(bytes).ok()?;
        self.head.take()
    }
}
