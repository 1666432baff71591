//! The control socket, and `giveway control`, its client. `nc -U` would do.

use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Outcome, show};

/// Changes a running `giveway live`, or asks how it is.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The socket that it was started with (--control)
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Print how it is, as JSON
    Show,
    /// Print who has reserved what, as JSON (--reserve)
    Reservations,
    /// Change one thing: rate, qdisc, delay, jitter, loss, fragment, reassemble, and each of them with -back
    Set {
        /// What to change
        name: String,
        /// To what
        value: String,
    },
    /// Send what is queued, and end
    Stop,
}

const EXAMPLES: &str = "\
Examples:
  giveway control /run/giveway.sock show | jq '.directions[0].sojourn_s'
  giveway control /run/giveway.sock set rate 8mbit
  giveway control /run/giveway.sock set qdisc-reverse \"fq_codel limit 500p\"
  giveway control /run/giveway.sock reservations | jq '.[] | [.flow, .rate_bps]'
  giveway control /run/giveway.sock stop";

/// Nobody waits longer for the other side.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket that listens, for its owner only. One that a dead process left behind is taken away.
///
/// # Errors
/// A sentence.
pub fn listen(path: &Path) -> Result<UnixListener, String> {
    let told = |error: io::Error| format!("--control {}: {error}", path.display());
    if let Ok(there) = std::fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            return Err(format!(
                "--control {}: there is a file that is no socket; choose another name",
                path.display()
            ));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(format!("--control {}: somebody listens there already", path.display()));
        }
        std::fs::remove_file(path).map_err(told)?;
        show::sentence(&format!(
            "--control {}: removed the socket of an earlier giveway, which is not there any more",
            path.display()
        ));
    }
    let listener = UnixListener::bind(path).map_err(told)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(told)?;
    Ok(listener)
}

/// `giveway control`.
pub fn control(args: &Args, out: &mut dyn Write) -> io::Result<Outcome> {
    let line = match &args.verb {
        Verb::Show => "show".to_owned(),
        Verb::Reservations => "reservations".to_owned(),
        Verb::Set { name, value } => format!("set {name} {value}"),
        Verb::Stop => "stop".to_owned(),
    };
    let asked = UnixStream::connect(&args.socket).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        writeln!(stream, "{}", line.replace('\n', " "))?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    match asked {
        Err(error) => {
            show::sentence(&format!(
                "nobody answers at {}: {error}; is `giveway live` running with --control {0}?",
                args.socket.display()
            ));
            Ok(Outcome::Failed)
        }
        Ok(answer) => match answer.trim_end().split_once(' ') {
            Some(("ok", text)) => {
                writeln!(out, "{text}")?;
                Ok(Outcome::Done)
            }
            Some((_, sentence)) => {
                show::sentence(sentence);
                Ok(Outcome::Wrong)
            }
            None => {
                show::sentence("the answer broke off");
                Ok(Outcome::Failed)
            }
        },
    }
}
