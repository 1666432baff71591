//! Any bytes are read as a capture or refused with a place, and what is read gives a workload.

#[allow(dead_code)]
#[path = "../../../capture/tests/support/bytes.rs"]
mod bytes;
#[path = "../../../workload/tests/support/bytes.rs"]
mod workloads;

/// The input is a file.
pub fn run(input: &[u8]) {
    let (packets, _) = bytes::capture(input);
    workloads::extract(&packets);
}
