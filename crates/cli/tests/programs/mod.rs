//! The two programs of a test.

use std::path::Path;
use std::process::Command;

/// The program `giveway`.
pub const GIVEWAY: &str = env!("CARGO_BIN_EXE_giveway");

/// True if `giveway-net` is in the folder of `giveway`. Otherwise a test says what to type and ends. In the
/// gate, which builds it, that is a failure.
pub fn has_net() -> bool {
    let net = Path::new(GIVEWAY).with_file_name("giveway-net");
    if net.exists() {
        return true;
    }
    let gate = std::env::var_os("GIVEWAY_ALL_PROGRAMS");
    assert!(gate.is_none(), "{} was not built", net.display());
    eprintln!("skipped: {} is missing; type cargo build -p giveway-net", net.display());
    false
}

/// Runs a command to its end. Returns its exit code, standard output and standard error.
pub fn giveway(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(GIVEWAY).args(arguments).output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
