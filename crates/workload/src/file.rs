//! The file format of a workload: a line of JSON with its version, then a line for each connection and train.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;
use crate::model::{Connection, Side, Train, Workload};

const VERSION: u32 = 1;

/// The first line of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// The version of the format.
    giveway_workload: u32,
    /// Time from the first packet to the last, ns.
    span: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Tcp(Connection),
    Quic(Connection),
    Train(Train),
}

/// A line to write.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum OutputLine<'a> {
    Tcp(&'a Connection),
    Quic(&'a Connection),
    Train(&'a Train),
}

/// Lines up to this length are read at once, which is faster. The packets of a train are one line, and there
/// may be millions of them: longer lines are read as they come.
const SHORT: u64 = 1 << 20;

impl Workload {
    /// Writes the workload.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let head = Head { giveway_workload: VERSION, span: self.span };
        serde_json::to_writer(&mut out, &head)?;
        out.write_all(b"\n")?;
        let connections = self.connections.iter().map(|connection| match connection.quic {
            true => OutputLine::Quic(connection),
            false => OutputLine::Tcp(connection),
        });
        for line in connections.chain(self.trains.iter().map(OutputLine::Train)) {
            serde_json::to_writer(&mut out, &line)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Reads a workload in the format of [`write`](Workload::write).
    ///
    /// # Errors
    /// If reading fails, if the file is not a workload of this version, or if a line is invalid.
    pub fn read(mut input: impl BufRead) -> Result<Workload, WorkloadError> {
        let mut line = Vec::new();
        (&mut input).take(SHORT).read_until(b'\n', &mut line)?;
        let head: Head = serde_json::from_slice(&line).map_err(|_| WorkloadError::Foreign)?;
        if head.giveway_workload != VERSION {
            return Err(WorkloadError::Version { found: head.giveway_workload, known: VERSION });
        }
        if head.span > Workload::LONGEST {
            return Err(WorkloadError::Line { line: 1, cause: too_long("span", head.span).into() });
        }
        let mut workload = Workload { span: head.span, ..Workload::default() };
        for number in 2.. {
            line.clear();
            if (&mut input).take(SHORT).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let invalid = |cause| WorkloadError::Line { line: number, cause };
            let read: Result<Line, serde_json::Error> =
                if line.len() as u64 == SHORT && !line.ends_with(b"\n") {
                    serde_json::from_reader((&line[..]).chain(RestOfLine { input: &mut input, ended: false }))
                } else if line.trim_ascii().is_empty() {
                    continue;
                } else {
                    serde_json::from_slice(line.trim_ascii_end())
                };
            let read = match read {
                Ok(read) => read,
                Err(error) if error.is_io() => return Err(WorkloadError::Read(error.into())),
                Err(error) => return Err(invalid(message(&error).into())),
            };
            match read {
                Line::Tcp(connection) => {
                    check(&connection).map_err(|mistake| invalid(mistake.into()))?;
                    workload.connections.push(connection);
                }
                Line::Quic(connection) => {
                    check(&connection).map_err(|mistake| invalid(mistake.into()))?;
                    workload.connections.push(Connection { quic: true, ..connection });
                }
                Line::Train(train) => {
                    check_train(&train).map_err(|mistake| invalid(mistake.into()))?;
                    workload.trains.push(train);
                }
            }
        }
        workload.check_order()?;
        Ok(workload)
    }

    /// Checks that connections wait for others that exist, and start after earlier ones, so that none waits
    /// for itself.
    fn check_order(&self) -> Result<(), WorkloadError> {
        let wrong = |(number, connection): (usize, &Connection)| {
            connection.waits_for().any(|other| other >= self.connections.len())
                || connection.after.is_some_and(|after| after.connection >= number)
        };
        match self.connections.iter().enumerate().find(|each| wrong(*each)) {
            Some((number, _)) => Err(WorkloadError::Order { number }),
            None => Ok(()),
        }
    }
}

/// The rest of a line, up to its end.
struct RestOfLine<R> {
    input: R,
    ended: bool,
}

impl<R: BufRead> Read for RestOfLine<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let ready = self.input.fill_buf()?;
        let ready = &ready[..ready.len().min(into.len())];
        let end = ready.iter().position(|byte| *byte == b'\n');
        let length = end.unwrap_or(ready.len());
        into[..length].copy_from_slice(&ready[..length]);
        self.ended = end.is_some();
        self.input.consume(length + usize::from(self.ended));
        Ok(length)
    }
}

/// The message of a parser error with the position in the line. The line number of the parser is left out: it
/// is always 1.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let mistake = text.split(" at line 1 column").next().unwrap_or(&text);
    format!("{mistake}, at character {}", error.column())
}

/// The message about a time that exceeds [`Workload::LONGEST`].
fn too_long(field: &'static str, ns: u64) -> Invalid {
    Invalid::TooLong { field, ns }
}

/// A mistake in a line of a workload.
#[derive(Debug, thiserror::Error)]
enum Invalid {
    /// A rule of the format.
    #[error("{0}")]
    Rule(&'static str),
    /// A time.
    #[error("{field}: {ns} ns are too long: write at most {}, which is 200 days", Workload::LONGEST)]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its value.
        ns: u64,
    },
    /// The data of one side.
    #[error("bytes: one side writes more than {} in total, which is 1 PiB", Workload::MAX_BYTES)]
    TooManyBytes,
}

/// Checks a connection; the error describes the mistake.
fn check(connection: &Connection) -> Result<(), Invalid> {
    let adus: u64 = connection.epochs.iter().map(|epoch| u64::from(epoch.adus)).sum();
    if adus != connection.adus.len() as u64 {
        return Err(Invalid::Rule("the exchanges do not add up to the writes"));
    }
    if connection.epochs.iter().any(|epoch| epoch.adus == 0) {
        return Err(Invalid::Rule("an exchange without writes"));
    }
    if connection.adus.iter().any(|adu| adu.between.is_some_and(|(least, most)| least > most)) {
        return Err(Invalid::Rule("between: the least time is longer than the greatest"));
    }
    if connection.adus.iter().any(|adu| adu.bytes == 0) {
        return Err(Invalid::Rule("a write of 0 bytes"));
    }
    let times = [("start", connection.start), ("rtt", connection.rtt.unwrap_or(0))].into_iter();
    let pauses = connection.adus.iter().flat_map(|adu| {
        let (least, most) = adu.between.unwrap_or_default();
        [("pause", adu.think_time), ("between", least), ("between", most)]
    });
    let afters = connection.after.into_iter().chain(connection.adus.iter().filter_map(|adu| adu.after));
    let pauses = pauses.chain(afters.map(|after| ("after: pause", after.pause)));
    let took = connection.epochs.iter().map(|epoch| ("took", epoch.took));
    if let Some((what, ns)) = times.chain(pauses).chain(took).find(|(_, ns)| *ns > Workload::LONGEST) {
        return Err(too_long(what, ns));
    }
    for side in [Side::Client, Side::Server] {
        let mine = connection.adus.iter().filter(|adu| adu.side == side);
        if mine.fold(0, |sum: u64, adu| sum.saturating_add(adu.bytes)) > Workload::MAX_BYTES {
            return Err(Invalid::TooManyBytes);
        }
    }
    Ok(())
}

/// Checks a train; the error describes the mistake.
fn check_train(train: &Train) -> Result<(), Invalid> {
    if train.packets.is_empty() {
        return Err(Invalid::Rule("a train without packets"));
    }
    if train.start > Workload::LONGEST {
        return Err(too_long("start", train.start));
    }
    let span = train.packets.iter().fold(0, |sum: u64, (gap, _)| sum.saturating_add(gap));
    if span > Workload::LONGEST {
        return Err(too_long("packets: all gaps together", span));
    }
    Ok(())
}
