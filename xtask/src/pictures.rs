//! The pictures of the book. `docs/pictures.toml` has the commands that make each, so no picture is older
//! than the program.

mod gallery;
mod list;
mod making;
mod svg;

use std::fs;
use std::path::Path;

use crate::browser::Browser;
use crate::repository::{Done, Repository};
use list::{List, Picture};
use making::Making;

/// The folder of the pictures.
const FOLDER: &str = "docs/book/images";

/// Makes all pictures, or those with the names, and the gallery.
///
/// # Errors
/// If the list contains an error, a command fails, or there is no browser.
pub fn write(repository: &Repository, only: &[&str]) -> Done {
    repository.cargo(&["build", "--locked", "--quiet", "--package", "giveway-cli"])?;
    let browser = Browser::find(repository)?.ok_or("charts are drawn by a browser")?;
    let list = List::read(repository)?;
    if let Some(unknown) =
        only.iter().find(|name| !list.pictures.iter().any(|picture| picture.name == **name))
    {
        return Err(format!("{} has no picture {unknown}", list::FILE));
    }
    let chosen = |picture: &&Picture| only.is_empty() || only.contains(&picture.name.as_str());
    let making = Making::new(repository, &browser)?;
    for picture in list.pictures.iter().filter(chosen) {
        let file = path(picture);
        let content = making.make(picture)?;
        println!("{file}: {} bytes", content.len());
        store(&repository.root.join(&file), &content)?;
    }
    store(&repository.root.join(gallery::FILE), gallery::page(repository, &list)?.as_bytes())
}

/// Makes all drawings again, and compares them and the gallery with the stored ones. The pixels of a page
/// depend on the fonts of a machine, so its picture only has to exist.
///
/// # Errors
/// All pictures that differ.
pub fn check(repository: &Repository) -> Done {
    let list = List::read(repository)?;
    let mut stale = Vec::new();
    if stored(repository, gallery::FILE)? != gallery::page(repository, &list)?.as_bytes() {
        stale.push(gallery::FILE.to_owned());
    }
    let browser = Browser::find(repository)?;
    let making = browser.as_ref().map(|browser| Making::new(repository, browser)).transpose()?;
    for picture in &list.pictures {
        let file = path(picture);
        let before = stored(repository, &file)?;
        if let (None, Some(making)) = (picture.page, &making)
            && making.make(picture)? != before
        {
            stale.push(file);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("out of date: {}\nrun cargo xtask pictures, and look at them", stale.join(", ")))
}

/// The file of a picture.
fn path(picture: &Picture) -> String {
    format!("{FOLDER}/{}", picture.file())
}

/// The bytes of a file of the repository.
fn stored(repository: &Repository, file: &str) -> Result<Vec<u8>, String> {
    fs::read(repository.root.join(file)).map_err(|error| format!("{file}: {error}; run cargo xtask pictures"))
}

fn store(path: &Path, content: &[u8]) -> Done {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}
