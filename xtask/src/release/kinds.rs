//! The kinds of files of a release. A new kind is a file, and a line in [`KINDS`].

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::making::Release;
use super::{archive, book, components, debian, fingerprints, notices, places, program, sums, wheels};
use crate::repository::Done;

/// Makes the files of one kind.
type Make = fn(&Release) -> Done;

/// The comparison of fingerprints, which writes no file, as the search for places.
pub const FINGERPRINTS: &str = "fingerprints";

/// The kinds of files, in the order of their creation. The program is first, and the book before the Debian
/// package, because others contain them.
pub const KINDS: &[(&str, Make)] = &[
    ("program", program::build),
    ("notices", notices::write),
    ("archive", archive::pack),
    ("book", book::pack),
    ("debian", debian::pack),
    ("wheels", wheels::build),
    ("components", components::write),
    ("places", places::search),
    (FINGERPRINTS, fingerprints::compare),
];

/// Makes all kinds of files, except some, and their checksums.
///
/// # Errors
/// The kind that cannot be made, with the reason.
pub fn make(release: &Release, without: &[String]) -> Done {
    empty(&release.out)?;
    for (name, make) in KINDS.iter().filter(|(name, _)| !without.iter().any(|kind| kind == name)) {
        println!("\n== {name}");
        let begun = Instant::now();
        make(release).map_err(|error| format!("{name}: {error}"))?;
        println!("-- {name}: {:.0} s", begun.elapsed().as_secs_f64());
    }
    release.copy("CHANGELOG.md")?;
    sums::write(release)
}

/// Creates a folder, or removes the files of an earlier release from it.
///
/// # Errors
/// If it has files that are not of a release.
fn empty(folder: &Path) -> Done {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let files: Vec<PathBuf> =
        fs::read_dir(folder).map_err(failed)?.flatten().map(|entry| entry.path()).collect();
    if !files.is_empty() && !folder.join(sums::FILE).exists() {
        return Err(format!("{} has files that are not of a release: name another folder", folder.display()));
    }
    files.into_iter().try_for_each(fs::remove_file).map_err(failed)?;
    // If a kind fails, the next release may remove the files of this one.
    fs::write(folder.join(sums::FILE), "").map_err(failed)
}
