//! Messages of a bridge on the standard error.

use std::io::Write;

use giveway_live::privilege::{Identity, outputs};
use giveway_program::show;

use crate::outputs::READY;
use giveway_program::commands::live::Args;

/// Prints a message, unless `--quiet` is given.
pub fn remark(args: &Args, text: &str) {
    if !args.quiet {
        show::message(text);
    }
}

/// Access rights of the file of `--ready`: all users may wait for it.
const READABLE: u32 = 0o644;

/// Writes the file of `--ready` with the ids of the user that the process becomes, once frames pass. A
/// failure is a remark.
pub fn announce_ready(args: &Args, user: Option<Identity>) {
    let write = |ready| outputs::file(ready, user, READABLE)?.write_all(READY.as_bytes());
    if let Some(ready) = &args.ready
        && let Err(error) = write(ready)
    {
        remark(args, &format!("--ready {}: {error}", ready.display()));
    }
}
