//! Any line to the control socket gets an answer of one line. A rejected setting has no effect.

use std::path::Path;
use std::sync::Mutex;

use giveway_control::config::{BridgeConfig, NAMES};
use giveway_control::{ControlApi, ControlError, protocol};
use giveway_watch::Snapshot;

/// Largest number of lines of an input that are read.
const LINES: usize = 16;

/// Input: lines that clients send to one bridge.
pub fn run(input: &[u8]) {
    let bridge = Bridge::default();
    for line in input.split(|byte| *byte == b'\n').take(LINES) {
        let before = bridge.0.lock().expect("no thread panics while it holds the lock").clone();
        let answer = protocol::answer(0, line, &bridge);
        assert!(answer.starts_with("ok ") || answer.starts_with("error "), "{answer}");
        assert!(answer.ends_with('\n'));
        let after = bridge.0.lock().expect("no thread panics while it holds the lock");
        assert!(
            answer.starts_with("ok ") || *after == before,
            "a rejected setting changes nothing: {answer}"
        );
        // Unchanged settings were checked before, and most lines change nothing.
        if *after != before {
            check(&after);
        }
    }
}

/// Checks that every value can be written as text and parsed again with the same result.
pub(super) fn check(config: &BridgeConfig) {
    let mut again = config.clone();
    for name in NAMES {
        let value = config.get(name);
        let set = again.set(name, &value, Some(Path::new("")));
        assert!(set.is_ok(), "{name} was written as {value}");
    }
    assert_eq!(again, *config, "values written as text and parsed again are equal");
}

/// A bridge that consists of its settings only.
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
        let mut config = self.0.lock().expect("no thread panics while it holds the lock");
        let mut new = config.clone();
        new.set(name, value, None)?;
        *config = new;
        Ok(config.get(NAMES[0]))
    }
    fn stop(&self) {}
}
