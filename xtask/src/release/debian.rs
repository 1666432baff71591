//! The Debian packages. The manifest of the program lists their files.

use std::fs;
use std::path::Path;

use super::making::Release;
use super::platform::{PACKAGE, PROFILE, Platform};
use super::{book, notices};
use crate::repository::Done;

/// Packs the program for each platform.
pub fn pack(release: &Release) -> Done {
    let site = book::folder(release)?;
    release.each(|platform| pack_one(release, platform, &site))
}

/// Packs a program with cargo-deb. `site` is the folder of the book.
fn pack_one(release: &Release, platform: &Platform, site: &Path) -> Done {
    let folder = release.built(platform).join("package");
    let text = |path: &Path| path.to_string_lossy().into_owned();
    fs::copy(release.out.join(notices::FILE), folder.join(notices::FILE))
        .map_err(|error| format!("{}: {error}", notices::FILE))?;
    // Debian's manual pages are compressed (Debian Policy 12.1). cargo-deb compresses no file of this folder.
    let script =
        "rm -rf \"$2\" \"$4\" && cp -r \"$1\" \"$2\" && gzip -9 --no-name \"$2\"/*.1 && cp -r \"$3\" \"$4\"";
    let [from, to, book, out] =
        [folder.join("man"), folder.join("man1"), folder.join("book"), release.out.clone()]
            .map(|path| text(&path));
    release.repository.run("sh", &["-c", script, "compress", &from, &to, &text(site), &book])?;
    let build = ["--no-build", "--no-strip", "--profile", PROFILE, "--target", platform.target];
    let arguments = [&build[..], &["--package", PACKAGE, "--output", &*out]].concat();
    release.repository.run(&release.tools.deb, &arguments)
}
