//! Reads the files of a capture as one: merged by time, a part of it, without its long pauses.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use ::giveway_capture::{CaptureError, Frames, MergeInput, Merged, Moment, Pauses, Timeline, utc};
use giveway_workload::Extraction;

use super::chosen::{Chosen, Place};
use super::copy::Copy;
use super::live::Live;
use super::mode::shown;
use giveway_runner::RunnerError;
use giveway_trials::{Bar, Frontend, Unit};

/// The file that stands for the standard input.
pub const STANDARD_INPUT: &str = "-";
/// The packets that are replayed, unless one whole file is.
pub const PACKETS: &str = "packets.pcapng";

/// The origin of the packets of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// pcap or pcapng files; `-` is the standard input.
    pub files: Vec<PathBuf>,
    /// A capture to make, if there are no files.
    pub live: Option<Live>,
    /// True if the file of a capture to make may replace another one.
    pub force: bool,
    /// The beginning of the part that is used.
    pub from: Option<Moment>,
    /// The end of the part that is used.
    pub until: Option<Moment>,
}

/// A source that was read.
pub struct Reading {
    /// Its packets.
    pub extraction: Extraction,
    /// Sentences on what was cut, merged and left out.
    pub notes: Vec<String>,
    /// The error that ended a single file early.
    pub damage: Option<String>,
    /// The pauses that were cut.
    pub pauses: Pauses,
}

/// A live capture that runs.
pub struct Started(Merged);

impl Source {
    /// Its name in messages: of the first file, with the number of the others.
    pub fn shown(&self) -> String {
        if let Some(live) = &self.live {
            return live.interface.clone();
        }
        let first = self.files.first().map_or_else(String::new, |file| named(file));
        match self.files.len() {
            0 | 1 => first,
            2 => format!("{first} and 1 more file"),
            more => format!("{first} and {} more files", more - 1),
        }
    }

    /// The file whose name is the name of the comparison.
    pub fn first(&self) -> &Path {
        match self.files.first() {
            Some(file) if !is_standard_input(file) => file,
            _ => Path::new("capture"),
        }
    }

    /// True if it is a whole file that can be read again.
    pub fn is_plain(&self) -> bool {
        let is_file = |file: &PathBuf| file.metadata().is_ok_and(|about| about.is_file());
        matches!(&self.files[..], [file] if is_file(file)) && self.from.is_none() && self.until.is_none()
    }

    /// Starts the live capture, if it is one, and gives up root. So this comes before files are written.
    ///
    /// # Errors
    /// [`RunnerError::Usage`] if tcpdump does not capture, or the file of `--keep` exists.
    pub fn start(&self, frontend: &dyn Frontend) -> Result<Option<Started>, RunnerError> {
        let Some(live) = &self.live else { return Ok(None) };
        self.kept_in().map_or(Ok(()), |file| Copy::check(file, self.force))?;
        Ok(Some(Started(capturing(live, frontend)?)))
    }

    /// Reads all packets once, from a live capture only from `started` on. Writes the headers of those that
    /// are used into `copy`.
    ///
    /// # Errors
    /// [`RunnerError::Usage`] if a file cannot be read, or the part is outside the capture.
    pub fn read(
        &self,
        started: Option<Started>,
        copy: Option<&Path>,
        frontend: &dyn Frontend,
    ) -> Result<Reading, RunnerError> {
        let mut keep = self.kept_in().map(|file| Copy::create(file, self.force)).transpose()?;
        let mut merged = match started {
            Some(Started(merged)) => merged,
            None => self.open(frontend)?,
        };
        let mut copy = copy.map(|file| Copy::create(file, true)).transpose()?;
        let mut reading = Reading {
            extraction: Extraction::default(),
            notes: Vec::new(),
            damage: None,
            pauses: Pauses::default(),
        };
        let mut line = Timeline::default();
        let mut window = Chosen::new(self.from, self.until);
        let has_bar = self.bytes() >= LONG;
        if has_bar {
            // A pipe or a file has no bar, and a large capture takes seconds.
            frontend.remark(&format!("reading {}: {} MB", self.shown(), self.bytes() / 1_000_000));
        }
        let mut progress = Progress { packets: 0, is_live: self.live.is_some(), has_bar };
        let has_input = self.live.is_some() || self.files.iter().any(|file| is_standard_input(file));
        while let Some((mut packet, frame)) = merged.next_packet() {
            if frontend.stopped() {
                if has_input {
                    break;
                }
                return Err(RunnerError::Reported(giveway_runner::Outcome::Interrupted));
            }
            progress.packet(frontend);
            if let Some(keep) = &mut keep {
                keep.packet(packet.time, &frame)?;
            }
            match window.place(packet.time) {
                Place::Before => continue,
                Place::After => break,
                Place::Behind => continue,
                Place::Inside => {}
            }
            packet.time = line.at(packet.time);
            if let Some(copy) = &mut copy {
                copy.packet(packet.time, &frame)?;
            }
            reading.extraction.packet(&packet);
        }
        for copy in copy.into_iter().chain(keep) {
            copy.finish()?;
        }
        if frontend.stopped() && has_input {
            // Ctrl-C has ended the program that captures, and so the input.
            reading.notes.push(INTERRUPTED.to_owned());
            frontend.carry_on();
        }
        window.check(&self.shown())?;
        reading.pauses = *line.pauses();
        reading.notes.extend(window.note());
        reading.notes.extend(cuts(line.pauses()));
        if merged.doubled() > 0 {
            reading
                .notes
                .push(format!("{} packets are in two files at once: each is used once", merged.doubled()));
        }
        for (number, error) in merged.errors() {
            if self.files.len() == 1 {
                reading.damage = Some(error.to_string());
            } else {
                let file = named(&self.files[*number]);
                reading.notes.push(format!("{file} {error}; its packets before that are used"));
            }
        }
        Ok(reading)
    }

    /// The file that keeps the packets of a live capture.
    fn kept_in(&self) -> Option<&Path> {
        self.live.as_ref().and_then(|live| live.keep.as_deref())
    }

    /// The length of all files, bytes.
    fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum()
    }

    /// Opens all files.
    fn open(&self, frontend: &dyn Frontend) -> Result<Merged, RunnerError> {
        let wrong = |file: &Path, error: CaptureError| {
            let name = if is_standard_input(file) { "FILE".to_owned() } else { shown(file) };
            RunnerError::Usage(error.about(&name).replacen("FILE is", "the standard input is", 1))
        };
        if self.files.iter().filter(|file| is_standard_input(file)).count() > 1 {
            return Err(RunnerError::Usage("the standard input, -, can be read once".to_owned()));
        }
        let bytes = self.bytes();
        let bar: Option<std::sync::Arc<dyn Bar>> =
            (bytes >= LONG).then(|| std::sync::Arc::from(frontend.bar("reading", bytes, Unit::Bytes)));
        let mut parts = Vec::new();
        for file in &self.files {
            if is_standard_input(file) {
                if io::stdin().is_terminal() {
                    let message = "the standard input is a terminal: write for example `tcpdump -i eth0 -s 96 -w - | \
                                   giveway compare - --rate 10mbit`";
                    return Err(RunnerError::Usage(message.to_owned()));
                }
                let frames = Frames::new(Box::new(io::stdin())).map_err(|error| wrong(file, error))?;
                parts.push(MergeInput::Stream(Box::new(frames)));
                continue;
            }
            let (path, bar) = (file.clone(), bar.clone());
            parts.push(MergeInput::File(Box::new(move || {
                let file = File::open(&path).map_err(CaptureError::Open)?;
                Frames::new(Box::new(Watched { file, bar: bar.clone() }))
            })));
        }
        Merged::new(parts).map_err(|(number, error)| wrong(&self.files[number], error))
    }
}

const INTERRUPTED: &str = "interrupted: the packets until now are used";

/// Starts a capture.
fn capturing(live: &Live, frontend: &dyn Frontend) -> Result<Merged, RunnerError> {
    let (running, messages) = live.start()?;
    let seconds = live.duration.as_secs();
    frontend.remark(&format!(
        "capturing on {} for {seconds} s; Ctrl-C ends the capture early, and its packets are compared",
        live.interface
    ));
    let Ok(frames) = Frames::new(Box::new(running)) else { return Err(live.failed(messages)) };
    // tcpdump has opened its socket, since the header of its output has come.
    if let Some(settled) = live.settle()? {
        frontend.remark(&settled);
    }
    // The messages of tcpdump are few, and the last ones are its counts: nobody reads them.
    Merged::new(vec![MergeInput::Stream(Box::new(frames))]).map_err(|_| live.failed(messages))
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == STANDARD_INPUT
}

fn named(file: &Path) -> String {
    if is_standard_input(file) { "the standard input".to_owned() } else { shown(file) }
}

/// A sentence on pauses that were cut, and one on a clock that stepped back.
fn cuts(pauses: &Pauses) -> impl Iterator<Item = String> {
    let Pauses { count, cut, longest: (at, length), steps_back } = *pauses;
    let cut = (count > 0).then(|| {
        let all = if count == 1 { "a pause".to_owned() } else { format!("{count} pauses") };
        let which = if count == 1 { "it".to_owned() } else { format!("the longest, of {},", duration(length)) };
        format!(
            "{all} of more than a minute without packets: {} were cut from the time line, so rates do not include them; \
             {which} begins at {}",
            duration(cut),
            utc(at),
        )
    });
    let back = (steps_back > 0).then(|| {
        format!(
            "the clock of the capture steps back {steps_back} times by more than a minute; later packets are shifted to \
             keep time increasing"
        )
    });
    cut.into_iter().chain(back)
}

/// A length of time for people, from ns.
fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

// -- progress -----------------------------------------------------------------------------------------

/// The length of a file, bytes, from which reading it has a progress bar.
const LONG: u64 = 64 << 20;

/// A file whose reading moves a progress bar.
struct Watched {
    file: File,
    bar: Option<std::sync::Arc<dyn Bar>>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if let Some(bar) = &self.bar {
            bar.advance(count as u64);
        }
        Ok(count)
    }
}

/// Tells how far the reading is.
struct Progress {
    packets: u64,
    is_live: bool,
    /// True if a bar shows how far it is.
    has_bar: bool,
}

impl Progress {
    fn packet(&mut self, frontend: &dyn Frontend) {
        self.packets += 1;
        // The packets of a file come faster than anybody reads messages.
        if self.is_live || !self.has_bar && self.packets.is_multiple_of(1 << 16) {
            let verb = if self.is_live { "captured" } else { "read" };
            frontend.counted(&|| format!("{verb}: {} packets", self.packets));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_reported_with_their_number_length_and_place() {
        let hour = 3_600_000_000_000;
        let pauses = Pauses { count: 2, cut: 50 * hour, longest: (0, 49 * hour), steps_back: 1 };
        let notes: Vec<String> = cuts(&pauses).collect();
        assert_eq!(
            notes[0],
            "2 pauses of more than a minute without packets: 2 days were cut from the time line, so rates do not \
             include them; the longest, of 2 days, begins at 1970-01-01T00:00:00Z"
        );
        assert_eq!(
            notes[1],
            "the clock of the capture steps back 1 times by more than a minute; later packets are shifted to keep \
             time increasing"
        );
        assert_eq!(cuts(&Pauses::default()).count(), 0);
    }

    #[test]
    fn sources_are_named_by_their_first_file() {
        let of =
            |files: &[&str]| Source { files: files.iter().map(PathBuf::from).collect(), ..Source::default() };
        assert_eq!(of(&["a.pcap"]).shown(), "a.pcap");
        assert_eq!(of(&["-"]).shown(), "the standard input");
        assert_eq!(of(&["a.pcap", "b.pcap", "c.pcap"]).shown(), "a.pcap and 2 more files");
        assert_eq!(of(&["-"]).first(), Path::new("capture"));
    }
}
