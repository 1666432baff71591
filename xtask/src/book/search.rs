//! Tries the search of the site in a browser, from the disk and without a network.

use std::path::Path;

use crate::browser::Browser;
use crate::html::tags;
use crate::repository::{Done, Repository};

/// A word of several chapters.
const WORD: &str = "bufferbloat";
/// The list of results.
const RESULTS: &str = "mdbook-searchresults";

/// Opens the first page with a word to search for.
///
/// # Errors
/// If the list of results is empty. Without a browser nothing is tried, except in CI, where it must exist.
pub fn check(repository: &Repository, site: &Path) -> Done {
    let Some(browser) = Browser::find(repository)? else { return Ok(()) };
    let page = browser.page(&site.join("index.html"), &format!("?search={WORD}"))?;
    let found = results(&page);
    println!("the search for {WORD:?} has {found} results");
    if found == 0 { Err(format!("the search for {WORD:?} finds nothing")) } else { Ok(()) }
}

/// The number of results on a page.
fn results(page: &str) -> usize {
    let list = page.split_once(&format!("id=\"{RESULTS}\"")).map_or("", |(_, list)| list);
    let list = list.split_once("</ul>").map_or("", |(list, _)| list);
    tags(list).iter().filter(|tag| tag.name == "li").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let list = "<ul><li>0</li></ul><ul id=\"mdbook-searchresults\"><li>1</li><li>2</li></ul><li>3</li>";
        assert_eq!((results(list), results("<ul></ul>")), (2, 0));
    }
}
