//! The second build of a release, in a clone and with tools in another folder, and the comparison of both.

use std::fs;

use super::making::Release;
use super::tools::Tools;
use super::{kinds, sums};
use crate::repository::{Done, Repository};

/// Builds the same commit again, and compares the checksums. The folder of the second build stays if they
/// differ.
///
/// # Errors
/// The files that differ.
pub fn compare(
    repository: &Repository,
    commit: &str,
    first: &Release,
    tools: &Tools,
    without: &[String],
) -> Done {
    let folder = first.target.join("release-second");
    let clone = folder.join("another-folder/giveway");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(failed)?;
    let place = clone.to_string_lossy();
    let root = repository.root.to_string_lossy();
    repository.run("git", &["clone", "--quiet", "--shared", "--no-checkout", &root, &place])?;
    repository.run("git", &["-C", &place, "checkout", "--quiet", "--detach", commit])?;
    let tools = tools.copied(&folder.join("tools"))?;
    let second = Release::new(
        &Repository::at(&clone),
        &folder.join("target"),
        &folder.join("files"),
        &tools,
        &first.platforms,
    )?;
    // Its programs are the same if they have the same checksums.
    let without = [without, &[kinds::FINGERPRINTS.to_owned()]].concat();
    kinds::make(&second, &without)?;
    let read = |release: &Release| fs::read_to_string(release.out.join(sums::FILE)).map_err(failed);
    let differences = sums::differences(&read(first)?, &read(&second)?);
    if !differences.is_empty() {
        return Err(format!(
            "two builds of the commit differ; the second is in {}\n{}",
            second.out.display(),
            differences.join("\n")
        ));
    }
    println!("\nthe second build has the same files to the byte");
    fs::remove_dir_all(&folder).map_err(failed)
}
