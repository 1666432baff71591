//! rustfmt over every file.
//!
//! `cargo fmt` follows `mod` lines, and the registries declare their modules with a macro: it would skip
//! exactly the files that newcomers write.

use crate::repository::{Done, Repository};

/// Formats.
pub fn write(repository: &Repository) -> Done {
    rustfmt(repository, &[])
}

/// Fails where something would change, and shows it.
pub fn check(repository: &Repository) -> Done {
    rustfmt(repository, &["--check"])
        .map_err(|_| "files are not as rustfmt writes them: cargo xtask fmt".to_owned())
}

fn rustfmt(repository: &Repository, options: &[&str]) -> Done {
    let files = repository.files("", "rs").into_iter().map(|path| repository.name_of(&path));
    let mut arguments: Vec<String> =
        ["--edition", "2024"].iter().chain(options).map(|&s| s.to_owned()).collect();
    arguments.extend(files);
    repository.run("rustfmt", &arguments)
}
