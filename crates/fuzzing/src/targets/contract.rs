//! Every discipline keeps the contract under any operations.

use super::spec::bytes;

/// Input: three bytes that select a discipline, its variant and the link, then operations.
pub fn run(input: &[u8]) {
    if let Err(violation) = bytes::contract(input) {
        panic!("{}", violation.0);
    }
}
