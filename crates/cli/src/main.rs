//! The executable of `giveway`. Everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    giveway_cli::main()
}
