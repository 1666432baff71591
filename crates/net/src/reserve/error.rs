//! The error of `giveway live reserve`.

use std::io;

/// Reason why a reservation cannot be requested, refreshed or ended. The cause is in `source()`.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// The handlers of signals cannot be installed. Nothing was sent yet.
    #[error("cannot listen for {signal}")]
    Signals {
        /// The signal.
        signal: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The socket cannot receive control frames any more, for example because the interface was removed.
    #[error("--via {interface}: cannot receive control frames")]
    Receive {
        /// The interface.
        interface: String,
        /// The error of the system.
        source: io::Error,
    },
}
