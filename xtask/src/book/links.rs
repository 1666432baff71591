//! Checks every link of a site: pages, anchors, pictures, styles and scripts. A site may not load anything
//! from another host; only `<a href>` may lead to one, and then only the form of the address is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::html::{Tag, tags};
use crate::repository::files_below;

/// The numbers of what was checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pages: usize,
    /// Links to files of the site.
    inside: usize,
    /// Those with an anchor.
    anchors: usize,
    /// Links to other hosts.
    outside: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { pages, inside, anchors, outside } = self;
        write!(f, "{pages} pages, {inside} links inside ({anchors} with an anchor), {outside} to other hosts")
    }
}

/// Attributes that name a file, and the tags with them.
const SOURCES: [(&str, &[&str]); 5] = [
    ("href", &["a", "link", "area"]),
    ("src", &["img", "script", "iframe", "source", "video", "audio", "embed"]),
    ("poster", &["video"]),
    ("data", &["object"]),
    ("xlink:href", &["image", "use"]),
];

/// The pages of a site: tags by path, relative to the site.
type Pages = BTreeMap<PathBuf, Vec<Tag>>;

/// Checks all pages and styles of a site.
///
/// # Errors
/// All links without a target, each with its page.
pub fn check(site: &Path) -> Result<Counts, String> {
    let files = files(site)?;
    let read = |path: &Path| {
        fs::read_to_string(site.join(path)).map_err(|error| format!("{}: {error}", path.display()))
    };
    let has_extension = |path: &&PathBuf, extension: &str| path.extension() == Some(OsStr::new(extension));
    let mut pages = Pages::new();
    for path in files.iter().filter(|path| has_extension(path, "html")) {
        pages.insert(path.clone(), tags(&read(path)?));
    }
    if pages.is_empty() {
        return Err(format!("{} has no page", site.display()));
    }
    let mut counts = Counts { pages: pages.len(), ..Counts::default() };
    let mut wrong = Vec::new();
    for (page, tags) in &pages {
        for (tag, link) in tags.iter().flat_map(|tag| links(tag).map(move |link| (tag, link))) {
            if let Err(why) = one(page, tag, link, &files, &pages, &mut counts) {
                wrong.push(format!("{}: {why}", page.display()));
            }
        }
    }
    for path in files.iter().filter(|path| has_extension(path, "css")) {
        for link in addresses(&read(path)?).filter(|link| !link.starts_with("data:")) {
            counts.inside += 1;
            if !resolved(path, link).is_some_and(|target| files.contains(&target)) {
                wrong.push(format!("{}: url({link}) is not in the book", path.display()));
            }
        }
    }
    if wrong.is_empty() { Ok(counts) } else { Err(wrong.join("\n")) }
}

/// All files of a folder, relative to it.
fn files(site: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let files = files_below(site)?;
    Ok(files.iter().filter_map(|path| path.strip_prefix(site).ok()).map(Path::to_owned).collect())
}

/// The links of a tag.
fn links(tag: &Tag) -> impl Iterator<Item = &str> {
    let fitting = SOURCES.iter().filter(|(_, names)| names.contains(&tag.name.as_str()));
    fitting.filter_map(|(attribute, _)| tag.get(attribute))
}

/// Checks a link of a page.
fn one(
    page: &Path,
    tag: &Tag,
    link: &str,
    files: &BTreeSet<PathBuf>,
    pages: &Pages,
    counts: &mut Counts,
) -> Result<(), String> {
    if let Some(scheme) = scheme(link) {
        return match (tag.name.as_str(), scheme) {
            ("img", "data") => Ok(()),
            ("a", "http" | "https" | "mailto") if is_address(link) => {
                counts.outside += 1;
                Ok(())
            }
            ("a", _) => Err(format!("{link} is not an address: write https://HOST/PATH")),
            (name, _) => Err(format!("<{name}> loads {link}: put the file into the book")),
        };
    }
    counts.inside += 1;
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let target = if path.is_empty() { Some(page.to_owned()) } else { resolved(page, path) };
    let target = target.filter(|target| files.contains(target));
    let target = target.ok_or_else(|| format!("{link} is not in the book"))?;
    let Some(anchor) = anchor.filter(|anchor| !anchor.is_empty()) else { return Ok(()) };
    let tags = pages.get(&target).ok_or_else(|| format!("{link}: only a page has anchors"))?;
    counts.anchors += 1;
    let anchor = decoded(anchor);
    match tags.iter().any(|tag| [tag.get("id"), tag.get("name")].contains(&Some(&anchor))) {
        true => Ok(()),
        false => Err(format!("{link}: {} lacks a heading with this anchor", target.display())),
    }
}

/// The scheme of a link; for `//HOST` it is `https`.
fn scheme(link: &str) -> Option<&str> {
    if link.starts_with("//") {
        return Some("https");
    }
    let (scheme, _) = link.split_once(':')?;
    scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)).then_some(scheme)
}

/// True if an address has the form of one: a host with a dot after `https://`, and no spaces.
fn is_address(link: &str) -> bool {
    let host = match link.split_once("://") {
        Some((_, rest)) => rest.split(['/', '?', '#']).next().unwrap_or_default(),
        None => link.rsplit_once('@').map_or("", |(_, host)| host),
    };
    let is_host = |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:".contains(c));
    host.contains('.') && is_host(host) && !link.contains(char::is_whitespace)
}

/// The file that a relative link names, relative to the site; `None` if it leads out of the site.
fn resolved(page: &Path, link: &str) -> Option<PathBuf> {
    let mut target = page.parent()?.to_owned();
    for part in Path::new(&decoded(link)).components() {
        match part {
            Component::Normal(name) => target.push(name),
            Component::CurDir => {}
            Component::ParentDir => target.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(target)
}

/// Replaces escaped bytes (`%20`).
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.as_bytes());
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The addresses in `url(...)` of a style, without anchors.
fn addresses(style: &str) -> impl Iterator<Item = &str> {
    style.split("url(").skip(1).filter_map(|rest| {
        let link = rest.split_once(')')?.0.trim_matches(['"', '\'', ' ']);
        link.split(['#', '?']).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a site of one page in a folder, one at the top, a style and a picture.
    fn checked(name: &str, page: &str, style: &str) -> Result<Counts, String> {
        let site = std::env::temp_dir().join(format!("giveway-links-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&site);
        fs::create_dir_all(site.join("in")).unwrap();
        fs::write(site.join("index.html"), "<h1 id=\"top\">1</h1>").unwrap();
        fs::write(site.join("in/a b.svg"), "").unwrap();
        fs::write(site.join("in/page.html"), page).unwrap();
        fs::write(site.join("in/style.css"), style).unwrap();
        let result = check(&site);
        fs::remove_dir_all(&site).unwrap();
        result
    }

    #[test]
    fn links_with_a_target_are_counted() {
        let page = "<a href=\"../index.html#top\">1</a><a href=\"https://example.org/a?b#c\">2</a><a href=\"#own\" \
                    id=own>3</a><img src=\"a%20b.svg\"><img src=\"data:,\"><a href=\"mailto:me@example.org\">4</a>\
                    <a href=\"../index.html?search=x\">5</a>";
        let style = "a { background: url('../in/a b.svg#x') } b { background: url(data:image/png;base64,x) }";
        let expected = Counts { pages: 2, inside: 5, anchors: 2, outside: 2 };
        assert_eq!(checked("right", page, style), Ok(expected));
    }

    #[test]
    fn each_link_without_a_target_is_named() {
        for (at, (page, words)) in [
            ("<a href=\"none.html\">", "none.html is not in the book"),
            ("<a href=\"../../index.html\">", "is not in the book"),
            ("<a href=\"/index.html\">", "is not in the book"),
            ("<a href=\"../index.html#bottom\">", "index.html lacks a heading"),
            ("<a href=\"#own\">", "page.html lacks a heading"),
            ("<img src=\"none.svg\">", "none.svg is not in the book"),
            ("<a href=\"https://example\">", "is not an address"),
            ("<a href=\"javascript:alert(1)\">", "is not an address"),
            ("<img src=\"https://example.org/a.svg\">", "<img> loads"),
            ("<script src=\"//example.org/a.js\"></script>", "<script> loads"),
            ("<link rel=stylesheet href=\"http://example.org/a.css\">", "<link> loads"),
        ]
        .into_iter()
        .enumerate()
        {
            let why = checked(&format!("wrong-{at}"), page, "").unwrap_err();
            assert!(why.starts_with("in/page.html: ") && why.contains(words), "{page}: {why}");
        }
        for style in ["a { background: url(none.svg) }", "@import url(https://example.org/a.css);"] {
            assert!(checked("style", "", style).unwrap_err().starts_with("in/style.css: url("), "{style}");
        }
    }
}
