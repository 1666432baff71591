//! Names of the machine that made a release: folders, and mirrors of packages. No file of a release may have
//! one, because two machines would then make different files.

use std::fs;
use std::path::Path;

use super::environment;
use super::making::Release;
use crate::debian;
use crate::repository::{Done, Repository, files_below};

/// Hosts that everybody uses. The book and metadata of packages name them.
const PUBLIC: [&str; 5] =
    ["deb.debian.org", "files.pythonhosted.org", "index.crates.io", "pypi.org", "static.crates.io"];

/// Searches every file of the release for names of this machine, also inside packages.
///
/// # Errors
/// The files that have one.
pub fn search(release: &Release) -> Done {
    let names = names(&release.repository);
    let scratch = release.target.join("release-places");
    let failed = |error: std::io::Error| format!("{}: {error}", release.out.display());
    let _ = fs::remove_dir_all(&scratch);
    let mut found = Vec::new();
    let mut searched = 0;
    for entry in fs::read_dir(&release.out).map_err(failed)?.flatten() {
        let file = entry.path();
        let parts = scratch.join(entry.file_name());
        fs::create_dir_all(&parts).map_err(failed)?;
        unpack(&release.repository, &file, &parts)?;
        for path in files_below(&parts)?.into_iter().chain([file]) {
            let content = content(&release.repository, &path)?;
            searched += 1;
            for name in names.iter().filter(|name| contains(&content, name.as_bytes())) {
                found.push(format!("{} has {name}", path.display()));
            }
        }
    }
    println!("{searched} files searched for {}", names.join(", "));
    if !found.is_empty() {
        // The unpacked files stay.
        return Err(found.join("\n"));
    }
    fs::remove_dir_all(&scratch).map_err(failed)
}

/// The name of this machine that is in the content of a file, if there is one.
pub fn within(repository: &Repository, content: &[u8]) -> Option<String> {
    names(repository).into_iter().find(|name| contains(content, name.as_bytes()))
}

/// Folders of this machine, and hosts of its mirrors of crates, of packages of Debian and of Python.
fn names(repository: &Repository) -> Vec<String> {
    let mut names = vec![repository.root.to_string_lossy().into_owned()];
    names.extend(std::env::home_dir().map(|home| home.join(".").to_string_lossy().into_owned()));
    // The name of such a folder is that of the host, a hyphen and a checksum.
    let registries = environment::cargo_home().map(|home| environment::crates(&home)).unwrap_or_default();
    let registries = registries.iter().filter_map(|folder| folder.file_name()?.to_str()?.rsplit_once('-'));
    names.extend(registries.map(|(host, _)| host.to_owned()));
    let python = repository.output("python3", &["-m", "pip", "config", "list"]).unwrap_or_default();
    let mirror = debian::mirror().ok();
    names.extend(python.lines().chain(mirror.as_deref()).filter_map(host).map(str::to_owned));
    names.retain(|name| !PUBLIC.contains(&name.as_str()));
    names.sort();
    names.dedup();
    names
}

/// The host of the first address in a text, without a port and a password.
fn host(text: &str) -> Option<&str> {
    let (_, address) = text.split_once("://")?;
    let end = address.find(['/', '\'', '"', ' ']).unwrap_or(address.len());
    let host = address[..end].rsplit('@').next()?;
    let host = host.split(':').next()?;
    (!host.is_empty()).then_some(host)
}

/// Unpacks an archive into a folder. Other files have no parts.
///
/// # Errors
/// If the archive cannot be read.
pub fn unpack(repository: &Repository, file: &Path, folder: &Path) -> Done {
    let [name, into] = [file, folder].map(|path| path.to_string_lossy());
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => repository.run("tar", &["-xzf", &name, "-C", &into]),
        Some("deb") => repository.run("dpkg-deb", &["--raw-extract", &name, &into]),
        Some("whl") => repository.run("python3", &["-m", "zipfile", "-e", &name, &into]),
        _ => Ok(()),
    }
}

/// The content of a file, or of what it compresses.
fn content(repository: &Repository, file: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    if file.extension().is_none_or(|extension| extension != "gz") {
        return fs::read(file).map_err(failed);
    }
    let output = repository.command("gzip").arg("-dc").arg(file).output().map_err(failed)?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{}: gzip cannot read it", file.display())),
    }
}

fn contains(content: &[u8], part: &[u8]) -> bool {
    content.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_found() {
        for (text, expected) in [
            ("global.index-url='https://user:secret@mirror.example:8443/simple'", Some("mirror.example")),
            ("http://deb.example/debian", Some("deb.example")),
            ("http://deb.example", Some("deb.example")),
            ("global.timeout='180'", None),
            ("file:///opt/wheels", None),
        ] {
            assert_eq!(host(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_inside_a_packed_file_is_found() {
        let folder = std::env::temp_dir().join(format!("giveway-places-{}", std::process::id()));
        let inside = folder.join("giveway/man");
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("giveway.1"), "built in /home/a/giveway").unwrap();
        let repository = Repository::at(&folder);
        repository.run("gzip", &["-9", "giveway/man/giveway.1"]).unwrap();
        repository.run("tar", &["-czf", "giveway.tar.gz", "giveway"]).unwrap();
        let scratch = folder.join("scratch");
        fs::create_dir_all(&scratch).unwrap();
        unpack(&repository, &folder.join("giveway.tar.gz"), &scratch).unwrap();
        let found = files_below(&scratch).unwrap();
        assert_eq!(found, [scratch.join("giveway/man/giveway.1.gz")]);
        assert!(contains(&content(&repository, &found[0]).unwrap(), b"/home/a/giveway"));
        fs::remove_dir_all(folder).unwrap();
    }
}
