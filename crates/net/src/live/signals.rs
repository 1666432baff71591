//! Signals of users and service managers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use super::error::BridgeError;

/// The signals that have arrived.
pub struct Signals {
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// Installs the handlers. A second SIGINT or SIGTERM ends the process at once, with exit code 130.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub fn listen() -> Result<Signals, BridgeError> {
        let signals = Signals { end: Arc::default(), reload: Arc::default() };
        signals.register().map_err(|source| BridgeError::Signals { signals: "signals", source })?;
        Ok(signals)
    }

    /// True once SIGINT or SIGTERM has arrived.
    pub fn end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// True if SIGHUP has arrived since the last call.
    pub fn reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }

    fn register(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in the order of registration, so the first signal finds the flag unset.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&self.end))?;
            signal_hook::flag::register(signal, Arc::clone(&self.end))?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&self.reload))?;
        Ok(())
    }
}

/// Sets `flag` when SIGUSR1 arrives.
///
/// # Errors
/// If the system refuses the handler.
pub fn set_at_usr1(flag: Arc<AtomicBool>) -> Result<(), BridgeError> {
    let registered = signal_hook::flag::register(SIGUSR1, flag);
    registered.map(drop).map_err(|source| BridgeError::Signals { signals: "SIGUSR1", source })
}
