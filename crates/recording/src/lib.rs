//! Requests of a bridge to the process that writes its recording, and the answers.
//!
//! A bridge runs in a small program, `giveway-net`, which cannot write tables. So it starts `giveway` as the
//! user that owns the recording, and the two talk over a socket. The bridge starts with [`start`], and sends
//! one [`Request`] after another. Each gets an answer: done, or the text of an error. The end of the
//! connection ends the process.
//!
//! ```
//! use giveway_recording::{Request, answer, answered, receive, send, start, started};
//!
//! let mut sent = Vec::new();
//! start(&mut sent)?;
//! send(&mut sent, &Request::Check)?;
//! let mut received = &sent[..];
//! started(&mut received)?;
//! assert!(matches!(receive(&mut received)?, Some(Request::Check)));
//! assert!(receive(&mut received)?.is_none());
//!
//! let mut back = Vec::new();
//! answer(&mut back, Err("the disk is full"))?;
//! assert_eq!(answered(&mut &back[..])?, Err("the disk is full".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod carry;
mod rows;

use std::io::{self, Read, Write};

use giveway_measure::Record;

use carry::Carry;

/// The first bytes, which end with the number of the format.
const START: [u8; 8] = *b"gwrec\0\0\x02";
/// The longest request in bytes: about ten times as long as that for a recording with its most samples.
pub const LONGEST: usize = 64 << 20;
/// The longest text of an answer, in bytes.
pub const LONGEST_ANSWER: usize = 4096;

/// The folders in the folder of a recording, one for each direction.
pub const SIDES: [&str; 2] = ["forward", "reverse"];

/// A request to the process that writes.
#[derive(Debug)]
pub enum Request {
    /// Check that the folder contains an earlier recording at most.
    Check,
    /// Write the recording of a direction, in place of its earlier one.
    Write(Box<Part>),
}

/// The recording of one direction so far.
#[derive(Debug)]
pub struct Part {
    /// The number of the direction in [`SIDES`].
    pub side: u8,
    /// The interfaces, as in `eth0 to eth1`.
    pub title: String,
    /// Its stretches in their order. A new one starts when the discipline or the rate changes.
    pub stretches: Vec<Stretch>,
    /// The version of the bridge, and its commit.
    pub version: String,
    /// The commit of the sources of the bridge, if it is known.
    pub commit: Option<String>,
}

/// The stretch of a recording with one discipline and one rate.
#[derive(Debug)]
pub struct Stretch {
    /// The discipline.
    pub qdisc: String,
    /// The rate, in words.
    pub rate: String,
    /// The recorded data. A bridge measures no flows, senders, episodes or bursts: they are not carried.
    pub record: Record,
}

/// Reason why a request cannot be sent or understood.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other process uses another version of the format.
    #[error("giveway and giveway-net have different versions: install both from one release, or build both")]
    Version,
    /// A request is too long.
    #[error("a request has {0} bytes, and may have {LONGEST}")]
    TooLong(usize),
    /// The bytes are not a request.
    #[error("a request is not valid")]
    Invalid,
}

/// Starts the connection.
///
/// # Errors
/// The error of the connection.
pub fn start(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&START)
}

/// Reads the start of the connection.
///
/// # Errors
/// If the other process uses another version.
pub fn started(from: &mut impl Read) -> Result<(), RecordingError> {
    let mut start = [0; START.len()];
    from.read_exact(&mut start)?;
    if start == START { Ok(()) } else { Err(RecordingError::Version) }
}

/// Sends a request.
///
/// # Errors
/// If it is too long, or the error of the connection.
pub fn send(to: &mut impl Write, request: &Request) -> Result<(), RecordingError> {
    let mut bytes = Vec::new();
    request.put(&mut bytes);
    if bytes.len() > LONGEST {
        return Err(RecordingError::TooLong(bytes.len()));
    }
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    Ok(to.write_all(&bytes)?)
}

/// Receives a request; `None` at the end of the connection.
///
/// # Errors
/// If it is too long or not valid, or the error of the connection.
pub fn receive(from: &mut impl Read) -> Result<Option<Request>, RecordingError> {
    let Some(bytes) = frame(from, LONGEST)? else { return Ok(None) };
    let mut rest = &bytes[..];
    let request = Request::get(&mut rest).filter(|_| rest.is_empty());
    request.map(Some).ok_or(RecordingError::Invalid)
}

/// Answers a request.
///
/// # Errors
/// The error of the connection.
pub fn answer(to: &mut impl Write, done: Result<(), &str>) -> io::Result<()> {
    // An empty text means that it is done.
    let text = done.map_or_else(|text| if text.is_empty() { "it failed" } else { text }, |()| "");
    let end = text.floor_char_boundary(LONGEST_ANSWER);
    to.write_all(&(end as u32).to_le_bytes())?;
    to.write_all(&text.as_bytes()[..end])?;
    to.flush()
}

/// Waits for the answer to a request.
///
/// # Errors
/// The error of the connection, or its end.
pub fn answered(from: &mut impl Read) -> io::Result<Result<(), String>> {
    let text = match frame(from, LONGEST_ANSWER) {
        Ok(text) => text.ok_or(io::ErrorKind::UnexpectedEof)?,
        Err(RecordingError::Io(error)) => return Err(error),
        Err(other) => return Err(io::Error::other(other)),
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(if text.is_empty() { Ok(()) } else { Err(text) })
}

/// Reads bytes behind their length; `None` at the end of the connection.
fn frame(from: &mut impl Read, longest: usize) -> Result<Option<Vec<u8>>, RecordingError> {
    let mut length = [0; 4];
    match from.read_exact(&mut length[..1]) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read.and_then(|()| from.read_exact(&mut length[1..]))?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > longest {
        return Err(RecordingError::TooLong(length));
    }
    // The memory grows with what arrives, and not with what was announced.
    let mut bytes = Vec::new();
    match from.take(length as u64).read_to_end(&mut bytes)? {
        read if read == length => Ok(Some(bytes)),
        _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_of_another_version_is_refused() {
        let mut other = START;
        other[7] += 1;
        assert!(matches!(started(&mut &other[..]), Err(RecordingError::Version)));
        assert!(matches!(started(&mut &START[..4]), Err(RecordingError::Io(_))));
    }

    #[test]
    fn requests_have_a_bounded_length_and_are_whole() {
        let longer = (LONGEST as u32 + 1).to_le_bytes();
        assert!(matches!(receive(&mut &longer[..]), Err(RecordingError::TooLong(_))));
        let mut bytes = Vec::new();
        send(&mut bytes, &Request::Check).unwrap();
        for end in 1..bytes.len() {
            assert!(matches!(receive(&mut &bytes[..end]), Err(RecordingError::Io(_))), "{end} bytes");
        }
        // A byte behind the request.
        bytes[0] += 1;
        bytes.push(0);
        assert!(matches!(receive(&mut &bytes[..]), Err(RecordingError::Invalid)));
    }

    #[test]
    fn answers_are_text_of_a_bounded_length() {
        let both = |done: Result<(), &str>| {
            let mut bytes = Vec::new();
            answer(&mut bytes, done).unwrap();
            answered(&mut &bytes[..]).unwrap()
        };
        assert_eq!(both(Ok(())), Ok(()));
        assert_eq!(both(Err("")), Err("it failed".to_owned()));
        // Two bytes each, and one more before them, so that the limit is within a character.
        let long = format!("a{}", "é".repeat(LONGEST_ANSWER));
        assert_eq!(both(Err(&long)).unwrap_err().len(), LONGEST_ANSWER - 1);
        assert_eq!(answered(&mut &[][..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let longer = (LONGEST_ANSWER as u32 + 1).to_le_bytes();
        assert!(answered(&mut &longer[..]).is_err());
        assert_eq!(answered(&mut &[1, 0, 0, 0, 0xff][..]).unwrap(), Err("\u{fffd}".to_owned()));
    }
}
