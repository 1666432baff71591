//! The file of a workload: a line of JSON that says what it is, then a line for each connection and train.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::model::{Connection, Train, Workload};

const VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// The version of the format.
    giveway_workload: u32,
    /// From the first packet to the last, ns.
    span: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Tcp(Connection),
    Train(Train),
}

/// Why a workload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system could not read it.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Its first line is not that of a workload.
    #[error("is no workload: its first line should be {{\"giveway_workload\":1,\"span\":...}}")]
    Foreign,
    /// It was written by a later version.
    #[error("is a workload of version {0}; this program knows version {VERSION}")]
    Version(u32),
    /// A line makes no sense.
    #[error("line {line}: {what}")]
    Line {
        /// Which one, counted from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl Workload {
    /// Writes it.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let mut line = |value: String| writeln!(out, "{value}");
        line(serde_json::to_string(&Head { giveway_workload: VERSION, span: self.span })?)?;
        for connection in &self.connections {
            line(serde_json::to_string(&Line::Tcp(connection.clone()))?)?;
        }
        for train in &self.trains {
            line(serde_json::to_string(&Line::Train(train.clone()))?)?;
        }
        out.flush()
    }

    /// Reads what [`write`](Workload::write) wrote, or somebody by hand.
    ///
    /// # Errors
    /// The line that makes no sense.
    pub fn read(input: impl BufRead) -> Result<Workload, FileError> {
        let mut lines = input.lines();
        let head: Head = match lines.next().transpose()? {
            Some(text) => serde_json::from_str(&text).map_err(|_| FileError::Foreign)?,
            None => return Err(FileError::Foreign),
        };
        if head.giveway_workload != VERSION {
            return Err(FileError::Version(head.giveway_workload));
        }
        let mut workload = Workload { span: head.span, ..Workload::default() };
        for (text, line) in lines.zip(2..) {
            let text = text?;
            if text.trim().is_empty() {
                continue;
            }
            let wrong = |what: String| FileError::Line { line, what };
            match serde_json::from_str(&text).map_err(|error| wrong(told(&error)))? {
                Line::Tcp(connection) => {
                    check(&connection).map_err(|what| wrong(what.to_owned()))?;
                    workload.connections.push(connection);
                }
                Line::Train(train) if train.packets.is_empty() => {
                    return Err(wrong("a train without packets".to_owned()));
                }
                Line::Train(train) => workload.trains.push(train),
            }
        }
        Ok(workload)
    }
}

/// What is wrong, and where in the line: the parser counts lines of its own, and always one.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line 1 column").next().unwrap_or(&text);
    format!("{what}, at character {}", error.column())
}

fn check(connection: &Connection) -> Result<(), &'static str> {
    let writes: u64 = connection.exchanges.iter().map(|exchange| u64::from(exchange.writes)).sum();
    if writes != connection.writes.len() as u64 {
        return Err("the exchanges do not add up to the writes");
    }
    if connection.exchanges.iter().any(|exchange| exchange.writes == 0) {
        return Err("an exchange without writes");
    }
    if connection.writes.iter().any(|write| write.bytes == 0) {
        return Err("a write of 0 bytes");
    }
    Ok(())
}
