//! The control socket, and its client `giveway live control`. Another client is `nc -U`.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use giveway_control::client::{self, LONGEST_ANSWER};
use giveway_program::commands::control::{Args, Request};
use giveway_program::show;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, socket};
use nix::sys::stat::{Mode, SFlag, fchmod};

use super::claim::{Claim, Place};
use super::error::BridgeError;
use crate::error::NetError;
use crate::outcome::Outcome;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The place of a new socket. The socket of a dead process is removed, with a message.
///
/// # Errors
/// If the file exists and is not a socket, if another process listens on it, or if the system refuses it.
pub fn plan(path: &Path) -> Result<Claim, BridgeError> {
    let system_error = BridgeError::path("--control", path);
    let place = Place::of(path).map_err(&system_error)?;
    if let Some(existing) = place.status() {
        if SFlag::from_bits_truncate(existing.st_mode) & SFlag::S_IFMT != SFlag::S_IFSOCK {
            return Err(BridgeError::Usage(format!(
                "--control {}: the file exists and is not a socket; choose another name",
                path.display()
            )));
        }
        if UnixStream::connect(place.path()).is_ok() {
            return Err(BridgeError::Usage(format!(
                "--control {}: another process listens there already",
                path.display()
            )));
        }
        place.remove().map_err(&system_error)?;
        show::message(&format!(
            "--control {}: removed the socket of an earlier giveway that has ended",
            path.display()
        ));
    }
    Ok(Claim::planned(place.clone(), place, path.to_owned()))
}

/// The place of a new socket in the folder of `path`, where a running bridge listens, with a name that no
/// file has. It gets the name `path` later.
///
/// # Errors
/// If the folder cannot be opened.
pub fn plan_beside(path: &Path) -> Result<Claim, BridgeError> {
    let place = Place::of(path).map_err(BridgeError::path("--control", path))?;
    let names = (0_u32..).map(|attempt| {
        let mut name = place.name().to_owned();
        name.push(format!(".next-{}-{attempt}", std::process::id()));
        place.beside(&name)
    });
    let free = names.into_iter().find(|name| name.status().is_none());
    let temporary =
        free.ok_or(io::ErrorKind::AlreadyExists.into()).map_err(BridgeError::path("--control", path))?;
    Ok(Claim::planned(temporary, place, path.to_owned()))
}

/// Opens the listening socket of a plan. Only its owner may use it.
///
/// # Errors
/// If the system refuses it.
pub fn listen(claim: &mut Claim) -> Result<UnixListener, BridgeError> {
    let listener = bind(claim.temporary()).map_err(BridgeError::path("--control", claim.path()))?;
    claim.created();
    Ok(listener)
}

/// Opens a listening socket with mode 0600.
fn bind(place: &Place) -> io::Result<UnixListener> {
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // The file gets the mode of the descriptor when it is created (unix_bind in net/unix/af_unix.c), so there
    // is never a time in which it has another one, nor a path that could lead elsewhere.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    nix::sys::socket::bind(socket.as_raw_fd(), &UnixAddr::new(&place.path())?)?;
    nix::sys::socket::listen(&socket, Backlog::MAXCONN)?;
    Ok(UnixListener::from(socket))
}

/// Runs `giveway live control`.
pub fn control(args: &Args, out: &mut dyn Write) -> Result<Outcome, NetError> {
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
        Ok(answer) => match client::parse(&answer) {
            Ok(text) => {
                writeln!(out, "{text}")?;
                Ok(Outcome::Done)
            }
            Err(error) => {
                show::message(&error.to_string());
                Ok(Outcome::Wrong)
            }
        },
    }
}

/// Sends a line to the socket, and returns the answer.
fn answer_to(line: &str, socket: &Path) -> io::Result<String> {
    client::ask(&UnixStream::connect(socket)?, line, LONGEST_ANSWER, PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_socket_is_created_with_its_mode_and_removes_no_foreign_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        let mut earlier = plan(&path).unwrap();
        let listener = listen(&mut earlier).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(plan(&path).is_err(), "a process listens");
        let foreign = dir.path().join("s.next");
        std::fs::write(&foreign, "foreign").unwrap();
        let next = [(); 2].map(|()| {
            let mut claim = plan_beside(&path).unwrap();
            (listen(&mut claim).unwrap(), claim)
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4, "each has a name");
        for (_, claim) in &next {
            claim.claim().unwrap();
            assert_eq!(mode(&path), 0o600);
        }
        earlier.remove().unwrap();
        assert!(path.exists(), "it belongs to another process");
        drop((listener, next));
        drop(listen(&mut plan(&path).unwrap()).unwrap());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        assert!(plan(&link).unwrap_err().to_string().contains("not a socket"));
        assert_eq!(std::fs::read_to_string(&foreign).unwrap(), "foreign");
    }
}
