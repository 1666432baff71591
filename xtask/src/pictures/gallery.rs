//! The gallery: a chapter with all pictures and their commands, written from the list.

use std::fmt::Write as _;
use std::fs;

use super::list::{self, List, Picture};
use crate::repository::Repository;

/// The chapter.
pub const FILE: &str = "docs/book/gallery.md";
/// The sources of all chapters.
const BOOK: &str = "docs/book/";

/// The text of the chapter.
///
/// # Errors
/// If a chapter cannot be read.
pub fn page(repository: &Repository, list: &List) -> Result<String, String> {
    let mut chapters = Vec::new();
    for path in repository.files(BOOK, "md") {
        let name = repository.name_of(&path);
        if name != FILE {
            let text = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
            chapters.push((name.trim_start_matches(BOOK).to_owned(), text));
        }
    }
    Ok(written(list, &chapters))
}

/// The chapter, for other chapters by name.
fn written(list: &List, chapters: &[(String, String)]) -> String {
    let mut page = format!(
        "# Gallery\n\n<!-- Written by cargo xtask pictures from {}. -->\n\nEach picture is a figure of a report, or the top of \
         one. The commands above it write that report, in a folder that contains the\n`scenarios`, the `examples` and the \
         `papers` of the repository. In a report, figures also have tooltips, and keys that hide disciplines.\n",
        list::FILE
    );
    for picture in &list.pictures {
        let Picture { title, alt, commands, report, .. } = picture;
        let from = match &picture.figure {
            Some(figure) => format!("*{figure}* in `{report}`"),
            None => format!("The top of `{report}`"),
        };
        let file = format!("images/{}", picture.file());
        let users: Vec<String> = chapters
            .iter()
            .filter(|(_, text)| text.contains(&file))
            .map(|(name, text)| format!("[{}]({name})", heading(text)))
            .collect();
        let used = match users.as_slice() {
            [] => String::new(),
            users => format!(" From {}.", users.join(" and ")),
        };
        let commands = commands.join("\n");
        let _ = write!(page, "\n## {title}\n\n```sh\n{commands}\n```\n\n{from}.{used}\n\n![{alt}]({file})\n");
    }
    page
}

/// The title of a chapter.
fn heading(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("another chapter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_has_its_commands_and_chapters() {
        let list = "[[picture]]\nname = \"a\"\ntitle = \"A\"\nalt = \"Lines\"\nreport = \"r.html\"\ncommands = [\"giveway run \
                    s\"]\nfigure = \"F\"";
        let list: List = toml::from_str(list).unwrap();
        let chapters = [("x.md".to_owned(), "# The X\n\n![b](images/a.svg)\n".to_owned())];
        let page = written(&list, &chapters);
        let expected = "## A\n\n```sh\ngiveway run s\n```\n\n*F* in `r.html`. From [The X](x.md).\n\n\
                        ![Lines](images/a.svg)\n";
        assert!(page.ends_with(expected), "{page}");
        assert!(written(&list, &[]).ends_with("*F* in `r.html`.\n\n![Lines](images/a.svg)\n"));
    }
}
