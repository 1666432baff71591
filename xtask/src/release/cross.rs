//! The tools to compile C code for another processor: clang, with the headers of musl for that processor.

use std::fs;
use std::path::{Path, PathBuf};

use super::platform::{Cross, PLATFORMS, Platform};
use crate::debian;
use crate::repository::{Done, Repository};
use crate::tools;

/// Replaces the date and the time of the build, which are in messages of C libraries. GCC takes them from
/// `SOURCE_DATE_EPOCH`, and clang does only from version 16 on.
const NO_TIME: &str = "-Wno-builtin-macro-redefined -D__DATE__=\"-\" -D__TIME__=\"-\"";

/// Installs clang, the emulator, and the headers of musl below the target folder.
///
/// # Errors
/// What cannot be installed.
pub fn set_up(repository: &Repository, target: &Path, platforms: &[&Platform]) -> Done {
    for cross in platforms.iter().filter_map(|platform| platform.cross.as_ref()) {
        let programs = [("clang", "clang"), ("llvm-ar", "llvm"), (cross.emulator, "qemu-user-static")];
        tools::need(repository, &programs.map(|(program, package)| (program, "--version", package)))?;
        if !headers(target, cross).exists() {
            download(repository, &folder(target, cross), cross)?;
        }
    }
    Ok(())
}

/// Variables of cargo and of the builds of C code, for every platform that needs them.
pub fn variables(target: &Path) -> Vec<(String, String)> {
    let platforms = PLATFORMS.iter().filter_map(|platform| Some((platform, platform.cross.as_ref()?)));
    let of = |(platform, cross): (&Platform, &Cross)| {
        let name = platform.target.replace('-', "_");
        let headers = headers(target, cross);
        let flags = format!("--target={} -nostdlibinc -isystem {} {NO_TIME}", cross.clang, headers.display());
        [
            (format!("CC_{name}"), "clang".to_owned()),
            (format!("AR_{name}"), "llvm-ar".to_owned()),
            (format!("CFLAGS_{name}"), flags),
        ]
    };
    platforms.flat_map(of).collect()
}

/// Folder of the package with the headers.
fn folder(target: &Path, cross: &Cross) -> PathBuf {
    target.join("tools").join(format!("musl-{}", cross.debian))
}

fn headers(target: &Path, cross: &Cross) -> PathBuf {
    folder(target, cross).join("usr/include").join(cross.clang)
}

/// Downloads the package `musl-dev` for the processor, and unpacks it. apt keeps its lists in this folder, so
/// this machine gets no other architecture.
fn download(repository: &Repository, folder: &Path, cross: &Cross) -> Done {
    println!("the headers of musl for {} are missing: downloading them", cross.debian);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = fs::remove_dir_all(folder);
    for part in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(part)).map_err(failed)?;
    }
    let list = folder.join("sources.list");
    let (keys, mirror, suite) = (debian::KEYS, debian::mirror()?, debian::suite()?);
    let source = format!("deb [signed-by={keys}] {mirror} {suite} main\n");
    fs::write(&list, source).map_err(failed)?;
    let options = [
        format!("Dir::State={}", folder.join("state").display()),
        format!("Dir::Cache={}", folder.join("cache").display()),
        format!("Dir::Etc::SourceList={}", list.display()),
        "Dir::State::status=/dev/null".to_owned(),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        format!("APT::Architecture={}", cross.debian),
        format!("APT::Architectures={}", cross.debian),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    let apt = Repository::at(folder);
    apt.run("apt-get", &[&["-qq"], &options[..], &["update"]].concat())?;
    apt.run("apt-get", &[&["-qq"], &options[..], &["download", "musl-dev"]].concat())?;
    let package = fs::read_dir(folder).map_err(failed)?.flatten().map(|entry| entry.path());
    let package = package.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "deb"));
    let package = package.ok_or(format!("{}: apt-get downloaded no package", folder.display()))?;
    repository.run("dpkg", &["-x", &*package.to_string_lossy(), &*folder.to_string_lossy()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_name_the_headers_of_the_processor() {
        let variables = variables(Path::new("/target"));
        let of = |name: &str| variables.iter().find(|(key, _)| key == name).map(|(_, value)| &**value);
        assert_eq!(
            of("CFLAGS_aarch64_unknown_linux_musl"),
            Some(
                "--target=aarch64-linux-musl -nostdlibinc \
                 -isystem /target/tools/musl-arm64/usr/include/aarch64-linux-musl \
                 -Wno-builtin-macro-redefined -D__DATE__=\"-\" -D__TIME__=\"-\""
            )
        );
        assert_eq!(of("CC_x86_64_unknown_linux_musl"), None);
    }
}
