//! The book as a site, in an archive.

use std::path::PathBuf;

use super::archive;
use super::making::Release;
use crate::book;
use crate::repository::Done;

/// Builds the site, and packs it.
pub fn pack(release: &Release) -> Done {
    let site = folder(release);
    book::make(&release.repository, &release.tools.mdbook, &site)?;
    archive::compress(release, &stage(release), &name(release))
}

/// The folder of the built site, which the Debian package has as well.
pub fn folder(release: &Release) -> PathBuf {
    stage(release).join(name(release))
}

fn stage(release: &Release) -> PathBuf {
    release.target.join("release-book")
}

/// It is the same for every target of the compiler.
fn name(release: &Release) -> String {
    format!("giveway-{}-book", release.version)
}
