//! Files and folders that others may have prepared: input files that are not files, and links that lead
//! elsewhere.
//!
//! ```text
//! input.rs     input files: a pipe, a socket or a device in their place is an error, and is not waited for
//! dir.rs       a folder by its descriptor: no component of a path in it is a link
//! exchange.rs  two names in one step
//! new_file.rs  a file that replaces another one, atomically
//! occupied.rs  an output file replaces a file of its own kind only
//! walk.rs      the way to a folder: links of other users are not followed by root
//! ```

#[cfg(unix)]
mod dir;
#[cfg(unix)]
mod exchange;
pub mod input;
#[cfg(unix)]
mod new_file;
mod occupied;
#[cfg(unix)]
mod walk;

#[cfg(unix)]
pub use dir::{Dir, Kind, is_link};
#[cfg(unix)]
pub use exchange::exchange;
#[cfg(unix)]
pub use new_file::{NewFile, beside};
pub use occupied::{Occupied, may_replace};
