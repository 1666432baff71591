//! Ctrl-C: the first one requests that the runs stop, the second one ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static LISTENING: AtomicBool = AtomicBool::new(false);

/// Installs the handler of Ctrl-C, once. A failure is printed, and is not an error.
pub fn listen() {
    if LISTENING.swap(true, Ordering::Relaxed) {
        return;
    }
    let listening = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(error) = listening {
        crate::show::message(&format!("Ctrl-C will end the program at once: {error}"));
    }
}

/// True once Ctrl-C was pressed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Forgets that Ctrl-C was pressed.
pub fn forget() {
    REQUESTED.store(false, Ordering::Relaxed);
}
