//! The checksums of all files, as `sha256sum --check` reads them.

use std::fs;

use super::making::Release;
use crate::repository::{Done, Repository};

/// Name of the file.
pub const FILE: &str = "SHA256SUMS";

/// Writes the checksums of all other files, sorted by name, and prints them.
pub fn write(release: &Release) -> Done {
    let failed = |error: std::io::Error| format!("{}: {error}", release.out.display());
    let entries = fs::read_dir(&release.out).map_err(failed)?.flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != FILE)
        .collect();
    names.sort();
    let sums =
        Repository::at(&release.out).output("sha256sum", &[&["--".to_owned()], &names[..]].concat())?;
    fs::write(release.out.join(FILE), &sums).map_err(failed)?;
    println!("\n{}", release.out.display());
    for (line, name) in sums.lines().zip(&names) {
        let size = fs::metadata(release.out.join(name)).map_err(failed)?.len();
        println!("{:>8.2} MB  {line}", size as f64 / 1e6);
    }
    Ok(())
}

/// The lines of two lists of checksums that are not in both.
pub fn differences(first: &str, second: &str) -> Vec<String> {
    let missing = |sign: char, from: &str, list: &str| -> Vec<String> {
        let lines = from.lines().filter(|line| !list.lines().any(|other| other == *line));
        lines.map(|line| format!("{sign} {line}")).collect()
    };
    [missing('-', first, second), missing('+', second, first)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_with_another_sum_or_another_file_differ() {
        let list = "aa  giveway.tar.gz\nbb  giveway.deb\n";
        assert!(differences(list, list).is_empty());
        assert_eq!(
            differences(list, "aa  giveway.tar.gz\ncc  giveway.deb\n"),
            ["- bb  giveway.deb", "+ cc  giveway.deb"]
        );
        assert_eq!(differences(list, "bb  giveway.deb\n"), ["- aa  giveway.tar.gz"]);
        assert_eq!(differences("", list).len(), 2);
    }
}
