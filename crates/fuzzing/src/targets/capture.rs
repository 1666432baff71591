//! Any bytes are parsed as a capture, or rejected with a position. A workload is extracted from the packets.

#[allow(dead_code)]
#[path = "../../../capture/tests/support/bytes.rs"]
mod bytes;
#[path = "../../../workload/tests/support/bytes.rs"]
mod workloads;

/// Input: a capture file.
pub fn run(input: &[u8]) {
    let (packets, _) = bytes::capture(input);
    workloads::extract(&packets);
}
