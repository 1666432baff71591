//! Licences and notices of all code by others that a release contains, as one file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::making::Release;
use super::platform;
use crate::repository::{Done, files_below};

/// Name of the file.
pub const FILE: &str = "THIRD-PARTY-LICENCES.txt";

/// The packages of the workspace that are published.
const PUBLISHED: [&str; 3] = [platform::PROGRAMS[0].0, platform::PROGRAMS[1].0, "giveway-python"];

const HEAD: &str = "\
Giveway contains code by others. This file lists the packages with their licences, and then the texts of these
licences, each with the packages that have it.
";

/// A text, and where it is from.
struct Notice {
    package: String,
    text: String,
}

/// Writes the file.
pub fn write(release: &Release) -> Done {
    let platforms = release.platforms.iter().flat_map(|platform| ["--filter-platform", platform.target]);
    let metadata = release.repository.metadata_with(&platforms.collect::<Vec<_>>())?;
    let packages = linked(&metadata)?;
    let mut list = String::new();
    let mut notices = standard_library(release)?;
    let mut silent = 0;
    for package in &packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        let folder = Path::new(text("manifest_path")).parent().unwrap_or(Path::new("/"));
        let files = files(folder)?;
        let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let authors = authors.collect::<Vec<_>>().join(", ");
        let by = if authors.is_empty() { String::new() } else { format!(", by {authors}") };
        let remark = if files.is_empty() { ", without a text of its own" } else { "" };
        silent += usize::from(files.is_empty());
        list += &format!("  {name}: {}{by}{remark}\n", text("license"));
        for file in files {
            let content = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            notices
                .push(Notice { package: name.clone(), text: String::from_utf8_lossy(&content).into_owned() });
        }
    }
    println!("{} packages, {silent} of them without a text of their own", packages.len());
    let path = release.out.join(FILE);
    let text = format!("{HEAD}\nPackages:\n\n{list}\n{}", grouped(notices));
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The packages by others that are linked into what is published, sorted. Tools of the build are not among
/// them.
fn linked(metadata: &Value) -> Result<Vec<&Value>, String> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let nodes = list(&metadata["resolve"]["nodes"]);
    let links = |id: &str| -> Vec<String> {
        let node = nodes.iter().find(|node| node["id"] == id).map(|node| list(&node["deps"]));
        let normal = |link: &Value| list(&link["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        let links = node.into_iter().flatten().filter(normal);
        links.filter_map(|link| Some(link["pkg"].as_str()?.to_owned())).collect()
    };
    let published = |package: &&Value| PUBLISHED.iter().any(|name| package["name"] == *name);
    let id = |package: &Value| package["id"].as_str().map(str::to_owned);
    let mut open: Vec<String> = packages.iter().filter(published).filter_map(id).collect();
    let mut found = BTreeSet::new();
    while let Some(next) = open.pop() {
        if !found.contains(&next) {
            open.extend(links(&next));
            found.insert(next);
        }
    }
    let other = |package: &&Value| !package["source"].is_null();
    let is_found = |package: &&Value| package["id"].as_str().is_some_and(|id| found.contains(id));
    let mut linked: Vec<&Value> = packages.iter().filter(other).filter(is_found).collect();
    linked.sort_by_key(|package| (package["name"].to_string(), package["version"].to_string()));
    Ok(linked)
}

/// The files of a package with licences and notices, also of C libraries in its folders, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    Ok(files_below(folder)?.into_iter().filter(|path| is_notice(&name(path))).collect())
}

/// True for a file with a licence or a notice, by its name in capitals. `COPYING` of a package with two
/// licences is often the one that does not apply, so it is only taken as a part of a name.
fn is_notice(name: &str) -> bool {
    let source = [".RS", ".C", ".H", ".PY", ".JS"].iter().any(|end| name.ends_with(end));
    let begins = ["LICENSE", "LICENCE", "UNLICENSE", "NOTICE", "COPYRIGHT"]
        .iter()
        .any(|begin| name.starts_with(begin));
    begins && !source
}

/// The notices of the standard library and the C library, which are parts of a static program.
fn standard_library(release: &Release) -> Result<Vec<Notice>, String> {
    let compiler = release.repository.output("rustc", &["--print", "sysroot"])?;
    let places = [
        (
            "the Rust standard library",
            Path::new(compiler.trim()).join("share/doc/rust/COPYRIGHT-library.html"),
        ),
        ("the C library musl", PathBuf::from("/usr/share/doc/musl-dev/copyright")),
    ];
    let read = |(package, path): (&str, PathBuf)| {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = if path.extension().is_some_and(|end| end == "html") { without_tags(&text) } else { text };
        Ok(Notice { package: package.to_owned(), text })
    };
    places.into_iter().map(read).collect()
}

/// The text of an HTML page, without its style sheet.
fn without_tags(page: &str) -> String {
    let body = page.split_once("<body>").map_or(page, |(_, body)| body);
    let mut text = String::new();
    for part in body.split('<') {
        text += part.split_once('>').map_or(part, |(_, after)| after);
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    let text = text.replace("&amp;", "&");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut kept: Vec<&str> = Vec::new();
    for line in lines {
        if !(line.is_empty() && kept.last().is_none_or(|last| last.is_empty())) {
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// Each text once, after the names of the packages that have it. Line ends and spaces at line ends do not
/// make a text another one.
fn grouped(notices: Vec<Notice>) -> String {
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for Notice { package, text } in notices {
        let text = text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        let place = *places.entry(text.clone()).or_insert(texts.len());
        match texts.get_mut(place) {
            None => texts.push((text, vec![package])),
            Some((_, packages)) if packages.last() != Some(&package) => packages.push(package),
            Some(_) => {}
        }
    }
    let rule = "=".repeat(100);
    let part = |(text, packages): (String, Vec<String>)| {
        format!("{rule}\n{}\n{rule}\n\n{text}\n", packages.join(", "))
    };
    texts.into_iter().map(part).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn linked_packages_are_those_of_normal_dependencies() {
        let package =
            |name: &str, source: Value| json!({"id": name, "name": name, "version": "1.0", "source": source});
        let link = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let from = || Value::from("registry");
        let metadata = json!({
            "packages": [
                package("giveway-cli", Value::Null), package("inner", Value::Null), package("zstd", from()),
                package("cc", from()), package("insta", from()), package("arrow", from()), package("other", from()),
            ],
            "resolve": {"nodes": [
                {"id": "giveway-cli", "deps": [link("inner", Value::Null), link("insta", "dev".into())]},
                {"id": "inner", "deps": [link("zstd", Value::Null), link("arrow", Value::Null)]},
                {"id": "zstd", "deps": [link("cc", "build".into())]},
            ]},
        });
        let names: Vec<&str> =
            linked(&metadata).unwrap().iter().filter_map(|package| package["name"].as_str()).collect();
        assert_eq!(names, ["arrow", "zstd"]);
    }

    #[test]
    fn a_text_is_written_once() {
        let notice =
            |package: &str, text: &str| Notice { package: package.to_owned(), text: text.to_owned() };
        let text =
            grouped(vec![notice("a 1", "MIT\nfree \n"), notice("b 2", "ISC"), notice("c 3", "MIT\r\nfree")]);
        assert_eq!(text.matches("MIT\nfree").count(), 1);
        assert!(text.contains("a 1, c 3\n") && text.contains("b 2\n"), "{text}");
    }

    #[test]
    fn licences_are_known_by_their_names() {
        for (name, expected) in [
            ("LICENSE-MIT", true),
            ("NOTICE", true),
            ("COPYING", false),
            ("LICENSE.RS", false),
            ("LIB.RS", false),
        ] {
            assert_eq!(is_notice(name), expected, "{name}");
        }
    }

    #[test]
    fn tags_are_removed_from_pages() {
        let page = "<html><style>p {}</style><body><h1>A &amp; B</h1>\n\n\n<p>&lt;b&gt;</p></body></html>";
        assert_eq!(without_tags(page), "A & B\n\n<b>");
    }
}
