//! Fields of a capture, as tshark reads them.

use std::path::Path;
use std::process::Command;

/// The fields of every packet, in a row each. `None` if tshark is not installed; the reason is printed.
/// `settings` are preferences, as in `ip.check_checksum:TRUE`; all others have their defaults.
pub fn fields(file: &Path, fields: &[&str], settings: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut tshark = Command::new("tshark");
    // Without the preferences of the user who runs the tests.
    tshark.env("HOME", file.parent().expect("a file is in a folder")).env("XDG_CONFIG_HOME", "/nonexistent");
    tshark.args(["-n", "-T", "fields", "-E", "separator=/t", "-r"]).arg(file);
    for setting in settings {
        tshark.args(["-o", setting]);
    }
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = match tshark.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("not compared with tshark, which cannot be started: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("fields are text");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}
