//! The book as a site, in an archive.

use std::path::PathBuf;

use super::archive;
use super::making::Release;
use crate::book;
use crate::repository::Done;

/// Builds the site, and packs it.
pub fn pack(release: &Release) -> Done {
    book::make(&release.repository, &release.tools.mdbook, &stage(release).join(name(release)))?;
    archive::compress(release, &stage(release), &name(release))
}

/// The folder of the built site, which the Debian package has as well.
///
/// # Errors
/// If this release has no book: the folder may belong to another one.
pub fn folder(release: &Release) -> Result<PathBuf, String> {
    let name = name(release);
    match release.out.join(format!("{name}.tar.gz")).exists() {
        true => Ok(stage(release).join(name)),
        false => Err("it contains the book: with --without book write --without debian as well".to_owned()),
    }
}

fn stage(release: &Release) -> PathBuf {
    release.target.join("release-book")
}

/// The name for every target of the compiler. The pattern `giveway-*.tar.gz` of programs does not fit it.
fn name(release: &Release) -> String {
    format!("giveway_{}_book", release.version)
}
