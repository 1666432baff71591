//! Options of `cargo xtask release`.

use std::path::PathBuf;

/// Options of a release.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Folder of the finished files, relative to the root of the repository.
    pub out: Option<PathBuf>,
    /// Build everything a second time, and compare.
    pub check: bool,
    /// Kinds of files that are not made.
    pub without: Vec<String>,
}

impl Options {
    /// Parses the options. `kinds` has the names of all kinds of files.
    ///
    /// # Errors
    /// If an option or a kind is unknown, or has no value.
    pub fn parse<T>(words: &[&str], kinds: &[(&str, T)]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut rest = words;
        loop {
            rest = match rest {
                [] => return Ok(options),
                ["--check", rest @ ..] => {
                    options.check = true;
                    rest
                }
                ["--out", folder, rest @ ..] => {
                    options.out = Some(PathBuf::from(folder));
                    rest
                }
                ["--without", kind, rest @ ..] if kinds.iter().any(|(name, _)| name == kind) => {
                    options.without.push((*kind).to_owned());
                    rest
                }
                ["--without", ..] => {
                    let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
                    return Err(format!("--without takes one of {}", names.join(", ")));
                }
                [word, ..] => {
                    return Err(format!(
                        "cargo xtask release takes --out DIR, --check and --without KIND, not {word}"
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_others_refused() {
        let kinds = [("program", ()), ("wheels", ())];
        let options = Options::parse(&["--check", "--out", "files", "--without", "wheels"], &kinds).unwrap();
        let expected = Options { out: Some("files".into()), check: true, without: vec!["wheels".to_owned()] };
        assert_eq!(options, expected);
        for wrong in [&["--out"][..], &["--without", "wheel"], &["--without"], &["files"]] {
            assert!(Options::parse(wrong, &kinds).is_err(), "{wrong:?}");
        }
    }
}
