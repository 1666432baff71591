//! The record of what was verified: for each check of the long form, the digest of the inputs with which it
//! last passed. It is a file of the repository, and only a check that passes writes its line.

use std::collections::BTreeMap;

use crate::repository::{Done, Repository};

/// The file of the record.
pub const FILE: &str = "xtask/verified.toml";

const HEAD: &str = "\
# The digest of the inputs with which each check of `cargo xtask test --all` last passed. A check that passes
# writes its line, and nobody edits it. `cargo xtask test` names a check with other inputs, and runs it in CI.

";

/// The digests by the name of the check.
#[derive(Debug, Default)]
pub struct Verified(BTreeMap<String, String>);

impl Verified {
    /// Reads the record; it is empty without a file.
    ///
    /// # Errors
    /// If the file is not a table of digests.
    pub fn read(repository: &Repository) -> Result<Verified, String> {
        let text = std::fs::read_to_string(repository.root.join(FILE)).unwrap_or_default();
        toml::from_str(&text).map(Verified).map_err(|error| format!("{FILE}: {error}"))
    }

    /// True if the check passed with inputs of this digest.
    pub fn has(&self, check: &str, digest: &str) -> bool {
        self.0.get(check).is_some_and(|known| known == digest)
    }

    /// Stores that a check passed, and removes the lines of checks other than these.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(repository: &Repository, checks: &[&str], check: &str, digest: &str) -> Done {
        // Another run may have stored a line since this one started.
        let Verified(mut lines) = Verified::read(repository)?;
        lines.retain(|name, _| checks.contains(&name.as_str()));
        lines.insert(check.to_owned(), digest.to_owned());
        let lines = toml::to_string(&lines).map_err(|error| error.to_string())?;
        let path = repository.root.join(FILE);
        // A run that is killed here must not leave half a record.
        let new = path.with_extension("new");
        let written =
            std::fs::write(&new, format!("{HEAD}{lines}")).and_then(|()| std::fs::rename(&new, &path));
        written.map_err(|error| format!("{FILE}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_that_of_a_check_and_a_digest() {
        let folder = std::env::temp_dir().join(format!("giveway-verified-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("xtask")).unwrap();
        let repository = Repository::at(&folder);
        let earlier = Verified::read(&repository).unwrap();
        assert!(!earlier.has("pictures", "0a"));
        let store =
            |checks: &[&str], check, digest| Verified::store(&repository, checks, check, digest).unwrap();
        store(&["pictures", "a name with spaces"], "pictures", "0a");
        store(&["pictures", "a name with spaces"], "a name with spaces", "0b");
        let both = Verified::read(&repository).unwrap();
        assert!(
            both.has("pictures", "0a") && both.has("a name with spaces", "0b") && !both.has("pictures", "0b")
        );
        store(&["pictures", "new"], "new", "0c");
        let last = Verified::read(&repository).unwrap();
        assert!(last.has("pictures", "0a") && last.has("new", "0c") && !last.has("a name with spaces", "0b"));
        std::fs::write(folder.join(FILE), "pictures = 1").unwrap();
        assert!(Verified::read(&repository).unwrap_err().starts_with(FILE));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
