//! Programs that contain the list of their dependencies, which cargo-auditable writes.

use std::path::Path;

use super::making::Release;
use crate::repository::Repository;

/// The repository with the environment in which cargo calls the compiler through cargo-auditable.
///
/// # Errors
/// If its path has no name.
pub fn repository(release: &Release) -> Result<Repository, String> {
    Ok(release.repository.with(variables(&release.tools.auditable)?))
}

/// Variables for cargo, given the path of cargo-auditable.
///
/// `cargo auditable` would name itself by its path. Cargo makes the names of symbols from it, so programs of
/// two folders would differ in every function. A name without a folder is the same everywhere.
fn variables(program: &str) -> Result<Vec<(String, String)>, String> {
    let program = Path::new(program);
    let name = program.file_name().ok_or("cargo-auditable has no name")?;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&folders));
    let path = std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
    let variables = [
        ("PATH", path.to_string_lossy().into_owned()),
        ("RUSTC_WORKSPACE_WRAPPER", name.to_string_lossy().into_owned()),
        // The arguments that it passes to `cargo metadata`.
        (
            "CARGO_AUDITABLE_ORIG_ARGS",
            r#"{"offline":false,"locked":true,"frozen":false,"config":[]}"#.to_owned(),
        ),
    ];
    Ok(variables.map(|(name, value)| (name.to_owned(), value)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_called_by_a_name_without_a_folder() {
        let variables = variables("/home/a/tools/bin/cargo-auditable").unwrap();
        let value = |name: &str| &variables.iter().find(|(own, _)| own == name).unwrap().1;
        assert_eq!(value("RUSTC_WORKSPACE_WRAPPER"), "cargo-auditable");
        assert!(value("PATH").starts_with("/home/a/tools/bin:"));
    }
}
