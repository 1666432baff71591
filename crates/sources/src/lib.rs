//! Which sources this program was built from: a digest of those that results depend on, and the commit where there is one.
//!
//! A result is taken up again only by a program that would get the same result. The version number does not say that, since
//! it stays the same while somebody works on a discipline; nor does the commit, which says nothing about changes that are
//! not committed, and differs for a corrected comment in the book. So the sources themselves are hashed (`tree.rs`) when
//! the program is built. The same sources give the same digest, whatever the machine, the folder and the time.
//!
//! Only the front end depends on this crate: after a change of a discipline nothing is built again for the digest's sake
//! but this crate, which is a hundred lines.

#[cfg(test)]
mod tree;

/// The version of the program with its commit and its sources: `0.1.0 (commit c0f3cd6e2a10, sources 5d41402abc4b2a76)`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("GIVEWAY_BUILT_FROM"), ")");

/// The version by which results of simulations are known: `0.1.0, sources 5d41402abc4b2a76`.
pub const SIMULATION: &str = concat!(env!("CARGO_PKG_VERSION"), ", sources ", env!("GIVEWAY_SIMULATION"));

/// The version by which results from real frames are known, those of a test bed and recordings of a live bridge. They depend
/// on the live host and on the disciplines for the kernel, too.
pub const TESTBED: &str = concat!(env!("CARGO_PKG_VERSION"), ", sources ", env!("GIVEWAY_TESTBED"));

/// The commit of the sources, where git knows it. With the words "with changes" if they were changed since.
pub const COMMIT: Option<&str> = option_env!("GIVEWAY_COMMIT");

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::tree;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies two folders deep")
    }

    /// Two crates in a folder, one of them with a folder in its sources.
    fn crates() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("there is room for a folder");
        for (file, text) in [("a/src/lib.rs", "mod b;"), ("a/src/b.rs", "//"), ("b/src/deep/c.rs", "//")] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("there is room");
            fs::write(path, text).expect("there is room");
        }
        dir
    }

    fn digest(dir: &tempfile::TempDir) -> String {
        tree::digest(dir.path(), &["a/src", "b/src"]).expect("it can be read")
    }

    #[test]
    fn the_same_sources_have_the_same_digest_wherever_they_are() {
        let (one, two) = (crates(), crates());
        let digest_of_one = digest(&one);
        assert_eq!(digest_of_one.len(), 16);
        assert_eq!(digest_of_one, digest(&two));
        // Written again, with a new time, and beside something that is no source.
        fs::write(two.path().join("a/src/lib.rs"), "mod b;").expect("there is room");
        fs::write(two.path().join("a/src/.lib.rs.swp"), "an editor's").expect("there is room");
        fs::write(two.path().join("a/src/lib.rs~"), "an editor's").expect("there is room");
        assert_eq!(digest_of_one, digest(&two));
    }

    #[test]
    fn every_change_of_a_source_changes_the_digest() {
        let before = digest(&crates());
        let changes: [fn(&Path); 5] = [
            |dir| fs::write(dir.join("a/src/b.rs"), "// ").expect("there is room"),
            |dir| fs::write(dir.join("b/src/new.rs"), "").expect("there is room"),
            |dir| fs::remove_file(dir.join("b/src/deep/c.rs")).expect("it is there"),
            |dir| fs::rename(dir.join("a/src/b.rs"), dir.join("a/src/c.rs")).expect("it is there"),
            // Two files change places: each content is still there, and each name.
            |dir| {
                fs::write(dir.join("a/src/lib.rs"), "//").expect("there is room");
                fs::write(dir.join("a/src/b.rs"), "mod b;").expect("there is room");
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let dir = crates();
            change(dir.path());
            assert_ne!(before, digest(&dir), "change {number}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let dir = crates();
        assert!(tree::digest(dir.path(), &["a/src", "gone/src"]).is_err());
    }

    /// What this program says of itself is what is in the repository now.
    #[test]
    fn the_program_was_built_from_these_sources() {
        let now = tree::digest(root(), tree::SIMULATION).expect("the sources are here");
        assert!(super::SIMULATION.ends_with(&now), "{} is not {now}", super::SIMULATION);
        assert!(super::VERSION.starts_with(env!("CARGO_PKG_VERSION")) && super::VERSION.contains(&now));
        assert_ne!(super::SIMULATION, super::TESTBED);
    }

    /// A crate that is new belongs to what results depend on, or is named here as one that they do not depend on.
    #[test]
    fn every_crate_has_its_place() {
        let apart = ["cli", "counting", "document", "fuzzing", "kernel-check", "runner", "sources"];
        for entry in fs::read_dir(root().join("crates")).expect("there are crates").flatten() {
            let name = entry.file_name().into_string().expect("a crate's name is text");
            let known = tree::TESTBED.iter().any(|path| path.starts_with(&format!("crates/{name}/")));
            assert!(known || apart.contains(&name.as_str()), "{name} is neither in tree.rs nor here");
        }
        assert!(tree::SIMULATION.iter().all(|path| tree::TESTBED.contains(path)));
    }
}
