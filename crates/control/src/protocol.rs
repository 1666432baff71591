//! The protocol of the control socket: the client sends one line, the bridge sends one answer and closes.
//!
//! An answer is `ok TEXT` or `error SENTENCE`, and a line feed. Only the connection of a hand-over
//! ([`crate::handover`]) stays open for further lines.

use giveway_watch::{Snapshot, json};

use crate::config::NAMES;
use crate::error::ControlError;
use crate::handover::{Client, HandOverAnswer, HandOverRequest};

/// The longest line that a client may send, in bytes, without its line feed.
pub const LONGEST_LINE: usize = 4096;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Returns the snapshots of both directions, as JSON.
    Show,
    /// Returns all reservations, as JSON.
    Reservations,
    /// Changes a setting.
    Set {
        /// Name of the setting, one of [`NAMES`].
        name: String,
        /// New value, as the client wrote it.
        value: String,
    },
    /// Hands the bridge over to another process.
    HandOver(HandOverRequest),
    /// Sends the backlog and ends the bridge.
    Stop,
}

/// The interface of a bridge to the control socket and the metrics server.
pub trait ControlApi: Send + Sync + 'static {
    /// Snapshots of both directions, forward first.
    ///
    /// # Errors
    /// If the bridge cannot read its counters.
    fn snapshots(&self) -> Result<Vec<Snapshot>, ControlError>;
    /// All reservations, as JSON.
    ///
    /// # Errors
    /// If the bridge keeps no reservations.
    fn reservations(&self) -> Result<String, ControlError>;
    /// Changes a setting, and returns a message with the change.
    ///
    /// # Errors
    /// If the setting or its value is not valid. No change is made then.
    fn set(&self, name: &str, value: &str) -> Result<String, ControlError>;
    /// Carries out a request of a process that takes the bridge over.
    ///
    /// # Errors
    /// If the request does not fit the state, or the bridge cannot be handed over.
    fn hand_over(&self, client: Client, request: HandOverRequest) -> Result<HandOverAnswer, ControlError> {
        let _ = (client, request);
        Err(ControlError::unavailable("this bridge cannot be handed over"))
    }
    /// True if the connection of this client must stay open after an answer.
    fn keeps(&self, client: Client) -> bool {
        let _ = client;
        false
    }
    /// The connection of a client has ended.
    fn left(&self, client: Client) {
        let _ = client;
    }
    /// Requests that the bridge sends its backlog and ends.
    fn stop(&self);
}

impl Command {
    /// Parses a line.
    ///
    /// # Errors
    /// If the line is not a command. The error lists the commands.
    pub fn parse(line: &str) -> Result<Command, ControlError> {
        let line = line.trim();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("show", "") => Ok(Command::Show),
            ("reservations", "") => Ok(Command::Reservations),
            ("stop", "") => Ok(Command::Stop),
            ("hand-over", rest) => Ok(Command::HandOver(HandOverRequest::parse(rest)?)),
            ("set", rest) => {
                let (name, value) = rest.trim().split_once(' ').ok_or_else(|| {
                    let names = NAMES.join(", ");
                    let message =
                        format!("set needs a name and a value: set NAME VALUE, with NAME one of {names}");
                    ControlError::invalid(message)
                })?;
                Ok(Command::Set { name: name.to_owned(), value: value.trim().to_owned() })
            }
            (verb, _) => Err(ControlError::invalid(format!(
                "unknown command \"{}\": there are show, reservations, set NAME VALUE, and stop",
                verb.escape_debug()
            ))),
        }
    }

    /// Carries out the command of a client, and returns the text of the answer.
    ///
    /// # Errors
    /// The error of the bridge. No change is made then.
    pub fn apply(&self, client: Client, api: &impl ControlApi) -> Result<String, ControlError> {
        match self {
            Command::Show => Ok(json::render(&api.snapshots()?).to_string()),
            Command::Reservations => api.reservations(),
            Command::Set { name, value } => api.set(name, value),
            Command::HandOver(request) => Ok(api.hand_over(client, *request)?.text().to_owned()),
            Command::Stop => {
                api.stop();
                Ok("ends".to_owned())
            }
        }
    }
}

/// The answer to the request of a client, with or without its line feed.
pub fn answer(client: Client, request: &[u8], api: &impl ControlApi) -> String {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let done = if line.len() > LONGEST_LINE {
        Err(ControlError::invalid(format!("the line is longer than {LONGEST_LINE} bytes")))
    } else {
        let line = std::str::from_utf8(line).map_err(|_| ControlError::invalid("the line is not UTF-8"));
        line.and_then(Command::parse).and_then(|command| command.apply(client, api))
    };
    match done {
        Ok(text) => format!("ok {text}\n"),
        Err(error) => format!("error {error}\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl ControlApi for Log {
        fn snapshots(&self) -> Result<Vec<Snapshot>, ControlError> {
            Ok(Vec::new())
        }
        fn reservations(&self) -> Result<String, ControlError> {
            Err(ControlError::unavailable("there are none"))
        }
        fn set(&self, name: &str, value: &str) -> Result<String, ControlError> {
            self.0.lock().unwrap().push(format!("{name}={value}"));
            Ok(format!("{name} is {value}"))
        }
        fn stop(&self) {
            self.0.lock().unwrap().push("stop".to_owned());
        }
    }

    #[test]
    fn lines_get_their_answers() {
        let log = Log::default();
        let answered = |line: &[u8]| answer(0, line, &log);
        let shown = format!("ok {}\n", json::render(&[]));
        assert_eq!(answered(b"show\n"), shown);
        assert_eq!(answered(b"  show  "), shown);
        assert_eq!(answered(b"reservations\nstop\n"), "error there are none\n", "one line is one command");
        assert_eq!(answered(b"set rate  8mbit \n"), "ok rate is 8mbit\n");
        assert_eq!(answered(b"set qdisc fifo limit 10p\n"), "ok qdisc is fifo limit 10p\n");
        assert!(answered(b"set rate\n").starts_with("error set needs a name and a value"));
        assert_eq!(answered(b"hand-over 2 state\n"), "error this bridge cannot be handed over\n");
        assert!(answered(b"hand-over\n").starts_with("error hand-over needs 2"));
        assert!(answered(b"halt\x1b[2J\n").starts_with("error unknown command \"halt\\u{1b}[2J\""));
        assert!(answered(b"").starts_with("error unknown command"));
        assert_eq!(answered(b"\xff\n"), "error the line is not UTF-8\n");
        assert!(answered(&[b'a'; LONGEST_LINE + 1]).starts_with("error the line is longer than 4096 bytes"));
        assert_eq!(answered(b"stop"), "ok ends\n");
        assert_eq!(*log.0.lock().unwrap(), ["rate=8mbit", "qdisc=fifo limit 10p", "stop"]);
    }
}
