//! Messages of a bridge on the standard error.

use super::args::Args;
use crate::outputs::READY;
use crate::show;

/// Prints a message, unless `--quiet` is given.
pub fn remark(args: &Args, text: &str) {
    if !args.quiet {
        show::message(text);
    }
}

/// Writes the file of `--ready`, once frames pass. A failure is a remark.
pub fn announce_ready(args: &Args) {
    if let Some(ready) = &args.ready
        && let Err(error) = std::fs::write(ready, READY)
    {
        remark(args, &format!("--ready {}: {error}", ready.display()));
    }
}
