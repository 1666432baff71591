//! The error of this crate. Sockets and threads return [`std::io::Error`].

use std::error::Error;
use std::io;

/// An error with a text for users: the problem, and its remedy if there is one.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// An operation on an interface failed.
    #[error("{interface}: {error}")]
    Interface {
        /// The interface.
        interface: String,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// An interface does not exist.
    #[error("no interface {name}: {help}")]
    NoInterface {
        /// The name.
        name: String,
        /// A similar name, and the names of all interfaces.
        help: String,
    },
    /// Reservations need an Ethernet interface.
    #[error("{0} is not an Ethernet interface; reservations need one")]
    NotEthernet(String),
    /// A detour needs an Ethernet interface.
    #[error(
        "{0} has no Ethernet frames, which a detour needs: name the Ethernet interface below it (for PPPoE, the one \
         that pppd uses)"
    )]
    NoDetour(String),
    /// The process may not load programs into the kernel.
    #[error(
        "this process may not lead frames through a detour (CAP_BPF, CAP_NET_ADMIN or netlink is missing): run it \
         with sudo; a service needs the drop-in of `giveway live --wan`, which the book describes"
    )]
    DetourForbidden(#[source] io::Error),
    /// The kernel has no hooks for a detour.
    #[error(
        "this kernel cannot lead frames through a detour, which needs Linux 6.6 or later (tcx): use a bridge with --in \
         and --out instead"
    )]
    DetourUnknown(#[source] io::Error),
    /// The interface is down.
    #[error("{0} is down: ip link set {0} up")]
    Down(String),
    /// The process may not open packet sockets.
    #[error(
        "this user may not send raw frames (CAP_NET_RAW is missing): run it with sudo, or once: sudo setcap cap_net_raw+ep \
         \"$(command -v giveway-net)\""
    )]
    RawFrames(#[source] io::Error),
    /// The system refused to change offloads.
    #[error("cannot turn {features} of {interface} {to}: {error}")]
    Offloads {
        /// The interface.
        interface: String,
        /// Short names of the features.
        features: String,
        /// The wanted state, "on" or "off".
        to: &'static str,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// The interface accepted a change of offloads, but did not carry it out.
    #[error("{interface} did not turn {to}: {features}")]
    OffloadsUnchanged {
        /// The interface.
        interface: String,
        /// Short names of the features.
        features: String,
        /// The wanted state, "on" or "off".
        to: &'static str,
    },
    /// The kernel has no Landlock.
    #[error("this kernel has no Landlock: it needs Linux 5.13 or later, with landlock in its list of LSMs")]
    NoLandlock,
    /// A privilege cannot be dropped.
    #[error("{reason}{cause}")]
    Privilege {
        /// The privilege that is kept, followed by a colon and a space; may be empty.
        reason: &'static str,
        /// The error of the system or of a library.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// Several privileges cannot be dropped.
    #[error("{}", join(.0))]
    Privileges(Vec<LiveError>),
}

impl LiveError {
    /// The error for a privilege that is kept.
    pub(crate) fn privilege(
        reason: &'static str,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> LiveError {
        LiveError::Privilege { reason, cause: cause.into() }
    }

    /// Succeeds if there are no errors.
    pub(crate) fn all(errors: Vec<LiveError>) -> Result<(), LiveError> {
        if errors.is_empty() { Ok(()) } else { Err(LiveError::Privileges(errors)) }
    }
}

fn join(errors: &[LiveError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
