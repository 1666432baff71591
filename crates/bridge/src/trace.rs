//! `--trace`: writes an operation trace of all disciplines of a bridge.

use std::path::Path;

use giveway_live::privilege::{self, Identity, Role};
use giveway_replay::{Options, Recording, Tracer};

use crate::Messages;
use crate::error::OutputError;
use crate::files::{Patience, PatientFile};

/// An operation trace that is being written, and the switch that makes its writer wait when the disk is full.
pub struct Trace {
    recording: Recording,
    patience: Patience,
}

impl Trace {
    /// Creates the file and starts the writing thread.
    ///
    /// # Errors
    /// The error of the system, with the flag and the path.
    pub fn begin(file: &Path, user: Option<Identity>, messages: &Messages) -> Result<Trace, OutputError> {
        let out = PatientFile::create("--trace", file, user, messages)?;
        let patience = out.patience();
        let settle = || {
            // The watching thread reports privileges that cannot be dropped, once for all threads.
            let _ = privilege::settle(Role::Write);
        };
        let program = concat!("giveway live ", env!("CARGO_PKG_VERSION"));
        let recording = Recording::start_after(out, program, Options::default(), settle);
        let recording = recording.map_err(OutputError::path("--trace", file))?;
        patience.set(true);
        Ok(Trace { recording, patience })
    }

    /// The tracer of disciplines that are built.
    pub fn tracer(&self) -> Tracer {
        self.recording.tracer()
    }

    /// Writes the rest of the trace, and returns a summary of it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> Result<String, OutputError> {
        // The program must end, so it does not wait for space on the disk any more.
        self.patience.set(false);
        let cut = self.recording.tracer().cut();
        let written = self
            .recording
            .finish()
            .map_err(|source| OutputError::Flag { flag: "--trace".to_owned(), source })?;
        let cut =
            if cut > 0 { format!("; {cut} disciplines were not traced to the end") } else { String::new() };
        Ok(format!("traced {} operations{cut}", written.operations))
    }
}
