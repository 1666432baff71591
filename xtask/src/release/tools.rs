//! The programs that make a release. Missing ones are installed.

use std::path::{Path, PathBuf};

use super::cross;
use super::platform::Platform;
use crate::repository::Repository;
use crate::tools;

/// Paths of programs that are built from crates, in versions that do not change between two releases of the
/// same commit.
pub struct Tools {
    /// Builds a program that contains the list of its dependencies.
    pub auditable: String,
    /// Prints this list in the format CycloneDX.
    pub cyclonedx: String,
    /// Builds a Debian package.
    pub deb: String,
    /// Builds the book.
    pub mdbook: String,
    /// The target folder that has the headers for other processors.
    pub headers: PathBuf,
}

impl Tools {
    /// Installs what is missing for these platforms. `target` is the target folder of cargo.
    ///
    /// # Errors
    /// What cannot be installed.
    pub fn set_up(
        repository: &Repository,
        target: &Path,
        platforms: &[&'static Platform],
    ) -> Result<Tools, String> {
        // The C library zstd and the allocator are compiled with the headers of musl.
        let programs = [("musl-gcc", "musl-tools"), ("tar", "tar"), ("gzip", "gzip"), ("xz", "xz-utils")];
        tools::need(repository, &programs.map(|(program, package)| (program, "--version", package)))?;
        for platform in platforms {
            tools::standard_library(repository, platform.target)?;
        }
        cross::set_up(repository, target, platforms)?;
        // Also fetches the crates, whose folders must exist before their paths are removed from programs.
        repository.cargo(&["fetch", "--locked", "--quiet"])?;
        Ok(Tools {
            auditable: tools::build(repository, "cargo-auditable", "0.7.7", &[])?,
            cyclonedx: tools::build(repository, "auditable2cdx", "0.1.0", &[])?,
            deb: tools::build(repository, "cargo-deb", "3.8.0", &[])?,
            mdbook: tools::mdbook(repository)?,
            headers: target.to_owned(),
        })
    }
}
