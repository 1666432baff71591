//! Any text is parsed as a state file (the settings that a killed bridge did not restore), or rejected with a
//! message.

use giveway_control::leftovers::Changed;

/// Input: the state file.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Changed::parse(text) {
        Ok(changed) => {
            assert_eq!(Changed::parse(&changed.to_text()).expect("the text was just written"), changed)
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
