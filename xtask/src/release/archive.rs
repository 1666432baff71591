//! The archives with the programs, their manual pages and their completions.

use std::fs;
use std::path::Path;

use super::making::Release;
use super::notices;
use super::platform::{PROGRAMS, Platform};
use crate::repository::Done;

/// Files of the repository in the archive.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Packs an archive for each platform.
pub fn pack(release: &Release) -> Done {
    release.each(|platform| pack_one(release, platform))
}

/// Packs a folder of the name of the release.
fn pack_one(release: &Release, platform: &Platform) -> Done {
    let name = release.name(platform);
    let stage = release.built(platform).join("archive");
    let folder = stage.join(&name);
    let _ = fs::remove_dir_all(&stage);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    let copy = |from: &Path, to: &str| {
        let copied = fs::copy(from, folder.join(to));
        copied.map(drop).map_err(|error| format!("{}: {error}", from.display()))
    };
    for (_, program) in PROGRAMS {
        copy(&release.built(platform).join(program), program)?;
    }
    for text in TEXTS {
        copy(&release.repository.root.join(text), text)?;
    }
    copy(&release.out.join(notices::FILE), notices::FILE)?;
    for part in ["man", "completions"] {
        fs::create_dir_all(folder.join(part)).map_err(failed)?;
        let from = release.built(platform).join("package").join(part);
        for entry in fs::read_dir(&from).map_err(failed)?.flatten() {
            let file = Path::new(part).join(entry.file_name());
            copy(&entry.path(), &file.to_string_lossy())?;
        }
    }
    compress(release, &stage, &name)
}

/// Packs the folder `name` of `stage` as a file of the release.
pub fn compress(release: &Release, stage: &Path, name: &str) -> Done {
    let archive = release.out.join(format!("{name}.tar.gz"));
    let script = "tar --directory \"$1\" --sort=name --mtime=\"@$SOURCE_DATE_EPOCH\" --owner=0 --group=0 --numeric-owner \
                  --mode=u=rwX,go=rX --format=ustar --create \"$2\" | gzip -9 --no-name > \"$3\"";
    let [stage, archive] = [stage, &archive].map(|path| path.to_string_lossy());
    release.repository.run("bash", &["-o", "pipefail", "-c", script, "pack", &stage, name, &archive])
}
