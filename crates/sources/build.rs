//! Computes the digests of the sources, and finds their commit, while the program is built.

#[path = "src/tree.rs"]
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this variable"));
    let root = here.ancestors().nth(2).expect("the crate is in crates/sources");
    for path in tree::TESTBED.iter().map(|path| root.join(path)).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let digest = |paths: &[&str]| {
        tree::digest(root, paths).unwrap_or_else(|error| panic!("{error}: {}", error.source))
    };
    let simulation = digest(tree::SIMULATION);
    let commit = commit(root);
    let of = commit.as_ref().map(|commit| format!("commit {commit}, ")).unwrap_or_default();
    println!("cargo::rustc-env=GIVEWAY_SIMULATION={simulation}");
    println!("cargo::rustc-env=GIVEWAY_TESTBED={}", digest(tree::TESTBED));
    println!("cargo::rustc-env=GIVEWAY_BUILT_FROM={of}sources {simulation}");
    if let Some(commit) = commit {
        println!("cargo::rustc-env=GIVEWAY_COMMIT={commit}");
    }
}

/// The commit that is checked out, followed by "with changes" if the sources differ from it. `None` without
/// git, or if these sources are part of another repository.
fn commit(root: &Path) -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim_end().to_owned())
    };
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // Both change with another checkout, and the second with every commit.
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&[&["status", "--porcelain", "--"], tree::TESTBED].concat())?;
    Some(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}
