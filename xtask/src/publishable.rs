//! The crates that others may use: their packages, the comparison with the last release, and a draft of the
//! changes.

use std::fs;

use serde_json::Value;

use crate::repository::{Done, Repository};
use crate::tools;

/// Version of git-cliff on the index of Python packages.
const CLIFF: &str = "git-cliff==2.14.2";
/// Version of twine there, which uploads wheels.
const TWINE: &str = "twine==6.2.0";

/// Packs all crates that are published. With `compile`, each package is compiled from its archive, with the
/// archives of the others.
///
/// # Errors
/// If a description is missing, or a package cannot be made.
pub fn pack(repository: &Repository, compile: bool) -> Done {
    let crates = crates(repository)?;
    let mut arguments = vec!["package", "--locked", "--allow-dirty", "--offline", "--quiet"];
    if !compile {
        arguments.push("--no-verify");
    }
    arguments.extend(crates.iter().flat_map(|name| ["--package", name]));
    repository.cargo(&arguments)?;
    println!("{}", crates.join("\n"));
    Ok(())
}

/// Uploads what a release has: the crates to crates.io, and the wheels of `folder` to the index of Python
/// packages. Without `upload` it only checks.
///
/// # Errors
/// If the account of a registry is not given, or the wheels are missing, before anything is uploaded; or if
/// a registry refuses a file.
pub fn publish(repository: &Repository, folder: Option<&str>, upload: bool) -> Done {
    let folder = match folder {
        Some(folder) => std::path::PathBuf::from(folder),
        None => repository.target()?.join("release-files"),
    };
    let wheels = wheels(&folder)?;
    let crates = crates(repository)?;
    println!("crates.io: {}\nPyPI: {}", crates.join(", "), wheels.join(", "));
    let given = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let absent: Vec<&str> = ACCOUNTS.into_iter().filter(|name| !given(name)).collect();
    if upload && !absent.is_empty() {
        return Err(format!(
            "set {}: the tokens of your accounts on crates.io and PyPI",
            absent.join(" and ")
        ));
    }
    let tool = tools_of_python(repository, TWINE)?.join("bin/twine");
    let twine = |action: &[&str]| {
        let words: Vec<&str> = action.iter().copied().chain(wheels.iter().map(String::as_str)).collect();
        repository.run(&tool.to_string_lossy(), &words)
    };
    twine(&["check"])?;
    let mut arguments = vec!["publish", "--locked"];
    if !upload {
        arguments.push("--dry-run");
    }
    arguments.extend(crates.iter().flat_map(|name| ["--package", name]));
    repository.cargo(&arguments)?;
    if !upload {
        println!("nothing was uploaded: cargo xtask publish --upload does it");
        return Ok(());
    }
    twine(&["upload", "--non-interactive", "--username", "__token__"])
}

/// The variables with the tokens of the accounts, as cargo and twine read them.
const ACCOUNTS: [&str; 2] = ["CARGO_REGISTRY_TOKEN", "TWINE_PASSWORD"];

/// The wheels of a release.
fn wheels(folder: &std::path::Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path().to_string_lossy().into_owned());
    let mut wheels: Vec<String> = paths.filter(|path| path.ends_with(".whl")).collect();
    wheels.sort();
    if wheels.is_empty() {
        return Err(format!("{} has no wheels: cargo xtask release makes them", folder.display()));
    }
    Ok(wheels)
}

/// A program from the index of Python packages, in a folder of its own. Returns the folder.
fn tools_of_python(repository: &Repository, package: &str) -> Result<std::path::PathBuf, String> {
    let folder = repository.target()?.join("tools").join(package);
    if !folder.join("done").exists() {
        repository.run("python3", &["-m", "venv", &*folder.to_string_lossy()])?;
        repository.run(&folder.join("bin/pip").to_string_lossy(), &["install", "--quiet", package])?;
        fs::write(folder.join("done"), "").map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(folder)
}

/// Compares the interfaces of the crates with the last tag's, with cargo-semver-checks.
///
/// # Errors
/// If there is no tag, or a version does not allow a change.
pub fn semver(repository: &Repository) -> Done {
    let tag = last_tag(repository).ok_or("there is no tag of a release to compare with")?;
    let program = tools::build(repository, "cargo-semver-checks", "0.51.0", &[])?;
    let crates = crates(repository)?;
    let mut arguments = vec!["semver-checks", "--baseline-rev", &tag];
    arguments.extend(crates.iter().flat_map(|name| ["--package", name]));
    repository.run(&program, &arguments)
}

/// Prints a draft of the changes since the last tag, grouped by the parts of the repository.
///
/// # Errors
/// If git-cliff cannot be installed.
pub fn changes(repository: &Repository) -> Done {
    let program = tools_of_python(repository, CLIFF)?.join("bin/git-cliff");
    repository.run(&program.to_string_lossy(), &["--config", "packaging/cliff.toml", "--unreleased"])
}

fn last_tag(repository: &Repository) -> Option<String> {
    let tag = repository.output("git", &["describe", "--tags", "--abbrev=0", "HEAD"]).ok()?;
    Some(tag.trim().to_owned())
}

/// Names of the crates of the workspace that may be published. Checks what a registry shows of each.
fn crates(repository: &Repository) -> Result<Vec<String>, String> {
    let metadata = repository.metadata_with(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut names = Vec::new();
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap_or_default();
        if let Some(key) = missing(package) {
            return Err(format!("the manifest of {name} has no {key}: add it to its [package]"));
        }
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let readme = std::path::Path::new(manifest).with_file_name("README.md");
        if fs::read_to_string(&readme).map_or(true, |text| text.trim().is_empty()) {
            return Err(format!("{}: write what the crate is for", readme.display()));
        }
        names.push(name.to_owned());
    }
    if names.is_empty() { Err("no crate may be published".to_owned()) } else { Ok(names) }
}

/// The first key of a manifest that is missing or empty.
fn missing(package: &Value) -> Option<&'static str> {
    let keys =
        ["description", "documentation", "readme", "keywords", "categories", "rust_version", "license"];
    keys.into_iter().find(|key| match &package[*key] {
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_wheels_is_refused() {
        let error = wheels(std::path::Path::new("no/such")).unwrap_err();
        assert!(error.ends_with("has no wheels: cargo xtask release makes them"), "{error}");
    }

    #[test]
    fn an_empty_key_is_missing() {
        let mut package = serde_json::json!({
            "description": "a", "documentation": "b", "readme": "c", "keywords": ["d"], "categories": ["e"],
            "rust_version": "1.93", "license": "MIT",
        });
        assert_eq!(missing(&package), None);
        package["categories"] = Value::Array(Vec::new());
        assert_eq!(missing(&package), Some("categories"));
        package["description"] = Value::Null;
        assert_eq!(missing(&package), Some("description"));
    }
}
