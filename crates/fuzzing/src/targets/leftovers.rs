//! Any text is a state file, which says what a killed bridge has left changed, or is refused with a sentence.

use giveway_control::leftovers::Changed;

/// The input is the file.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Changed::parse(text) {
        Ok(changed) => assert_eq!(Changed::parse(&changed.to_text()).expect("it was written"), changed),
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}
