//! Any bytes are fragments that become frames, wait, or are lost for a reason, within bounded memory.

#[path = "../../../wire/tests/support/fragments.rs"]
mod fragments;

/// The first byte says how many packets may wait; the rest are fragments.
pub fn run(input: &[u8]) {
    let _ = fragments::fragments(input);
}
