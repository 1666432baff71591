//! rustfmt over every file.
//!
//! `cargo fmt` finds files by their `mod` lines. The registries declare their modules with a macro, so it
//! would skip the files of disciplines, sources and arbiters.

use crate::repository::{Done, Repository};

/// Formats all files.
pub fn write(repository: &Repository) -> Done {
    rustfmt(repository, &[])
}

/// Checks the format of all files. Shows the differences, and fails if there are any.
pub fn check(repository: &Repository) -> Done {
    rustfmt(repository, &["--check"]).map_err(|_| "files are not formatted: run cargo xtask fmt".to_owned())
}

fn rustfmt(repository: &Repository, options: &[&str]) -> Done {
    let files = repository.files("", "rs").into_iter().map(|path| repository.name_of(&path));
    let mut arguments: Vec<String> =
        ["--edition", "2024"].iter().chain(options).map(|&s| s.to_owned()).collect();
    arguments.extend(files);
    repository.run("rustfmt", &arguments)
}
