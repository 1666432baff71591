//! Options of `cargo xtask release`.

use std::path::PathBuf;

/// Options of a release.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Folder of the finished files, relative to the root of the repository.
    pub out: Option<PathBuf>,
    /// Build everything a second time, and compare.
    pub check: bool,
    /// Kinds of files that are not made, and platforms that are left out.
    pub without: Vec<String>,
}

impl Options {
    /// Parses the options. `parts` contains the names of everything that may be left out.
    ///
    /// # Errors
    /// If an option or a kind is unknown, or has no value.
    pub fn parse(words: &[&str], parts: &[&str]) -> Result<Options, String> {
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
                ["--without", part, rest @ ..] if parts.contains(part) => {
                    options.without.push((*part).to_owned());
                    rest
                }
                ["--without", ..] => {
                    return Err(format!("--without takes one of {}", parts.join(", ")));
                }
                [word, ..] => {
                    return Err(format!(
                        "cargo xtask release takes --out DIR, --check and --without PART, not {word}"
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
        let parts = ["program", "wheels"];
        let options = Options::parse(&["--check", "--out", "files", "--without", "wheels"], &parts).unwrap();
        let expected = Options { out: Some("files".into()), check: true, without: vec!["wheels".to_owned()] };
        assert_eq!(options, expected);
        for wrong in [&["--out"][..], &["--without", "wheel"], &["--without"], &["files"]] {
            assert!(Options::parse(wrong, &parts).is_err(), "{wrong:?}");
        }
    }
}
