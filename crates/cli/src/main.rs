//! The executable of `giveway`. Everything else is in the library.

use std::process::ExitCode;

/// The allocator of the C library musl takes a lock for each call, so trials on several threads wait for each
/// other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    giveway_cli::main()
}
