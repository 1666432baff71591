//! No circle of imports among the files of a crate.
//!
//! The nodes are the files below `src`; inline modules belong to their file. File A imports file B if code of
//! A names an item that B *defines*, by a path (`crate::b::Item`, `super::Item`, `b::f()`) or by a `use`.
//! Re-exports are followed to the definition, so the file between them is not imported. A circle is a set of
//! files each of which imports, directly or not, each other one.
//!
//! Not counted:
//!
//! - Tests: everything after `#[cfg(test)]`, and files whose name ends in `tests.rs`.
//! - `mod` declarations, also from the registries' macros, and a `pub use` of a name that the file itself
//!   does not use. A parent that only declares and re-exports its children imports none. But a child that
//!   uses items of its parent's file, while the parent uses the child's, is a circle of two files.
//! - Links in doc comments, items that macros of other files name, and methods: the test reads text, not
//!   types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{root, rust_files};

#[test]
fn files_of_a_crate_have_no_import_circle() {
    let mut wrong = Vec::new();
    let mut folders: Vec<_> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path()).collect();
    folders.extend([root().join("xtask"), root().join("xtask/docs")]);
    folders.sort();
    for folder in folders.iter().filter(|folder| folder.join("src").is_dir()) {
        let name = folder.file_name().expect("it is a folder").to_string_lossy().into_owned();
        for circle in circles(&read(&folder.join("src"))) {
            wrong.push(format!("{name}: a circle: {}", circle.files.join(", ")));
            wrong.extend(circle.imports.iter().map(|(from, to)| format!("    {from} imports {to}")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The files of a crate, by name relative to `src`, with their code.
type Files = BTreeMap<String, String>;

fn read(src: &Path) -> Files {
    let files = rust_files(src).into_iter().map(|path| {
        let name = path.strip_prefix(src).expect("it is below src").to_string_lossy().replace('\\', "/");
        (name, std::fs::read_to_string(&path).expect("a source file is text"))
    });
    // Programs in `bin` are crates of their own.
    files.filter(|(name, _)| !name.ends_with("tests.rs") && !name.starts_with("bin/")).collect()
}

/// `a/b.rs` and `a/b/mod.rs` are the module `["a", "b"]`, the root of the crate is `[]`.
fn module_of(file: &str) -> Vec<String> {
    let parts = file.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut parts: Vec<String> = parts.collect();
    if parts.last().is_some_and(|last| last == "mod") || matches!(file, "lib.rs" | "main.rs") {
        parts.pop();
    }
    parts
}

/// A name that a `use` brings into a file.
struct Import {
    path: Vec<String>,
    /// The last segment, or the name after `as`; `*` for all.
    name: String,
    public: bool,
}

#[derive(Default)]
struct Code {
    imports: Vec<Import>,
    /// Paths of at least two segments outside of `use`.
    paths: Vec<Vec<String>>,
    /// All words outside of `use`.
    words: BTreeSet<String>,
    /// Names of items that are defined here.
    items: BTreeSet<String>,
}

struct Crate {
    modules: BTreeMap<Vec<String>, (String, Code)>,
}

/// Files that import each other.
struct Circle {
    files: Vec<String>,
    /// Imports among them: from, to.
    imports: Vec<(String, String)>,
}

fn circles(files: &Files) -> Vec<Circle> {
    // Beside `lib.rs`, `main.rs` is the root of a program, which is a crate of its own.
    let own = files.iter().filter(|(name, _)| *name != "main.rs" || !files.contains_key("lib.rs"));
    let modules = own.map(|(name, text)| (module_of(name), (name.clone(), parse(text)))).collect();
    let graph = Crate { modules }.graph();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (&**file, reached(&graph, file))).collect();
    let mut done = BTreeSet::new();
    let mut circles = Vec::new();
    for file in graph.keys().map(String::as_str) {
        let both: Vec<String> = reach[file]
            .iter()
            .filter(|other| reach[*other].contains(file))
            .map(|&other| other.to_owned())
            .collect();
        if both.len() > 1 && done.insert(both.clone()) {
            let from_to = |from: &String| {
                let from = from.clone();
                graph[&from].clone().into_iter().map(move |to| (from.clone(), to))
            };
            let imports = both.iter().flat_map(from_to).filter(|(_, to)| both.contains(to)).collect();
            circles.push(Circle { files: both, imports });
        }
    }
    circles
}

fn reached<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for other in graph.get(file).into_iter().flatten() {
            if seen.insert(other.as_str()) {
                next.push(other);
            }
        }
    }
    seen
}

impl Crate {
    fn graph(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut graph = BTreeMap::new();
        for (module, (file, code)) in &self.modules {
            let mut imports: BTreeSet<Vec<String>> = BTreeSet::new();
            for import in &code.imports {
                if import.public && !code.words.contains(&import.name) {
                    continue;
                }
                let Some(path) = self.absolute(module, &import.path) else { continue };
                if import.name == "*" {
                    // A parent's names are in its file, or are imported there.
                    imports.extend(self.modules.contains_key(&path).then_some(path));
                    continue;
                }
                // A module that is imported as such is followed at its uses.
                imports.extend(self.definition(&path, 0));
            }
            for path in &code.paths {
                let first = code.imports.iter().find(|import| import.name == path[0] && path[0] != "*");
                let whole = match first {
                    Some(import) => [&import.path[..], &path[1..]].concat(),
                    None => path.clone(),
                };
                if let Some(path) = self.absolute(module, &whole) {
                    imports.extend(self.definition(&path, 0));
                }
            }
            imports.remove(module);
            let names = imports.iter().map(|module| self.modules[module].0.clone()).collect();
            graph.insert(file.clone(), names);
        }
        graph
    }

    /// The path from the root of the crate; none if it leads to another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut at = module.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()?),
            first => {
                at.push(first.to_owned());
                let child = self.modules.contains_key(&at);
                at.pop();
                if !child {
                    return None;
                }
                at.extend(rest.iter().cloned());
                return Some(at);
            }
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|part| part == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        at.extend(rest.iter().cloned());
        Some(at)
    }

    /// The module whose file defines the item of a path; none for a path of a module.
    fn definition(&self, path: &[String], depth: usize) -> Option<Vec<String>> {
        if self.modules.contains_key(path) || depth > 9 {
            return None;
        }
        let longest = (0..path.len()).rev().find(|length| self.modules.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(longest);
        let code = &self.modules[module].1;
        let name = &rest[0];
        if code.items.contains(name) {
            return Some(module.to_vec());
        }
        let named = code.imports.iter().find(|import| import.name == *name).map(|import| import.path.clone());
        let all = code
            .imports
            .iter()
            .filter(|import| import.name == "*")
            .map(|import| [&import.path[..], std::slice::from_ref(name)].concat());
        if let Some(from) = named {
            // Imported from another crate: no file of this one.
            let from = self.absolute(module, &from)?;
            return self.definition(&[&from[..], &rest[1..]].concat(), depth + 1);
        }
        for from in all {
            if let Some(from) = self.absolute(module, &from)
                && let Some(found) = self.definition(&from, depth + 1)
            {
                let names = &self.modules[&found].1.items;
                if names.contains(name) {
                    return Some(found);
                }
            }
        }
        // A macro may define it.
        Some(module.to_vec())
    }
}

/// Words and marks of the code before the tests; comments and strings are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut code = String::new();
    for line in text.lines().take_while(|line| line.trim() != "#[cfg(test)]") {
        let line = line.trim_start();
        if !line.starts_with("//") {
            code.push_str(line.split(" //").next().unwrap_or_default());
            code.push('\n');
        }
    }
    let mut tokens = Vec::new();
    let mut rest = code.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                while let Some(c) = rest.next() {
                    match c {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '\'' if rest.peek() == Some(&'"') || rest.peek() == Some(&'\\') => {
                // A character such as '"': what follows is not a string.
                let escaped = rest.next() == Some('\\');
                if escaped {
                    rest.next();
                }
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                tokens.push(word);
            }
            ':' if rest.peek() == Some(&':') => {
                rest.next();
                tokens.push("::".to_owned());
            }
            c if c.is_whitespace() => {}
            c => tokens.push(c.to_string()),
        }
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn parse(text: &str) -> Code {
    const ITEMS: [&str; 10] =
        ["fn", "struct", "enum", "trait", "const", "static", "type", "union", "mod", "macro_rules"];
    let tokens = tokens(text);
    let mut code = Code::default();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at].as_str();
        let before = at.checked_sub(1).map_or("", |at| tokens[at].as_str());
        let after = tokens.get(at + 1).map_or("", String::as_str);
        if token == "use" && (is_word(after) || after == "{" || after == "::") {
            let public = before == "pub" || before == ")";
            at += 1;
            tree(&tokens, &mut at, &[], public, &mut code.imports);
            continue;
        }
        if is_word(token) {
            if ITEMS.contains(&before) || (before == "!" && at > 1 && tokens[at - 2] == "macro_rules") {
                code.items.insert(token.to_owned());
            }
            code.words.insert(token.to_owned());
            if after == "::" && before != "::" && before != "$" {
                let mut path = vec![token.to_owned()];
                while tokens.get(at + 1).is_some_and(|token| token == "::")
                    && tokens.get(at + 2).is_some_and(|token| is_word(token))
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                if path.len() > 1 {
                    code.paths.push(path);
                }
            }
        }
        at += 1;
    }
    code
}

/// One tree of a `use`: `a::{b, c as d, e::*}`.
fn tree(tokens: &[String], at: &mut usize, prefix: &[String], public: bool, imports: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.as_str() {
            "::" => {}
            "{" => {
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    tree(tokens, at, &path, public, imports);
                    if tokens.get(*at).is_some_and(|token| token == ",") {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "*" => {
                imports.push(Import { path, name: "*".to_owned(), public });
                return;
            }
            "as" => {
                let name = tokens.get(*at).cloned().unwrap_or_default();
                *at += 1;
                imports.push(Import { path, name, public });
                return;
            }
            word if is_word(word) => {
                let own = word == "self" && !path.is_empty() && path.len() == prefix.len();
                if !own {
                    path.push(word.to_owned());
                }
                if tokens.get(*at).is_none_or(|next| next != "::" && next != "as") {
                    let name = path.last().cloned().unwrap_or_default();
                    imports.push(Import { path, name, public });
                    return;
                }
            }
            _ => return,
        }
    }
}

fn crate_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    circles(&files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
        .into_iter()
        .map(|circle| circle.files)
        .collect()
}

#[test]
fn a_circle_is_found_and_a_tree_has_none() {
    let lib = ("lib.rs", "mod a;\nmod b;\npub use a::A;\n");
    let a = ("a.rs", "use crate::b::{self, B};\npub struct A(B);\n");
    assert!(crate_of(&[lib, a, ("b.rs", "pub struct B;\n")]).is_empty());
    for b in [
        "use crate::A;\npub struct B(Box<A>);",
        "pub struct B;\nfn f() { super::a::A::new() }",
        "use super::a;\npub struct B;\nfn f() { a::g() }",
    ] {
        assert_eq!(crate_of(&[lib, a, ("b.rs", b)]), [["a.rs", "b.rs"]], "{b}");
    }
    for b in [
        "pub struct B;\n#[cfg(test)]\nmod tests { use crate::A; }",
        "//! [`crate::A`]\npub struct B; // crate::A::new()",
        "pub struct B;\nfn f() -> &'static str { \"crate::A::new()\" }",
        "use super::a;\npub use super::A;\npub struct B;",
    ] {
        assert!(crate_of(&[lib, a, ("b.rs", b)]).is_empty(), "{b}");
    }
}

#[test]
fn a_program_does_not_hide_the_library_beside_it() {
    let root = "mod a;\npub struct L(a::A);";
    let a = ("a.rs", "use crate::L;\npub struct A(Box<L>);");
    let main = ("main.rs", "fn main() {}");
    assert_eq!(crate_of(&[("lib.rs", root), a, main]), [["a.rs", "lib.rs"]]);
    assert_eq!(crate_of(&[("main.rs", root), a]), [["a.rs", "main.rs"]], "a program without a library");
}

#[test]
fn a_parent_and_its_child_are_a_circle_if_both_use_the_other() {
    let lib = ("lib.rs", "mod a;\n");
    let child = ("a/c.rs", "use super::P;\npub struct C(P);");
    assert!(crate_of(&[lib, ("a.rs", "mod c;\npub use c::C;\npub struct P;"), child]).is_empty());
    for parent in [
        "mod c;\npub use c::C;\npub struct P;\nfn f(_: C) {}",
        "mod c;\npub struct P;\nfn f() { c::C::new() }",
        "mod c;\nuse c::C;\npub struct P;",
    ] {
        assert_eq!(crate_of(&[lib, ("a.rs", parent), child]), [["a.rs", "a/c.rs"]], "{parent}");
    }
    // The parent only imports what the child uses.
    let leaf = ("p.rs", "pub struct P;");
    let parent = ("a.rs", "mod c;\nuse crate::p::P;\nfn f(_: c::C, _: P) {}");
    assert!(crate_of(&[("lib.rs", "mod a; mod p;"), parent, child, leaf]).is_empty());
}
