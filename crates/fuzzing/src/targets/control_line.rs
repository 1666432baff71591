//! Any line to the control socket gets one line as an answer, and a setting that is refused changes nothing.

use std::sync::Mutex;

use giveway_control::config::{BridgeConfig, NAMES};
use giveway_control::{ControlApi, ControlError, protocol};
use giveway_watch::Snapshot;

/// The most lines of an input that are read.
const LINES: usize = 16;

/// Each line of the input is what a client sends; all of them reach the same bridge.
pub fn run(input: &[u8]) {
    let bridge = Bridge::default();
    for line in input.split(|byte| *byte == b'\n').take(LINES) {
        let before = bridge.0.lock().expect("nobody panicked").clone();
        let answer = protocol::answer(line, &bridge);
        assert!(answer.starts_with("ok ") || answer.starts_with("wrong "), "{answer}");
        assert!(answer.ends_with('\n'));
        let after = bridge.0.lock().expect("nobody panicked");
        assert!(answer.starts_with("ok ") || *after == before, "what is refused is not done: {answer}");
        // What has not changed was checked before, and most lines change nothing.
        if *after != before {
            check(&after);
        }
    }
}

/// Every value is written so that it reads the same again.
pub(super) fn check(config: &BridgeConfig) {
    let mut again = config.clone();
    for name in NAMES {
        let value = config.get(name);
        let set = again.set(name, &value);
        assert!(set.is_ok(), "{name} was written as {value}");
    }
    assert_eq!(again, *config, "it is written and read again");
}

/// A bridge of which there is nothing but its settings.
#[derive(Default)]
struct Bridge(Mutex<BridgeConfig>);

impl ControlApi for Bridge {
    fn snapshots(&self) -> Result<Vec<Snapshot>, ControlError> {
        Ok(Vec::new())
    }
    fn reservations(&self) -> Result<String, ControlError> {
        Err(ControlError::unavailable("there are none"))
    }
    fn set(&self, name: &str, value: &str) -> Result<String, ControlError> {
        let mut config = self.0.lock().expect("nobody panicked");
        let mut new = config.clone();
        new.set(name, value)?;
        *config = new;
        Ok(config.get(NAMES[0]))
    }
    fn stop(&self) {}
}
