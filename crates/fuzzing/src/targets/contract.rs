//! Any discipline under any operations keeps the contract.

use super::spec::bytes;

/// Three bytes choose a discipline, its variant and the link; the rest is operations.
pub fn run(input: &[u8]) {
    if let Err(violation) = bytes::contract(input) {
        panic!("{}", violation.0);
    }
}
