//! The pages of the book as plain HTML, for the check of their links. mdBook makes the site, and takes a
//! minute and a half to build; a sentence of the book needs only this.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::repository::{Done, files_below};

/// Writes each page of a folder of Markdown as HTML into another folder, and copies the other files.
///
/// # Errors
/// If a file cannot be read or written, or a page is not in `SUMMARY.md`.
pub fn make(sources: &Path, folder: &Path) -> Done {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let _ = fs::remove_dir_all(folder);
    let summary =
        fs::read_to_string(sources.join("SUMMARY.md")).map_err(|error| format!("SUMMARY.md: {error}"))?;
    for file in files_below(sources)? {
        let name = file.strip_prefix(sources).expect("the file is in the folder");
        let mut target = folder.join(name);
        let place = target.parent().expect("a file is in a folder").to_owned();
        fs::create_dir_all(&place).map_err(|error| failed(&place, error))?;
        if name.extension() != Some("md".as_ref()) {
            fs::copy(&file, &target).map_err(|error| failed(&file, error))?;
            continue;
        }
        let chapter = format!("({})", name.display());
        if name != Path::new("SUMMARY.md") && !summary.contains(&chapter) {
            return Err(format!("docs/book/{}: SUMMARY.md has no chapter {chapter}", name.display()));
        }
        let text = fs::read_to_string(&file).map_err(|error| failed(&file, error))?;
        target.set_extension("html");
        fs::write(&target, page(&text)).map_err(|error| failed(&target, error))?;
    }
    Ok(())
}

/// A page as HTML, with the anchors that mdBook gives to headings, and with links to the HTML of other pages.
fn page(text: &str) -> String {
    let events: Vec<Event<'_>> =
        Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES).collect();
    let mut seen = BTreeMap::new();
    let mut made = Vec::with_capacity(events.len());
    for (at, event) in events.iter().enumerate() {
        made.push(match event {
            Event::Start(Tag::Heading { level, .. }) => {
                heading(*level, anchor(&title(&events[at..]), &mut seen))
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => Event::Start(Tag::Link {
                link_type: *link_type,
                dest_url: to_html(dest_url),
                title: title.clone(),
                id: id.clone(),
            }),
            other => other.clone(),
        });
    }
    let mut out = String::new();
    html::push_html(&mut out, made.into_iter());
    out
}

fn heading(level: HeadingLevel, anchor: String) -> Event<'static> {
    Event::Start(Tag::Heading { level, id: Some(anchor.into()), classes: Vec::new(), attrs: Vec::new() })
}

/// The text of the heading with which these events start.
fn title(events: &[Event<'_>]) -> String {
    let inside = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let texts = inside.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        _ => None,
    });
    texts.collect()
}

/// The anchor of a heading in mdBook: letters, digits, `_` and `-` in lower case, spaces as `-`, and a number
/// if the page had it before.
fn anchor(title: &str, seen: &mut BTreeMap<String, u32>) -> String {
    let kept = title.trim().chars().filter_map(|letter| match letter {
        letter if letter.is_alphanumeric() || letter == '_' || letter == '-' => Some(letter),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    let anchor: String = kept.flat_map(char::to_lowercase).collect();
    let before = seen.entry(anchor.clone()).or_default();
    *before += 1;
    if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
}

/// A link to a page of Markdown as a link to its HTML.
fn to_html<'a>(link: &CowStr<'a>) -> CowStr<'a> {
    let (path, anchor) =
        link.split_once('#').map_or((link.as_ref(), None), |(path, anchor)| (path, Some(anchor)));
    match (path.strip_suffix(".md"), anchor) {
        _ if path.contains("://") => link.clone(),
        (None, _) => link.clone(),
        (Some(stem), None) => format!("{stem}.html").into(),
        (Some(stem), Some(anchor)) => format!("{stem}.html#{anchor}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_anchors_of_mdbook() {
        let text = "# `tc`, and *Linux*\n\n## A b_c-d\n\n## A b_c-d\n\n[there](a.md#x) [here](#a-b_c-d) [far](https://a.b/c.md)\n";
        let page = page(text);
        for part in [
            "id=\"tc-and-linux\"",
            "id=\"a-b_c-d\"",
            "id=\"a-b_c-d-1\"",
            "href=\"a.html#x\"",
            "href=\"#a-b_c-d\"",
            "href=\"https://a.b/c.md\"",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }
}
