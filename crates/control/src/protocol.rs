//! The protocol of the control socket: the client sends one line, the bridge sends one answer and closes.
//!
//! An answer is `ok TEXT` or `wrong SENTENCE`, and a line feed.

use giveway_watch::Snapshot;

use crate::config::NAMES;

/// The longest line that a client may send, in bytes, without its line feed.
pub const LONGEST_LINE: usize = 4096;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The state of both directions, as JSON.
    Show,
    /// The reservations, as JSON.
    Reservations,
    /// Change one value.
    Set {
        /// One of [`NAMES`].
        name: String,
        /// The new value, as written.
        value: String,
    },
    /// Send what is queued, and end.
    Stop,
}

/// Answers commands: a bridge, seen from the control socket and the metrics server.
pub trait ControlApi: Send + Sync + 'static {
    /// The state of both directions, as JSON.
    ///
    /// # Errors
    /// A sentence.
    fn show(&self) -> Result<String, String>;
    /// The reservations, as JSON.
    ///
    /// # Errors
    /// A sentence.
    fn reservations(&self) -> Result<String, String>;
    /// Changes one value, and says what was changed.
    ///
    /// # Errors
    /// A sentence. Nothing was changed then.
    fn set(&self, name: &str, value: &str) -> Result<String, String>;
    /// Has the bridge send what is queued, and end.
    fn stop(&self);
    /// The state of both directions, for metrics.
    fn snapshots(&self) -> Vec<Snapshot>;
}

impl Command {
    /// Parses one line.
    ///
    /// # Errors
    /// A sentence that says which commands there are.
    pub fn parse(line: &str) -> Result<Command, String> {
        let line = line.trim();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("show", "") => Ok(Command::Show),
            ("reservations", "") => Ok(Command::Reservations),
            ("stop", "") => Ok(Command::Stop),
            ("set", rest) => {
                let (name, value) = rest.trim().split_once(' ').ok_or_else(|| {
                    format!("set needs a name and a value: set NAME VALUE, NAME one of {}", NAMES.join(", "))
                })?;
                Ok(Command::Set { name: name.to_owned(), value: value.trim().to_owned() })
            }
            (verb, _) => Err(format!(
                "unknown command \"{}\": there are show, reservations, set NAME VALUE, and stop",
                verb.escape_debug()
            )),
        }
    }

    /// Has a bridge do it.
    ///
    /// # Errors
    /// A sentence. Nothing was changed then.
    pub fn apply(&self, api: &impl ControlApi) -> Result<String, String> {
        match self {
            Command::Show => api.show(),
            Command::Reservations => api.reservations(),
            Command::Set { name, value } => api.set(name, value),
            Command::Stop => {
                api.stop();
                Ok("ends".to_owned())
            }
        }
    }
}

/// The answer to what a client sent, with or without its line feed.
pub fn answer(request: &[u8], api: &impl ControlApi) -> String {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let done = if line.len() > LONGEST_LINE {
        Err(format!("the line is longer than {LONGEST_LINE} bytes"))
    } else {
        let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned());
        line.and_then(Command::parse).and_then(|command| command.apply(api))
    };
    match done {
        Ok(text) => format!("ok {text}\n"),
        Err(sentence) => format!("wrong {sentence}\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl ControlApi for Log {
        fn show(&self) -> Result<String, String> {
            Ok("{}".to_owned())
        }
        fn reservations(&self) -> Result<String, String> {
            Err("there are none".to_owned())
        }
        fn set(&self, name: &str, value: &str) -> Result<String, String> {
            self.0.lock().unwrap().push(format!("{name}={value}"));
            Ok(format!("{name} is {value}"))
        }
        fn stop(&self) {
            self.0.lock().unwrap().push("stop".to_owned());
        }
        fn snapshots(&self) -> Vec<Snapshot> {
            Vec::new()
        }
    }

    #[test]
    fn lines_get_their_answers() {
        let log = Log::default();
        let said = |line: &[u8]| answer(line, &log);
        assert_eq!(said(b"show\n"), "ok {}\n");
        assert_eq!(said(b"  show  "), "ok {}\n");
        assert_eq!(said(b"reservations\nstop\n"), "wrong there are none\n", "one line is one command");
        assert_eq!(said(b"set rate  8mbit \n"), "ok rate is 8mbit\n");
        assert_eq!(said(b"set qdisc fifo limit 10p\n"), "ok qdisc is fifo limit 10p\n");
        assert!(said(b"set rate\n").starts_with("wrong set needs a name and a value"));
        assert!(said(b"halt\x1b[2J\n").starts_with("wrong unknown command \"halt\\u{1b}[2J\""));
        assert!(said(b"").starts_with("wrong unknown command"));
        assert_eq!(said(b"\xff\n"), "wrong the line is not UTF-8\n");
        assert!(said(&[b'a'; LONGEST_LINE + 1]).starts_with("wrong the line is longer than 4096 bytes"));
        assert_eq!(said(b"stop"), "ok ends\n");
        assert_eq!(*log.0.lock().unwrap(), ["rate=8mbit", "qdisc=fifo limit 10p", "stop"]);
    }
}
