//! Compiles `kernel/rust/pass`, the plug-in of LLVM's optimizer.
//!
//! The headers of LLVM take seconds for each file, so only the files that have changed are compiled.

use std::fs;
use std::path::{Path, PathBuf};

use super::bitcode::{read, succeed};
use super::folders::Folders;
use crate::repository::{Done, Repository};

/// The library that the optimizer loads.
pub(super) fn path(folders: &Folders) -> PathBuf {
    folders.built("pass.so")
}

/// Builds the plug-in.
///
/// # Errors
/// The error of the compiler.
pub(super) fn build(repository: &Repository, folders: &Folders) -> Done {
    let objects = folders.built("pass");
    fs::create_dir_all(&objects).map_err(|error| format!("{}: {error}", objects.display()))?;
    let flags = repository.output("llvm-config-22", &["--version", "--cxxflags"])?;
    let (version, flags) = flags.split_once('\n').ok_or("llvm-config-22 has no flags")?;
    let flags = format!("-c -O1 -fPIC -fno-rtti {flags}");
    let folder = folders.sources.join("pass");
    let mut shared = format!("// LLVM {version} {flags}\n");
    for header in files(&folder, "h")? {
        shared += &read(&header)?;
    }
    let mut link = repository.command("g++");
    link.arg("-shared").arg("-o").arg(path(folders));
    for source in files(&folder, "cpp")? {
        let object = objects.join(source.file_name().unwrap_or_default()).with_extension("o");
        compile(repository, &source, &object, &shared, &flags)?;
        link.arg(object);
    }
    succeed(link.status(), "g++")
}

/// Makes an object, unless there is one of the same source. `shared` is what the sources have in common.
fn compile(repository: &Repository, source: &Path, object: &Path, shared: &str, flags: &str) -> Done {
    let stamp = shared.to_owned() + &read(source)?;
    let stamp_file = object.with_extension("stamp");
    if object.exists() && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(());
    }
    let mut compile = repository.command("g++");
    compile.args(flags.split_whitespace()).arg(source).arg("-o").arg(object);
    succeed(compile.status(), "g++")?;
    fs::write(&stamp_file, stamp).map_err(|error| format!("{}: {error}", stamp_file.display()))
}

/// Files of a kind, in the order of their names.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let all = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let all = all.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|kind| kind == extension)).collect();
    found.sort();
    Ok(found)
}
