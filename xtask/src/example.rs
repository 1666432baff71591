//! Records `examples/home-uplink.pcapng` over real Linux TCP.
//!
//! Network namespaces, packet sockets and tcpdump are the business of `xtask/testbed/record.py`, which needs
//! no more than Python's standard library; it says what else is missing on this machine.

use crate::repository::{Done, Repository};

/// Records it; what follows the chore's name is for the script.
pub fn record(repository: &Repository, rest: &[&str]) -> Done {
    if !repository.has("python3", &["--version"]) {
        return Err("python3 is missing: install Debian's package python3".to_owned());
    }
    repository.run("python3", &[&["-B", "xtask/testbed/record.py"], rest].concat())
}
