//! The files of a release: a static program, a Debian package, the book, wheels, licences and components of
//! other authors, and their checksums.
//!
//! Two builds of a commit shall have the same bytes, in whatever folder they are made. So programs contain no
//! path of the machine, all files have the time of the commit, and archives are sorted. `--check` builds
//! everything a second time in another folder, and compares.

mod archive;
mod book;
mod components;
mod debian;
mod environment;
mod kinds;
mod making;
mod notices;
mod options;
mod platform;
mod program;
mod second;
mod sums;
mod tools;
mod wheels;

use crate::repository::{Done, Repository};
use kinds::KINDS;
use making::Release;
use options::Options;
use tools::Tools;

/// Makes the files of a release.
///
/// # Errors
/// If the sources differ from the commit, a tool is missing and cannot be installed, a file cannot be made,
/// or the second build gives other bytes.
pub fn run(repository: &Repository, words: &[&str]) -> Done {
    let options = Options::parse(words, KINDS)?;
    let commit = committed(repository)?;
    let target = repository.target()?;
    let out = options.out.map_or_else(|| target.join("release-files"), |out| repository.root.join(out));
    let tools = Tools::set_up(repository)?;
    let first = Release::new(repository, &target, &out, &tools)?;
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
