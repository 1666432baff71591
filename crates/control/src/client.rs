//! The client of a control socket. The process that listens may be any other: its answers have a largest
//! length and a time limit.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use giveway_live::clock::monotonic_ns;

use crate::error::ControlError;

/// Largest length of an answer, in bytes: more than all reservations of a bridge.
pub const LONGEST_ANSWER: usize = 64 << 20;
/// Largest length of an answer during a hand-over, in bytes.
pub const LONGEST_SHORT_ANSWER: usize = 4096;

/// Sends a line, and returns the line of the answer without its line feed.
///
/// # Errors
/// The error of the system; `TimedOut` if the answer is not complete after `patience`; `InvalidData` if it is
/// longer than `longest` bytes, or no text; `UnexpectedEof` if it was cut off.
pub fn ask(mut stream: &UnixStream, line: &str, longest: usize, patience: Duration) -> io::Result<String> {
    let until = monotonic_ns().saturating_add(patience.as_nanos() as u64);
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no complete answer in {patience:?}"));
        let left = Duration::from_nanos(until.saturating_sub(monotonic_ns()));
        // A process that was stopped meanwhile may have the answer already.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let more = match stream.read(&mut chunk) {
            Ok(0) => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut off"));
            }
            Ok(more) => &chunk[..more],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(error) => return Err(error),
        };
        let end = more.iter().position(|byte| *byte == b'\n');
        answer.extend(&more[..end.unwrap_or(more.len())]);
        if answer.len() > longest {
            let text = format!("the answer is longer than {longest} bytes: no giveway live listens there");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if end.is_some() {
            return String::from_utf8(answer)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the answer is not UTF-8"));
        }
        if left.is_zero() {
            return Err(late());
        }
    }
}

/// Parses the line of an answer.
///
/// # Errors
/// The message of the bridge, if it refused the request.
pub fn parse(line: &str) -> Result<&str, ControlError> {
    match line.split_once(' ') {
        Some(("ok", text)) => Ok(text),
        Some(("error", message)) => Err(ControlError::unavailable(message)),
        _ => Err(ControlError::invalid(
            "the answer begins with neither ok nor error: no giveway live listens there",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error, or the answer, to a request that another thread answers with pieces, one each 20 ms.
    fn answered(pieces: &[&[u8]], ends: bool) -> Result<String, io::ErrorKind> {
        let (client, mut server) = UnixStream::pair().unwrap();
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let serving = std::thread::spawn(move || {
            let mut line = [0; 6];
            server.read_exact(&mut line).unwrap();
            assert_eq!(&line, b"state\n");
            for piece in pieces {
                std::thread::park_timeout(Duration::from_millis(20));
                if server.write_all(&piece).is_err() {
                    break;
                }
            }
            (!ends).then_some(server)
        });
        let patience = if ends { Duration::from_secs(60) } else { Duration::from_millis(500) };
        let answer = ask(&client, "state", 1 << 20, patience).map_err(|error| error.kind());
        drop(client);
        serving.join().unwrap();
        answer
    }

    #[test]
    fn an_answer_is_a_line_of_limited_length_in_limited_time() {
        use io::ErrorKind::{InvalidData, TimedOut, UnexpectedEof};
        assert_eq!(answered(&[b"ok ", b"drained\nmore"], true), Ok("ok drained".to_owned()));
        assert_eq!(answered(&[b"ok drained"], true), Err(UnexpectedEof));
        assert_eq!(answered(&[b"\xff\n"], true), Err(InvalidData));
        assert_eq!(answered(&[b"ok"], false), Err(TimedOut), "the answer is not complete");
        // Each piece comes in time, and all of them do not.
        assert_eq!(answered(&[&b"a"[..]; 40], false), Err(TimedOut));
        let endless = vec![b'a'; 1 << 20];
        let endless: Vec<&[u8]> = (0..100).map(|_| &endless[..]).collect();
        assert_eq!(answered(&endless, true), Err(InvalidData));
    }

    #[test]
    fn answers_are_parsed() {
        assert_eq!(parse("ok rate is 5mbit").unwrap(), "rate is 5mbit");
        assert_eq!(parse("error no such rate").unwrap_err().to_string(), "no such rate");
        for strange in ["", "ok", "HTTP/1.1 200 OK", "okay yes"] {
            assert!(parse(strange).unwrap_err().to_string().contains("neither ok nor error"));
        }
    }
}
