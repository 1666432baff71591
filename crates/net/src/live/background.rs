//! `giveway live --background`: starts the bridge as another process, and returns once frames pass.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use giveway_bridge::pause;
use giveway_program::provenance;

use super::error::BridgeError;
use super::notify::Manager;
use crate::error::NetError;
use crate::outcome::Outcome;

/// Interval between looks at the other process.
const LOOK: Duration = Duration::from_millis(10);

/// Starts this command without `--background`, and waits until frames pass.
///
/// # Errors
/// If the process cannot be started. Why a bridge does not start, it prints itself.
pub fn start() -> Result<Outcome, NetError> {
    let folder = tempfile::tempdir().map_err(BridgeError::flag("--background"))?;
    let ready = folder.path().join("ready");
    let words = provenance::arguments();
    let mut arguments: Vec<OsString> = words.into_iter().filter(|word| word != "--background").collect();
    arguments.extend(["--ready".into(), ready.clone().into_os_string()]);
    let program = provenance::program().map_err(BridgeError::flag("--background"))?;
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let mut child = child.map_err(BridgeError::flag("--background"))?;
    loop {
        if ready.exists() {
            // If this process was started by a service manager, the bridge is the service from now on.
            Manager::connect(false).replaced_by(child.id());
            return Ok(Outcome::Done);
        }
        if let Some(ended) = child.try_wait().map_err(BridgeError::flag("--background"))? {
            let outcome = if ended.code() == Some(2) { Outcome::Wrong } else { Outcome::Failed };
            return Err(NetError::Reported(outcome));
        }
        pause(LOOK);
    }
}

/// The error for a flag that needs a terminal.
pub fn without_terminal() -> BridgeError {
    let error = io::Error::new(io::ErrorKind::InvalidInput, "the bridge has no terminal: leave out --tui");
    BridgeError::flag("--background")(error)
}
