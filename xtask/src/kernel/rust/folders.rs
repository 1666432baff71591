//! The folders of the build of programs for the kernel.

use std::path::PathBuf;

/// Folders of the build.
pub struct Folders {
    /// The sources in this repository.
    pub sources: PathBuf,
    /// All that is built.
    pub build: PathBuf,
}

impl Folders {
    /// A file that is built.
    pub fn built(&self, name: &str) -> PathBuf {
        self.build.join(name)
    }
}
