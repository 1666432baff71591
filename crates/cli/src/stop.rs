//! Ctrl-C: the first asks the runs to stop, the second does not ask.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens for Ctrl-C from now on.
pub fn listen() {
    let listening = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(error) = listening {
        crate::show::sentence(&format!("Ctrl-C will end the program at once: {error}"));
    }
}

/// Whether the runs should stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
