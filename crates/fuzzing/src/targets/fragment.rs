//! Any fragments are reassembled, wait for others, or are lost with a reason, within bounded memory.

#[path = "../../../wire/tests/support/fragments.rs"]
mod fragments;

/// Input: one byte with the limit of incomplete packets, then fragments.
pub fn run(input: &[u8]) {
    let _ = fragments::fragments(input);
}
