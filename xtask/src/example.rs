//! Records `examples/home-uplink.pcapng` over real Linux TCP.
//!
//! The script `xtask/testbed/record.py` creates the network namespaces and captures the packets. It needs
//! only the standard library of Python, and reports other programs that are missing.

use crate::repository::{Done, Repository};

/// Records the example. `rest` are arguments for the script.
pub fn record(repository: &Repository, rest: &[&str]) -> Done {
    if !repository.has("python3", &["--version"]) {
        return Err("python3 is missing: install Debian's package python3".to_owned());
    }
    repository.run("python3", &[&["-B", "xtask/testbed/record.py"], rest].concat())
}
