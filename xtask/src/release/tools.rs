//! The programs that make a release. Missing ones are installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::cross;
use super::platform::Platform;
use crate::repository::{Repository, copy_into};
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
    /// The target folder with the headers for other processors.
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

    /// Copies the programs to a folder for a second build: no file of a release may depend on their place.
    ///
    /// # Errors
    /// The error of the system.
    pub fn copied(&self, folder: &Path) -> Result<Tools, String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let copy = |program: &str| {
            let file = Path::new(program);
            // A program of the system is named without a folder.
            if file.parent().is_none_or(|folder| folder.as_os_str().is_empty()) {
                return Ok(program.to_owned());
            }
            copy_into(file, folder)?;
            let name = file.file_name().unwrap_or_default();
            Ok::<String, String>(folder.join(name).to_string_lossy().into_owned())
        };
        Ok(Tools {
            auditable: copy(&self.auditable)?,
            cyclonedx: copy(&self.cyclonedx)?,
            deb: copy(&self.deb)?,
            mdbook: copy(&self.mdbook)?,
            headers: self.headers.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_release_are_copied_and_those_of_the_system_are_not() {
        let folder = std::env::temp_dir().join(format!("giveway-tools-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("cargo-deb");
        fs::write(&program, "a program").unwrap();
        let program = program.to_string_lossy().into_owned();
        let tools = Tools {
            auditable: program.clone(),
            cyclonedx: program.clone(),
            deb: program,
            mdbook: "mdbook".to_owned(),
            headers: PathBuf::from("target"),
        };
        let copied = tools.copied(&folder.join("second")).unwrap();
        assert_eq!(copied.deb, folder.join("second/cargo-deb").to_string_lossy());
        assert_eq!(fs::read_to_string(copied.deb).unwrap(), "a program");
        assert_eq!(copied.mdbook, "mdbook");
        fs::remove_dir_all(folder).unwrap();
    }
}
