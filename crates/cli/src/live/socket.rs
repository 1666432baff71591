//! The control socket, and its client `giveway control`. Another client is `nc -U`.

use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::BridgeError;
use crate::error::CliError;
use crate::{Outcome, show};

/// Changes a running `giveway live`, or prints its state.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Control socket (--control of `giveway live`)
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    #[command(subcommand)]
    request: Request,
}

#[derive(clap::Subcommand)]
enum Request {
    /// Print the state, as JSON
    Show,
    /// Print all reservations, as JSON (--reserve)
    Reservations,
    /// Change a setting
    Set {
        /// rate, qdisc, delay, jitter, loss, fragment or reassemble, or one of these with -reverse for the
        /// other direction
        name: String,
        /// New value, as for the flag of `giveway live` with this name
        value: String,
    },
    /// Send the backlog and exit
    Stop,
}

const EXAMPLES: &str = "\
Examples:
  giveway control /run/giveway.sock show | jq '.directions[0].sojourn_s'
  giveway control /run/giveway.sock set rate 8mbit
  giveway control /run/giveway.sock set qdisc-reverse \"fq_codel limit 500p\"
  giveway control /run/giveway.sock reservations | jq '.[] | [.flow, .rate_bps]'
  giveway control /run/giveway.sock stop";

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a listening socket that only its owner may use. The socket of a dead process is removed, with a
/// message.
///
/// # Errors
/// If the file exists and is not a socket, if another process listens on it, or if the system refuses it.
pub fn listen(path: &Path) -> Result<UnixListener, BridgeError> {
    let system_error = BridgeError::path("--control", path);
    if let Ok(existing) = std::fs::symlink_metadata(path) {
        if !existing.file_type().is_socket() {
            return Err(BridgeError::Usage(format!(
                "--control {}: the file exists and is not a socket; choose another name",
                path.display()
            )));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(BridgeError::Usage(format!(
                "--control {}: another process listens there already",
                path.display()
            )));
        }
        std::fs::remove_file(path).map_err(&system_error)?;
        show::message(&format!(
            "--control {}: removed the socket of an earlier giveway that has ended",
            path.display()
        ));
    }
    bind(path).map_err(&system_error)
}

/// Opens a listening socket beside that of a running bridge. It gets the name `path` later.
///
/// # Errors
/// If the system refuses it.
pub fn listen_beside(path: &Path) -> Result<(UnixListener, PathBuf), BridgeError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".next");
    let temporary = path.with_file_name(name);
    // It may be from a process that was killed while it took over.
    let _ = std::fs::remove_file(&temporary);
    Ok((bind(&temporary).map_err(BridgeError::path("--control", &temporary))?, temporary))
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Runs `giveway control`.
pub fn control(args: &Args, out: &mut dyn Write) -> Result<Outcome, CliError> {
    let line = match &args.request {
        Request::Show => "show".to_owned(),
        Request::Reservations => "reservations".to_owned(),
        Request::Set { name, value } => format!("set {name} {value}"),
        Request::Stop => "stop".to_owned(),
    };
    match answer_to(&line, &args.socket) {
        Err(error) => {
            show::message(&format!(
                "no answer at {}: {error}; is `giveway live` running with --control {0}?",
                args.socket.display()
            ));
            Ok(Outcome::Failed)
        }
        Ok(answer) => match answer.trim_end().split_once(' ') {
            Some(("ok", text)) => {
                writeln!(out, "{text}")?;
                Ok(Outcome::Done)
            }
            Some((_, message)) => {
                show::message(message);
                Ok(Outcome::Wrong)
            }
            None => {
                show::message("the answer was cut off");
                Ok(Outcome::Failed)
            }
        },
    }
}

/// Sends a line to the socket, and returns the answer.
pub fn answer_to(line: &str, socket: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{}", line.replace('\n', " "))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
