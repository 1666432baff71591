//! The book as a site that needs no network: built by mdBook, with checked links and a tried search.

mod links;
mod plain;
mod search;

use std::path::Path;

use crate::repository::{Done, Repository};
use crate::tools;

/// The sources of the book.
const SOURCES: &str = "docs/book";

/// Builds the site in `target/book`, and checks it.
///
/// # Errors
/// If [`make`] fails, or mdBook cannot be installed.
pub fn build(repository: &Repository) -> Done {
    make(repository, &tools::mdbook(repository)?, &repository.target()?.join("book"))
}

/// Checks the links of the pages without mdBook.
///
/// # Errors
/// If a page is not in the summary, a link has no target, or a page loads something from another host.
pub fn check_links(repository: &Repository) -> Done {
    let folder = repository.target()?.join("xtask/book");
    plain::make(&repository.root.join(SOURCES), &folder)?;
    let counts = links::check(&folder)?;
    println!("{counts}");
    Ok(())
}

/// Builds the site in a folder with mdBook, and checks it.
///
/// # Errors
/// If mdBook fails, a chapter of the summary has no file, a link has no target, a page loads something from
/// another host, or the search finds nothing.
pub fn make(repository: &Repository, mdbook: &str, folder: &Path) -> Done {
    // Pages of chapters that exist no more must not stay.
    let _ = std::fs::remove_dir_all(folder);
    repository.run(mdbook, &["build", SOURCES, "--dest-dir", &folder.to_string_lossy()])?;
    // mdBook copies all files of the sources that are not Markdown.
    let settings = folder.join("book.toml");
    std::fs::remove_file(&settings).map_err(|error| format!("{}: {error}", settings.display()))?;
    let counts = links::check(folder)?;
    println!("{}: {counts}", folder.display());
    search::check(repository, folder)
}
