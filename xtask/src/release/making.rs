//! A release that is being made: its version, folders and environment.

use std::fs;
use std::path::{Path, PathBuf};

use super::environment;
use super::platform::{self, Platform};
use super::tools::Tools;
use crate::repository::{Done, Repository};

/// A release that is being made.
pub struct Release<'a> {
    /// The repository, with the environment of reproducible builds.
    pub repository: Repository,
    /// Programs that make the files.
    pub tools: &'a Tools,
    /// The platforms of the program.
    pub platforms: Vec<&'static Platform>,
    /// Version of the program.
    pub version: String,
    /// The target folder of cargo.
    pub target: PathBuf,
    /// The folder of the finished files.
    pub out: PathBuf,
}

impl Release<'_> {
    /// A release of the commit that is checked out. `target` is the target folder of cargo.
    ///
    /// # Errors
    /// If cargo, git or the compiler does not answer.
    pub fn new<'a>(
        repository: &Repository,
        target: &Path,
        out: &Path,
        tools: &'a Tools,
        platforms: &[&'static Platform],
    ) -> Result<Release<'a>, String> {
        let metadata = repository.metadata()?;
        let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
        let own = packages.iter().find(|package| package["name"] == platform::PACKAGE);
        let version = own.and_then(|package| package["version"].as_str());
        Ok(Release {
            repository: repository.with(environment::variables(repository, target, &tools.headers)?),
            tools,
            platforms: platforms.to_vec(),
            version: version.ok_or(format!("there is no package {}", platform::PACKAGE))?.to_owned(),
            target: target.to_owned(),
            out: out.to_owned(),
        })
    }

    /// Name and version of the release for one platform.
    pub fn name(&self, platform: &Platform) -> String {
        format!("giveway-{}-{}", self.version, platform.target)
    }

    /// Folder of the program that is built for a platform. Its folder `package` contains the generated files.
    pub fn built(&self, platform: &Platform) -> PathBuf {
        self.target.join(platform.target).join(platform::PROFILE)
    }

    /// Calls a function for each platform.
    ///
    /// # Errors
    /// The first error.
    pub fn each(&self, mut work: impl FnMut(&Platform) -> Done) -> Done {
        self.platforms
            .iter()
            .try_for_each(|platform| work(platform).map_err(|error| format!("{}: {error}", platform.target)))
    }

    /// Copies a file of the repository to the finished files.
    ///
    /// # Errors
    /// The error of the system.
    pub fn copy(&self, name: &str) -> Done {
        let copied = fs::copy(self.repository.root.join(name), self.out.join(name));
        copied.map(drop).map_err(|error| format!("{name}: {error}"))
    }
}
