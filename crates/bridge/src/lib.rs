//! The outputs of a running bridge, and a bridge whose disciplines run in the kernel.
//!
//! ```text
//! recording.rs  tables as of a simulation, in a folder for each direction, written at intervals
//! capture.rs    sent and dropped frames in a pcapng file of bounded length
//! trace.rs      every operation of the disciplines, for `giveway replay-check`
//! files.rs      files that are written in pieces, on a disk that may be full for a while
//! kernel.rs     counters and rates of a bridge whose disciplines run in the kernel
//! ```
//!
//! Nothing here parses flags or prints: messages for the user go to a function ([`Messages`]). Errors name
//! the flag of `giveway live` that they belong to.
//!
//! ```
//! use std::io::Write;
//! use std::sync::Arc;
//!
//! use giveway_bridge::Messages;
//! use giveway_bridge::files::PatientFile;
//!
//! let messages: Messages = Arc::new(|text| eprintln!("{text}"));
//! let path = std::env::temp_dir().join(format!("giveway-{}", std::process::id()));
//! let mut file = PatientFile::create("--trace", &path, None, &messages)?;
//! file.patience().set(true); // wait if the disk is full
//! file.write_all(b"a piece")?;
//! assert_eq!(std::fs::read(&path)?, b"a piece");
//! std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg(target_os = "linux")]

pub mod capture;
mod error;
pub mod files;
pub mod kernel;
mod pause;
pub mod recording;
pub mod trace;

use std::sync::Arc;

pub use error::OutputError;
pub use pause::pause;

/// A function that shows a message to the user. Threads of outputs call it.
pub type Messages = Arc<dyn Fn(&str) + Send + Sync>;
