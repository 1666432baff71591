//! The sources of this program: a digest of those that results depend on, and their commit.
//!
//! Stored results are reused only by a program that would compute the same results. The version number does
//! not identify such a program, because it does not change with each change of a discipline. The commit does
//! not identify it either: it ignores changes that are not committed, and it changes with a correction in the
//! book. So the build script hashes the sources themselves (`tree.rs`). The digest depends on nothing else:
//! not on the machine, the folder or the time.
//!
//! Only the front end depends on this crate, and no other crate is compiled again because the digest changed.

#[cfg(test)]
mod tree;

/// The version of the program, its commit and the digest of its sources: `0.1.0 (commit c0f3cd6e2a10, sources
/// 5d41402abc4b2a76)`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("GIVEWAY_BUILT_FROM"), ")");

/// The version that identifies results of simulations: `0.1.0, sources 5d41402abc4b2a76`.
pub const SIMULATION: &str = concat!(env!("CARGO_PKG_VERSION"), ", sources ", env!("GIVEWAY_SIMULATION"));

/// The version by which results from real frames are known, of a test bed and of recordings of a live bridge.
/// They depend on the live host and on the disciplines for the kernel, too.
pub const TESTBED: &str = concat!(env!("CARGO_PKG_VERSION"), ", sources ", env!("GIVEWAY_TESTBED"));

/// The commit of the sources, followed by "with changes" if they differ from it. `None` without a git
/// repository.
pub const COMMIT: Option<&str> = option_env!("GIVEWAY_COMMIT");

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::tree;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in crates/sources")
    }

    /// A folder with two crates, one of which has a subfolder.
    fn crates() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder can be created");
        for (file, text) in [("a/src/lib.rs", "mod b;"), ("a/src/b.rs", "//"), ("b/src/deep/c.rs", "//")] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().expect("the path has a folder"))
                .expect("a folder can be created");
            fs::write(path, text).expect("a file can be written");
        }
        dir
    }

    fn digest(dir: &tempfile::TempDir) -> String {
        tree::digest(dir.path(), &["a/src", "b/src"]).expect("the sources can be read")
    }

    #[test]
    fn the_digest_depends_on_the_sources_only() {
        let (one, two) = (crates(), crates());
        let digest_of_one = digest(&one);
        assert_eq!(digest_of_one.len(), 16);
        assert_eq!(digest_of_one, digest(&two));
        // A new modification time and other files have no effect.
        fs::write(two.path().join("a/src/lib.rs"), "mod b;").expect("a file can be written");
        fs::write(two.path().join("a/src/.lib.rs.swp"), "an editor's").expect("a file can be written");
        fs::write(two.path().join("a/src/lib.rs~"), "an editor's").expect("a file can be written");
        assert_eq!(digest_of_one, digest(&two));
    }

    #[test]
    fn each_change_of_a_source_changes_the_digest() {
        let before = digest(&crates());
        let changes: [fn(&Path); 5] = [
            |dir| fs::write(dir.join("a/src/b.rs"), "// ").expect("a file can be written"),
            |dir| fs::write(dir.join("b/src/new.rs"), "").expect("a file can be written"),
            |dir| fs::remove_file(dir.join("b/src/deep/c.rs")).expect("the file exists"),
            |dir| fs::rename(dir.join("a/src/b.rs"), dir.join("a/src/c.rs")).expect("the file exists"),
            // Two files are swapped: all names and all contents are the same.
            |dir| {
                fs::write(dir.join("a/src/lib.rs"), "//").expect("a file can be written");
                fs::write(dir.join("a/src/b.rs"), "mod b;").expect("a file can be written");
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let dir = crates();
            change(dir.path());
            assert_ne!(before, digest(&dir), "change {number}");
        }
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let dir = crates();
        let error = tree::digest(dir.path(), &["a/src", "gone/src"]).unwrap_err();
        assert_eq!(error.to_string(), "cannot read gone/src");
    }

    /// The digest in the program matches the current sources.
    #[test]
    fn the_program_was_built_from_these_sources() {
        let now = tree::digest(root(), tree::SIMULATION).expect("the sources can be read");
        assert!(super::SIMULATION.ends_with(&now), "{} is not {now}", super::SIMULATION);
        assert!(super::VERSION.starts_with(env!("CARGO_PKG_VERSION")) && super::VERSION.contains(&now));
        assert_ne!(super::SIMULATION, super::TESTBED);
    }

    /// A new crate must be added to `tree.rs`, or to this list if results do not depend on it.
    #[test]
    fn each_crate_is_hashed_or_listed_as_unrelated() {
        let unrelated = [
            "c",
            "cli",
            "compare",
            "counting",
            "document",
            "evaluate",
            "files",
            "fuzzing",
            "instructions",
            "judge",
            "kernel-check",
            "net",
            "program",
            "python",
            "runner",
            "senders",
            "sources",
            "sweep",
            "text",
            "trials",
            "wasm",
        ];
        for entry in fs::read_dir(root().join("crates")).expect("the folder can be read").flatten() {
            let name = entry.file_name().into_string().expect("the name of a crate is UTF-8");
            let known = tree::TESTBED.iter().any(|path| path.starts_with(&format!("crates/{name}/")));
            assert!(
                known || unrelated.contains(&name.as_str()),
                "{name} is neither in tree.rs nor in this list"
            );
        }
        assert!(tree::SIMULATION.iter().all(|path| tree::TESTBED.contains(path)));
    }
}
