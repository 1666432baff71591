//! The files that the result of a check depends on, and their digest.
//!
//! A check names crates and files. A crate counts with all crates of the workspace that it depends on,
//! without their tests and benchmarks, and with the versions of all other libraries. So no list of sources
//! needs maintenance: the manifests have it. Git has the digest of each file, and leaves out what it ignores.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::repository::Repository;

/// Folders of a crate that its dependents do not compile.
const UNUSED: [&str; 3] = ["tests/", "benches/", "examples/"];

/// The inputs of a check.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// Names of crates of the workspace, without `giveway-`.
    pub crates: &'static [&'static str],
    /// Files and folders, relative to the repository.
    pub files: &'static [&'static str],
}

/// All files of the repository with their digests, and the dependencies of its crates.
pub struct Tree {
    /// The digest of each file by its name.
    digests: BTreeMap<String, String>,
    packages: BTreeMap<String, Package>,
}

/// A package, by its identity in `cargo metadata`.
struct Package {
    name: String,
    version: String,
    /// Its folder relative to the repository, with a slash at its end; `None` for a library of others.
    folder: Option<String>,
    /// The packages that it is compiled with.
    uses: Vec<String>,
}

impl Tree {
    /// Reads the repository.
    ///
    /// # Errors
    /// If there is no git repository, or cargo refuses the manifests.
    pub fn read(repository: &Repository) -> Result<Tree, String> {
        let listed =
            repository.output("git", &["ls-files", "--cached", "--others", "--exclude-standard", "-z"])?;
        let names: BTreeSet<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        // A file that was removed without git is still listed.
        let names: Vec<&str> =
            names.into_iter().filter(|name| repository.root.join(name).is_file()).collect();
        let ids = git_with_input(repository, &["hash-object", "--stdin-paths"], &names.join("\n"))?;
        let digests = names.iter().zip(ids.lines()).map(|(name, id)| ((*name).to_owned(), id.to_owned()));
        Ok(Tree { digests: digests.collect(), packages: packages(repository)? })
    }

    /// The digest of these inputs: 16 hexadecimal digits.
    ///
    /// # Errors
    /// If a crate or a file does not exist: the list of a check must not outlive what it names.
    pub fn digest(&self, repository: &Repository, inputs: &Inputs) -> Result<String, String> {
        let mut lines = BTreeSet::new();
        let mut paths: Vec<String> = inputs.files.iter().map(|file| (*file).to_owned()).collect();
        for package in self.closure(inputs.crates)? {
            match &package.folder {
                Some(folder) => paths.push(folder.clone()),
                None => drop(lines.insert(format!("{} {}", package.name, package.version))),
            }
        }
        if !inputs.crates.is_empty() {
            // It has the features of libraries, and the levels of optimisation.
            paths.push("Cargo.toml".to_owned());
        }
        for path in paths {
            let before = lines.len();
            // A folder that a check names itself counts whole.
            let named = inputs.files.contains(&path.as_str());
            let below = |name: &str| {
                let rest = name.strip_prefix(path.as_str());
                rest.is_some_and(|rest| {
                    let within = rest.is_empty() || path.ends_with('/') || rest.starts_with('/');
                    within && (named || !UNUSED.iter().any(|unused| rest.starts_with(unused)))
                })
            };
            lines.extend(
                self.digests.iter().filter(|(name, _)| below(name)).map(|(name, id)| format!("{name} {id}")),
            );
            if lines.len() == before && !self.digests.keys().any(|name| below(name)) {
                return Err(format!("{path}: a check depends on it, and it does not exist"));
            }
        }
        let text: Vec<String> = lines.into_iter().collect();
        let id = git_with_input(repository, &["hash-object", "--stdin"], &text.join("\n"))?;
        Ok(id.trim().chars().take(16).collect())
    }

    /// The packages with these names, and all that they are compiled with.
    fn closure(&self, crates: &[&str]) -> Result<Vec<&Package>, String> {
        let mut pending = Vec::new();
        for name in crates {
            let full = format!("giveway-{name}");
            let found = self.packages.iter().find(|(_, package)| package.name == full);
            pending.push(found.ok_or(format!("a check depends on {full}, and it does not exist"))?.0);
        }
        let mut reached = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if reached.insert(id) {
                pending.extend(&self.packages[id].uses);
            }
        }
        Ok(reached.into_iter().map(|id| &self.packages[id]).collect())
    }
}

/// The packages of the workspace and their dependencies, without dependencies of tests.
fn packages(repository: &Repository) -> Result<BTreeMap<String, Package>, String> {
    let metadata = repository.metadata()?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let compiled = list(&node["deps"]).into_iter().filter(|dependency| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].as_str() != Some("dev"))
        });
        uses.insert(text(&node["id"]), compiled.map(|dependency| text(&dependency["pkg"])).collect());
    }
    let package = |package: &Value| {
        let id = text(&package["id"]);
        let own = package["source"].is_null();
        let manifest = text(&package["manifest_path"]);
        let folder = own.then(|| Path::new(&manifest).parent()).flatten();
        let described = Package {
            name: text(&package["name"]),
            version: text(&package["version"]),
            folder: folder.map(|folder| format!("{}/", repository.name_of(folder))),
            uses: uses.get(&id).cloned().unwrap_or_default(),
        };
        (id, described)
    };
    Ok(list(&metadata["packages"]).iter().map(package).collect())
}

/// Runs git with an input, and returns its output.
fn git_with_input(repository: &Repository, arguments: &[&str], input: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("git {}: {error}", arguments.join(" "));
    let mut command = repository.command("git");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut pipe = child.stdin.take().expect("the standard input is a pipe");
    let input = input.to_owned();
    // Git writes while it reads, so one thread would wait for ever once both pipes are full.
    let writing = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(failed)?;
    writing.join().expect("writing does not panic").map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("git {}: {}", arguments.join(" "), output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, folder: Option<&str>, uses: &[&str]) -> (String, Package) {
        let uses = uses.iter().map(|name| (*name).to_owned()).collect();
        let folder = folder.map(str::to_owned);
        (name.to_owned(), Package { name: name.to_owned(), version: "1.0".to_owned(), folder, uses })
    }

    /// `giveway-a` uses `giveway-b`, which uses `serde`; nothing uses `giveway-c`.
    fn tree(changed: &[(&str, &str)]) -> Tree {
        let mut digests: BTreeMap<String, String> = [
            "Cargo.toml",
            "crates/a/src/lib.rs",
            "crates/a/tests/all.rs",
            "crates/ab/src/lib.rs",
            "crates/b/src/lib.rs",
            "crates/c/src/lib.rs",
            "scenarios/one.toml",
        ]
        .map(|name| (name.to_owned(), "0".to_owned()))
        .into();
        digests.extend(changed.iter().map(|(name, id)| ((*name).to_owned(), (*id).to_owned())));
        let packages = [
            package("giveway-a", Some("crates/a/"), &["giveway-b"]),
            package("giveway-b", Some("crates/b/"), &["serde"]),
            package("giveway-c", Some("crates/c/"), &[]),
            package("serde", None, &[]),
        ];
        Tree { digests, packages: packages.into() }
    }

    fn digest(
        tree: &Tree,
        crates: &'static [&'static str],
        files: &'static [&'static str],
    ) -> Result<String, String> {
        tree.digest(&Repository::find(), &Inputs { crates, files })
    }

    #[test]
    fn the_digest_follows_what_a_crate_is_compiled_with() {
        let of_a =
            |changed: &[(&str, &str)]| digest(&tree(changed), &["a"], &["scenarios"]).expect("all exist");
        let before = of_a(&[]);
        assert_eq!(before.len(), 16);
        for input in [
            "Cargo.toml",
            "crates/a/src/lib.rs",
            "crates/b/src/lib.rs",
            "scenarios/one.toml",
            "crates/b/new.rs",
        ] {
            assert_ne!(of_a(&[(input, "1")]), before, "{input}");
        }
        for other in ["crates/a/tests/all.rs", "crates/ab/src/lib.rs", "crates/c/src/lib.rs", "README.md"] {
            assert_eq!(of_a(&[(other, "1")]), before, "{other}");
        }
        let mut newer = tree(&[]);
        newer.packages.get_mut("serde").expect("it is there").version = "1.1".to_owned();
        assert_ne!(digest(&newer, &["a"], &["scenarios"]).expect("all exist"), before);
    }

    #[test]
    fn a_folder_that_a_check_names_counts_whole() {
        let of_tests =
            |changed: &[(&str, &str)]| digest(&tree(changed), &[], &["crates/a/"]).expect("it exists");
        assert_ne!(of_tests(&[]), of_tests(&[("crates/a/tests/all.rs", "1")]));
    }

    #[test]
    fn inputs_that_do_not_exist_are_an_error() {
        assert_eq!(
            digest(&tree(&[]), &["gone"], &[]).unwrap_err(),
            "a check depends on giveway-gone, and it does not exist"
        );
        let file = digest(&tree(&[]), &["a"], &["scenario"]).unwrap_err();
        assert_eq!(file, "scenario: a check depends on it, and it does not exist");
    }
}
