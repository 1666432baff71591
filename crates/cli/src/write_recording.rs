//! `giveway write-recording`: writes the recording of a bridge. A bridge starts it, as the user that owns the
//! recording, in its folder, and sends requests over the standard input ([`giveway_recording`]).
//!
//! The folder of a direction is written under another name, flushed to the disk, and exchanged with the
//! earlier folder in one step. So a reader always finds a complete recording, also after a power failure.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use giveway_files::exchange;
use giveway_measure::{Discipline, Trial};
use giveway_record::{Existing, FolderError, Manifest, RECORDED_BY, RunFolder};
use giveway_recording::{Part, RecordingError, Request, SIDES, Stretch, answer, receive, started};
use giveway_runner::Outcome;
use giveway_text::chain;
use nix::sys::stat::{Mode, umask};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::CliError;
use crate::provenance;

/// The folder of the recording, which has other names for other processes.
const FOLDER: &str = "/proc/self/cwd";

/// Writes the recording of a bridge, which starts this command.
#[derive(clap::Args)]
pub struct Args {
    /// Folder of the recording, for messages
    shown: PathBuf,
}

/// Reason why a recording cannot be written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    /// The tables cannot be written, or the folder has other contents.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A folder cannot be moved to its place.
    #[error("cannot write {}", .0.display())]
    Publish(PathBuf, #[source] io::Error),
    /// A folder cannot be removed.
    #[error("cannot remove {}", .0.display())]
    Remove(PathBuf, #[source] io::Error),
}

/// Runs `giveway write-recording`, until the bridge has ended.
pub fn write_recording(args: &Args) -> Result<Outcome, CliError> {
    // The bridge decides when the last part was written, and a service manager may signal all its processes.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // Recordings have the addresses and the times of other people's traffic.
    umask(Mode::from_bits_truncate(0o077));
    // The standard input is a socket, which also takes the answers.
    let mut socket = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut requests = BufReader::new(socket.try_clone()?);
    let mut work = || -> Result<(), RecordingError> {
        started(&mut requests)?;
        while let Some(request) = receive(&mut requests)? {
            let done = match &request {
                Request::Check => check(Path::new(FOLDER)),
                Request::Write(part) => write(Path::new(FOLDER), part),
            };
            // The path for system calls is not for people.
            let text = done.err().map(|error| chain(&error).replace(FOLDER, &args.shown.to_string_lossy()));
            answer(&mut socket, text.as_deref().map_or(Ok(()), Err))?;
        }
        Ok(())
    };
    match work() {
        // The bridge was killed.
        Ok(()) | Err(RecordingError::Io(_)) => Ok(Outcome::Done),
        Err(error) => {
            answer(&mut socket, Err(&error.to_string()))?;
            Ok(Outcome::Failed)
        }
    }
}

/// Checks that a folder has an earlier recording at most.
fn check(folder: &Path) -> Result<(), WriteError> {
    SIDES.iter().try_for_each(|side| {
        Ok(RunFolder::inspect(&folder.join(side), Some(("", RECORDED_BY)), Existing::Keep)?)
    })
}

/// Writes the recording of a direction so far.
fn write(folder: &Path, part: &Part) -> Result<(), WriteError> {
    let Part { side, title, stretches, version, commit } = part;
    let name = SIDES[usize::from(*side)];
    let names = names(stretches);
    let mut layout = stretches[0].record.layout.clone();
    layout.until = stretches[stretches.len() - 1].record.layout.until;
    let manifest = Manifest {
        scenario: format!("live-{name}"),
        version: version.clone(),
        disciplines: names.iter().map(Discipline::named).collect(),
        seeds: vec![1],
        machine: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        created_by: RECORDED_BY.to_owned(),
        created: Some(provenance::now()),
        title: format!("Live, {title}"),
        description: divided(stretches),
        layout,
    };
    let mut text = format!("# Recorded by giveway live from {title}; not a scenario that can be run.\n");
    stretches.iter().for_each(|stretch| text.push_str(&format!("# {}\n", settings(stretch))));
    let trials: Vec<Trial> = names.into_iter().map(|qdisc| Trial { qdisc, seed: 1 }).collect();
    let new = folder.join(format!(".{name}.new"));
    let write = || {
        remove(&new)?;
        let run_folder = RunFolder::create(&new, &text, manifest)?.with_commit(commit.clone());
        let recorded = || trials.iter().zip(stretches);
        recorded().try_for_each(|(trial, stretch)| run_folder.write(trial, &stretch.record).map(drop))?;
        let summaries = recorded().map(|(trial, stretch)| (trial.clone(), stretch.record.summary.clone()));
        run_folder.finish(&summaries.collect::<Vec<_>>())?;
        publish(folder, &new, &folder.join(name))
    };
    let written = write();
    if written.is_err() {
        // A partial folder would fill the disk. The first error is the one to report.
        let _ = remove(&new);
    }
    written
}

/// The settings of a stretch and its times.
fn settings(stretch: &Stretch) -> String {
    let Stretch { qdisc, rate, record } = stretch;
    let [from, until] = [record.layout.from, record.layout.until].map(|time| time.as_s());
    format!("rate {rate}, qdisc {qdisc}, {from:.1} s to {until:.1} s")
}

/// The name of each stretch, unique in the recording: its discipline; and its rate if the rates differ; and
/// its start if it has the settings of an earlier one.
fn names(stretches: &[Stretch]) -> Vec<String> {
    let one_rate = stretches.iter().all(|stretch| stretch.rate == stretches[0].rate);
    let mut names: Vec<String> = Vec::new();
    for Stretch { qdisc, rate, record } in stretches {
        let name = if one_rate { qdisc.clone() } else { format!("{qdisc} at {rate}") };
        let again = names.contains(&name);
        let from = record.layout.from.as_s();
        names.push(if again { format!("{name} from {from:.1}s") } else { name });
    }
    names
}

/// The sentences about a recording whose settings were changed; empty for one stretch.
fn divided(stretches: &[Stretch]) -> String {
    if stretches.len() == 1 {
        return String::new();
    }
    let all: Vec<String> = stretches.iter().map(settings).collect();
    format!(
        "The recording is divided where the discipline or the rate was changed: {}. Each stretch has its own traffic, so waits compare \
         only if the load was alike.",
        all.join("; ")
    )
}

/// Moves a complete folder to its place, and removes the folder that was there.
fn publish(folder: &Path, new: &Path, place: &Path) -> Result<(), WriteError> {
    let publish_error = |error| WriteError::Publish(place.to_owned(), error);
    if place.exists() {
        // Some file systems cannot exchange two names. Then there is a moment without a recording.
        if exchange(new, place).is_err() {
            let old = new.with_extension("old");
            remove(&old)?;
            fs::rename(place, &old).and_then(|()| fs::rename(new, place)).map_err(publish_error)?;
            remove(&old)?;
        }
    } else {
        fs::rename(new, place).map_err(publish_error)?;
    }
    // After a power failure, the folder has either the earlier entry or this one.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(publish_error)?;
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

#[cfg(test)]
mod tests {
    use giveway_measure::{Layout, Recorder};
    use giveway_qdisc::{PortId, Time};
    use giveway_record::report::Report;

    use super::*;

    /// Packets that crossed under a discipline are reported under it, and not under the one that came later.
    #[test]
    fn a_recording_is_divided_where_its_settings_changed() {
        let stretch = |qdisc: &str, rate: &str, [from, until]: [u64; 2]| {
            let port = PortId(0);
            let layout = Layout {
                measured: vec![port],
                port_names: vec![(port, "forward".to_owned())],
                from: Time::s(from),
                until: Time::s(until),
                keep_series: true,
                ..Layout::default()
            };
            let record = Recorder::<()>::new(layout).finish();
            Stretch { qdisc: qdisc.to_owned(), rate: rate.to_owned(), record }
        };
        let stretches = vec![
            stretch("fq_codel", "10mbit", [0, 40]),
            stretch("efd", "10mbit", [40, 60]),
            stretch("fq_codel", "10mbit", [60, 90]),
        ];
        assert_eq!(names(&stretches), ["fq_codel", "efd", "fq_codel from 60.0s"]);
        assert_eq!(
            names(&[stretch("efd", "1mbit", [0, 1]), stretch("efd", "2mbit", [1, 2])]),
            ["efd at 1mbit", "efd at 2mbit"]
        );
        assert_eq!(
            (names(&stretches[1..2]), divided(&stretches[1..2])),
            (vec!["efd".to_owned()], String::new())
        );
        let [title, version] = ["eth0 to eth1", "0.1.0"].map(str::to_owned);
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &Part { side: 0, title, stretches, version, commit: None }).unwrap();
        let page = Report::read(&[&folder.path().join("forward")]).unwrap().html().unwrap();
        for text in ["3 disciplines", "measured from 0 s to 90 s", "rate 10mbit, qdisc efd, 40.0 s to 60.0 s"]
        {
            assert!(page.contains(text), "{text}");
        }
    }
}
