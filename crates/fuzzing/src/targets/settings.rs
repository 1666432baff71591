//! Any settings file is rejected, or defines a bridge whose disciplines can be built.

use std::path::Path;

use giveway_control::config::{Direction, LinkLimits};
use giveway_control::{building, settings};
use giveway_qdisc::Streams;

use super::control_line::check;

/// Input: the settings file.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let filed = match settings::parse(text) {
        Ok(filed) => filed,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let config = match settings::resolve(Path::new("live.toml"), &filed, &[], None) {
        Ok(config) => config,
        Err(error) => return assert!(error.to_string().starts_with("live.toml: "), "{error}"),
    };
    check(&config);
    for ethernet in [true, false] {
        let _ = config.within(&LinkLimits { ethernet, longest: 1518 });
    }
    for side in [Direction::Forward, Direction::Reverse] {
        let one = config.of(side);
        let mut build = building::builder(one.qdisc.clone(), Streams::new(1), None, "fuzz");
        let qdisc = build(one.rate);
        assert_eq!(qdisc.backlog(), giveway_qdisc::Backlog::ZERO);
        assert!(building::buffers(one, &Streams::new(1)) > 0);
    }
}
