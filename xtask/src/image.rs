//! Builds the image for containers with the Debian package of a release, and tries it.
//!
//! buildah builds it from `packaging/image/Dockerfile`, and writes it as an OCI archive. Its storage is in
//! the target folder, so that this machine stays as it is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian;
use crate::repository::{Done, Repository, copy_into};
use crate::{kernel, tools};

/// Name of the image.
const NAME: &str = "localhost/giveway";
/// Name of the base image, if debootstrap makes it.
const BASE: &str = "localhost/giveway-base";
/// The release of Debian in it, as in the base of the Dockerfile.
const SUITE: &str = "stable";
/// Packages that `cargo xtask test-kernel` needs to compile, in addition to the packages of the
/// virtual machine.
const COMPILERS: [&str; 6] = ["ca-certificates", "gcc", "git", "libbpf-dev", "libc6-dev", "rustup"];

/// Options of the chore.
#[derive(Default)]
struct Options {
    /// Folder of the files of the release.
    files: Option<PathBuf>,
    /// Make the base image from packages of Debian, instead of fetching it from a registry.
    debootstrap: bool,
    /// Add the packages that `cargo xtask test-kernel` needs.
    checks: bool,
}

/// Builds the image. `--debootstrap` makes its base, and `--checks` adds what the test of the kernel needs.
///
/// # Errors
/// If buildah is missing and cannot be installed, there is no package, or the image cannot be built.
pub fn run(repository: &Repository, words: &[&str]) -> Done {
    let options = parse(words)?;
    tools::need(repository, &[("buildah", "--version", "buildah")])?;
    let target = repository.target()?;
    let files =
        options.files.map_or_else(|| target.join("release-files"), |files| repository.root.join(files));
    let folder = target.join("image");
    let context = folder.join("context");
    let _ = fs::remove_dir_all(&context);
    fs::create_dir_all(&context).map_err(|error| format!("{}: {error}", context.display()))?;
    let package = debian::file(&files, debian::PACKAGE_FILE)?;
    copy_into(&package, &context)?;
    copy_into(&repository.root.join("packaging/image/Dockerfile"), &context)?;
    let buildah = Buildah { repository, store: folder.join("store") };
    if options.debootstrap {
        base(&buildah, &folder.join("base"))?;
    }
    let base = format!("BASE={BASE}");
    let packages = format!("PACKAGES={}", [&kernel::packages()[..], &COMPILERS].concat().join(" "));
    let mut arguments = vec![];
    if options.debootstrap {
        arguments.extend(["--pull-never", "--build-arg", &base]);
    }
    if options.checks {
        arguments.extend(["--build-arg", &packages]);
    }
    buildah.build(NAME, &arguments, &context)?;
    let archive = folder.join("giveway.oci.tar");
    let _ = fs::remove_file(&archive);
    buildah.run(&["push", NAME, &format!("oci-archive:{}:giveway", archive.display())])?;
    let size = fs::metadata(&archive).map_err(|error| format!("{}: {error}", archive.display()))?.len();
    println!("{}: {:.1} MB", archive.display(), size as f64 / 1e6);
    try_it(&buildah, options.checks)
}

fn parse(words: &[&str]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = words;
    loop {
        rest = match rest {
            [] => return Ok(options),
            ["--debootstrap", rest @ ..] => {
                options.debootstrap = true;
                rest
            }
            ["--checks", rest @ ..] => {
                options.checks = true;
                rest
            }
            ["--files", folder, rest @ ..] => {
                options.files = Some(PathBuf::from(folder));
                rest
            }
            [word, ..] => {
                return Err(format!(
                    "cargo xtask image takes --files DIR, --debootstrap and --checks, not {word}"
                ));
            }
        }
    }
}

/// The program buildah with its own storage. Commands run without namespaces, as in a container of
/// another image.
struct Buildah<'a> {
    repository: &'a Repository,
    store: PathBuf,
}

impl Buildah<'_> {
    fn words(&self, arguments: &[&str]) -> Vec<String> {
        let place = |part: &str| self.store.join(part).display().to_string();
        let global = ["--root", &place("root"), "--runroot", &place("run"), "--storage-driver", "vfs"];
        global.iter().chain(arguments).map(|word| (*word).to_owned()).collect()
    }

    fn run(&self, arguments: &[&str]) -> Done {
        self.repository.run("buildah", &self.words(arguments))
    }

    fn output(&self, arguments: &[&str]) -> Result<String, String> {
        self.repository.output("buildah", &self.words(arguments))
    }

    fn build(&self, name: &str, arguments: &[&str], context: &Path) -> Done {
        let build = ["build", "--isolation", "chroot", "--format", "oci", "--tag", name];
        self.run(&[&build[..], arguments, &[&context.to_string_lossy()]].concat())
    }
}

/// Makes the base image from a bare Debian.
fn base(buildah: &Buildah, folder: &Path) -> Done {
    let bare = debian::bare(buildah.repository, SUITE)?;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(failed)?;
    fs::write(folder.join("Dockerfile"), "FROM scratch\nADD base.tar /\nCMD [\"sh\"]\n").map_err(failed)?;
    let [bare, archive] = [bare, folder.join("base.tar")].map(|path| path.to_string_lossy().into_owned());
    buildah.repository.run("tar", &["--directory", &bare, "--create", "--file", &archive, "."])?;
    buildah.build(BASE, &[], folder)?;
    fs::remove_file(archive).map_err(failed)
}

/// Runs the demo in a container of the image, and asks for the programs that a test bed needs; with `checks`
/// also for the programs of the kernel's test.
fn try_it(buildah: &Buildah, checks: bool) -> Done {
    let mut programs = vec!["ip", "tc", "ethtool", "tcpdump"];
    if checks {
        programs.extend([kernel::needed(), vec!["gcc", "git", "rustup"]].concat());
    }
    let container = buildah.output(&["from", "--pull-never", NAME])?;
    let container = container.trim();
    let run =
        |words: &[&str]| buildah.run(&[&["run", "--isolation", "chroot", container, "--"], words].concat());
    let done = run(&["giveway", "demo", "--no-open", "--quiet"]).and_then(|()| {
        programs.iter().try_for_each(|program| run(&["sh", "-c", &format!("command -v {program}")]))
    });
    buildah.run(&["rm", container])?;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_others_refused() {
        let options = parse(&["--checks", "--files", "files"]).unwrap();
        assert!(options.checks && !options.debootstrap && options.files == Some("files".into()));
        assert!(parse(&["--files"]).is_err() && parse(&["image"]).is_err());
    }
}
