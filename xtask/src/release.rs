//! The files of a release: static programs, Debian packages, the book, wheels, licences and components of
//! other authors, and their checksums.
//!
//! Two builds of a commit shall have the same bytes, in whatever folder they are made. So programs contain no
//! path of the machine, all files have the time of the commit, and archives are sorted. `--check` builds
//! everything a second time in another folder, and compares.

mod archive;
mod auditable;
mod book;
mod components;
mod cross;
mod debian;
mod environment;
mod fingerprints;
mod kinds;
mod making;
mod notices;
mod options;
mod places;
mod platform;
mod program;
mod second;
mod sums;
mod tools;
mod training;
mod wheels;

use crate::repository::{Done, Repository};
use kinds::KINDS;
use making::Release;
use options::Options;
use platform::{PLATFORMS, Platform};
use tools::Tools;

/// Makes the files of a release.
///
/// # Errors
/// If the sources differ from the commit, a tool is missing and cannot be installed, a file cannot be made,
/// or the second build gives other bytes.
pub fn run(repository: &Repository, words: &[&str]) -> Done {
    let kinds = KINDS.iter().map(|(name, _)| *name);
    let platforms = PLATFORMS.iter().map(|platform| platform.name);
    let options = Options::parse(words, &kinds.chain(platforms).collect::<Vec<_>>())?;
    let stays = |platform: &&Platform| !options.without.iter().any(|part| part == platform.name);
    let platforms: Vec<&Platform> = PLATFORMS.iter().filter(stays).collect();
    let commit = committed(repository)?;
    let target = repository.target()?;
    let out = options.out.map_or_else(|| target.join("release-files"), |out| repository.root.join(out));
    let tools = Tools::set_up(repository, &target, &platforms)?;
    let first = Release::new(repository, &target, &out, &tools, &platforms)?;
    kinds::make(&first, &options.without)?;
    if options.check {
        second::compare(repository, &commit, &first, &tools, &options.without)?;
    }
    Ok(())
}

/// The commit that is checked out.
///
/// # Errors
/// If a file differs from it.
fn committed(repository: &Repository) -> Result<String, String> {
    let changed = repository.output("git", &["status", "--porcelain"])?;
    if !changed.is_empty() {
        return Err(format!("a release is made from a commit: commit or remove these changes\n{changed}"));
    }
    Ok(repository.output("git", &["rev-parse", "HEAD"])?.trim().to_owned())
}
