//! The Debian package. The manifest of the program lists its files.

use std::fs;

use super::making::Release;
use super::{book, notices, platform};
use crate::repository::Done;

/// Packs the program with cargo-deb.
pub fn pack(release: &Release) -> Done {
    let site = book::folder(release)?;
    let folder = release.built().join("package");
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    fs::copy(release.out.join(notices::FILE), folder.join(notices::FILE))
        .map_err(|error| format!("{}: {error}", notices::FILE))?;
    // Debian's manual pages are compressed (Debian Policy 12.1). cargo-deb compresses no file of this folder.
    let script =
        "rm -rf \"$2\" \"$4\" && cp -r \"$1\" \"$2\" && gzip -9 --no-name \"$2\"/*.1 && cp -r \"$3\" \"$4\"";
    let [from, to, site, book, out] =
        [folder.join("man"), folder.join("man1"), site, folder.join("book"), release.out.clone()]
            .map(|path| text(&path));
    release.repository.run("sh", &["-c", script, "compress", &from, &to, &site, &book])?;
    let build = ["--no-build", "--no-strip", "--profile", platform::PROFILE, "--target", platform::TARGET];
    let arguments = [&build[..], &["--package", platform::PACKAGE, "--output", &*out]].concat();
    release.repository.run(&release.tools.deb, &arguments)
}
