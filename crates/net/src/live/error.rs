//! The error of `giveway live`.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use giveway_bridge::OutputError;
use giveway_control::ControlError;
use giveway_files::Occupied;
use giveway_live::LiveError;
use giveway_program::other::OtherError;
use giveway_qdisc::units::UnitError;

use crate::key::KeyError;

/// Reason why a bridge does not start, or why one of its outputs cannot be completed. Its causes are in
/// `source()`.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// A flag has an invalid value, or does not fit the others. The message says what to type.
    #[error("{0}")]
    Usage(String),
    /// A rate is not valid.
    #[error("--{name}")]
    Rate {
        /// Name of the setting.
        name: &'static str,
        /// The mistake.
        source: UnitError,
    },
    /// A setting, a settings file or the lock of an interface cannot be used.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// An interface cannot be used.
    #[error(transparent)]
    Interface(#[from] LiveError),
    /// The key file of reservations cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Reservations need an Ethernet interface.
    #[error(
        "--reserve: {interface} is not an Ethernet interface; reservations need one, since control packets have an EtherType: use two \
         Ethernet interfaces (for example a veth pair)"
    )]
    NotEthernet {
        /// The interface.
        interface: String,
    },
    /// One interface is an Ethernet interface and the other one is not.
    #[error(
        "{} carries {} and {} carries {}: a bridge needs two interfaces of the same kind",
        first.0, first.1, second.0, second.1
    )]
    DifferentKinds {
        /// Name of an interface, and the kind of its frames.
        first: (String, &'static str),
        /// Name of the other interface, and the kind of its frames.
        second: (String, &'static str),
    },
    /// An interface cannot be opened.
    #[error("cannot open {interface}")]
    Open {
        /// The interface.
        interface: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file or the socket of a flag cannot be used, or its thread cannot be started.
    #[error("{flag}")]
    Flag {
        /// The flag, with its value if that is part of the problem.
        flag: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of a flag contains other data, and may not be replaced.
    #[error("{flag}")]
    Occupied {
        /// The flag.
        flag: &'static str,
        /// The message with the contents of the file.
        source: Occupied,
    },
    /// A recording, a capture or another output cannot be started or completed.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The program that writes recordings cannot be started.
    #[error("--record: {0}")]
    Other(#[from] OtherError),
    /// The handlers of signals cannot be installed.
    #[error("cannot listen for {signals}")]
    Signals {
        /// The signals.
        signals: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The cleanup process cannot be started.
    #[error("the cleanup process cannot be started")]
    Cleanup(#[source] io::Error),
    /// The threads of the bridge cannot be started.
    #[error(transparent)]
    Start(io::Error),
}

impl BridgeError {
    /// Adds a flag to an error of the system.
    pub fn flag(flag: &str) -> impl FnOnce(io::Error) -> BridgeError + use<> {
        let flag = flag.to_owned();
        move |source| BridgeError::Flag { flag, source }
    }

    /// Adds a flag and its path to an error of the system.
    pub fn path(flag: &str, path: &Path) -> impl Fn(io::Error) -> BridgeError + use<> {
        let flag = format!("{flag} {}", path.display());
        move |source| BridgeError::Flag { flag: flag.clone(), source }
    }

    /// Adds a flag and its address to an error of the system.
    pub fn address(flag: &str, at: SocketAddr) -> impl FnOnce(io::Error) -> BridgeError + use<> {
        BridgeError::flag(&format!("{flag} {at}"))
    }
}
